// Requests that go wrong after their answer has begun: every kind of answer, every fault, read or left unread by the client.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { ListQuery } from '../../src/contract/list-query.ts'
import { TIMEOUTS as DEFAULT_TIMEOUTS } from '../../src/http/app.ts'
import { until } from '../harness/until.ts'
import { signedIn } from '../harness/connections/console-client.ts'
import { type Petstore, startPetstore } from '../harness/harness.ts'

/** A request has the usual time, however busy the machine is; what follows its answer does not. */
const TIMEOUTS = {
  ...DEFAULT_TIMEOUTS,
  keepAliveTimeout: 1500,
  stalledTimeout: 1500,
  lingerTimeout: 500,
  connectionsCheckingInterval: 100,
}

/** What is asked for, and the answer's status. `KEY` stands for the header with the key. */
const ANSWERS: Record<string, [start: string, headers: string, status: number]> = {
  'a large asset': ['GET /assets/scalar.js', '', 200],
  'a compressed asset': ['GET /assets/scalar.js', 'Accept-Encoding: gzip\r\n', 200],
  'an asset without its body': ['HEAD /assets/scalar.js', '', 200],
  'a page': ['GET /docs', '', 200],
  'a redirect': ['GET /keys', '', 303],
  'a page for an unknown address': ['GET /nowhere', 'Accept: text/html\r\n', 404],
  'an error for an unknown address': ['POST /nowhere', '', 404],
  'an error for a method': ['DELETE /docs', '', 405],
  'a list': ['GET /v1/pets?limit=100', 'KEY', 200],
  'an animal that is not there': ['GET /v1/pets/999', 'KEY', 404],
  'an operation without a key': ['POST /v1/pets', 'Content-Type: application/json\r\n', 401],
  'an operation with another type': ['POST /v1/pets', 'KEYContent-Type: text/plain\r\n', 400],
  'a preflight': ['OPTIONS /v1/pets', 'Origin: http://a.example\r\nAccess-Control-Request-Method: GET\r\n', 204],
  'the OpenAPI document': ['GET /openapi.json', '', 200],
  'the health': ['GET /livez', '', 200],
  'an expectation that fails': ['GET /docs', 'Expect: tea\r\n', 417],
}

/** What comes after the answer has begun; the request has a chunked body of which `5\r\nhe` has come. */
const FAULTS: Record<string, (socket: Socket) => void> = {
  'a chunk longer than its size': (socket) => socket.write('lloXX\r\n'),
  'a chunk size that is none': (socket) => socket.write('llo\r\nZZ\r\n'),
  'a chunk size without an end': (socket) => socket.write(`llo\r\n${'0'.repeat(100)}${'f'.repeat(17)}`),
  'chunk extensions without an end': (socket) => socket.write(`llo\r\n1;${'a=b;'.repeat(8000)}`),
  'a broken trailer': (socket) => socket.write('llo\r\n0\r\n:\0\r\n\r\n'),
  'trailers that are too large': (socket) => socket.write(`llo\r\n0\r\n${'a: b\r\n'.repeat(10_000)}\r\n`),
  'a next request that is none': (socket) => socket.write('llo\r\n0\r\n\r\nnonsense\r\n\r\n'),
  'a next request that is right': (socket) => socket.write('llo\r\n0\r\n\r\nGET /livez HTTP/1.1\r\nHost: a\r\n\r\n'),
  'one fault after another': (socket) => {
    socket.write('lloXX\r\n')
    void setTimeout(20).then(() => socket.write('ZZ\r\n\r\nnonsense\r\n\r\n'))
  },
  'an end in the middle': (socket) => socket.end('l'),
  'a reset': (socket) => socket.resetAndDestroy(),
  'a fault and a reset': (socket) => {
    socket.write('lloXX\r\n', () => socket.resetAndDestroy())
  },
  'no more': () => {},
}

/** Sends a request, spoils it once its answer has begun, and returns what came back when the connection is closed. */
async function spoil({ url, key }: Petstore, what: string, fault: string, reads: boolean): Promise<string> {
  const [start, headers] = ANSWERS[what]!
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }).on('error', () => {})
  const ended = new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
  let received = ''
  if (reads) socket.on('data', (bytes) => void (received += bytes.toString('latin1')))
  const authorized = headers.replace('KEY', `Authorization: Bearer ${key}\r\n`)
  socket.write(`${start} HTTP/1.1\r\nHost: localhost\r\n${authorized}Transfer-Encoding: chunked\r\n\r\n5\r\nhe`)
  if (reads) await until(async () => received !== '' || socket.destroyed, `${what} is answered`)
  else await setTimeout(400)
  if (!socket.destroyed) FAULTS[fault]!(socket)
  // The service ends its side, unless the client takes nothing.
  await Promise.race([ended, setTimeout(reads ? 30_000 : 400)])
  assert.ok(!reads || socket.readableEnded || socket.destroyed, `${what}, then ${fault}: the connection is still open`)
  socket.destroy()
  return received
}

describe('A request that goes wrong after its answer has begun', () => {
  it('gets that one answer, ends its connection, and is no error of the service', async () => {
    await using petstore = await startPetstore({ timeouts: TIMEOUTS })
    for (let nth = 0; nth < 100; nth += 1) await petstore.add({ name: 'x'.repeat(100), categoryId: 1 })
    // Loads it, so that the answers begin in time.
    await fetch(`${petstore.url}/assets/scalar.js`)
    const pairs = Object.keys(FAULTS).flatMap((fault) => Object.keys(ANSWERS).map((what) => [what, fault] as const))
    // Not all at once, so that every answer begins before its request has taken too long.
    while (pairs.length > 0)
      await Promise.all(
        pairs.splice(0, 50).map(async ([what, fault]) => {
          const [read] = await Promise.all([spoil(petstore, what, fault, true), spoil(petstore, what, fault, false)])
          const statuses = [...read.matchAll(/^HTTP\/1\.1 (\d+) /gm)].map(([, status]) => Number(status))
          assert.deepEqual(statuses, [ANSWERS[what]![2]], `${what}, then ${fault}`)
        }),
      )
    assert.equal((await fetch(`${petstore.url}/livez`)).status, 200)
    assert.deepEqual(
      petstore.logged.filter(({ level, status }) => level === 'error' || Number(status) >= 500),
      [],
    )
  })
})

describe('A download that fails after its answer has begun', () => {
  it('is cut off, so that no client takes a part for the whole, and is logged', async (context) => {
    await using petstore = await startPetstore()
    const client = await signedIn(petstore)
    const { pets } = petstore.store
    // As many as are read at a time, so that more may follow.
    await pets.createMany(
      Array.from({ length: 1000 }, () => ({ name: 'Rex', categoryId: 1n, status: 'sold' as const })),
    )
    const list = pets.list.bind(pets)
    const begun = Promise.withResolvers<void>()
    context.mock.method(pets, 'list', async (query: ListQuery) => {
      if (query.before === undefined) return list(query)
      await begun.promise
      throw new Error('the disk is gone')
    })
    const { cookie } = client
    const download = await fetch(`${petstore.url}/animals.csv`, { headers: { Cookie: cookie } })
    begun.resolve()
    assert.equal(download.status, 200)
    await assert.rejects(download.text(), /terminated/)
    await until(() => petstore.logged.some(({ msg }) => msg === 'a download broke off'), 'the failure is logged')
    assert.equal((await fetch(`${petstore.url}/livez`)).status, 200)
  })
})
