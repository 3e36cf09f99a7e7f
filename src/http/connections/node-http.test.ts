// What node-http.ts relies on, tried on a bare node:http server: each message names what this Node does otherwise.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import {
  answerAfterEnd,
  closeListener,
  createServer,
  rememberAddress,
  replaceEnd,
  stopReading,
  takeFromParser,
  unsentBytes,
} from './node-http.ts'

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
const node = `Node ${process.version}`

/** A bare server on a free port, one connection to it, and the server's end of that. */
async function connected(serve: RequestListener, prepare: (server: Server) => void = () => {}) {
  const server = createServer(serve)
  prepare(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
  const [socket] = (await accepted) as [Socket]
  return {
    server,
    client,
    socket,
    port,
    [Symbol.dispose]() {
      client.destroy()
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Counts the answers that a client has received since this call. */
function countAnswers(client: Socket): () => number {
  let text = ''
  client.on('data', (bytes) => (text += bytes.toString('latin1')))
  return () => text.split('HTTP/1.1 200').length - 1
}

/** Waits for what should happen soon. */
async function soon(holds: () => boolean, otherwise: string): Promise<void> {
  for (const end = performance.now() + 60_000; !holds(); await setTimeout(10))
    assert.ok(performance.now() < end, `${node}: ${otherwise}`)
}

describe(`${node} behaves as node-http.ts expects`, () => {
  it('answers a client that has ended its side (httpAllowHalfOpen)', async () => {
    using part = await connected((_request, response) => void setTimeout(50).then(() => response.end()), answerAfterEnd)
    const answers = countAnswers(part.client)
    part.client.end(GET)
    await soon(
      () => answers() === 1,
      'server.httpAllowHalfOpen no longer lets a client that has ended its side get its answer',
    )
  })

  it('reads no more while a response claims to have too many bytes waiting (_onPendingData)', async () => {
    const responses: ServerResponse[] = []
    const heldBack: (() => void)[] = []
    const serve = (_request: IncomingMessage, response: ServerResponse) => {
      assert.ok('_onPendingData' in response, `${node}: a response has no _onPendingData any more`)
      responses.push(response)
      heldBack.push(stopReading(response))
    }
    using part = await connected(serve)
    const count = 1000
    part.client.write(
      `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n${'x'.repeat(1000)}`.repeat(count),
    )
    await setTimeout(300)
    assert.ok(
      responses.length < 200,
      `${node}: ${responses.length} requests were read although _onPendingData was told that too much waits`,
    )
    await soon(() => {
      for (const readOn of heldBack.splice(0)) readOn()
      for (const response of responses) if (!response.writableEnded) response.end()
      return responses.length === count
    }, 'reading does not go on when _onPendingData is told that nothing waits')
  })

  it('ends a connection after its last answer by socket.destroySoon, and its parser reads by the data event', async () => {
    let ends = 0
    let taken = 0
    let requests = 0
    const serve = (_request: IncomingMessage, response: ServerResponse) => {
      requests += 1
      response.writeHead(200, { Connection: 'close' }).end()
    }
    using part = await connected(serve, (server) =>
      server.on('connection', (socket: Socket) =>
        replaceEnd(socket, () => {
          ends += 1
          takeFromParser(socket, ({ length }) => (taken += length))
          socket.resume()
        }),
      ),
    )
    part.client.write(GET)
    await soon(() => ends > 0, 'socket.destroySoon is not called after the last answer of a connection')
    part.client.write(GET)
    await soon(() => taken === GET.length, "what arrives after the last answer does not reach the new 'data' listener")
    assert.equal(part.socket.destroyed, false, `${node}: the connection is destroyed although destroySoon was replaced`)
    assert.equal(requests, 1, `${node}: the parser still reads from a socket whose 'data' listener was replaced`)
  })

  it('leaves idle connections open when it is closed as a net.Server', async () => {
    using part = await connected((_request, response) => void response.end())
    const answers = countAnswers(part.client)
    part.client.write(GET)
    await soon(() => answers() === 1, 'a request is not answered')
    let isClosed = false
    const closed = closeListener(part.server).then(() => (isClosed = true))
    const refused = connect(part.port, '127.0.0.1')
    await assert.rejects(once(refused, 'connect'), `${node}: connections are accepted after the close of net.Server`)
    part.client.write(GET)
    await soon(() => answers() === 2, 'the close of net.Server ends an idle connection of an http.Server')
    assert.equal(isClosed, false, `${node}: the close of net.Server does not wait for open connections`)
    part.client.end()
    part.server.closeIdleConnections()
    await closed
  })

  it('tells how many bytes of a write have not left (_handle.writeQueueSize)', async () => {
    const size = 64 * 1024 * 1024
    using part = await connected((_request, response) => void response.end(Buffer.alloc(size)))
    part.client.pause().write(GET)
    const { socket, client } = part
    await soon(() => unsentBytes(socket) > 0, '_handle.writeQueueSize is 0 while a client reads nothing')
    await setTimeout(200)
    const unsent = unsentBytes(socket)
    assert.ok(unsent < size, `${node}: _handle.writeQueueSize counts bytes that have left`)
    client.resume()
    await soon(() => client.bytesRead > size / 4, 'the client gets nothing')
    client.pause()
    assert.ok(unsentBytes(socket) < unsent, `${node}: _handle.writeQueueSize does not fall while a client reads`)
    client.resume()
    await soon(() => unsentBytes(socket) === 0, '_handle.writeQueueSize does not become 0')
  })

  it('takes a request that offers to upgrade as one without that offer (shouldUpgradeCallback)', async () => {
    using part = await connected((_request, response) => void response.end())
    const answers = countAnswers(part.client)
    part.client.write(GET.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'))
    await soon(() => answers() === 1, 'a request that offers to upgrade is not answered')
  })

  it('remembers the address of a client that was asked for it before a reset (remoteAddress)', async () => {
    using part = await connected(() => {})
    rememberAddress(part.socket)
    part.client.resetAndDestroy()
    await soon(() => part.socket.destroyed, 'a reset does not end a connection')
    assert.equal(
      part.socket.remoteAddress,
      '127.0.0.1',
      `${node}: remoteAddress is forgotten when a connection is reset`,
    )
  })
})
