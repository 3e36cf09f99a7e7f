// The request's target, whatever came, as path and query. Its forms: test/connections/framing.test.ts and page-requests.test.ts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { findOperation, originForm } from './routes.ts'

describe('originForm', () => {
  it('gives a path that can be decoded, whatever came', () => {
    const part = fc.constantFrom('/', '%', '%4', '%41', '%ff', '%E2%82%AC', '?', '#', 'http://', 'a', ':', '@', '..')
    fc.assert(
      fc.property(
        fc.array(part).map((parts) => parts.join('')),
        (target) => {
          const [path = ''] = originForm(target).split('?')
          assert.doesNotThrow(() => decodeURI(path))
        },
      ),
    )
  })
})

describe('findOperation', () => {
  it('finds the animal whose name was encoded, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', minLength: 1 }),
        fc.constantFrom('', 'limit=1', 'a=%F0%9F%90%88&b', '?'),
        (name, query) => {
          assert.deepEqual(findOperation('GET', `/v1/pets/${encodeURIComponent(name)}?${query}`), {
            ...findOperation('GET', '/v1/pets/1'),
            parameters: { petId: name },
            query,
          })
        },
      ),
    )
  })
})
