// Readiness where the database is slow to answer, and the steps of a stop.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { cutOff, listen } from './connections/listening.ts'
import { createServer } from './connections/node-http.ts'
import { createReadiness, finishRequests, lastStep, Lifecycle } from './lifecycle.ts'
import { createLog } from '../log.ts'
import type { Store } from '../store/store.ts'

it('A database that has not answered after two seconds counts as unavailable', async ({ mock }) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const ping = Promise.withResolvers<void>()
  const readiness = createReadiness({ ping: () => ping.promise } as Store, new Lifecycle())
  const overdue = readiness()
  mock.timers.tick(2000)
  assert.equal(await Promise.race([overdue, setImmediate('no answer')]), 'The database does not answer.')
  const late = readiness()
  mock.timers.tick(1999)
  ping.resolve()
  assert.equal(await late, undefined)
})

/** A server with one request that waits for its answer. */
async function serverWithRequest(context: TestContext) {
  const server = createServer()
  context.after(() => cutOff(server))
  const request = once(server, 'request')
  await listen(server, { host: '127.0.0.1', port: 0, setting: '' })
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [, response] = (await request) as [IncomingMessage, ServerResponse]
  return { server, client, response, socket: response.req.socket }
}

it('A drain closes connections for its first four fifths, and keeps them then: while it stops it closes them again', async ({
  mock,
}) => {
  let now = 1000
  mock.method(performance, 'now', () => now)
  const lifecycle = new Lifecycle()
  assert.equal(lifecycle.closesConnections, false)
  lifecycle.drain(5)
  const closes = [0, 3999, 4000, 5000].map((passed) => {
    now = 1000 + passed
    return lifecycle.closesConnections
  })
  assert.deepEqual(closes, [true, true, false, false])
  await lifecycle.abandon({ server: createServer(), store: { close: async () => {} } as Store })
  assert.equal(lifecycle.closesConnections, true)
})

describe('A stop', () => {
  it('closes a connection that becomes idle late, without waiting until the rest is cut off', async (context) => {
    const { mock } = context
    const { server, client, response, socket } = await serverWithRequest(context)
    // This answer has begun before the stop, so it does not say that it closes the connection.
    response.writeHead(200, { 'Content-Length': 2 }).write('a')
    await once(client, 'data')
    const cut = mock.method(server, 'closeAllConnections')
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const finished = finishRequests(server)
    for (const ms of [250, 50, 50]) mock.timers.tick(ms)
    assert.equal(client.destroyed, false, 'an answer is still being sent')
    response.end('b')
    await once(response, 'close')
    mock.timers.tick(50)
    assert.ok(socket.destroyed)
    await finished
    await once(client.resume(), 'close')
    assert.equal(cut.mock.callCount(), 0)
  })

  it('leaves an idle connection a quarter of a second for one more request', async (context) => {
    const { mock } = context
    const { server, response, socket } = await serverWithRequest(context)
    response.end()
    await once(response, 'close')
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const finished = finishRequests(server)
    for (const ms of [100, 100]) mock.timers.tick(ms)
    assert.equal(socket.destroyed, false)
    for (const ms of [50, 50]) mock.timers.tick(ms)
    assert.equal(socket.destroyed, true)
    await finished
  })

  it('cuts off what still runs after six seconds, so that its last steps are done within ten', async (context) => {
    const { mock } = context
    const { server, socket } = await serverWithRequest(context)
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
    const finished = finishRequests(server)
    mock.timers.tick(5999)
    assert.equal(socket.destroyed, false)
    mock.timers.tick(1)
    assert.equal(socket.destroyed, true)
    await finished
  })

  it('logs a last step that fails, and returns its error', async () => {
    const lines: { msg: string; error: { message: string } }[] = []
    const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[number]) })
    assert.equal(await lastStep(Promise.resolve('done'), 'it could not be done', log), undefined)
    assert.equal(lines.length, 0)
    const error = new Error('disk full')
    assert.equal(await lastStep(Promise.reject(error), 'it could not be done', log), error)
    assert.deepEqual([lines[0]?.msg, lines[0]?.error.message], ['it could not be done', 'disk full'])
  })
})
