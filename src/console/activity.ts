// What the account's keys have been used for: how often, with which result, why requests failed, and how to fix that.
import { type ErrorCode, ERRORS } from '../contract/errors.ts'
import { OPERATIONS } from '../contract/operations.ts'
import { type ApiKey, FAILED_REQUESTS_KEPT, type FailedRequest, type HourlyCount } from '../store/account-store.ts'
import {
  barChart,
  bucketsOf,
  bucketTable,
  chartWords,
  CLASSES,
  firstBucket,
  type Span,
  sparkline,
  totalsOf,
} from './activity-chart.ts'
import { html, type Html, isolated } from './html.ts'
import { count, counted, DAY_MS, minute } from './times.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, type MemberVisit } from './visit.ts'

export const activityRoutes: readonly ConsoleRoute[] = [forMembers('GET', '/activity', activityPage)]

const HOUR_MS = DAY_MS / 24

const SPANS = {
  day: { words: '24 hours', bucketMs: HOUR_MS, buckets: 24 },
  week: { words: '7 days', bucketMs: 6 * HOUR_MS, buckets: 28 },
  month: { words: '30 days', bucketMs: DAY_MS, buckets: 30 },
} as const satisfies Record<string, Span & { words: string }>

type SpanName = keyof typeof SPANS

async function activityPage(visit: MemberVisit): Promise<HtmlPage> {
  const { store, flushUsage, who, now, query } = visit
  const name = query.get('span') ?? ''
  const chosen: SpanName = Object.hasOwn(SPANS, name) ? (name as SpanName) : 'week'
  const span = SPANS[chosen]
  // Requests counted a moment ago are shown, too.
  await flushUsage()
  const { accounts } = store
  const [counts, [activeKey]] = await Promise.all([
    accounts.usageSince(who.account.id, firstBucket(span, now)),
    accounts.pageOfKeys({ accountId: who.account.id, active: true, now, limit: 1 }),
  ])
  return {
    title: 'Activity',
    section: 'activity',
    body: html`<div class="page-head"><h1>Activity</h1>${spanChoice(chosen)}</div>
      ${counts.length === 0 ? noRequests(activeKey !== undefined) : requests(counts, span, now)}
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
    : html`<a href="/keys">Generate a key</a>, then send a request with it.`
  return html`<div class="empty"><p><strong>No requests in this time</strong></p><p>${next}</p></div>`
}

function requests(counts: readonly HourlyCount[], span: Span & { words: string }, now: number): Html {
  const buckets = bucketsOf(counts, span, now)
  const totals = totalsOf(counts)
  return html`<section class="panel" aria-labelledby="requests">
    <div class="page-head"><h2 id="requests">Requests, last ${span.words}</h2>
      <ul class="legend">${CLASSES.map(
        ({ name, title }) => html`<li><span class="swatch ${name}"></span>${title}
          <strong class="number">${count(totals[name])}</strong></li>`,
      )}</ul></div>
    ${barChart(buckets, span.bucketMs, chartWords(buckets))}
    <details class="chart-table"><summary>Show the numbers</summary>${bucketTable(buckets)}</details>
    ${operationTable(counts, span, now)}
  </section>`
}

function operationTable(counts: readonly HourlyCount[], span: Span, now: number): Html {
  const rows = OPERATIONS.map((operation) => {
    const own = counts.filter((entry) => entry.operation === operation.id)
    return { operation, totals: totalsOf(own), buckets: bucketsOf(own, span, now) }
  })
  return html`<table class="table operations">
    <caption class="visually-hidden">Requests by operation</caption>
    <thead><tr><th scope="col">Operation</th><th scope="col" class="spark-head">Over time</th>
      ${CLASSES.map(({ title }) => html`<th scope="col" class="number">${title}</th>`)}</tr></thead>
    <tbody>${rows.map(
      ({ operation, totals, buckets }) => html`<tr>
        <th scope="row"><code>${operation.id}</code>
          ${operation.deprecation && html`<a class="mark pending" href="${operation.deprecation.documentation}">deprecated</a>`}</th>
        <td class="spark">${sparkline(buckets, chartWords(buckets))}</td>
        ${CLASSES.map(({ name }) => html`<td class="number">${count(totals[name])}</td>`)}</tr>`,
    )}</tbody></table>`
}

/** How many failed requests are shown. */
const SHOWN = 20

/** Reads the failed requests since that time, and renders them with the filter that the address asks for. */
async function failedRequests({ store, who, query }: MemberVisit, span: string, since: number): Promise<Html> {
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
      <span class="quiet-text"><code>${operation}</code>${key && html` with ${isolated(key.name)}`}, ${minute(at)}</span></p>
    <p class="failure-message">${isolated(message)}</p>
    ${known && html`<p><strong>Fix:</strong> ${known.fix}</p>`}
    <p class="quiet-text">Request-Id <code>${requestId}</code></p>
  </li>`
}
