// Shows requests over time as stacked bars, drawn on the server, and as tables.
import { OPERATIONS } from '../../contract/operations.ts'
import type { HourlyCount } from '../../store/account-store.ts'
import { html, type Html } from '../../http/html/html.ts'
import { clockTime, count, counted, DAY_MS, HOUR_MS, minute, shortDay } from '../every-page/times.ts'

/** The classes of statuses; each is one part of a bar. */
const CLASSES = [
  { name: 'success', title: 'Succeeded', words: (calls: number) => `${count(calls)} succeeded` },
  { name: 'client-error', title: 'Client errors', words: (calls: number) => counted(calls, 'client error') },
  { name: 'server-error', title: 'Server errors', words: (calls: number) => counted(calls, 'server error') },
] as const

type Totals = Record<(typeof CLASSES)[number]['name'], number>

interface Bucket {
  start: number
  totals: Totals
}

/** The times that a chart can show; each bar is a bucket. */
export const SPANS = {
  day: { words: '24 hours', bucketMs: HOUR_MS, buckets: 24 },
  week: { words: '7 days', bucketMs: 6 * HOUR_MS, buckets: 28 },
  month: { words: '30 days', bucketMs: DAY_MS, buckets: 30 },
} as const
export type Span = (typeof SPANS)[keyof typeof SPANS]

/** Renders a chart of all requests, and a table of the operations. */
export function requestCharts(counts: readonly HourlyCount[], span: Span, now: number): Html {
  const buckets = bucketsOf(counts, span, now)
  const totals = totalsOf(counts)
  return html`<section class="panel" aria-labelledby="requests">
    <div class="page-head"><h2 id="requests">Requests, last ${span.words}</h2>
      <ul class="legend">${CLASSES.map(
        ({ name, title }) => html`<li><span class="swatch ${name}"></span>${title}
          <strong class="number">${count(totals[name])}</strong></li>`,
      )}</ul></div>
    ${barChart(buckets, chartWords(totals))}
    <details class="chart-table"><summary>Show the numbers</summary>${bucketTable(buckets)}</details>
    ${operationTable(counts)}
  </section>`
}

function operationTable(counts: readonly HourlyCount[]): Html {
  // Another instance may have counted an operation that only a newer program has.
  const ids = new Set([...OPERATIONS.map(({ id }) => id as string), ...counts.map(({ operation }) => operation)])
  const row = (id: string) => {
    const deprecation = OPERATIONS.find((operation) => operation.id === id)?.deprecation
    const totals = totalsOf(counts.filter(({ operation }) => operation === id))
    return html`<tr><th scope="row"><code>${id}</code>
        ${deprecation && html`<a class="mark pending" href="${deprecation.documentation}">deprecated</a>`}</th>
      ${CLASSES.map(({ name }) => html`<td class="number">${count(totals[name])}</td>`)}</tr>`
  }
  return html`<table class="table operations">
    <caption class="visually-hidden">Requests by operation</caption>
    <thead><tr><th scope="col">Operation</th>${CLASSES.map(({ title }) => html`<th scope="col" class="number">${title}</th>`)}</tr></thead>
    <tbody>${Array.from(ids, row)}</tbody></table>`
}

/** Returns consecutive buckets up to now, empty ones included. */
export function bucketsOf(counts: readonly HourlyCount[], span: Span, now: number): Bucket[] {
  const first = firstBucket(span, now)
  const byBucket = Map.groupBy(counts, ({ hour }) => Math.floor((hour - first) / span.bucketMs))
  return Array.from({ length: span.buckets }, (_, index) => ({
    start: first + index * span.bucketMs,
    totals: totalsOf(byBucket.get(index) ?? []),
  }))
}

/** Returns the start of the first bucket; the last one includes now. */
export function firstBucket({ bucketMs, buckets }: Span, now: number): number {
  return now - (now % bucketMs) - (buckets - 1) * bucketMs
}

export function totalsOf(counts: readonly HourlyCount[]): Totals {
  const totals = { success: 0, 'client-error': 0, 'server-error': 0 }
  for (const { status, calls } of counts) totals[classOf(status)] += calls
  return totals
}

function sumOf(totals: Totals): number {
  return CLASSES.reduce((sum, { name }) => sum + totals[name], 0)
}

/** Renders the chart. Its bars stretch to the width of the page; its labels are HTML, so that they keep their size. */
export function barChart(buckets: readonly Bucket[], label: string): Html {
  const highest = Math.max(1, ...buckets.map(({ totals }) => sumOf(totals)))
  const [slot, width, height] = [10, 8, 100]
  const bar = ({ start, totals }: Bucket, index: number) => {
    let y = height
    const parts = CLASSES.map(({ name }) => {
      if (totals[name] === 0) return undefined
      // The minimum height keeps one failed request among thousands visible.
      const h = Math.max((totals[name] / highest) * height, height / 50)
      y -= h
      return html`<rect class="${name}" x="${index * slot + 1}" y="${y.toFixed(2)}" width="${width}" height="${h.toFixed(2)}"/>`
    })
    return sumOf(totals) > 0 && html`<g><title>${barWords(start, totals)}</title>${parts}</g>`
  }
  return html`<figure class="chart">
    <div class="chart-top" aria-hidden="true">${count(highest)}</div>
    <svg class="bars" viewBox="0 0 ${buckets.length * slot} ${height}" preserveAspectRatio="none" role="img" aria-label="${label}">
      ${buckets.map(bar)}
    </svg>
    <div class="chart-ends" aria-hidden="true"><span>${minute(buckets[0]!.start)}</span><span>now</span></div>
  </figure>`
}

/** Renders the numbers of the chart, for people who cannot see it. Leaves out times without requests. */
function bucketTable(buckets: readonly Bucket[]): Html {
  const used = buckets.filter(({ totals }) => sumOf(totals) > 0)
  return html`<table class="table">
    <caption class="visually-hidden">Requests over time</caption>
    <thead><tr><th scope="col">From (UTC)</th>${CLASSES.map(({ title }) => html`<th scope="col" class="number">${title}</th>`)}</tr></thead>
    <tbody>${used.map(
      ({ start, totals }) => html`<tr><th scope="row">${shortDay(start)}, ${clockTime(start)}</th>
        ${CLASSES.map(({ name }) => html`<td class="number">${count(totals[name])}</td>`)}</tr>`,
    )}</tbody></table>`
}

function barWords(start: number, totals: Totals): string {
  const parts = CLASSES.filter(({ name }) => totals[name] > 0).map(({ name, words }) => words(totals[name]))
  return `${shortDay(start)}, ${clockTime(start)} UTC: ${parts.join(', ')}`
}

/** Describes the chart for screen readers. */
export function chartWords(totals: Totals): string {
  return `${counted(sumOf(totals), 'request')}: ${CLASSES.map(({ name, words }) => words(totals[name])).join(', ')}`
}

function classOf(status: number): keyof Totals {
  if (status < 400) return 'success'
  return status < 500 ? 'client-error' : 'server-error'
}
