// The limit of connections that several processes share: here by two servers of this process, which ask the same counts.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ConnectionCounts, ConnectionLimit } from '../src/http/connection-limit.ts'
import { addressOf, cutOff, listen } from '../src/http/listening.ts'
import { createServer } from '../src/http/node-http.ts'
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
  await until(
    async () => {
      using connection = new RawConnection(other.url)
      connection.send(GET)
      return (await connection.answer(500)).status === 200
    },
    'there is room again',
    5000,
  )
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
