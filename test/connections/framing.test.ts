// Requests that break the rules of HTTP, over raw sockets: always the Error body, nothing stored, the service alive.
import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { after, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { ErrorCode } from '../../src/contract/errors.ts'
import { allowedAt, sharePetstore } from '../harness/harness.ts'
import { expectRawError, keyHeader, type RawAnswer, RawConnection, REX } from '../harness/connections/raw-http.ts'

const HOST = 'Host: pets.example\r\n'
const JSON_TYPE = 'Content-Type: application/json\r\n'
const TOO_MUCH = 'x'.repeat(17_000)

// Requests are texts of one character per byte; `KEY` stands for the header with the key.
const request = (start: string, headers = '', body = '') => `${start}\r\n${headers}\r\n${body}`
const get = (headers: string, target = '/v1/pets', version = '1.1') =>
  request(`GET ${target} HTTP/${version}`, `${headers}KEY`)
const post = (headers: string, body = REX) => request('POST /v1/pets HTTP/1.1', `${HOST}KEY${headers}`, body)
const sized = (length: string) => post(`${JSON_TYPE}Content-Length: ${length}\r\n`)
const chunked = (body: string, coding = 'chunked') => post(`${JSON_TYPE}Transfer-Encoding: ${coding}\r\n`, body)
const whole = (headers: string, body = REX) => post(`${headers}Content-Length: ${body.length}\r\n`, body)
const bytesOf = (body: string | Buffer, encoding?: BufferEncoding) =>
  Buffer.from(body as string, encoding).toString('latin1')

const TLS_HANDSHAKE = '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'
const HTTP_2_PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

const MALFORMED: Record<string, string> = {
  'no Host': get(''),
  'two Hosts': get(HOST + HOST),
  'a Host with a space': get('Host: a b\r\n'),
  'a Host with a path': get('Host: a/b\r\n'),
  'a Host with a user': get('Host: me@a\r\n'),
  'HTTP/2.0 on the request line': get(HOST, '/v1/pets', '2.0'),
  'HTTP/0.9': 'GET /v1/pets\r\n\r\n',
  'HTTP/1.2': get(HOST, '/v1/pets', '1.2'),
  'the preface of HTTP/2': HTTP_2_PREFACE,
  'a TLS handshake': TLS_HANDSHAKE,
  'an unknown method': request('PURR /v1/pets HTTP/1.1', `${HOST}KEY`),
  'a method in lower case': request('get /v1/pets HTTP/1.1', `${HOST}KEY`),
  'a space in the path': get(HOST, '/v1/pets /x'),
  'a tab in the path': get(HOST, '/v1/pets\t'),
  'bytes above ASCII in the path': get(HOST, '/v1/pets/\xc3\xa9'),
  'a header without a colon': get(`${HOST}nonsense\r\n`),
  'a space before the colon': get(`${HOST}X-Pet : a\r\n`),
  'U+0000 in a header': get(`${HOST}X-Pet: a\0b\r\n`),
  'a lone CR in a header': get(`${HOST}X-Pet: a\rb\r\n`),
  'a folded header': get(`${HOST}X-Pet: a\r\n b\r\n`),
  'lines that end in LF': `GET /v1/pets HTTP/1.1\nHost: pets.example\n\n`,
  'Content-Length and Transfer-Encoding': sized('3\r\nTransfer-Encoding: chunked'),
  'Transfer-Encoding and Content-Length': chunked('0\r\n\r\n', 'chunked\r\nContent-Length: 3'),
  'two Content-Lengths': sized('29\r\nContent-Length: 29'),
  'two different Content-Lengths': sized('29\r\nContent-Length: 5'),
  'a negative Content-Length': sized('-1'),
  'a Content-Length with a sign': sized('+29'),
  'a Content-Length of words': sized('many'),
  'a Content-Length beyond 64 bits': sized('99999999999999999999999'),
  'a list as Content-Length': sized('29, 29'),
  'an unknown transfer coding': chunked('0\r\n\r\n', 'xchunked'),
  'a compressed transfer coding': chunked('0\r\n\r\n', 'gzip, chunked'),
  'chunked twice': chunked('0\r\n\r\n', 'chunked\r\nTransfer-Encoding: chunked'),
  'a chunk whose size is no number': chunked(`xx\r\n${REX}\r\n0\r\n\r\n`),
  'a negative chunk size': chunked(`-1d\r\n${REX}\r\n0\r\n\r\n`),
  'a chunk longer than its size': chunked(`5\r\n${REX}\r\n0\r\n\r\n`),
  'a chunk size beyond 64 bits': chunked(`fffffffffffffffff\r\n${REX}`),
}

type Refused = [bytes: string, code: ErrorCode, fate: 'closes' | 'stays open']

/** By what is promised of them. */
const REFUSED: Record<string, Refused[]> = {
  'closes after the answer to a part of a request, whatever its Request-Id is': [
    [
      post(`${JSON_TYPE}Request-Id: Connection\r\nContent-Length: 29\r\n`, '{').replace('KEY', ''),
      'missing_api_key',
      'closes',
    ],
  ],
  'refuses broken framing before it looks for a key': [
    [get('').replace('KEY', ''), 'malformed_request', 'closes'],
    [get('', '/nowhere').replace('KEY', ''), 'malformed_request', 'closes'],
    [chunked('xx\r\n').replace('KEY', ''), 'malformed_request', 'closes'],
  ],
  'refuses 16 KiB of headers or address with 431, and takes a little less': [
    [get(`${HOST}X-Pet: ${'x'.repeat(16_384)}\r\n`), 'headers_too_large', 'closes'],
    [get(HOST, `/v1/pets?${'x'.repeat(16_384)}`), 'headers_too_large', 'closes'],
    [get(HOST + 'a:\r\n'.repeat(6000)), 'headers_too_large', 'closes'],
    [get(HOST, `/v1/pets/${'1'.repeat(15_000)}`), 'pet_not_found', 'stays open'],
    [get(`${HOST}X-Pet: ${'x'.repeat(15_000)}\r\n`, '/nowhere'), 'unknown_path', 'stays open'],
  ],
  'refuses 16 KiB of chunk extensions with 413: they count as body': [
    [chunked(`1;${'x'.repeat(20_000)}\r\n`), 'body_too_large', 'closes'],
  ],
  'refuses Authorization, Content-Type and Idempotency-Key that come twice': [
    [get(`${HOST}KEY`), 'malformed_authorization', 'stays open'],
    [get(`${HOST}Authorization: Bearer x\r\n`), 'malformed_authorization', 'stays open'],
    [whole(`${JSON_TYPE}Content-Type: text/plain\r\n`), 'unsupported_content_type', 'stays open'],
    [whole(`${JSON_TYPE}Idempotency-Key: a\r\nidempotency-key: a\r\n`), 'invalid_idempotency_key', 'stays open'],
  ],
  'refuses a gzip body, another character set, and UTF-16, and goes on': [
    [whole(`${JSON_TYPE}Content-Encoding: gzip\r\n`, bytesOf(gzipSync(REX))), 'unsupported_content_type', 'stays open'],
    [whole(JSON_TYPE, bytesOf(gzipSync(REX))), 'invalid_json', 'stays open'],
    [whole('Content-Type: application/json; charset=utf-16\r\n'), 'unsupported_content_type', 'stays open'],
    [whole(JSON_TYPE, bytesOf(`\uFEFF${REX}`, 'utf16le')), 'invalid_json', 'stays open'],
    [whole(JSON_TYPE, bytesOf(`\uFEFF${REX}`)), 'invalid_json', 'stays open'],
  ],
  'takes the names of headers for nothing else where they stand as a value, and chunked in any case': [
    [
      get('Host: host\r\nVary: host\r\nAccess-Control-Request-Headers: authorization\r\n', '/v1/pets/1'),
      'pet_not_found',
      'stays open',
    ],
    [chunked('1\r\n{\r\n0\r\n\r\n', 'Chunked'), 'invalid_json', 'stays open'],
  ],
  'refuses a body past the limit, and goes on where it has arrived': [
    [whole(JSON_TYPE, TOO_MUCH), 'body_too_large', 'stays open'],
    [chunked(`4268\r\n${TOO_MUCH}\r\n0\r\n\r\n`), 'body_too_large', 'stays open'],
    [whole(JSON_TYPE, TOO_MUCH).replace('KEY', ''), 'missing_api_key', 'stays open'],
  ],
  'takes a target for what it is': [
    [get(HOST, '/v1/pets/../pets'), 'unknown_path', 'stays open'],
    [get(HOST, '/v1/pets/%2e%2e'), 'pet_not_found', 'stays open'],
    [get(HOST, '/v1/pets%0d%0aX-Evil:%20yes'), 'unknown_path', 'stays open'],
    [get(HOST, '/v1/pets/%0d%0aX-Evil:%20yes'), 'pet_not_found', 'stays open'],
    [get(HOST, 'HTTPS://elsewhere.example:1/v1/pets?limit=0#fragment'), 'invalid_parameter', 'stays open'],
    [get(HOST, 'http://elsewhere.example/nowhere'), 'unknown_path', 'stays open'],
    [get(HOST, 'ftp://elsewhere.example/v1/pets'), 'unknown_path', 'stays open'],
    [get(HOST, '*'), 'unknown_path', 'stays open'],
  ],
  'refuses TRACE and every method it does not have with 405': METHODS.filter(
    (name) => !['GET', 'HEAD', 'POST', 'OPTIONS', 'CONNECT'].includes(name),
  ).map((method) => [request(`${method} /v1/pets HTTP/1.1`, HOST), 'method_not_allowed', 'stays open']),
}

describe('Framing', () => {
  // Whatever came before, the service lives, has nothing stored, and found no fault of its own.
  after(async () => {
    assert.equal(await (await service().call('/pets')).text(), '[]')
    assert.deepEqual(
      service().logged.filter(({ level }) => level === 'error'),
      [],
    )
  })
  const service = sharePetstore()

  const bytes = (text: string) => Buffer.from(text.replaceAll('KEY', keyHeader(service().key)), 'latin1')
  /** Sends this on a new connection and returns the answer. */
  async function ask(text: string): Promise<RawAnswer> {
    using connection = new RawConnection(service().url)
    return await connection.ask(bytes(text))
  }

  /** Sends this; the answer must be that error, and the connection be closed or stay usable. */
  async function refused(...[text, code, fate]: Refused): Promise<string> {
    using connection = new RawConnection(service().url)
    const answer = await connection.ask(bytes(text))
    const message = expectRawError(answer, code)
    assert.equal(answer.headers.get('cache-control'), 'private, no-cache')
    assert.equal(answer.headers.get('connection'), fate === 'closes' ? 'close' : 'keep-alive')
    if (fate === 'closes') await connection.closed()
    else assert.equal((await connection.ask(request('GET /livez HTTP/1.1', HOST))).status, 200)
    return message
  }

  for (const [what, text] of Object.entries(MALFORMED)) {
    it(`refuses ${what}, and closes`, async () => {
      await refused(text, 'malformed_request', 'closes')
    })
  }

  for (const [promise, requests] of Object.entries(REFUSED)) {
    it(promise, async () => {
      for (const each of requests) await refused(...each)
    })
  }

  it('serves no request that comes behind a refused one', async () => {
    using connection = new RawConnection(service().url)
    expectRawError(await connection.ask(bytes(get('') + whole(JSON_TYPE))), 'malformed_request')
    await connection.closed()
    assert.equal(await (await service().call('/pets')).text(), '[]')
  })

  it('names what came instead: an Expect in any characters, a CONNECT', async () => {
    const messages: [Refused, RegExp][] = [
      [[get(`${HOST}Expect: a pony\r\n`), 'expectation_failed', 'closes'], /got "a pony"/],
      [[get(`${HOST}Expect: caf\u00E9\r\n`), 'expectation_failed', 'closes'], /got "caf\u00E9"\.$/],
      [[request('CONNECT a:443 HTTP/1.1', HOST), 'method_not_allowed', 'closes'], /^CONNECT is not allowed here\.$/],
    ]
    for (const [each, message] of messages) assert.match(await refused(...each), message)
  })

  it('refuses broken framing also where the answer is cached', async () => {
    for (let count = 0; count < 3; count += 1) assert.equal((await service().call('/pets?limit=7')).status, 200)
    for (const hosts of ['', HOST + HOST]) await refused(get(hosts, '/v1/pets?limit=7'), 'malformed_request', 'closes')
  })

  it('takes a Host of any form: an IPv6 address, with a port or without, a name, and an empty one', async () => {
    for (const host of ['[::1]:8080', '[2001:db8::7]', '192.0.2.1:80', 'my_pets.example', ''])
      assert.equal((await ask(get(`Host: ${host}\r\n`))).status, 200, host)
  })

  it('answers a whole address and a path alike, also with a method it does not have', async () => {
    for (const target of ['http://elsewhere.example/v1/pets', '/v1/p%65ts', '/v1/pets#fragment']) {
      await refused(request(`DELETE ${target} HTTP/1.1`, HOST), 'method_not_allowed', 'stays open')
      assert.equal((await ask(get(HOST, target))).status, 200)
    }
  })

  it('lets nothing of a request into the headers of its answer', async () => {
    const evil = 'Request-Id: a%0d%0aX-Evil:yes\r\nOrigin: x%0d%0aX-Evil: yes\r\nIf-None-Match: "\u00ff"\r\n'
    const { status, headers } = await ask(get(HOST + evil))
    assert.equal(status, 200)
    assert.ok(!headers.has('x-evil'))
    assert.match(headers.get('request-id') ?? '', /^[\w-]{36}$/)
    assert.equal(headers.get('access-control-allow-origin'), '*')
  })

  it('answers OPTIONS *', async () => {
    const { status, headers } = await ask(request('OPTIONS * HTTP/1.1', HOST))
    assert.deepEqual([status, headers.get('allow')], [204, allowedAt()])
  })

  it('speaks HTTP/1.0, with a Host or without, and closes after the answer', async () => {
    for (const host of ['', HOST]) {
      using connection = new RawConnection(service().url)
      assert.equal((await connection.ask(bytes(get(host, '/v1/pets', '1.0')))).body, '[]')
      await connection.closed()
    }
  })

  it('closes after the answer to an HTTP/1.0 request with Transfer-Encoding, whatever the client asks for', async () => {
    const create = chunked('1\r\n{\r\n0\r\n\r\n', 'chunked\r\nConnection: keep-alive')
    await refused(create.replace('HTTP/1.1', 'HTTP/1.0'), 'invalid_json', 'closes')
  })

  it('sends no 100 Continue to an HTTP/1.0 client, which would take it for the answer', async () => {
    const create = whole(`${JSON_TYPE}Expect: 100-continue\r\n`, '{')
    expectRawError(await ask(create.replace('HTTP/1.1', 'HTTP/1.0')), 'invalid_json')
  })

  it('ignores an offer to upgrade', async () => {
    for (const protocol of ['websocket', 'h2c', 'TLS/1.3'])
      assert.equal((await ask(get(`${HOST}Connection: Upgrade\r\nUpgrade: ${protocol}\r\n`))).status, 200)
  })
})
