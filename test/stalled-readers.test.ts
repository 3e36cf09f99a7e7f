// Clients that stop reading their answers are closed in time; clients that read slowly never are.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { TIMEOUTS } from '../src/http/app.ts'
import { type Petstore, startPetstore } from './harness.ts'

const STALLED_MS = 2000
const CHECK_MS = 100
/** Being closed takes no longer than this, on a busy machine too; Node's own timer would take twice as long as it is set to. */
const LATEST_MS = STALLED_MS * 1.95
const LARGE = '/assets/scalar.js'

describe('A connection whose client', () => {
  let petstore: Petstore
  before(async () => {
    petstore = await startPetstore({
      timeouts: { ...TIMEOUTS, stalledTimeout: STALLED_MS, connectionsCheckingInterval: CHECK_MS },
    })
    // Loading the page takes its time, too.
    await (await fetch(petstore.url + LARGE)).bytes()
  })
  after(() => petstore[Symbol.asyncDispose]())

  /** A connection on which this page is asked for a number of times, and nothing is read. */
  function unread(path: string, count: number): Socket {
    const { hostname, port } = new URL(petstore.url)
    const socket = connect(Number(port), hostname).on('error', () => {})
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-Padding: ${'x'.repeat(1000)}\r\n\r\n`.repeat(count))
    return socket
  }

  /** Waits until the server has closed the connection, as a client notices that keeps sending; returns how long it took. */
  async function closedAfter(socket: Socket): Promise<number> {
    const started = performance.now()
    while (!socket.destroyed) {
      assert.ok(performance.now() - started < 30_000, 'the connection is still open')
      socket.write('x')
      await setTimeout(20)
    }
    return performance.now() - started
  }

  function assertInTime(ms: number): void {
    assert.ok(ms > STALLED_MS - CHECK_MS && ms < LATEST_MS, `closed after ${Math.round(ms)} ms`)
  }

  it('takes nothing is closed in time', async () => {
    assertInTime(await closedAfter(unread(LARGE, 20)))
  })

  it('stops after a part is closed in time', async () => {
    const socket = unread(LARGE, 20).resume()
    while (socket.bytesRead < 10_000_000) await setTimeout(10)
    assertInTime(await closedAfter(socket.pause()))
  })

  for (const path of ['/v1/pets', '/docs', '/openapi.json']) {
    it(`takes none of many short answers is closed: ${path}`, async () => {
      await closedAfter(unread(path, 20_000))
    })
  }

  it('reads slowly, and all the time, keeps it', async () => {
    const size = Number((await fetch(petstore.url + LARGE, { method: 'HEAD' })).headers.get('content-length'))
    const socket = unread(LARGE, 12)
    socket.on('data', () => socket.pause())
    const started = performance.now()
    while (socket.bytesRead < 12 * size) {
      await setTimeout(20)
      assert.ok(!socket.destroyed, `closed after ${socket.bytesRead} bytes`)
      socket.resume()
    }
    assert.ok(performance.now() - started > 1.5 * STALLED_MS, 'it did not read slowly')
    socket.destroy()
  })

  it('has read all of its answers and sends nothing keeps it, for the next request', async () => {
    const socket = unread('/livez', 1).resume()
    await once(socket, 'data')
    await setTimeout(STALLED_MS + 10 * CHECK_MS)
    assert.ok(!socket.destroyed, 'it was closed')
    socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    assert.match(answer.toString(), /^HTTP\/1\.1 200 OK\r\n/)
    socket.destroy()
  })
})
