// Calls from web pages: CORS for any origin, its headers only where an Origin came.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { examplePath } from '../src/contract/operation.ts'
import { BASE_PATH, OPERATIONS } from '../src/contract/operations.ts'
import { callExample, startPetstore } from './harness.ts'

const ORIGIN = { Origin: 'https://shop.example' }

describe('Browser callers', () => {
  it('may call from any origin and read every header, on every answer', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_RATE_LIMIT: '20/3600' } })
    const { url } = petstore
    const made = await petstore.add({ name: 'Rex', categoryId: 1 }, ORIGIN)
    const responses = [
      made,
      ...(await Promise.all(OPERATIONS.map((operation) => callExample(petstore, operation, ORIGIN)))),
      await petstore.call('/pets', { headers: { ...ORIGIN, 'If-None-Match': '*' } }),
      await petstore.call('/pets/1', { headers: ORIGIN }),
      await petstore.add('{', ORIGIN),
      await petstore.add('x'.repeat(20_000), ORIGIN),
      await fetch(`${url}/v1/pets`, { headers: ORIGIN }),
      await fetch(`${url}/v1/nothing`, { headers: ORIGIN }),
      await fetch(`${url}/v1/pets`, { method: 'DELETE', headers: ORIGIN }),
      await fetch(`${url}/openapi.json`, { headers: ORIGIN }),
    ]
    for (let count = 0; count < 20; count += 1) responses.push(await petstore.call('/pets', { headers: ORIGIN }))
    assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([201, 200, 304, 404, 400, 413, 401, 405, 429]))
    for (const { headers, status } of responses) {
      assert.equal(headers.get('access-control-allow-origin'), '*', String(status))
      assert.equal(headers.get('vary'), 'Origin')
      assert.equal(headers.get('access-control-allow-credentials'), null)
      const exposed = new Set(headers.get('access-control-expose-headers')?.toLowerCase().split(', '))
      const readable = new Set(['cache-control', 'content-length', 'content-type'])
      for (const name of headers.keys()) {
        if (readable.has(name) || /^(?:access-control-|vary$|date$|connection$|keep-alive$|allow$)/.test(name)) continue
        assert.ok(exposed.has(name), `${name} is exposed`)
      }
    }
  })

  it('get no such headers without an Origin', async () => {
    await using petstore = await startPetstore()
    for (const response of [await petstore.call('/pets'), await fetch(`${petstore.url}/v1/pets`), await fetch(`${petstore.url}/v1/pets`, { method: 'OPTIONS' })]) {
      for (const name of response.headers.keys()) assert.doesNotMatch(name, /^(?:access-control-|vary)/)
    }
  })

  it('pass the preflight without a key, for each operation and each request header', async () => {
    await using petstore = await startPetstore()
    for (const operation of OPERATIONS) {
      const { method } = operation
      const response = await fetch(petstore.url + BASE_PATH + examplePath(operation), {
        method: 'OPTIONS',
        headers: { ...ORIGIN, 'Access-Control-Request-Method': method, 'Access-Control-Request-Headers': 'authorization,content-type' },
      })
      assert.equal(response.status, 204)
      assert.equal(response.headers.get('access-control-allow-origin'), '*')
      assert.ok(response.headers.get('access-control-allow-methods')?.split(', ').includes(method))
      const allowed = response.headers.get('access-control-allow-headers')?.toLowerCase().split(', ') ?? []
      for (const name of ['authorization', 'content-type', 'idempotency-key', 'if-none-match', 'request-id']) assert.ok(allowed.includes(name))
      assert.equal(response.headers.get('access-control-max-age'), '7200')
    }
  })

  it('get no preflight answer for a path that is not there', async () => {
    await using petstore = await startPetstore()
    const headers = { ...ORIGIN, 'Access-Control-Request-Method': 'GET' }
    assert.equal((await fetch(`${petstore.url}/v1/nothing`, { method: 'OPTIONS', headers })).status, 404)
  })
})
