// Where the primary takes requests that are not for an operation from its workers: plain HTTP over a socket that only this
// instance's user can open, one connection for each request.
import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import type { RequestListener, Server } from 'node:http'
import { platform, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { TIMEOUTS } from '../http/app.ts'
import { expectContinue } from '../http/body.ts'
import { tendConnections } from '../http/connections.ts'
import { CannotListen } from '../listening.ts'
import type { Log } from '../log.ts'
import { createServer } from '../node-http.ts'
import { PACKED_LIMIT, unpackHead } from './head.ts'

/** How many requests may wait to be taken while the primary is busy; the kernel's own limit may be lower. More are answered 503. */
const BACKLOG = 65_535

export interface Back extends AsyncDisposable {
  path: string
}

/** Hands the requests of all workers to `serve`. Throws `CannotListen`. */
export async function openBack(serve: RequestListener, log: Log): Promise<Back> {
  const receive: RequestListener = (raw, response) => {
    unpackHead(raw)
    // First the rest of what has arrived is read: the answer to an incomplete request would end the client's connection.
    setImmediate(() => serve(raw, response))
  }
  const server: Server & { httpAllowHalfOpen?: boolean } = createServer(
    { maxHeaderSize: PACKED_LIMIT, keepAliveTimeout: 1 },
    receive,
  )
  server.on('checkContinue', (raw, response) => {
    expectContinue(raw, response)
    receive(raw, response)
  })
  // Workers end the connections of clients that are slow: a client that takes its answer bit by bit makes this one stand still.
  tendConnections(server, { ...TIMEOUTS, stalledTimeout: 0, maxConnections: Number.MAX_SAFE_INTEGER, log })
  // A worker ends a connection when its client has left, and then nobody waits for the answer.
  server.httpAllowHalfOpen = false
  const path = await listen(server)
  return { path, [Symbol.asyncDispose]: () => close(server, path) }
}

async function listen(server: Server): Promise<string> {
  let path: string | undefined
  try {
    path =
      platform() === 'win32'
        ? `\\\\.\\pipe\\petstore-${randomUUID()}`
        : join(await mkdtemp(join(tmpdir(), 'petstore-')), 'back')
    const options = { path, backlog: BACKLOG }
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(options, resolve))
    return path
  } catch (error) {
    if (path !== undefined) removeBack(path)
    throw new CannotListen({ folder: tmpdir() }, error)
  }
}

async function close(server: Server, path: string): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  removeBack(path)
}

/** Removes the socket and its folder; a worker does it where the primary was killed. */
export function removeBack(path: string): void {
  if (platform() !== 'win32') rmSync(dirname(path), { recursive: true, force: true })
}
