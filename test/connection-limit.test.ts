// The limit of connections that several processes share: here by two servers of this process, which ask the same counts.
import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { it } from 'node:test'
import { TIMEOUTS } from '../src/http/app.ts'
import { tendConnections } from '../src/http/connections.ts'
import { ConnectionCounts, ConnectionLimit } from '../src/http/connection-limit.ts'
import { addressOf, cutOff, listen } from '../src/http/listening.ts'
import { createServer } from '../src/http/node-http.ts'
import { createLog } from '../src/log.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { until } from '../harness/until.ts'
import { ask, close, connectionsTo } from './worker-connection.ts'

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

async function startServer(counts: ConnectionCounts, decided: () => Promise<void> = async () => {}) {
  const server = createServer((request, response) => {
    const serve = () => void response.end()
    if (limit.isKept(request.socket, serve)) serve()
  })
  const allow = async (open: number) => {
    await decided()
    return counts.allow(server, open)
  }
  let refused = 0
  const limit = new ConnectionLimit(server, allow, () => (refused += 1))
  await listen(server, { host: '127.0.0.1', port: 0, setting: '' })
  return { server, url: addressOf(server), refused: () => refused, [Symbol.asyncDispose]: () => cutOff(server) }
}

it('A connection that one process closes leaves its place to the others', async () => {
  const counts = new ConnectionCounts(2)
  await using one = await startServer(counts)
  await using other = await startServer(counts)
  const open = connectionsTo(one, 2)
  assert.deepEqual(await ask(open, GET), [200, 200])
  using refused = new RawConnection(other.url)
  await refused.closed()
  close(open)
  await until(async () => {
    using connection = new RawConnection(other.url)
    connection.send(GET)
    await until(() => connection.socket.bytesRead > 0 || connection.socket.destroyed)
    return (await connection.answer(0)).status === 200
  }, 'there is room again')
})

it('A request waits until its connection is decided; of too many connections the newest are refused', async () => {
  const decision = Promise.withResolvers<void>()
  await using one = await startServer(new ConnectionCounts(2), () => decision.promise)
  let arrived = 0
  one.server.on('request', () => (arrived += 1))
  const open: RawConnection[] = []
  for (let count = 1; count <= 4; count += 1) {
    const connection = new RawConnection(one.url)
    open.push(connection)
    connection.send(GET)
    await until(() => arrived === count, 'the request arrives')
  }
  assert.deepEqual(
    open.map(({ socket }) => socket.bytesRead),
    [0, 0, 0, 0],
  )
  decision.resolve()
  for (const connection of open.slice(0, 2)) assert.equal((await connection.answer()).status, 200)
  for (const connection of open.slice(2)) await connection.closed()
  assert.equal(one.refused(), 2)
  assert.ok(open.slice(0, 2).every(({ socket }) => !socket.destroyed))
  close(open)
})

it('A connection that comes while others are being decided is decided next, and so is a place that comes free', async () => {
  const counts = new ConnectionCounts(2)
  const questions: (() => void)[] = []
  const server = createServer((request, response) => {
    const serve = () => void response.end()
    if (limit.isKept(request.socket, serve)) serve()
  })
  const limit = new ConnectionLimit(
    server,
    (open) => new Promise((resolve) => questions.push(() => resolve(counts.allow(server, open)))),
    () => {},
  )
  await listen(server, { host: '127.0.0.1', port: 0, setting: '' })
  await using _ = { [Symbol.asyncDispose]: () => cutOff(server) }
  const accepted = () => new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))
  const where = { url: addressOf(server) }
  const [first] = connectionsTo(where, 1)
  await until(() => questions.length === 1)
  const [second] = connectionsTo(where, 1)
  await until(async () => (await accepted()) === 2)
  assert.equal(questions.length, 1, 'one question at a time')
  questions[0]!()
  await until(() => questions.length === 2, 'the second connection is asked for')
  questions[1]!()
  assert.deepEqual(await ask([first!, second!], GET), [200, 200])
  // A connection closes while the question of the next one is on its way.
  using third = new RawConnection(where.url)
  await until(() => questions.length === 3)
  close([first!])
  await until(async () => (await accepted()) === 2)
  questions[2]!()
  await until(() => questions.length === 4, 'the free place is reported')
  questions[3]!()
  await third.closed()
  assert.equal(counts.allow('another process', 1), 1)
  close([second!])
})

it('Refused connections are logged, and then their number every ten seconds', ({ mock }) => {
  mock.timers.enable({ apis: ['setInterval'] })
  const counts: unknown[] = []
  const destination = new Writable({
    write(line: Buffer, _encoding, done) {
      counts.push((JSON.parse(line.toString()) as { count?: number }).count)
      done()
    },
  })
  const server = createServer()
  tendConnections(server, {
    ...TIMEOUTS,
    maxConnections: 1,
    allow: undefined,
    monotonic: () => 0,
    log: createLog('info', destination),
  })
  for (let refused = 0; refused < 3; refused += 1) server.emit('drop')
  mock.timers.tick(10_000)
  assert.deepEqual(counts, [undefined, 2])
})
