// The page of an account's use of the API: its requests over time, and why requests failed and how to fix that.
import { entryOf } from '../contract/entry-of.ts'
import { ERRORS } from '../contract/errors.ts'
import { BASE_PATH, OPERATIONS } from '../contract/operations.ts'
import { type ApiKey, FAILED_REQUESTS_KEPT, type FailedRequest } from '../store/account-store.ts'
import { firstBucket, requestCharts, SPANS } from './activity-chart.ts'
import { hidden, optionList } from './forms.ts'
import { emptyState, html, type Html, isolated } from '../http/html.ts'
import { minute } from './times.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit } from './visit.ts'

export const activityRoutes: readonly ConsoleRoute[] = [forMembers('GET', '/activity', activityPage)]

type SpanName = keyof typeof SPANS

async function activityPage(visit: MemberVisit): Promise<HtmlPage> {
  const { store, who, now, query } = visit
  const name = query.get('span') ?? ''
  const chosen: SpanName = Object.hasOwn(SPANS, name) ? (name as SpanName) : 'week'
  const span = SPANS[chosen]
  await visit.flushUsage()
  const [counts, [activeKey]] = await Promise.all([
    store.accounts.usageSince(who.account.id, firstBucket(span, now)),
    store.accounts.pageOfKeys({ accountId: who.account.id, active: true, now, limit: 1 }),
  ])
  return {
    title: 'Activity',
    section: 'activity',
    body: html`<div class="page-head"><h1>Activity</h1>${spanChoice(chosen)}</div>
      ${counts.length === 0 ? noRequests(activeKey !== undefined) : requestCharts(counts, span, now)}
      <section aria-labelledby="failed">
        <h2 id="failed">Failed requests</h2>
        ${await failedRequests(visit, chosen, firstBucket(span, now))}
      </section>`,
  }
}

function spanChoice(chosen: SpanName): Html {
  return html`<nav aria-label="Time span"><ul class="switch">${Object.entries(SPANS).map(
    ([name, { words }]) =>
      html`<li><a href="/activity?span=${name}" ${name === chosen && html`aria-current="true"`}>${words}</a></li>`,
  )}</ul></nav>`
}

function noRequests(hasKeys: boolean): Html {
  const next = hasKeys
    ? html`Send one with one of your keys; <a href="/docs">the reference</a> shows how.`
    : html`<a href="/keys/new">Generate a key</a>, then send a request with it.`
  return emptyState('No requests in this time', next)
}

/** Reads the failed requests since that time, and renders those that match the key and the status of the address. */
async function failedRequests({ store, who, query }: MemberVisit, span: string, since: number): Promise<Html> {
  const kept = await store.accounts.failedRequests(who.account.id, FAILED_REQUESTS_KEPT)
  const recent = kept.filter(({ at }) => at >= since)
  if (recent.length === 0)
    return emptyState('No failed requests', 'When a request with one of your keys fails, it is explained here.')
  const [asked, status] = [query.get('key') ?? '', query.get('status') ?? '']
  // The options include the chosen key and status even if no request failed with them: the form shows how the list is filtered.
  const ids = new Set([...recent.map(({ keyId }) => keyId), asked])
  const found = await Promise.all(Array.from(ids, (id) => store.accounts.keyById(id)))
  const keys = found.filter((key): key is ApiKey => key?.accountId === who.account.id)
  const key = keys.some(({ id }) => id === asked) ? asked : ''
  const statuses = [...new Set([...recent.map((failed) => String(failed.status)), status])].filter(Boolean).toSorted()
  const keyOptions = optionList([['', 'All keys'], ...keys.map(({ id, name }) => [id, name] as const)], key)
  const statusOptions = optionList([['', 'All'], ...statuses.map((each) => [each, each] as const)], status)
  const matching = recent.filter(
    (failed) => (key === '' || failed.keyId === key) && (status === '' || String(failed.status) === status),
  )
  return html`<form class="filter" method="get" action="/activity" autocomplete="off">
      ${hidden('span', span)}
      <label>Key <select name="key">${keyOptions}</select></label>
      <label>Status <select name="status">${statusOptions}</select></label>
      <button class="button">Filter</button>
    </form>
    ${matching.length === 0 ? emptyState('None of these', 'No failed request fits the filter.') : failureLog(matching, keys)}
    <p class="quiet-text">The newest ${FAILED_REQUESTS_KEPT} are kept.</p>`
}

/** Renders the log, newest first. Repeats in a row, of one key with one result, are one entry, which opens to its details. */
function failureLog(failed: readonly FailedRequest[], keys: readonly ApiKey[]): Html {
  const groups: FailedRequest[][] = []
  for (const each of failed) {
    const last = groups.at(-1)
    if (last !== undefined && GROUPED.every((name) => last[0]![name] === each[name])) last.push(each)
    else groups.push([each])
  }
  return html`<ol class="log">${groups.map((group) => failureEntry(group, keys))}</ol>`
}

const GROUPED = ['code', 'status', 'operation', 'keyId'] as const

function failureEntry(group: readonly FailedRequest[], keys: readonly ApiKey[]): Html {
  const { at, keyId, operation, status, code } = group[0]!
  const key = keys.find(({ id }) => id === keyId)
  const known = entryOf(ERRORS, code)
  return html`<li><details>
    <summary><span class="log-time">${minute(at)}</span> <span class="mark ${status < 500 ? 'pending' : 'bad'}">${status}</span>
      <span class="log-what"><code>${code}</code>${group.length > 1 && ` × ${group.length}`} <code class="quiet-text">${requestLine(operation)}</code></span>
      <span class="log-key quiet-text">${key && isolated(key.name)}</span></summary>
    <ul class="log-details">${group.map(
      ({ at: time, requestId, message }) => html`<li>${isolated(message)}
        <span class="quiet-text">${minute(time)}, Request-Id <code>${requestId}</code></span></li>`,
    )}</ul>
    ${known && html`<p><strong>Fix:</strong> ${known.fix} <a href="/docs/errors#${code}">More about <code>${code}</code></a></p>`}
  </details></li>`
}

/** Returns the method and path of an operation. A request that was for none is recorded as that. */
function requestLine(name: string): string {
  const operation = OPERATIONS.find(({ id }) => id === name)
  return operation === undefined ? name : `${operation.method} ${BASE_PATH}${operation.path}`
}
