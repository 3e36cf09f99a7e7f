// Requests that break the rules of HTTP, over raw sockets: always the Error body, nothing stored, the service alive.
import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { ErrorCode } from '../src/contract/errors.ts'
import { allowedAt, type Petstore, startPetstore } from './harness.ts'
import { expectRawError, RawConnection } from '../assurance/harness/raw-http.ts'

const REX = '{"name":"Rex","categoryId":1}'
const HOST = 'Host: pets.example\r\n'
const JSON_TYPE = 'Content-Type: application/json\r\n'

describe('Framing', () => {
  let petstore: Petstore
  let key = ''
  before(async () => {
    petstore = await startPetstore()
    key = `Authorization: Bearer ${petstore.key}\r\n`
  })
  // Whatever came before, the service lives, has nothing stored, and found no fault of its own.
  after(async () => {
    assert.equal(await (await petstore.call('/pets')).text(), '[]')
    assert.deepEqual(
      petstore.logged.filter(({ level }) => level === 'error'),
      [],
    )
    await petstore[Symbol.asyncDispose]()
  })

  /** Sends this; the answer must be that error, and the connection be closed or stay usable. */
  async function refused(bytes: string | Buffer, code: ErrorCode, fate: 'closes' | 'stays open'): Promise<string> {
    using connection = new RawConnection(petstore.url)
    connection.send(bytes)
    const answer = await connection.answer()
    const message = expectRawError(answer, code)
    assert.equal(answer.headers.get('cache-control'), 'private, no-cache')
    assert.equal(answer.headers.get('connection'), fate === 'closes' ? 'close' : 'keep-alive')
    if (fate === 'closes') await connection.closed()
    else {
      connection.send(`GET /livez HTTP/1.1\r\n${HOST}\r\n`)
      assert.equal((await connection.answer()).status, 200)
    }
    return message
  }
  const get = (headers: string, target = '/v1/pets', version = '1.1') =>
    `GET ${target} HTTP/${version}\r\n${headers}\r\n`
  const post = (headers: string, body: string | Buffer = '') =>
    Buffer.concat([Buffer.from(`POST /v1/pets HTTP/1.1\r\n${HOST}${headers}\r\n`), Buffer.from(body)])

  const malformed: Record<string, () => string | Buffer> = {
    'no Host': () => get(key),
    'two Hosts': () => get(HOST + HOST + key),
    'a Host with a space': () => get(`Host: a b\r\n${key}`),
    'a Host with a path': () => get(`Host: a/b\r\n${key}`),
    'a Host with a user': () => get(`Host: me@a\r\n${key}`),
    'HTTP/2.0 on the request line': () => get(HOST + key, '/v1/pets', '2.0'),
    'HTTP/0.9': () => 'GET /v1/pets\r\n\r\n',
    'HTTP/1.2': () => get(HOST + key, '/v1/pets', '1.2'),
    'the preface of HTTP/2': () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'a TLS handshake': () => Buffer.from('160301020001000001fc0303', 'hex'),
    'an unknown method': () => `PURR /v1/pets HTTP/1.1\r\n${HOST}${key}\r\n`,
    'a method in lower case': () => `get /v1/pets HTTP/1.1\r\n${HOST}${key}\r\n`,
    'a space in the path': () => get(HOST + key, '/v1/pets /x'),
    'a tab in the path': () => get(HOST + key, '/v1/pets\t'),
    'bytes above ASCII in the path': () => Buffer.from(get(HOST + key, '/v1/pets/é')),
    'a header without a colon': () => get(`${HOST}${key}nonsense\r\n`),
    'a space before the colon': () => get(`${HOST}${key}X-Pet : a\r\n`),
    'U+0000 in a header': () => get(`${HOST}${key}X-Pet: a\0b\r\n`),
    'a lone CR in a header': () => get(`${HOST}${key}X-Pet: a\rb\r\n`),
    'a folded header': () => get(`${HOST}${key}X-Pet: a\r\n b\r\n`),
    'lines that end in LF': () => get(HOST + key).replaceAll('\r', ''),
    'Content-Length and Transfer-Encoding': () =>
      post(`${key}${JSON_TYPE}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n`),
    'two Content-Lengths': () => post(`${key}${JSON_TYPE}Content-Length: 29\r\nContent-Length: 29\r\n`, REX),
    'two different Content-Lengths': () => post(`${key}${JSON_TYPE}Content-Length: 29\r\nContent-Length: 5\r\n`, REX),
    'a negative Content-Length': () => post(`${key}${JSON_TYPE}Content-Length: -1\r\n`, REX),
    'a Content-Length with a sign': () => post(`${key}${JSON_TYPE}Content-Length: +29\r\n`, REX),
    'a Content-Length of words': () => post(`${key}${JSON_TYPE}Content-Length: many\r\n`, REX),
    'a Content-Length beyond 64 bits': () => post(`${key}${JSON_TYPE}Content-Length: 99999999999999999999999\r\n`, REX),
    'a list as Content-Length': () => post(`${key}${JSON_TYPE}Content-Length: 29, 29\r\n`, REX),
    'an unknown transfer coding': () => post(`${key}${JSON_TYPE}Transfer-Encoding: xchunked\r\n`, '0\r\n\r\n'),
    'a compressed transfer coding': () => post(`${key}${JSON_TYPE}Transfer-Encoding: gzip, chunked\r\n`, '0\r\n\r\n'),
    'chunked twice': () =>
      post(`${key}${JSON_TYPE}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n`, '0\r\n\r\n'),
    'a chunk whose size is no number': () =>
      post(`${key}${JSON_TYPE}Transfer-Encoding: chunked\r\n`, `xx\r\n${REX}\r\n0\r\n\r\n`),
    'a negative chunk size': () =>
      post(`${key}${JSON_TYPE}Transfer-Encoding: chunked\r\n`, `-1d\r\n${REX}\r\n0\r\n\r\n`),
    'a chunk longer than its size': () =>
      post(`${key}${JSON_TYPE}Transfer-Encoding: chunked\r\n`, `5\r\n${REX}\r\n0\r\n\r\n`),
    'a chunk size beyond 64 bits': () =>
      post(`${key}${JSON_TYPE}Transfer-Encoding: chunked\r\n`, `fffffffffffffffff\r\n${REX}`),
  }
  for (const [what, bytes] of Object.entries(malformed)) {
    it(`refuses ${what}, and closes`, async () => {
      await refused(bytes(), 'malformed_request', 'closes')
    })
  }

  it('serves no request that comes behind a refused one', async () => {
    using connection = new RawConnection(petstore.url)
    connection.send(Buffer.concat([Buffer.from(get(key)), post(`${key}${JSON_TYPE}Content-Length: 29\r\n`, REX)]))
    expectRawError(await connection.answer(), 'malformed_request')
    await connection.closed()
    assert.equal(await (await petstore.call('/pets')).text(), '[]')
  })

  it('names the protocol that was spoken instead of HTTP/1.1', async () => {
    assert.match(
      await refused(malformed['a TLS handshake']!(), 'malformed_request', 'closes'),
      /^This port speaks plain HTTP, but a TLS handshake came: /,
    )
    assert.match(
      await refused(malformed['the preface of HTTP/2']!(), 'malformed_request', 'closes'),
      /^This port speaks HTTP\/1\.1, but HTTP\/2 came: /,
    )
  })

  it('refuses broken framing also where the answer is cached', async () => {
    const target = '/v1/pets?limit=7'
    for (let count = 0; count < 3; count += 1) assert.equal((await petstore.call('/pets?limit=7')).status, 200)
    for (const headers of [key, HOST + HOST + key]) await refused(get(headers, target), 'malformed_request', 'closes')
  })

  it('closes after the answer to a part of a request, whatever its Request-Id is', async () => {
    await refused(
      post(`${JSON_TYPE}Request-Id: Connection\r\nContent-Length: 29\r\n`, '{'),
      'missing_api_key',
      'closes',
    )
  })

  it('refuses broken framing before it looks for a key', async () => {
    await refused(get(''), 'malformed_request', 'closes')
    await refused(get('', '/nowhere'), 'malformed_request', 'closes')
    await refused(post(`${JSON_TYPE}Transfer-Encoding: chunked\r\n`, 'xx\r\n'), 'malformed_request', 'closes')
  })

  it('refuses 16 KiB of headers or address with 431, and takes a little less', async () => {
    await refused(get(`${HOST}${key}X-Pet: ${'x'.repeat(16_384)}\r\n`), 'headers_too_large', 'closes')
    await refused(get(HOST + key, `/v1/pets?${'x'.repeat(16_384)}`), 'headers_too_large', 'closes')
    await refused(get(HOST + 'a:\r\n'.repeat(6000)), 'headers_too_large', 'closes')
    await refused(get(HOST + key, `/v1/pets/${'1'.repeat(15_000)}`), 'pet_not_found', 'stays open')
    await refused(get(`${HOST}${key}X-Pet: ${'x'.repeat(15_000)}\r\n`, '/nowhere'), 'unknown_path', 'stays open')
  })

  it('refuses 16 KiB of chunk extensions with 413: they count as body', async () => {
    await refused(
      post(`${key}${JSON_TYPE}Transfer-Encoding: chunked\r\n`, `1;${'x'.repeat(20_000)}\r\n`),
      'body_too_large',
      'closes',
    )
  })

  it('refuses an Expect other than 100-continue', async () => {
    assert.match(await refused(get(`${HOST}${key}Expect: a pony\r\n`), 'expectation_failed', 'closes'), /got "a pony"/)
  })

  it('quotes an Expect in any characters, in an answer that is whole', async () => {
    const request = Buffer.from(get(`${HOST}${key}Expect: caf\u00E9\r\n`), 'latin1')
    assert.match(await refused(request, 'expectation_failed', 'closes'), /got "caf\u00E9"\.$/)
  })

  it('takes a Host of any form: an IPv6 address, with a port or without, a name, and an empty one', async () => {
    for (const host of ['[::1]:8080', '[2001:db8::7]', '192.0.2.1:80', 'my_pets.example', '']) {
      using connection = new RawConnection(petstore.url)
      connection.send(get(`Host: ${host}\r\n${key}`))
      assert.equal((await connection.answer()).status, 200, host)
    }
  })

  it('refuses CONNECT, TRACE and every method it does not have with 405', async () => {
    const message = await refused(`CONNECT pets.example:443 HTTP/1.1\r\n${HOST}\r\n`, 'method_not_allowed', 'closes')
    assert.equal(message, 'CONNECT is not allowed here.')
    for (const method of METHODS.filter((name) => !['GET', 'HEAD', 'POST', 'OPTIONS', 'CONNECT'].includes(name))) {
      await refused(`${method} /v1/pets HTTP/1.1\r\n${HOST}\r\n`, 'method_not_allowed', 'stays open')
    }
  })

  it('refuses Authorization, Content-Type and Idempotency-Key that come twice', async () => {
    await refused(get(HOST + key + key), 'malformed_authorization', 'stays open')
    await refused(get(`${HOST}Authorization: Bearer x\r\n${key}`), 'malformed_authorization', 'stays open')
    await refused(
      post(`${key}${JSON_TYPE}Content-Type: text/plain\r\nContent-Length: 29\r\n`, REX),
      'unsupported_content_type',
      'stays open',
    )
    await refused(
      post(`${key}${JSON_TYPE}Idempotency-Key: a\r\nidempotency-key: a\r\nContent-Length: 29\r\n`, REX),
      'invalid_idempotency_key',
      'stays open',
    )
  })

  it('refuses a gzip body, another character set, and UTF-16, and goes on', async () => {
    const sized = (headers: string, body: Buffer) => post(`${key}${headers}Content-Length: ${body.length}\r\n`, body)
    await refused(
      sized(`${JSON_TYPE}Content-Encoding: gzip\r\n`, gzipSync(REX)),
      'unsupported_content_type',
      'stays open',
    )
    await refused(sized(JSON_TYPE, gzipSync(REX)), 'invalid_json', 'stays open')
    await refused(
      sized('Content-Type: application/json; charset=utf-16\r\n', Buffer.from(REX, 'utf16le')),
      'unsupported_content_type',
      'stays open',
    )
    await refused(sized(JSON_TYPE, Buffer.from(`\uFEFF${REX}`, 'utf16le')), 'invalid_json', 'stays open')
    await refused(sized(JSON_TYPE, Buffer.from(`\uFEFF${REX}`)), 'invalid_json', 'stays open')
  })

  it('takes the names of headers for nothing else where they stand as a value, and chunked in any case', async () => {
    await refused(
      get(`Host: host\r\n${key}Vary: host\r\nAccess-Control-Request-Headers: authorization\r\n`, '/v1/pets/1'),
      'pet_not_found',
      'stays open',
    )
    await refused(
      post(`${key}${JSON_TYPE}Transfer-Encoding: Chunked\r\n`, '1\r\n{\r\n0\r\n\r\n'),
      'invalid_json',
      'stays open',
    )
  })

  it('refuses a body past the limit, and goes on where it has arrived', async () => {
    const tooMuch = 'x'.repeat(17_000)
    await refused(post(`${key}${JSON_TYPE}Content-Length: 17000\r\n`, tooMuch), 'body_too_large', 'stays open')
    await refused(
      post(`${key}${JSON_TYPE}Transfer-Encoding: chunked\r\n`, `4268\r\n${tooMuch}\r\n0\r\n\r\n`),
      'body_too_large',
      'stays open',
    )
    await refused(post(`${JSON_TYPE}Content-Length: 17000\r\n`, tooMuch), 'missing_api_key', 'stays open')
  })

  const targets: [target: string, code: ErrorCode][] = [
    ['//v1/pets', 'unknown_path'],
    ['/v1/./pets', 'unknown_path'],
    ['/v1/../v1/pets', 'unknown_path'],
    ['/v1/pets/../pets', 'unknown_path'],
    ['/v1/%2e%2e/v1/pets', 'unknown_path'],
    ['/v1/pets/..', 'pet_not_found'],
    ['/v1/pets/%2e%2e', 'pet_not_found'],
    ['/v1/pets/%252e', 'pet_not_found'],
    ['/v1%2Fpets', 'unknown_path'],
    ['/v1/pets%00', 'unknown_path'],
    ['/v1/pets%0d%0aX-Evil:%20yes', 'unknown_path'],
    ['/v1/pets/%0d%0aX-Evil:%20yes', 'pet_not_found'],
    ['/v1/pets?limit=0', 'invalid_parameter'],
    ['http://elsewhere.example/v1/pets?limit=0', 'invalid_parameter'],
    ['HTTPS://elsewhere.example:1/v1/pets?limit=0', 'invalid_parameter'],
    ['http://elsewhere.example/nowhere', 'unknown_path'],
    ['ftp://elsewhere.example/v1/pets', 'unknown_path'],
    ['/v1/pets?limit=0#fragment', 'invalid_parameter'],
    ['/v1/nothing#/v1/pets', 'unknown_path'],
    ['*', 'unknown_path'],
  ]
  for (const [target, code] of targets) {
    it(`takes the target ${target} for what it is: ${code}`, async () => {
      await refused(get(HOST + key, target), code, 'stays open')
    })
  }

  it('answers a whole address and a path alike, also with a method it does not have', async () => {
    for (const target of ['http://elsewhere.example/v1/pets', '/v1/p%65ts', '/v1/pets#fragment']) {
      await refused(`DELETE ${target} HTTP/1.1\r\n${HOST}\r\n`, 'method_not_allowed', 'stays open')
      using connection = new RawConnection(petstore.url)
      connection.send(get(HOST + key, target))
      assert.equal((await connection.answer()).status, 200)
    }
  })

  it('lets nothing of a request into the headers of its answer', async () => {
    using connection = new RawConnection(petstore.url)
    connection.send(
      get(`${HOST}${key}Request-Id: a%0d%0aX-Evil:yes\r\nOrigin: x%0d%0aX-Evil: yes\r\nIf-None-Match: "\u00ff"\r\n`),
    )
    const { status, headers } = await connection.answer()
    assert.equal(status, 200)
    assert.ok(!headers.has('x-evil'))
    assert.match(headers.get('request-id') ?? '', /^[\w-]{36}$/)
    assert.equal(headers.get('access-control-allow-origin'), '*')
  })

  it('answers OPTIONS *', async () => {
    using connection = new RawConnection(petstore.url)
    connection.send(`OPTIONS * HTTP/1.1\r\n${HOST}\r\n`)
    const { status, headers } = await connection.answer()
    assert.equal(status, 204)
    assert.equal(headers.get('allow'), allowedAt())
  })

  it('speaks HTTP/1.0, with a Host or without, and closes after the answer', async () => {
    for (const headers of [key, HOST + key]) {
      using connection = new RawConnection(petstore.url)
      connection.send(get(headers, '/v1/pets', '1.0'))
      assert.equal((await connection.answer()).body, '[]')
      await connection.closed()
    }
  })

  it('closes after the answer to an HTTP/1.0 request with Transfer-Encoding, whatever the client asks for', async () => {
    using connection = new RawConnection(petstore.url)
    const head = `POST /v1/pets HTTP/1.0\r\n${HOST}${key}${JSON_TYPE}Connection: keep-alive\r\n`
    connection.send(`${head}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n`)
    const answer = await connection.answer()
    expectRawError(answer, 'invalid_json')
    assert.equal(answer.headers.get('connection'), 'close')
    await connection.closed()
  })

  it('sends no 100 Continue to an HTTP/1.0 client, which would take it for the answer', async () => {
    using connection = new RawConnection(petstore.url)
    const head = `POST /v1/pets HTTP/1.0\r\n${HOST}${key}${JSON_TYPE}Expect: 100-continue\r\n`
    connection.send(`${head}Content-Length: 1\r\n\r\n{`)
    expectRawError(await connection.answer(), 'invalid_json')
  })

  it('ignores an offer to upgrade', async () => {
    for (const protocol of ['websocket', 'h2c', 'TLS/1.3']) {
      using connection = new RawConnection(petstore.url)
      connection.send(get(`${HOST}${key}Connection: Upgrade\r\nUpgrade: ${protocol}\r\n`))
      assert.equal((await connection.answer()).status, 200)
    }
  })
})
