// Clients that stop reading their answers are closed in time; clients that read slowly never are. The clock of the service moves
// only when a test moves it, so that the speed of the machine does not matter.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { TIMEOUTS } from '../../src/http/app.ts'
import { unsentBytes } from '../../src/http/connections/node-http.ts'
import { get } from '../harness/connections/raw-http.ts'
import { until } from '../harness/until.ts'
import { signedIn } from '../harness/connections/console-client.ts'
import { type Petstore, startPetstore } from '../harness/harness.ts'

const LARGE = '/assets/scalar.js'
const MEGABYTE = 1_000_000
/** Bytes per second. */
const SLOW = 16 * 1024

/** The time of the service. Each check of the connections asks for it once. */
let now = 0
let check = Promise.withResolvers<void>()
const monotonic = () => {
  check.resolve()
  check = Promise.withResolvers()
  return now
}
/** Resolves when the connections have been checked at the present time. */
const checked = () => check.promise

/** Sends requests, reads nothing of their answers, and returns both ends of the connection. */
async function ask({ url }: Petstore, requests: string): Promise<{ client: Socket; server: Socket } & Disposable> {
  const accepted = Promise.withResolvers<Socket>()
  const take = (message: unknown) => accepted.resolve((message as { socket: Socket }).socket)
  subscribe('http.server.request.start', take)
  const { hostname, port } = new URL(url)
  const client = connect(Number(port), hostname).on('error', () => {})
  client.write(requests)
  const server = await accepted.promise
  unsubscribe('http.server.request.start', take)
  return { client, server, [Symbol.dispose]: () => client.destroy() }
}

/** Makes requests so long that less than a hundred of them arrive at once. */
const PADDING = `X-Padding: ${'x'.repeat(1000)}\r\n`
/** As many requests as fill every buffer between service and client. */
const many = (path: string, count: number) => get(path, PADDING).repeat(count)

const takenOf = (server: Socket) => server.bytesWritten - unsentBytes(server)

/** Waits until the operating system takes no more of the answers: every buffer is full. Returns how many bytes it has taken. */
async function full(server: Socket): Promise<number> {
  for (;;) {
    const taken = takenOf(server)
    await checked()
    if (unsentBytes(server) > 0 && takenOf(server) === taken) return taken
  }
}

/**
 * Waits until every buffer is full and the service has closed the connection, and checks that it has waited for as long as it must,
 * and no longer. Returns how many bytes the operating system has taken.
 */
async function closedInTime(server: Socket): Promise<number> {
  const { stalledTimeout } = TIMEOUTS
  let taken = await full(server)
  let since = now
  while (!server.destroyed) {
    assert.ok(now < since + stalledTimeout, 'the connection is still open')
    now = since + (now === since ? stalledTimeout - 1 : stalledTimeout)
    await checked()
    // The operating system may take a little more later, and the time starts again.
    if (!server.destroyed && takenOf(server) !== taken) [taken, since] = [takenOf(server), now]
  }
  assert.equal(now - since, stalledTimeout, 'closed too early')
  return taken
}

describe('A connection whose client', () => {
  let petstore: Petstore
  let csv: string
  before(async () => {
    const timeouts = { ...TIMEOUTS, connectionsCheckingInterval: 2 }
    petstore = await startPetstore({ monotonic, timeouts })
    const names = Array.from({ length: 15_000 }, (_, index) => `${index} ${'🐈'.repeat(249)}`)
    await petstore.store.pets.createMany(names.map((name) => ({ name, categoryId: 1n, status: 'available' })))
    csv = get('/animals.csv', `Cookie: ${(await signedIn(petstore)).cookie}\r\nConnection: close\r\n`)
  })
  after(() => petstore[Symbol.asyncDispose]())

  const logged = () => petstore.logged.filter(({ msg }) => String(msg).startsWith('a client has stopped reading'))

  it('takes nothing is closed in time, and this is logged', async () => {
    using stalled = await ask(petstore, many(`${LARGE}?key=secret`, 20))
    const { server } = stalled
    const buffered = await closedInTime(server)
    const { level, method, path, address, sentBytes } = logged()[0]!
    assert.deepEqual([level, method, path, address], ['warn', 'GET', LARGE, '127.0.0.1'])
    assert.ok(Number(sentBytes) >= buffered)
  })

  it('stops after a part is closed in time', async () => {
    const { client, server } = await ask(petstore, many(LARGE, 20))
    client.resume()
    await until(() => client.bytesRead > 10 * MEGABYTE, 'a part is read')
    client.pause()
    await closedInTime(server)
    client.destroy()
  })

  const unread: Record<string, () => string> = {
    'stops in a download': () => csv,
    'takes none of many short answers of an operation': () => many('/v1/pets', 20_000),
    'takes none of many short pages': () => many('/docs', 20_000),
    'takes none of many documents': () => many('/openapi.json', 20_000),
  }
  for (const [what, requests] of Object.entries(unread)) {
    it(`${what} is closed in time`, async () => {
      using stalled = await ask(petstore, requests())
      await closedInTime(stalled.server)
    })
  }

  const bodies: Record<string, () => string> = {
    'large answers': () => get(LARGE).repeat(5) + get(LARGE, 'Connection: close\r\n'),
    'a download': () => csv,
  }
  for (const [what, requests] of Object.entries(bodies)) {
    for (const [buffers, readAtOnce] of Object.entries({ small: 0, large: 8 * MEGABYTE })) {
      it(`reads ${what} slowly, and all the time, keeps it and gets them whole: ${buffers} buffers`, async () => {
        const { client: quick } = await ask(petstore, requests())
        await once(quick.resume(), 'end')
        const { client } = await ask(petstore, requests())
        // The buffers of a client that reads quickly grow. It stops at once: a moment later it may have read nearly everything.
        client.on('data', () => {
          if (client.bytesRead > readAtOnce) client.pause()
        })
        await until(() => client.isPaused(), 'a part is read')
        const start = now
        const readBefore = client.bytesRead
        while (!client.readableEnded && !client.destroyed) {
          now = start + ((client.bytesRead - readBefore) / SLOW) * 1000
          await checked()
          client.resume()
        }
        assert.equal(client.bytesRead, quick.bytesRead)
        assert.ok(now - start > TIMEOUTS.stalledTimeout, 'it did not read slowly')
      })
    }
  }

  it('has read all of its answers and sends nothing keeps it, for the next request', async () => {
    const { client, server } = await ask(petstore, get('/livez'))
    await once(client.resume(), 'data')
    now += 2 * TIMEOUTS.stalledTimeout
    await checked()
    assert.ok(!server.destroyed, 'it was closed')
    client.write(get('/livez'))
    const [answer] = (await once(client, 'data')) as [Buffer]
    assert.match(answer.toString(), /^HTTP\/1\.1 200 OK\r\n/)
    client.destroy()
  })
})
