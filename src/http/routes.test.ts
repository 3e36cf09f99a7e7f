// The request's target, in all forms that HTTP allows, as path and query.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { originForm } from './routes.ts'

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
    '/v1/pets?limit=5#top': '/v1/pets?limit=5',
    '*': '/*',
    'ftp://pets.example/v1/pets': '/ftp://pets.example/v1/pets',
    '': '/',
    '/v1/pets/%zz': '/v1/pets/%25zz',
    '/v1/pets/%41%zz?x=%zz': '/v1/pets/%2541%25zz?x=%zz',
    '/v1/pets/%41?x=%zz': '/v1/pets/%41?x=%zz',
  }
  for (const [target, form] of Object.entries(forms)) it(`makes ${form} of ${target}`, () => assert.equal(originForm(target), form))

  it('gives a path that can be decoded, whatever came', () => {
    const part = fc.constantFrom('/', '%', '%4', '%41', '%ff', '%E2%82%AC', '?', '#', 'http://', 'a', ':', '@', '..')
    fc.assert(
      fc.property(fc.array(part).map((parts) => parts.join('')), (target) => {
        const [path = ''] = originForm(target).split('?')
        assert.doesNotThrow(() => decodeURI(path))
      }),
    )
  })
})
