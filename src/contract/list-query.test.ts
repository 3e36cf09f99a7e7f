// The cursor of a list. What else its query may have: test/spec/4-1-list-animals.test.ts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { decodeCursor, encodeCursor } from './list-query.ts'
import { INT64_MAX, INT64_MIN } from './int64.ts'

const id = fc.bigInt({ min: INT64_MIN, max: INT64_MAX })

describe('A cursor', () => {
  it('gives back the id it was made from', () => {
    fc.assert(fc.property(id, (before) => decodeCursor(encodeCursor(before)) === before))
  })

  it('is safe in an address as it stands', () => {
    fc.assert(fc.property(id, (before) => encodeURIComponent(encodeCursor(before)) === encodeCursor(before)))
  })

  it('is read only as it was written: no other text means the same page', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.string({ minLength: 12, maxLength: 12 })), (text) => {
        const before = decodeCursor(text)
        assert.ok(before === undefined || encodeCursor(before) === text)
      }),
    )
    const cursor = encodeCursor(43n)
    const longer = [`${cursor}=`, ` ${cursor}`, `A${cursor}`]
    for (const other of [...longer, cursor.slice(0, -1), cursor.toLowerCase(), cursor.replace('A', '+')])
      assert.equal(decodeCursor(other), undefined)
    // The same bytes in the other alphabet of base64, which the decoder takes too.
    assert.equal(decodeCursor(encodeCursor(-1n).replace('_', '/')), undefined)
  })
})
