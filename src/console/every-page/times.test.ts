import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { longDate } from '../../contract/operations.ts'
import { clockTime, count, counted, minute, shortDay } from './times.ts'

const time = Date.UTC(2030, 11, 5, 4, 7)

describe('times and numbers', () => {
  it('are written as people read them', () => {
    assert.equal(longDate(time), '5 December 2030')
    assert.equal(shortDay(time), '5 Dec')
    assert.equal(clockTime(time), '04:07')
    assert.match(minute(time).text, />5 Dec 2030, 04:07</)
    assert.equal([0, 12, 123, 1234, 123_456, 10_000_000].map(count).join(' '), '0 12 123 1,234 123,456 10,000,000')
    assert.deepEqual([counted(1, 'call'), counted(2, 'call')], ['1 call', '2 calls'])
  })

  it('are those of UTC, wherever the service runs', () => {
    const zone = process.env['TZ']
    process.env['TZ'] = 'America/New_York'
    try {
      const midnight = Date.UTC(2030, 11, 5)
      assert.equal(new Date(midnight).getDate(), 4)
      assert.deepEqual(
        [longDate(midnight), shortDay(midnight), clockTime(midnight)],
        ['5 December 2030', '5 Dec', '00:00'],
      )
      assert.match(minute(Date.UTC(2031, 0, 1)).text, />1 Jan 2031, 00:00</)
    } finally {
      if (zone === undefined) delete process.env['TZ']
      else process.env['TZ'] = zone
    }
  })
})
