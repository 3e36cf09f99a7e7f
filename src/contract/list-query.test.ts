// The query of a list: every valid one is taken, no other.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { decodeCursor, encodeCursor } from './cursor.ts'
import { INT64_MAX, INT64_MIN } from './int64.ts'
import { LIMIT } from './limits.ts'
import { nextPageQuery, parseListQuery, type RawQuery } from './list-query.ts'
import { PET_STATUSES } from './pets.ts'
import { Refused } from './refused.ts'

describe('parseListQuery', () => {
  it('fills in the default and nothing else', () => assert.deepEqual(parseListQuery({}), { limit: 20 }))

  it('takes every valid combination', () => {
    const valid = fc.record(
      {
        limit: fc.integer({ min: LIMIT.minimum, max: LIMIT.maximum }),
        status: fc.constantFrom(...PET_STATUSES),
        before: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
      },
      { requiredKeys: ['limit'] },
    )
    fc.assert(
      fc.property(valid, ({ limit, status, before }) => {
        const raw: RawQuery = {
          limit: String(limit),
          status,
          cursor: before === undefined ? undefined : encodeCursor(before),
        }
        assert.deepEqual(parseListQuery(raw), {
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
        const parsed = parseListQuery({ limit })
        if (parsed instanceof Refused) assert.match(parsed.message, /^The query parameter limit must be /)
        else
          assert.ok(
            /^[0-9]+$/.test(limit) && parsed.limit === Number(limit) && parsed.limit >= 1 && parsed.limit <= 100,
          )
      }),
    )
  })

  it('refuses a limit in any other notation than decimal digits, and one past its bounds', () => {
    for (const limit of ['', '+5', ' 5', '5 ', '5.0', '1e1', '0x10', '0', '101'])
      assert.ok(parseListQuery({ limit }) instanceof Refused, limit)
  })

  it('refuses an unknown status and a cursor that is none', () => {
    assert.deepEqual(
      parseListQuery({ status: 'lost' }),
      new Refused('The query parameter status must be one of available, pending, sold, got "lost".'),
    )
    const refused =
      'The query parameter cursor must be taken unchanged from the Link header of the page before, got "7".'
    assert.deepEqual(parseListQuery({ cursor: '7' }), new Refused(refused))
  })

  it('counts a parameter that came more than once', () => {
    assert.deepEqual(
      parseListQuery({ status: ['sold', 'sold', 'sold'] }),
      new Refused('The query parameter status was given 3 times; give it once.'),
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
