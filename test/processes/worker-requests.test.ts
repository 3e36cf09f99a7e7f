// A worker answers requests of every kind as one process does. `npm run test:workers` tries all others of framing.test.ts and
// early-answers.test.ts on services with workers.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { type Petstore, startPetstore } from '../harness/harness.ts'
import { get, RawConnection } from '../harness/connections/raw-http.ts'
import { connectToWorker } from '../harness/connections/worker-connection.ts'

const HOST = 'Host: localhost\r\n'
const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n'
const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const post = (path: string, headers: string, body: string) => `POST ${path} HTTP/1.1\r\n${HOST}${headers}\r\n${body}`

/** Bytes to send, and how many answers they get. */
const REQUESTS: Record<string, [bytes: string, answers?: number]> = {
  'a page': [get('/docs')],
  'an asset': [get('/assets/console.css')],
  'OPTIONS of the server': [`OPTIONS * HTTP/1.1\r\n${HOST}\r\n`],
  'bytes that are not ASCII': [get('/caf\xc3\xa9', 'X-Name: caf\xe9\xff\r\n')],
  'a trailer': [post('/nowhere', `Trailer: Expires\r\n${CHUNKED}`, '2\r\nab\r\n0\r\nExpires: 0\r\n\r\n')],
  'an offer to upgrade': [
    get('/nowhere', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'),
  ],
  'another Host': [get('/sign-in').replace('localhost', 'elsewhere.example')],
  'Connection: close': [get('/nowhere', 'Connection: close\r\n')],
  'a Request-Id': [get('/nowhere', 'Request-Id: mine\r\n')],
  'HTTP/1.0': [get('/nowhere').replace('1.1', '1.0')],
  'as many headers as are taken': [get('/nowhere', 'a:\r\n'.repeat(990))],
  'a form': [post('/sign-in', `${FORM}Content-Length: 3\r\n`, 'a=b')],
  'a form in chunks': [post('/sign-in', `${FORM}${CHUNKED}`, '3\r\na=b\r\n0\r\n\r\n')],
  'a body that is too large': [post('/sign-up', `${FORM}Content-Length: 20000\r\n`, 'a'.repeat(20_000))],
  'a body that must be asked for': [post('/nowhere', 'Expect: 100-continue\r\nContent-Length: 3\r\n', '')],
  'a chunk that is malformed': [post('/sign-in', `${FORM}${CHUNKED}`, '3\r\na=b\r\nZZ\r\n')],
  'pipelined with operations': [
    `${get('/nowhere')}${get('/v1/pets')}${post('/nowhere', 'Content-Length: 3\r\n', 'abc')}${get('/v1/pets')}${get('/docs')}`,
    5,
  ],
  'pipelined with what is not HTTP': [`${get('/nowhere')}GARBAGE\r\n\r\n`, 2],
}

describe('A request on a connection of a worker', () => {
  let alone: Petstore
  let withWorker: Petstore
  before(async () => {
    const env = { PETSTORE_SIGNUP: 'open', PETSTORE_ADMIN_PORT: '0' }
    alone = await startPetstore({ env: { ...env, PETSTORE_WORKERS: '1' } })
    withWorker = await startPetstore({ env: { ...env, PETSTORE_WORKERS: '2' } })
  })
  after(async () => {
    await alone[Symbol.asyncDispose]()
    await withWorker[Symbol.asyncDispose]()
  })

  for (const [title, [bytes, answers = 1]] of Object.entries(REQUESTS)) {
    it(`is answered as by one process, and does not end the worker: ${title}`, async () => {
      using toProcess = new RawConnection(alone.url)
      using toWorker = await connectToWorker(withWorker.url)
      assert.deepEqual(await answersOf(toWorker, bytes, answers), await answersOf(toProcess, bytes, answers))
      assert.ok(!withWorker.logged.some(({ msg }) => String(msg).startsWith('a worker ended')))
    })
  }

  it('is no server error if its client leaves before the answer', async () => {
    for (const bytes of [
      get('/docs'),
      post('/sign-in', `${FORM}Content-Length: 3\r\n`, 'a'),
      post('/sign-in', `${FORM}${CHUNKED}`, '3\r\na=b\r\n'),
    ]) {
      const connection = await connectToWorker(withWorker.url)
      connection.send(bytes)
      await setTimeout(20)
      connection.socket.resetAndDestroy()
    }
    await setTimeout(200)
    const page = await (await fetch(`${withWorker.adminUrl}/metrics`)).text()
    assert.doesNotMatch(page, /petstore_requests_total\{operation="none",status="503"\} [1-9]/)
  })
})

async function answersOf(connection: RawConnection, bytes: string, count: number): Promise<unknown[]> {
  connection.send(Buffer.from(bytes, 'latin1'))
  return await Array.fromAsync({ length: count }, async () => {
    const { status, headers, body } = await connection.answer()
    return [status, [...headers].map(([name, value]) => [name, withoutChance(value)]), withoutChance(body)]
  })
}

/** Without dates, request ids, session tokens and addresses: they differ between any two answers. */
function withoutChance(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|(?<![\w-])[\w-]{43}(?![\w-])/g, '…')
    .replaceAll(/\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT/g, '…')
    .replaceAll(/127\.0\.0\.1:\d+/g, '…')
}
