// Shows requests over time as stacked bars, drawn on the server, and as tables.
import { OPERATIONS } from '../contract/operations.ts'
import type { HourlyCount } from '../store/account-store.ts'
import { html, type Html } from '../http/html.ts'
import { ago, clockTime, count, counted, DAY_MS, HOUR_MS, shortDay } from './times.ts'

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

/** The time that a chart shows; each bar is a bucket. */
interface Span {
  words: string
  bucketMs: number
  buckets: number
}

export const SPANS = {
  day: { words: '24 hours', bucketMs: HOUR_MS, buckets: 24 },
  week: { words: '7 days', bucketMs: 6 * HOUR_MS, buckets: 28 },
  month: { words: '30 days', bucketMs: DAY_MS, buckets: 30 },
} as const satisfies Record<string, Span>

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
    ${barChart(buckets, chartWords(totals), now)}
    <details class="chart-table"><summary>Show the numbers</summary>${bucketTable(buckets)}</details>
    ${operationTable(counts, span, now)}
  </section>`
}

function operationTable(counts: readonly HourlyCount[], span: Span, now: number): Html {
  // Another instance may have counted an operation that only a newer program has.
  const ids = new Set([...OPERATIONS.map(({ id }) => id as string), ...counts.map(({ operation }) => operation)])
  const rows = Array.from(ids, (id) => {
    const own = counts.filter(({ operation }) => operation === id)
    const deprecation = OPERATIONS.find((operation) => operation.id === id)?.deprecation
    return { id, deprecation, own, totals: totalsOf(own) }
  })
  return html`<table class="table operations">
    <caption class="visually-hidden">Requests by operation</caption>
    <thead><tr><th scope="col">Operation</th><th scope="col" class="spark-head">Over time</th>
      ${CLASSES.map(({ title }) => html`<th scope="col" class="number">${title}</th>`)}</tr></thead>
    <tbody>${rows.map(
      ({ id, deprecation, own, totals }) => html`<tr>
        <th scope="row"><code>${id}</code>
          ${deprecation && html`<a class="mark pending" href="${deprecation.documentation}">deprecated</a>`}</th>
        <td class="spark">${sparkline(own, span, now)}</td>
        ${CLASSES.map(({ name }) => html`<td class="number">${count(totals[name])}</td>`)}</tr>`,
    )}</tbody></table>`
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
export function barChart(buckets: readonly Bucket[], label: string, now: number): Html {
  const top = niceTop(highestOf(buckets))
  const middle = buckets[Math.floor(buckets.length / 2)]!
  return html`<figure class="chart">
    <div class="chart-top" aria-hidden="true">${count(top)}</div>
    ${bars(buckets, top, label, 100)}
    <div class="chart-ends" aria-hidden="true">
      <span>${ago(buckets[0]!.start, now)}</span><span>${ago(middle.start, now)}</span><span>now</span>
    </div>
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

/** Renders a small chart with its own scale: it shows when requests came; the numbers beside it show how many. */
export function sparkline(counts: readonly HourlyCount[], span: Span, now: number): Html {
  const buckets = bucketsOf(counts, span, now)
  return bars(buckets, highestOf(buckets), chartWords(totalsOf(counts)), 40)
}

function highestOf(buckets: readonly Bucket[]): number {
  return Math.max(1, ...buckets.map(({ totals }) => sumOf(totals)))
}

function bars(buckets: readonly Bucket[], top: number, label: string, height: number): Html {
  const [slot, width] = [10, 8]
  const viewBox = `0 0 ${buckets.length * slot} ${height}`
  return html`<svg class="bars" viewBox="${viewBox}" preserveAspectRatio="none" role="img" aria-label="${label}">
    ${buckets.map(({ start, totals }, index) => {
      let y = height
      const parts = CLASSES.map(({ name }) => {
        if (totals[name] === 0) return undefined
        // The minimum height keeps one failed request among thousands visible.
        const h = Math.max((totals[name] / top) * height, height / 50)
        y -= h
        return html`<rect class="${name}" x="${index * slot + 1}" y="${y.toFixed(2)}" width="${width}" height="${h.toFixed(2)}"/>`
      })
      return sumOf(totals) === 0 ? undefined : html`<g><title>${barWords(start, totals)}</title>${parts}</g>`
    })}
  </svg>`
}

function barWords(start: number, totals: Totals): string {
  const parts = CLASSES.filter(({ name }) => totals[name] > 0).map(({ name, words }) => words(totals[name]))
  return `${shortDay(start)}, ${clockTime(start)} UTC: ${parts.join(', ')}`
}

/** Describes the chart for screen readers. */
export function chartWords(totals: Totals): string {
  return `${counted(sumOf(totals), 'request')}: ${CLASSES.map(({ name, words }) => words(totals[name])).join(', ')}`
}

/** Returns the smallest of 1, 2, 5, 10, 20, 50 … that is at least as high as the highest bar. */
export function niceTop(highest: number): number {
  let power = 1
  for (;;) {
    for (const step of [1, 2, 5]) if (step * power >= highest) return step * power
    power *= 10
  }
}

function classOf(status: number): keyof Totals {
  if (status < 400) return 'success'
  return status < 500 ? 'client-error' : 'server-error'
}
