// The page of an account's use of the API: its requests over time, and why requests failed and how to fix that.
import { entryOf } from '../../contract/text/entry-of.ts'
import { ERRORS } from '../../contract/errors.ts'
import { BASE_PATH, OPERATIONS } from '../../contract/operations.ts'
import { type ApiKey, FAILED_REQUESTS_KEPT, type FailedRequest } from '../../store/account-store.ts'
import { firstBucket, requestCharts, type Span, SPANS } from './activity-chart.ts'
import { findOwnKey } from './key-list.ts'
import { emptyState, html, type Html, isolated } from '../../http/html/html.ts'
import { minute } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit } from '../every-page/visit.ts'

export const activityRoutes: readonly ConsoleRoute[] = [forMembers('GET', '/activity', activityPage)]

async function activityPage(visit: MemberVisit): Promise<HtmlPage> {
  const { store, who, now, query } = visit
  const span: Span = entryOf(SPANS, query.get('span') ?? '') ?? SPANS.week
  await visit.flushUsage()
  const counts = await store.accounts.usageSince(who.account.id, firstBucket(span, now))
  return {
    title: 'API activity',
    section: 'activity',
    body: html`<div class="page-head"><h1>API activity</h1>${spanChoice(span)}</div>
      ${counts.length === 0 ? NO_REQUESTS : requestCharts(counts, span, now)}
      <section aria-labelledby="failed">
        <h2 id="failed">Failed requests</h2>
        ${await failedRequests(visit, firstBucket(span, now))}
      </section>`,
  }
}

function spanChoice(chosen: Span): Html {
  return html`<nav aria-label="Time span"><ul class="switch">${Object.entries(SPANS).map(
    ([name, span]) =>
      html`<li><a href="/activity?span=${name}" ${span === chosen && html`aria-current="true"`}>${span.words}</a></li>`,
  )}</ul></nav>`
}

const NO_REQUESTS = emptyState(
  'No requests in this time',
  html`Send one with one of <a href="/keys">your keys</a>; <a href="/docs">the reference</a> shows how.`,
)

/** Reads the failed requests since that time, and renders them, or those of the key that the address names. */
async function failedRequests(visit: MemberVisit, since: number): Promise<Html> {
  const kept = await visit.store.accounts.failedRequests(visit.who.account.id, FAILED_REQUESTS_KEPT)
  const only = await findOwnKey(visit, visit.query.get('key') ?? '')
  const recent = kept.filter(({ at, keyId }) => at >= since && (only === undefined || keyId === only.id))
  const ids = new Set(recent.map(({ keyId }) => keyId))
  const found = await Promise.all(Array.from(ids, (id) => findOwnKey(visit, id)))
  const keys = found.filter((key) => key !== undefined)
  const none = emptyState('No failed requests', 'When a request with one of your keys fails, it is explained here.')
  return html`${only && html`<p>Only those of <strong>${isolated(only.name)}</strong>. <a href="/activity">Show all</a></p>`}
    ${recent.length === 0 ? none : failureLog(recent, keys)}
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
