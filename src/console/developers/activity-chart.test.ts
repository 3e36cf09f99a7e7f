import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { HourlyCount } from '../../store/account-store.ts'
import { barChart, bucketsOf, chartWords, firstBucket, SPANS, totalsOf } from './activity-chart.ts'

const HOUR = 3_600_000
const now = Date.UTC(2026, 10, 15, 9, 24)
const span = SPANS.week

function calls(hoursAgo: number, status: number, many: number): HourlyCount {
  return { hour: now - (now % HOUR) - hoursAgo * HOUR, operation: 'listPets', status, calls: many }
}

describe('the chart of requests', () => {
  it('has every stretch of time up to now, and each request in its own', () => {
    const buckets = bucketsOf([calls(0, 200, 3), calls(2, 304, 4), calls(6, 404, 5), calls(6, 503, 1)], span, now)
    assert.equal(buckets.length, 28)
    assert.equal(buckets[0]?.start, firstBucket(span, now))
    assert.equal(buckets.at(-1)?.start, Date.UTC(2026, 10, 15, 6))
    assert.deepEqual(buckets.at(-1)?.totals, { success: 7, 'client-error': 0, 'server-error': 0 })
    assert.deepEqual(buckets.at(-2)?.totals, { success: 0, 'client-error': 5, 'server-error': 1 })
    const older = bucketsOf([calls(24 * 8, 200, 3)], span, now)
    assert.ok(older.every(({ totals }) => totals.success === 0))
  })

  it('says in words what it shows', () => {
    const totals = totalsOf([calls(0, 200, 1200), calls(1, 400, 1)])
    assert.equal(chartWords(totals), '1,201 requests: 1,200 succeeded, 1 client error, 0 server errors')
  })

  it('lets no failed request vanish beside thousands of good ones', () => {
    const chart = barChart(bucketsOf([calls(0, 200, 100_000), calls(0, 500, 1)], span, now), '').text
    const [, height] = /class="server-error"[^>]*height="([\d.]+)"/.exec(chart) ?? []
    assert.ok(Number(height) >= 2)
  })

  it('puts the failed requests of a bar on top of the good ones, not over them', () => {
    const chart = barChart(bucketsOf([calls(0, 200, 3), calls(0, 404, 2)], span, now), '').text
    const parts = [...chart.matchAll(/<rect class="([\w-]+)"[^>]* y="([\d.]+)"[^>]*height="([\d.]+)"/g)]
    assert.deepEqual(
      parts.map(([, name, y, height]) => [name, Number(y), Number(height)]),
      [
        ['success', 40, 60],
        ['client-error', 0, 40],
      ],
    )
  })
})
