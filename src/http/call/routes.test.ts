// The request's target, in all forms that HTTP allows, as path and query; and the operation that it leads to.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { findOperation, originForm } from './routes.ts'

describe('originForm', () => {
  const forms: Record<string, string> = {
    '/v1/pets?limit=5': '/v1/pets?limit=5',
    'http://pets.example/v1/pets?limit=5': '/v1/pets?limit=5',
    'HTTPS://pets.example:443/v1/pets': '/v1/pets',
    'http://pets.example': '/',
    'http://pets.example?limit=5': '/?limit=5',
    'http://pets.example#top': '/',
    '//v1/pets': '//v1/pets',
    '/v1/pets#top': '/v1/pets',
    '/v1/nothing#/v1/pets': '/v1/nothing',
    '/v1/pets?limit=5#top': '/v1/pets?limit=5',
    '*': '/*',
    'ftp://pets.example/v1/pets': '/ftp://pets.example/v1/pets',
    '': '/',
    '/v1/pets/%zz': '/v1/pets/%25zz',
    '/v1/pets/%41%zz?x=%zz': '/v1/pets/%2541%25zz?x=%zz',
    '/v1/pets/%41?x=%zz': '/v1/pets/%41?x=%zz',
  }
  for (const [target, form] of Object.entries(forms))
    it(`makes ${form} of ${target}`, () => assert.equal(originForm(target), form))

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
  const found: Record<string, string | undefined> = {
    'GET /v1/pets': 'listPets',
    'HEAD /v1/pets?limit=5': 'listPets',
    'POST /v1/pets': 'createPet',
    'GET /v1/%70ets': 'listPets',
    'GET /v1/pets/7': 'getPet 7',
    'HEAD /v1/pets/7?x=/': 'getPet 7',
    'GET /v1/pets/%37': 'getPet 7',
    'GET /v1/pets/%2537': 'getPet %37',
    'GET /v1/pets/a%2Fb': 'getPet a/b',
    'GET /v1/pets/..': 'getPet ..',
    'GET /v1/pets/%252e': 'getPet %2e',
    'GET /v1/./pets': undefined,
    'GET /v1/../v1/pets': undefined,
    'GET /v1/%2e%2e/v1/pets': undefined,
    'GET /v1/pets%00': undefined,
    'GET /v1/pets/': undefined,
    'GET /v1/pets/7/': undefined,
    'GET /v1%2Fpets': undefined,
    'GET /V1/pets': undefined,
    'GET //v1/pets': undefined,
    'POST /v1/pets/7': undefined,
    'DELETE /v1/pets': undefined,
    'OPTIONS /v1/pets': undefined,
    'GET /': undefined,
  }
  for (const [request, operation] of Object.entries(found)) {
    it(`${request} is for ${operation ?? 'none'}`, () => {
      const [method = '', url = ''] = request.split(' ')
      const route = findOperation(method, url)
      assert.equal(route && [route.operation.id, ...Object.values(route.parameters)].join(' ').trim(), operation)
    })
  }

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
