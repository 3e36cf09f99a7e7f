// The way from a worker to the primary for requests that are not for an operation: plain HTTP over a socket that only this
// instance's user can open, one connection for each request.
import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { createRequire } from 'node:module'
import { platform, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { Refusal } from '../contract/errors.ts'
import { HEADERS_LIMIT, RETRY_AFTER } from '../contract/limits.ts'
import { createClientAddress } from '../http/client-address.ts'
import type { Send } from '../http/answer.ts'
import { TIMEOUTS } from '../http/app.ts'
import { announcesBody, expectContinue } from '../http/body.ts'
import { isLast, tendConnections } from '../http/connections.ts'
import { requestId } from '../http/request-id.ts'
import type { Log } from '../log.ts'
import { createServer } from '../node-http.ts'

/** Tells the primary who the client is; whatever a client sends under this name is dropped. */
const CLIENT_ADDRESS = 'petstore-client-address'

/** They concern one connection, and each side has its own. */
const OF_CONNECTION = new Set(['connection', 'keep-alive', 'proxy-connection', CLIENT_ADDRESS])

/** So that the answer says `close` only where the client's connection must end. */
const KEEP_ALIVE = ['Connection', 'keep-alive'] as const

export interface Back extends AsyncDisposable {
  path: string
}

/** Hands the requests of all workers to `serve`, as if they had come from the clients themselves. */
export async function openBack(serve: RequestListener, log: Log): Promise<Back> {
  const path = platform() === 'win32' ? `\\\\.\\pipe\\petstore-${randomUUID()}` : join(await mkdtemp(join(tmpdir(), 'petstore-')), 'back')
  const receive: RequestListener = (raw, response) => {
    Object.defineProperty(raw.socket, 'remoteAddress', { value: raw.headers[CLIENT_ADDRESS] })
    delete raw.headers[CLIENT_ADDRESS]
    raw.rawHeaders.splice(-2)
    serve(raw, response)
  }
  const server: Server & { httpAllowHalfOpen?: boolean } = createServer({ maxHeaderSize: 2 * HEADERS_LIMIT, requireHostHeader: false, keepAliveTimeout: 1 }, receive)
  server.on('checkContinue', (raw, response) => {
    expectContinue(raw, response)
    receive(raw, response)
  })
  tendConnections(server, { ...TIMEOUTS, maxConnections: Number.MAX_SAFE_INTEGER, log })
  // A worker ends a connection when its client has left, and then nobody waits for the answer.
  server.httpAllowHalfOpen = false
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))
  return { path, [Symbol.asyncDispose]: () => close(server, path) }
}

async function close(server: Server, path: string): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  if (platform() !== 'win32') await rm(dirname(path), { recursive: true, force: true })
}

/** Passes requests on to the primary, and its answers to the clients. */
export function passOnTo(path: string, send: Send, isStopping: () => boolean, trustProxy: string[] | false): RequestListener {
  const clientAddress = createClientAddress(trustProxy)
  let request: typeof import('node:http').request | undefined

  return (raw, response) => {
    request ??= (createRequire(import.meta.url)('node:http') as typeof import('node:http')).request
    const address = raw.socket.remoteAddress ?? ''
    const passed = request({ socketPath: path, agent: false, method: raw.method, path: raw.url, headers: [...headersOf(raw), ...KEEP_ALIVE, CLIENT_ADDRESS, address] as never })
    passed.on('response', (answer) => {
      raw.unpipe(passed)
      if (isStopping() || isLast(raw) || answer.headers.connection === 'close') response.shouldKeepAlive = false
      response.writeHead(answer.statusCode!, headersOf(answer))
      answer.pipe(response)
    })
    passed.on('error', () => {
      if (response.headersSent) response.destroy()
      else send(callOf(raw, clientAddress), response, UNAVAILABLE)
    })
    response.once('close', () => passed.destroy())
    if (!announcesBody(raw)) {
      passed.end()
      return
    }
    // It may be refused without its body.
    passed.flushHeaders()
    if (raw.headers.expect === undefined) raw.pipe(passed)
    passed.once('continue', () => {
      response.writeContinue()
      raw.pipe(passed)
    })
  }
}

const UNAVAILABLE = new Refusal('service_unavailable', 'The service cannot answer this now. Try again shortly.', ['Retry-After', String(RETRY_AFTER.notReady)])

function callOf(raw: IncomingMessage, clientAddress: (raw: IncomingMessage) => string) {
  return { id: requestId(raw), raw, ip: clientAddress(raw), startedAt: performance.now() }
}

function headersOf({ rawHeaders }: IncomingMessage): string[] {
  const headers: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (!OF_CONNECTION.has(rawHeaders[index]!.toLowerCase())) headers.push(rawHeaders[index]!, rawHeaders[index + 1]!)
  }
  return headers
}
