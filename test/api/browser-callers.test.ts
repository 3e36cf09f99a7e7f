// Calls from web pages: CORS for any origin, its headers only where an Origin came.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { BASE_PATH, examplePath, OPERATIONS } from '../../src/contract/operations.ts'
import { callExample, type Petstore, startPetstore } from '../harness/harness.ts'
import { expectRawError, keyHeader, RawConnection } from '../harness/connections/raw-http.ts'
import { WORKERS } from '../harness/programs/with-workers.ts'

const RATE_LIMIT = 20
const ORIGIN = { Origin: 'https://shop.example' }

describe('Browser callers', () => {
  let petstore: Petstore
  before(async () => {
    petstore = await startPetstore({ env: { PETSTORE_RATE_LIMIT: `${RATE_LIMIT}/3600` } })
  })
  after(() => petstore[Symbol.asyncDispose]())

  it('get no such headers without an Origin', async () => {
    for (const response of [
      await petstore.call('/pets'),
      await fetch(`${petstore.url}/v1/pets`),
      await fetch(`${petstore.url}/v1/pets`, { method: 'OPTIONS' }),
    ]) {
      for (const name of response.headers.keys()) assert.doesNotMatch(name, /^(?:access-control-|vary)/)
    }
  })

  it('pass the preflight without a key on every path under /v1, whatever the method and headers, so that they see the real answer', async () => {
    const preflight = (path: string, method: string, names: string) =>
      fetch(petstore.url + path, {
        method: 'OPTIONS',
        headers: { ...ORIGIN, 'Access-Control-Request-Method': method, 'Access-Control-Request-Headers': names },
      })
    const names = 'authorization,content-type,traceparent,sentry-trace,x-requested-with'
    const operations = OPERATIONS.map((operation) => BASE_PATH + examplePath(operation))
    for (const path of [...operations, '/v1', '/v1/', '/v1/nothing', '/v1/pets/']) {
      for (const method of ['GET', 'POST', 'DELETE', 'QUERY']) {
        const response = await preflight(path, method, names)
        assert.equal(response.status, 204, path)
        assert.equal(response.headers.get('access-control-allow-origin'), '*')
        assert.equal(response.headers.get('access-control-allow-methods'), '*')
        // The star covers every header but Authorization.
        assert.equal(response.headers.get('access-control-allow-headers'), '*, Authorization')
        assert.equal(response.headers.get('access-control-max-age'), '7200')
      }
    }
    const { status, headers } = await fetch(`${petstore.url}/v1/nothing`, { headers: ORIGIN })
    assert.deepEqual([status, headers.get('access-control-allow-origin')], [404, '*'])
  })

  it('get no preflight answer outside /v1 for a path that is not there', async () => {
    const headers = { ...ORIGIN, 'Access-Control-Request-Method': 'GET' }
    for (const path of ['/nothing', '/v1x', '/v2/pets'])
      assert.equal((await fetch(petstore.url + path, { method: 'OPTIONS', headers })).status, 404, path)
  })

  it('may read an error of a body that breaks off or comes too slowly; one of a page is for no other origin', async () => {
    for (const [path, allowed] of [
      ['/v1/pets', '*'],
      ['/sign-in', undefined],
    ] as const) {
      using connection = new RawConnection(petstore.url)
      const headers = `Host: a\r\nOrigin: http://b\r\nContent-Type: application/json\r\n${keyHeader(petstore.key)}`
      const request = `POST ${path} HTTP/1.1\r\n${headers}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`
      const answer = await connection.ask(request)
      expectRawError(answer, 'malformed_request')
      assert.equal(answer.headers.get('access-control-allow-origin'), allowed)
      assert.equal(answer.headers.get('vary'), allowed && 'Origin')
    }
  })

  it('may call from any origin and read every header, on every answer, also beyond the rate limit', async () => {
    const { url } = petstore
    const made = await petstore.add({ name: 'Rex', categoryId: 1 }, ORIGIN)
    const responses = [made]
    // In turn: what is removed has been added.
    for (const operation of OPERATIONS) responses.push(await callExample(petstore, operation, ORIGIN))
    responses.push(
      await petstore.call('/pets', { headers: { ...ORIGIN, 'If-None-Match': '*' } }),
      await petstore.call('/pets/1', { headers: ORIGIN }),
      await petstore.add('{', ORIGIN),
      await petstore.add('x'.repeat(20_000), ORIGIN),
      await fetch(`${url}/v1/pets`, { headers: ORIGIN }),
      await fetch(`${url}/v1/nothing`, { headers: ORIGIN }),
      await fetch(`${url}/v1/pets`, { method: 'DELETE', headers: ORIGIN }),
      await fetch(`${url}/openapi.json`, { headers: ORIGIN }),
    )
    // Each process counts for itself, and each of these calls may reach another one.
    const allowed = RATE_LIMIT * Number(WORKERS.PETSTORE_WORKERS ?? 1)
    for (let count = 0; count < allowed; count += 1) responses.push(await petstore.call('/pets', { headers: ORIGIN }))
    assert.deepEqual(
      new Set(responses.map(({ status }) => status)),
      new Set([...OPERATIONS.map(({ success }) => success.status), 304, 404, 400, 413, 401, 405, 429]),
    )
    for (const { headers, status } of responses) {
      assert.equal(headers.get('access-control-allow-origin'), '*', String(status))
      assert.equal(headers.get('vary'), 'Origin')
      assert.equal(headers.get('access-control-allow-credentials'), null)
      const exposed = new Set(headers.get('access-control-expose-headers')?.toLowerCase().split(', '))
      const readable = new Set(['cache-control', 'content-length', 'content-type'])
      for (const name of headers.keys()) {
        if (
          readable.has(name) ||
          /^(?:access-control-|vary$|date$|connection$|keep-alive$|allow$|referrer-policy$)/.test(name)
        )
          continue
        assert.ok(exposed.has(name), `${name} is exposed`)
      }
    }
  })
})
