// Generates malformed requests: random bytes, and well-formed requests changed at random.
import { below, oneOf, type Random } from '../random.ts'

/** Texts that often break parsers. */
const TOKENS = [
  '\r\n',
  '\r\n\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '%',
  '%00',
  '%ff',
  '%2e%2e/',
  '//',
  '?',
  '&',
  '=',
  '#',
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  '\\ud800',
  'null',
  '-1',
  '1e999',
  '-0',
  '9223372036854775808',
  '1.0000000000000001',
  'Content-Length: 5\r\n',
  'Content-Length: -1\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: gzip, chunked\r\n',
  'ffffffffffffffff\r\n',
  '0\r\n\r\n',
  'Expect: 100-continue\r\n',
  'Expect: 200-ok\r\n',
  'Upgrade: h2c\r\nConnection: upgrade\r\n',
  'Host: \r\n',
  'Idempotency-Key: "\r\n',
  'If-None-Match: *\r\n',
  'Origin: null\r\n',
  'HTTP/0.9',
  'HTTP/1.0',
  'HTTP/2.0',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  '*',
]
const LONGEST_NOISE = 2000

export function realRequests(key: string): string[] {
  const head = `Host: localhost\r\nAuthorization: Bearer ${key}\r\n`
  const post = (body: string, more = '') =>
    `POST /v1/pets HTTP/1.1\r\n${head}Content-Type: application/json\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  return [
    `GET /v1/pets HTTP/1.1\r\n${head}\r\n`,
    `GET /v1/pets?limit=3&status=sold HTTP/1.1\r\n${head}Accept: application/json\r\n\r\n`,
    `GET /v1/pets?limit=1&cursor=MTA HTTP/1.1\r\n${head}If-None-Match: "x", W/"y"\r\n\r\n`,
    `GET /v1/pets/1 HTTP/1.1\r\n${head}\r\n`,
    `HEAD /v1/pets HTTP/1.1\r\n${head}\r\n`,
    `OPTIONS /v1/pets HTTP/1.1\r\nHost: localhost\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n\r\n`,
    `GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    ...pageRequests(),
    post('{"name":"Rex","categoryId":9223372036854775807,"status":"pending"}'),
    post(
      '{"name":"Ré\\u0078 \\ud83d\\udc36","categoryId":-1.0e0,"more":{"a":[1,true,null]}}',
      'Idempotency-Key: "one"\r\n',
    ),
    `POST /v1/pets HTTP/1.1\r\n${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n{"name":"Rex","categoryId":12}\r\n0\r\n\r\n`,
    `POST /v1/pets HTTP/1.1\r\n${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{"name":"Rex\r\n12\r\n","categoryId":12}\r\n0\r\n\r\n`,
  ]
}

/** Health checks, pages, assets and forms. */
function pageRequests(): string[] {
  const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`
  const post = (path: string, body: string) =>
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nCookie: petstore=x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  return [
    get('/livez'),
    get('/', 'Accept: text/html\r\nX-Forwarded-For: 192.0.2.7, 127.0.0.1\r\n'),
    get('/assets/icon.svg?v=1', 'Accept-Encoding: br, gzip;q=0.5, *;q=0\r\n'),
    get('/keys/%41/rename', 'Cookie: a=b; petstore=x\r\n'),
    post('/sign-in', 'csrf=x&email=a%40example.com&password=y'),
    post('/keys/1/revoke', 'csrf='),
    `POST /sign-up HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\n\r\n`,
  ]
}

export function malformed(real: readonly string[], random: Random): Buffer {
  if (random() < 0.1) return noise(random)
  let bytes = Buffer.from(oneOf(real, random))
  for (let changes = 1 + below(4, random); changes > 0; changes -= 1)
    bytes = Buffer.from(oneOf(CHANGES, random)(bytes, random, real))
  return bytes
}

type Change = (bytes: Buffer, random: Random, real: readonly string[]) => Buffer

const CHANGES: readonly Change[] = [
  function flipBit(bytes, random) {
    if (bytes.length > 0) bytes[below(bytes.length, random)]! ^= 1 << below(8, random)
    return bytes
  },
  function cutShort(bytes, random) {
    return bytes.subarray(0, below(bytes.length + 1, random))
  },
  function drop(bytes, random) {
    const from = below(bytes.length + 1, random)
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + below(20, random))])
  },
  function repeat(bytes, random) {
    const from = below(bytes.length + 1, random)
    const part = bytes.subarray(from, from + below(40, random))
    return insert(bytes, from, Buffer.concat(Array.from({ length: below(50, random) }, () => part)))
  },
  function insertToken(bytes, random) {
    return insert(bytes, below(bytes.length + 1, random), Buffer.from(oneOf(TOKENS, random)))
  },
  function insertNoise(bytes, random) {
    return insert(bytes, below(bytes.length + 1, random), noise(random).subarray(0, 50))
  },
  function append(bytes, random, real) {
    return Buffer.concat([bytes, Buffer.from(oneOf(real, random))])
  },
]

function insert(bytes: Buffer, at: number, more: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)])
}

function noise(random: Random): Buffer {
  return Buffer.from(Array.from({ length: below(LONGEST_NOISE, random) }, () => below(256, random)))
}
