import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ago, clockTime, count, counted, longDay, minute, shortDay } from './times.ts'

const time = Date.UTC(2030, 11, 5, 4, 7)

describe('times and numbers', () => {
  it('are written as people read them', () => {
    assert.equal(longDay(time), '5 December 2030')
    assert.equal(shortDay(time), '5 Dec')
    assert.equal(clockTime(time), '04:07')
    assert.match(minute(time).text, />5 Dec 2030, 04:07 UTC</)
    assert.deepEqual([0, 12, 123, 1234, 123_456, 10_000_000].map(count), ['0', '12', '123', '1,234', '123,456', '10,000,000'])
    assert.deepEqual([counted(1, 'call'), counted(2, 'call')], ['1 call', '2 calls'])
  })

  it('are told by their distance while that says more', () => {
    const words = (ms: number) => />(.*)</.exec(ago(time - ms, time).text)![1]
    assert.deepEqual(
      [0, 59_999, 60_000, 7_200_000, 3 * 86_400_000, 14 * 86_400_000].map(words),
      ['just now', 'just now', '1 minute ago', '2 hours ago', '3 days ago', '21 November 2030'],
    )
  })
})
