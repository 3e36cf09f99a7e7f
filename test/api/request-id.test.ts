// The Request-Id, and the one log line that each request leaves.
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { sharePetstore, startPetstore } from '../harness/harness.ts'
import { expectRawError, keyHeader, RawConnection } from '../harness/connections/raw-http.ts'

const MADE = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

describe('The request id', () => {
  const service = sharePetstore({ env: { PETSTORE_LOG_LEVEL: 'debug' } })
  beforeEach(() => {
    service().logged.length = 0
  })

  it('comes with the word that the body is of no other type than it says, once, on answers of each kind', async () => {
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18' } }
    const responses = [
      await service().call('/pets'),
      await service().add({ name: 'Rex', categoryId: 1 }),
      ...(await Promise.all(
        ['/openapi.json', '/livez', '/nowhere', '/', '/sign-up', '/animals', '/assets/console.css'].map((path) =>
          fetch(service().url + path, { redirect: 'manual' }),
        ),
      )),
      await fetch(`${service().url}/mcp`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${service().key}`,
          'Content-Type': 'application/json',
          Accept: 'application/json',
        },
        body: JSON.stringify(initialize),
      }),
    ]
    for (const { headers, url } of responses) assert.equal(headers.get('x-content-type-options'), 'nosniff', url)
  })

  it('is on every answer, each another, and on the one log line of the request', async () => {
    const started = performance.now()
    const responses = [
      await service().call('/pets?limit=5'),
      await service().call('/pets/1'),
      await service().add({ name: 'Rex', categoryId: 1 }),
      await service().add('{'),
      await fetch(`${service().url}/v1/pets`),
      await fetch(`${service().url}/nowhere`),
      await fetch(`${service().url}/v1/pets`, { method: 'OPTIONS' }),
      await fetch(`${service().url}/livez`),
    ]
    const ids = responses.map(({ headers }) => headers.get('request-id')!)
    for (const id of ids) assert.match(id, MADE)
    assert.equal(new Set(ids).size, ids.length)
    const lines = service().logged.filter(({ msg }) => msg === 'request')
    assert.deepEqual(
      lines.map(({ requestId, status }) => [requestId, status]),
      responses.map(({ status }, index) => [ids[index], status]),
    )
    const { operation, keyId, path, address } = lines[0]!
    assert.deepEqual([operation, keyId, path, address], ['listPets', service().apiKey.id, '/v1/pets', '127.0.0.1'])
    const elapsed = performance.now() - started
    for (const { ms, path: of } of lines)
      assert.ok(typeof ms === 'number' && ms > 0 && ms < elapsed, `${String(of)}: ${String(ms)} of ${elapsed} ms`)
  })

  it('stands beside the address that the trusted proxies tell of, and not what a client claims', async () => {
    await using behind = await startPetstore({ env: { PETSTORE_TRUST_PROXY: 'loopback,10.0.0.0/8' } })
    const headers = { 'X-Forwarded-For': '203.0.113.9, 198.51.100.7, 10.0.0.2' }
    for (const [each, address] of [
      [service(), '127.0.0.1'],
      [behind, '198.51.100.7'],
    ] as const) {
      await each.call('/pets', { headers })
      await fetch(`${each.url}/livez`, { headers })
      assert.deepEqual(
        each.logged.filter(({ msg }) => msg === 'request').map((line) => line['address']),
        [address, address],
      )
    }
  })

  it('is kept where it is sane', async () => {
    const answered = async (id: string) =>
      (await service().call('/pets', { headers: { 'Request-Id': id } })).headers.get('request-id') ?? ''
    for (const id of ['a', 'trace-1:2/3.4+5=6_7', 'x'.repeat(128)]) assert.equal(await answered(id), id)
    for (const id of ['', ' ', 'x'.repeat(129), 'a b', 'a,b', 'ÿ', '<script>', '"a"', 'a;b', service().key])
      assert.match(await answered(id), MADE, id)
  })

  it('names what never became a request too: on its answer and its log line, kept where it could be read', async () => {
    const cases = { 'GET / HTTP/1.1': /^trace-1$/, 'CONNECT pets.example:443 HTTP/1.1': /^trace-1$/, NONSENSE: MADE }
    for (const [line, expected] of Object.entries(cases)) {
      using connection = new RawConnection(service().url)
      const headers = 'Host: pets.example\r\nRequest-Id: trace-1\r\nExpect: a pony\r\n'
      const id = (await connection.ask(`${line}\r\n${headers}\r\n`)).headers.get('request-id')
      assert.match(id ?? '', expected, line)
      assert.equal(service().logged.at(-1)?.['requestId'], id)
    }
    assert.deepEqual(
      service().logged.map(({ status, address }) => [status, address]),
      [417, 405, 400].map((status) => [status, '127.0.0.1']),
    )
  })

  it('is kept where the body is refused by the parser, on the answer and on the log line, which names the request', async () => {
    using connection = new RawConnection(service().url)
    const headers = `Host: a\r\nRequest-Id: trace-2\r\nContent-Type: application/json\r\n${keyHeader(service().key)}`
    const answer = await connection.ask(`POST /v1/pets HTTP/1.1\r\n${headers}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`)
    expectRawError(answer, 'malformed_request')
    assert.equal(answer.headers.get('request-id'), 'trace-2')
    const logged = service().logged.map(({ requestId, method, path, status }) => [requestId, method, path, status])
    assert.deepEqual(logged, [['trace-2', 'POST', '/v1/pets', 400]])
  })
})
