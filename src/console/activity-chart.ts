// Requests over time as a chart of stacked bars, drawn on the server.
import type { UsageCount } from '../store/store.ts'
import { html, type Html } from './html.ts'
import { clockTime, count, counted, shortDay } from './times.ts'

/** How an answer is counted: by the class of its status. */
export const CLASSES = [
  { name: 'good', words: 'Succeeded', one: 'succeeded', holds: (status: number) => status < 400 },
  { name: 'refused', words: 'Refused', one: 'refused', holds: (status: number) => status >= 400 && status < 500 },
  { name: 'fault', words: 'Faults', one: 'failed', holds: (status: number) => status >= 500 },
] as const

export type Totals = Record<(typeof CLASSES)[number]['name'], number>

export interface Bucket {
  start: number
  totals: Totals
}

export interface Span {
  bucketMs: number
  buckets: number
}

/** One bucket after the other up to now, empty ones too. */
export function bucketsOf(counts: readonly UsageCount[], { bucketMs, buckets }: Span, now: number): Bucket[] {
  const first = firstBucket({ bucketMs, buckets }, now)
  const filled = Array.from({ length: buckets }, (_, index): Bucket => ({ start: first + index * bucketMs, totals: noCalls() }))
  for (const { hour, status, calls } of counts) {
    const bucket = filled[Math.floor((hour - first) / bucketMs)]
    if (bucket !== undefined) bucket.totals[classOf(status)] += calls
  }
  return filled
}

/** Where the first bucket starts; the last is the one that is running. */
export function firstBucket({ bucketMs, buckets }: Span, now: number): number {
  return now - (now % bucketMs) - (buckets - 1) * bucketMs
}

export function totalsOf(counts: readonly UsageCount[]): Totals {
  const totals = noCalls()
  for (const { status, calls } of counts) totals[classOf(status)] += calls
  return totals
}

function sumOf({ good, refused, fault }: Totals): number {
  return good + refused + fault
}

/** Bars stretch to the width they get; words stand beside them, in the page, where they keep their size. */
export function barChart(buckets: readonly Bucket[], bucketMs: number, label: string): Html {
  const top = niceTop(highestOf(buckets))
  const middle = buckets[Math.floor(buckets.length / 2)]!
  return html`<figure class="chart">
    <div class="chart-top" aria-hidden="true">${count(top)}</div>
    ${bars(buckets, top, label, 100)}
    <div class="chart-ends" aria-hidden="true"><span>${startWords(buckets[0]!, bucketMs)}</span><span>${startWords(middle, bucketMs)}</span><span>now</span></div>
  </figure>`
}

/** Each on its own scale: it shows when, the numbers beside it show how many. */
export function sparkline(buckets: readonly Bucket[], label: string): Html {
  return bars(buckets, highestOf(buckets), label, 40)
}

function highestOf(buckets: readonly Bucket[]): number {
  return Math.max(1, ...buckets.map(({ totals }) => sumOf(totals)))
}

function bars(buckets: readonly Bucket[], top: number, label: string, height: number): Html {
  const [slot, width] = [10, 8]
  return html`<svg class="bars" viewBox="0 0 ${buckets.length * slot} ${height}" preserveAspectRatio="none" role="img" aria-label="${label}">
    ${buckets.map(({ start, totals }, index) => {
      let y = height
      const parts = CLASSES.map(({ name }) => {
        if (totals[name] === 0) return undefined
        // At least a hair high: one failed request among thousands must not vanish.
        const h = Math.max((totals[name] / top) * height, height / 50)
        y -= h
        return html`<rect class="${name}" x="${index * slot + 1}" y="${y.toFixed(2)}" width="${width}" height="${h.toFixed(2)}"/>`
      })
      return sumOf(totals) === 0 ? undefined : html`<g><title>${barWords(start, totals)}</title>${parts}</g>`
    })}
  </svg>`
}

function barWords(start: number, totals: Totals): string {
  const parts = CLASSES.filter(({ name }) => totals[name] > 0).map(({ name, one }) => `${count(totals[name])} ${one}`)
  return `${shortDay(start)}, ${clockTime(start)} UTC: ${parts.join(', ')}`
}

/** What the chart shows, for those who hear it. */
export function chartWords(buckets: readonly Bucket[]): string {
  const totals = noCalls()
  for (const bucket of buckets) for (const { name } of CLASSES) totals[name] += bucket.totals[name]
  return `${counted(sumOf(totals), 'request')}: ${CLASSES.map(({ name, one }) => `${count(totals[name])} ${one}`).join(', ')}`
}

function startWords({ start }: Bucket, bucketMs: number): string {
  return bucketMs < 86_400_000 / 4 ? clockTime(start) : shortDay(start)
}

/** The next of 1, 2, 5, 10, 20, 50 … that holds the highest bar. */
export function niceTop(highest: number): number {
  let power = 1
  for (;;) {
    for (const step of [1, 2, 5]) if (step * power >= highest) return step * power
    power *= 10
  }
}

function classOf(status: number): keyof Totals {
  return CLASSES.find(({ holds }) => holds(status))!.name
}

function noCalls(): Totals {
  return { good: 0, refused: 0, fault: 0 }
}
