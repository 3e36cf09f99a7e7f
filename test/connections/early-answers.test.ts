// Answers that are given while the request is still arriving: the client gets them, whatever it goes on to send.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { TIMEOUTS } from '../../src/http/app.ts'
import { until } from '../harness/until.ts'
import { ConsoleClient } from '../harness/connections/console-client.ts'
import { countPets, makeCostlyAccount, PASSWORD, sharePetstore, startPetstore } from '../harness/harness.ts'
import { create, keyHeader, RawConnection } from '../harness/connections/raw-http.ts'

const HOST = 'Host: localhost\r\n'
const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n'
const FIVE_MEGABYTES = 5_000_000
const ENDLESS = 'Content-Length: 999999999999\r\n'

type Early = [start: string, headers: string, status: number]

const JSON_TYPE = 'Content-Type: application/json\r\n'
const PAGE_FORM = `Accept: text/html\r\n${FORM}`

/** Requests that are refused without their body; `KEY` stands for the header with the key. */
const EARLY: Record<string, Early> = {
  'without a key': ['POST /v1/pets', JSON_TYPE, 401],
  'with a body that is too large': ['POST /v1/pets', `KEY${JSON_TYPE}`, 413],
  'with another Content-Type': ['POST /v1/pets', 'KEYContent-Type: text/plain\r\n', 400],
  'with another character set': ['POST /v1/pets', 'KEYContent-Type: application/json; charset=utf-16\r\n', 400],
  'with a method that is not allowed': ['PUT /v1/pets', 'KEY', 405],
  'to an unknown path': ['POST /v1/nothing', 'KEY', 404],
  'to an unknown page': ['POST /nothing', PAGE_FORM, 404],
  'to a page that takes no form': ['POST /docs', PAGE_FORM, 405],
  'for a page, with a body nobody asked for': ['GET /docs', '', 200],
  'with a form that is too large': ['POST /sign-in', PAGE_FORM, 413],
}

/** Requests that are refused by their headers, but only where they wait for 100 Continue: a short body would be read with them. */
const ASKED_FIRST: Record<string, Early> = {
  'with a form of another type': ['POST /sign-in', 'Content-Type: text/plain\r\nContent-Length: 3\r\n', 415],
  'with a bad Idempotency-Key': ['POST /v1/pets', `KEY${JSON_TYPE}Idempotency-Key: \r\nContent-Length: 29\r\n`, 400],
}

const LARGE = `Content-Length: ${FIVE_MEGABYTES}\r\n`

describe('A request that is refused while it arrives', () => {
  const service = sharePetstore()

  const head = ([start, headers]: Early, more: string) =>
    `${start} HTTP/1.1\r\n${HOST}${headers.replace('KEY', keyHeader(service().key))}${more}\r\n`

  for (const [what, early] of Object.entries(EARLY)) {
    it(`${what}: gets its answer, may send 5 MB, and is closed without a reset`, async () => {
      for (const framing of [LARGE, 'Transfer-Encoding: chunked\r\n']) {
        const isChunked = framing !== LARGE
        using connection = new RawConnection(service().url)
        connection.send(head(early, framing) + (isChunked ? `${FIVE_MEGABYTES.toString(16)}\r\n` : ''))
        const { status, headers } = await connection.ask('x'.repeat(20_000))
        assert.deepEqual([status, headers.get('connection')], [early[2], 'close'])
        connection.send('x'.repeat(FIVE_MEGABYTES - 20_000) + (isChunked ? '\r\n0\r\n\r\n' : ''))
        await connection.closed()
        assert.equal(connection.socket.errored, null)
      }
    })
  }

  for (const [what, early] of Object.entries({ ...EARLY, ...ASKED_FIRST })) {
    it(`${what}: is not asked for the body that waits for 100 Continue`, async () => {
      using connection = new RawConnection(service().url)
      const length = early[1].includes('Content-Length') ? '' : LARGE
      assert.equal((await connection.ask(head(early, `${length}Expect: 100-continue\r\n`))).status, early[2])
      await connection.closed()
    })
  }

  it('has no other request of its connection served after it', async () => {
    using connection = new RawConnection(service().url)
    assert.equal((await connection.ask(head(EARLY['without a key']!, 'Content-Length: 1000\r\n'))).status, 401)
    connection.send('x'.repeat(1000) + create(service().key))
    await connection.closed()
    assert.equal(await countPets(service()), 0)
  })

  it('is asked for a form that is going to be read', async () => {
    using connection = new RawConnection(service().url)
    const form = FORM.replace('\r\n', ' ; charset=UTF-8\r\n')
    const expecting = head(['POST /sign-in', form, 100], 'Content-Length: 3\r\nExpect: 100-continue\r\n')
    assert.equal((await connection.ask(expecting)).status, 100)
    assert.equal((await connection.ask('a=b')).status, 403)
  })

  it('may go on sending 15 MiB after its answer, and is closed without a reset; after 16 MiB it is cut off', async () => {
    for (const [megabytes, isCut] of [
      [15, false],
      [60, true],
    ] as const) {
      using connection = new RawConnection(service().url, { allowHalfOpen: true })
      assert.equal((await connection.ask(head(['POST /nothing', '', 404], ENDLESS))).status, 404)
      for (let sent = 0; sent < megabytes && !connection.socket.destroyed; sent += 1) {
        connection.send(Buffer.alloc(1024 * 1024))
        await setTimeout(20)
      }
      if (isCut) {
        await connection.closed()
        continue
      }
      assert.ok(!connection.socket.destroyed)
      connection.socket.end()
      await connection.closed(30_000)
      assert.equal(connection.socket.errored, null)
    }
  })
})

it('A client that goes on sending after its answer is cut off after a while, however slowly it sends', async () => {
  await using petstore = await startPetstore({ timeouts: { ...TIMEOUTS, lingerTimeout: 500 } })
  for (const [start, status] of [
    ['POST /nothing', 404],
    ['CONNECT pets.example:443', 405],
  ] as const) {
    using connection = new RawConnection(petstore.url, { allowHalfOpen: true })
    assert.equal((await connection.ask(`${start} HTTP/1.1\r\n${HOST}${ENDLESS}\r\n`)).status, status)
    const started = performance.now()
    while (!connection.socket.destroyed && performance.now() - started < 10_000) {
      connection.send('x')
      await setTimeout(50)
    }
    assert.ok(connection.socket.destroyed, start)
  }
})

it('A client that leaves during a sign-in or a sign-up: that is no fault of the service', async () => {
  await using petstore = await startPetstore({ env: { PETSTORE_SIGNUP: 'open' } })
  const client = new ConsoleClient(petstore.url)
  // Its password takes as long to compare as any: the client leaves meanwhile.
  const { email } = await makeCostlyAccount(petstore, 'leaver@example.com')
  for (const page of ['/sign-in', '/sign-up']) {
    const typed = { ...(await client.hiddenFields(page, page)), email, password: PASSWORD }
    const form = new URLSearchParams(typed).toString()
    const headers = `${HOST}Cookie: ${client.cookie}\r\n${FORM}Content-Length: ${form.length}\r\n`
    for (let attempt = 0; attempt < 40; attempt += 1) {
      using connection = new RawConnection(petstore.url)
      await once(connection.socket, 'connect')
      connection.send(`POST ${page} HTTP/1.1\r\n${headers}\r\n${form}`)
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
