// The query of a list: every valid query is accepted, every other one refused.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { decodeCursor, encodeCursor, nextPageQuery, parseListQuery } from './list-query.ts'
import { INT64_MAX, INT64_MIN } from './int64.ts'
import { PAGE_SIZE } from './limits.ts'
import { PET_STATUSES } from './pets.ts'
import { Problem } from './errors.ts'

const parse = (query: Record<string, string>) => parseListQuery(new URLSearchParams(query))

describe('parseListQuery', () => {
  it('fills in the default and nothing else', () => assert.deepEqual(parse({}), { limit: 20 }))

  it('takes every valid combination', () => {
    const valid = fc.record(
      {
        limit: fc.integer({ min: PAGE_SIZE.minimum, max: PAGE_SIZE.maximum }),
        status: fc.constantFrom(...PET_STATUSES),
        before: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
      },
      { requiredKeys: ['limit'] },
    )
    fc.assert(
      fc.property(valid, ({ limit, status, before }) => {
        const cursor = before === undefined ? undefined : encodeCursor(before)
        assert.deepEqual(parse({ limit: String(limit), ...(status && { status }), ...(cursor && { cursor }) }), {
          limit,
          ...(status && { status }),
          ...(before !== undefined && { before }),
        })
      }),
    )
  })

  it('never gives a limit that was not asked for, or out of bounds', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.integer().map(String), fc.double().map(String)), (limit) => {
        const parsed = parse({ limit })
        if (parsed instanceof Problem) assert.match(parsed.message, /^The query parameter limit must be /)
        else assert.ok(/^(?:[1-9][0-9]?|100)$/.test(limit.replace(/^0+/, '')) && parsed.limit === Number(limit))
      }),
    )
  })

  it('refuses a limit in any other notation than decimal digits, and one past its bounds', () => {
    for (const limit of ['', '+5', ' 5', '5 ', '5.0', '1e1', '0x10', '0', '101'])
      assert.ok(parse({ limit }) instanceof Problem, limit)
  })

  it('refuses an unknown status and a cursor that is none', () => {
    assert.deepEqual(
      parse({ status: 'lost' }),
      new Problem('The query parameter status must be one of available, pending, sold, got "lost".'),
    )
    const refused =
      'The query parameter cursor must be taken unchanged from the Link header of the page before, got "7".'
    assert.deepEqual(parse({ cursor: '7' }), new Problem(refused))
  })

  it('counts a parameter that came more than once', () => {
    assert.deepEqual(
      parseListQuery(new URLSearchParams('status=sold&status=sold&status=sold')),
      new Problem('The query parameter status was given 3 times; give it once.'),
    )
  })
})

describe('nextPageQuery', () => {
  it('asks for the page below the last id with the same parameters', () => {
    const query = new URLSearchParams(nextPageQuery({ limit: 7, status: 'sold', before: 9n }, 3n))
    assert.deepEqual([query.get('limit'), query.get('status'), decodeCursor(query.get('cursor')!)], ['7', 'sold', 3n])
    assert.equal(nextPageQuery({ limit: 7 }, 3n), `limit=7&cursor=${encodeCursor(3n)}`)
  })
})

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
