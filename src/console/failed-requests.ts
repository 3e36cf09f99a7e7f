// The failed requests of an account, filtered by key, status and time: why each failed, and how to fix it.
import { ERRORS, type ErrorCode } from '../contract/errors.ts'
import { type ApiKey, FAILED_REQUESTS_KEPT, type FailedRequest } from '../store/account-store.ts'
import { html, type Html } from './html.ts'
import { counted, minute } from './times.ts'
import type { MemberVisit } from './visit.ts'

const SHOWN = 20

/** Reads those since that time, and renders them with the filter that the address asks for. */
export async function failedRequests({ store, who, query }: MemberVisit, span: string, since: number): Promise<Html> {
  const kept = (await store.accounts.failedRequests(who.account.id, FAILED_REQUESTS_KEPT)).filter(
    ({ at }) => at >= since,
  )
  const ids = new Set(kept.map(({ keyId }) => keyId))
  const keys = (await Promise.all(Array.from(ids, (id) => store.accounts.keyById(id)))).filter(
    (key) => key !== undefined,
  )
  const [key, status] = [query.get('key') ?? '', query.get('status') ?? '']
  const found = kept.filter(
    (failed) => (key === '' || failed.keyId === key) && (status === '' || String(failed.status) === status),
  )
  const statuses = [...new Set(kept.map((failed) => String(failed.status)))].toSorted()
  return html`${kept.length > 0 && filter(span, { key, status }, keys, statuses)}
    ${found.length === 0 ? none(kept.length > 0) : html`<ul class="cards">${found.slice(0, SHOWN).map((failed) => failureCard(failed, keys))}</ul>`}
    ${found.length > SHOWN && html`<p class="quiet-text">The newest ${SHOWN} of ${counted(found.length, 'failed request')}.</p>`}`
}

function filter(
  span: string,
  chosen: { key: string; status: string },
  keys: readonly ApiKey[],
  statuses: readonly string[],
): Html {
  const option = (value: string, words: string, selected: boolean) =>
    html`<option value="${value}" ${selected && html`selected`}>${words}</option>`
  return html`<form class="filter" method="get" action="/activity">
    <input type="hidden" name="span" value="${span}">
    <label>Key <select name="key">${option('', 'All keys', chosen.key === '')}
      ${keys.map(({ id, name }) => option(id, name, id === chosen.key))}</select></label>
    <label>Status <select name="status">${option('', 'All', chosen.status === '')}
      ${statuses.map((status) => option(status, status, status === chosen.status))}</select></label>
    <button class="button">Filter</button>
  </form>`
}

function none(someOthers: boolean): Html {
  if (someOthers)
    return html`<div class="empty"><p><strong>None of these</strong></p><p>No failed request fits the filter.</p></div>`
  return html`<div class="empty"><p><strong>No failed requests</strong></p>
    <p>When a request with one of your keys fails, it is explained here.</p></div>`
}

function failureCard(
  { at, keyId, requestId, operation, status, code, message }: FailedRequest,
  keys: readonly ApiKey[],
): Html {
  const key = keys.find(({ id }) => id === keyId)
  const known = Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode] : undefined
  return html`<li class="card failure">
    <p class="failure-head"><span class="mark ${status < 500 ? 'pending' : 'bad'}">${status}</span>
      <a href="/docs/errors#${code}"><code>${code}</code></a>
      <span class="quiet-text"><code>${operation}</code>${key && html` with <bdi>${key.name}</bdi>`}, ${minute(at)}</span></p>
    <p class="failure-message"><bdi>${message}</bdi></p>
    ${known && html`<p><strong>Fix:</strong> ${known.fix}</p>`}
    <p class="quiet-text">Request-Id <code>${requestId}</code></p>
  </li>`
}
