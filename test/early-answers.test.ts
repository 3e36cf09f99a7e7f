// Answers that are given while the request is still arriving: the client gets them, whatever it goes on to send.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { until } from '../assurance/harness/until.ts'
import { ConsoleClient } from './console-client.ts'
import { describeService, makeCostlyAccount, PASSWORD, startPetstore } from './harness.ts'
import { RawConnection } from '../assurance/harness/raw-http.ts'

const HOST = 'Host: localhost\r\n'
const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n'
const FIVE_MEGABYTES = 5_000_000
const TIMEOUTS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  stalledTimeout: 35_000,
  lingerTimeout: 500,
  connectionsCheckingInterval: 1000,
}

interface Early {
  start: string
  headers: string
  status: number
}

/** Requests that are refused without their body; `KEY` stands for the header with the key. */
const EARLY: Record<string, Early> = {
  'without a key': { start: 'POST /v1/pets', headers: 'Content-Type: application/json\r\n', status: 401 },
  'with a body that is too large': {
    start: 'POST /v1/pets',
    headers: 'KEYContent-Type: application/json\r\n',
    status: 413,
  },
  'with another Content-Type': { start: 'POST /v1/pets', headers: 'KEYContent-Type: text/plain\r\n', status: 400 },
  'with another character set': {
    start: 'POST /v1/pets',
    headers: 'KEYContent-Type: application/json; charset=utf-16\r\n',
    status: 400,
  },
  'with a method that is not allowed': { start: 'PUT /v1/pets', headers: 'KEY', status: 405 },
  'to an unknown path': { start: 'POST /v1/nothing', headers: 'KEY', status: 404 },
  'to an unknown page': { start: 'POST /nothing', headers: `Accept: text/html\r\n${FORM}`, status: 404 },
  'to a page that takes no form': { start: 'POST /docs', headers: `Accept: text/html\r\n${FORM}`, status: 405 },
  'for a page, with a body nobody asked for': { start: 'GET /docs', headers: '', status: 200 },
  'with a form that is too large': { start: 'POST /sign-in', headers: `Accept: text/html\r\n${FORM}`, status: 413 },
}

describeService('A request that is refused while it arrives', (service) => {
  const head = ({ start, headers }: Early, more: string) =>
    `${start} HTTP/1.1\r\n${HOST}${headers.replace('KEY', `Authorization: Bearer ${service().key}\r\n`)}${more}\r\n`

  for (const [what, early] of Object.entries(EARLY)) {
    it(`${what}: gets its answer, may send 5 MB, and is closed without a reset`, async () => {
      for (const framing of [`Content-Length: ${FIVE_MEGABYTES}\r\n`, 'Transfer-Encoding: chunked\r\n']) {
        const isChunked = framing.startsWith('T')
        using connection = new RawConnection(service().url)
        connection.send(head(early, framing) + (isChunked ? `${FIVE_MEGABYTES.toString(16)}\r\n` : ''))
        connection.send('x'.repeat(20_000))
        const { status, headers } = await connection.answer()
        assert.equal(status, early.status)
        assert.equal(headers.get('connection'), 'close')
        connection.send('x'.repeat(FIVE_MEGABYTES - 20_000) + (isChunked ? '\r\n0\r\n\r\n' : ''))
        await connection.closed()
        assert.equal(connection.socket.errored, null)
      }
    })

    it(`${what}: is not asked for the body that waits for 100 Continue`, async () => {
      using connection = new RawConnection(service().url)
      connection.send(head(early, `Content-Length: ${FIVE_MEGABYTES}\r\nExpect: 100-continue\r\n`))
      assert.equal((await connection.answer()).status, early.status)
      await connection.closed()
    })
  }

  it('with a form of another type: is not asked for the body that waits for 100 Continue', async () => {
    using connection = new RawConnection(service().url)
    connection.send(
      `POST /sign-in HTTP/1.1\r\n${HOST}Content-Type: text/plain\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n`,
    )
    assert.equal((await connection.answer()).status, 415)
  })

  it('with a bad Idempotency-Key: is not asked for the body that waits for 100 Continue', async () => {
    using connection = new RawConnection(service().url)
    const early = {
      start: 'POST /v1/pets',
      headers: 'KEYContent-Type: application/json\r\nIdempotency-Key: \r\n',
      status: 400,
    }
    connection.send(head(early, 'Content-Length: 29\r\nExpect: 100-continue\r\n'))
    assert.equal((await connection.answer()).status, 400)
    await connection.closed()
  })

  it('has no other request of its connection served after it', async () => {
    const { url, key, store } = service()
    using connection = new RawConnection(url)
    connection.send(head(EARLY['without a key']!, 'Content-Length: 1000\r\n'))
    assert.equal((await connection.answer()).status, 401)
    const body = '{"name":"Rex","categoryId":1}'
    const create = `POST /v1/pets HTTP/1.1\r\n${HOST}Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    connection.send('x'.repeat(1000) + create)
    await connection.closed()
    assert.deepEqual(await store.pets.countByStatus(), { available: 0, pending: 0, sold: 0 })
  })

  it('is asked for a form that is going to be read', async () => {
    using connection = new RawConnection(service().url)
    const form = FORM.replace('\r\n', ' ; charset=UTF-8\r\n')
    connection.send(`POST /sign-in HTTP/1.1\r\n${HOST}${form}Content-Length: 3\r\nExpect: 100-continue\r\n\r\n`)
    assert.equal((await connection.answer()).status, 100)
    connection.send('a=b')
    assert.equal((await connection.answer()).status, 403)
  })
})

describe('A client that goes on sending after its answer', () => {
  const refused = `POST /nothing HTTP/1.1\r\n${HOST}Content-Length: 999999999999\r\n\r\n`

  it('may send 15 MiB, and is closed without a reset', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url, { allowHalfOpen: true })
    connection.send(refused)
    assert.equal((await connection.answer()).status, 404)
    for (let sent = 0; sent < 15; sent += 1) {
      connection.send(Buffer.alloc(1024 * 1024))
      await setTimeout(20)
    }
    connection.socket.end()
    await connection.closed(30_000)
    assert.equal(connection.socket.errored, null)
  })

  it('is cut off after 16 MiB', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url, { allowHalfOpen: true })
    connection.send(refused)
    assert.equal((await connection.answer()).status, 404)
    const megabyte = Buffer.alloc(1024 * 1024)
    for (let sent = 0; sent < 60 && !connection.socket.destroyed; sent += 1) {
      connection.send(megabyte)
      await setTimeout(20)
    }
    assert.ok(connection.socket.destroyed)
  })

  it('is cut off after a while, however slowly it sends', async () => {
    await using petstore = await startPetstore({ timeouts: TIMEOUTS })
    using connection = new RawConnection(petstore.url, { allowHalfOpen: true })
    connection.send(refused)
    assert.equal((await connection.answer()).status, 404)
    const started = performance.now()
    while (!connection.socket.destroyed && performance.now() - started < 10_000) {
      connection.send('x')
      await setTimeout(50)
    }
    assert.ok(connection.socket.destroyed)
  })
})

describeService(
  'A client that leaves',
  (service) => {
    it('during a sign-in or a sign-up: that is no fault of the service', async () => {
      const petstore = service()
      const client = new ConsoleClient(petstore.url)
      // Its password takes as long to compare as any: the client leaves meanwhile.
      const { email } = await makeCostlyAccount(petstore, 'leaver@example.com')
      for (const page of ['/sign-in', '/sign-up']) {
        const fields = new URLSearchParams({
          ...(await client.hiddenFields(page, page)),
          email,
          password: PASSWORD,
        })
        const form = fields.toString()
        const { cookie } = client
        for (let attempt = 0; attempt < 40; attempt += 1) {
          using connection = new RawConnection(petstore.url)
          await once(connection.socket, 'connect')
          connection.send(
            `POST ${page} HTTP/1.1\r\n${HOST}Cookie: ${cookie}\r\n${FORM}Content-Length: ${form.length}\r\n\r\n${form}`,
          )
          await setTimeout(attempt / 4)
          connection.socket.resetAndDestroy()
        }
      }
      await until(async () => (await client.get('/sign-in')).status === 200)
      assert.deepEqual(
        petstore.logged.filter(({ level, status }) => level === 'error' || Number(status) >= 500),
        [],
      )
    })
  },
  { env: { PETSTORE_SIGNUP: 'open' } },
)
