// Connections: whose turn it is on each, and an end that never destroys an answer on its way. The rules, for every route:
//
// - One request at a time. Requests pipelined behind it wait until its answer has left, and nothing more is read meanwhile.
//   So answers come in order, a GET sees the effect of the POST before it, and a client that does not read its answers
//   holds one answer and `WAITING_LIMIT` parsed requests at most, whatever it sends.
// - At most `maxConnections` are open, in all processes of the instance together. More are closed at once, without an answer: answering 503 would cost nearly as much
//   as a list, and every connection that is accepted makes all others slower.
// - A connection whose client takes nothing of its answer for `stalledTimeout` is closed. Looking for such connections now
//   and then costs a request nothing; a timer for each answer would.
// - An answer is the last of its connection if the request has not arrived completely (`isLast`). A proxy that reused the
//   connection would make its next client wait for the rest of that body.
// - After the last answer the connection is half closed, and what the client still sends is read and dropped, within
//   bounds of time and bytes (`endSoon`). Closing with unread bytes resets a connection, and a reset destroys the answer on its way.
// - `100 Continue` is sent only when the body is going to be read (body.ts): a request refused without it never sends it.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Log } from '../log.ts'
import { type AllowConnections, ConnectionLimit } from './connection-limit.ts'

/**
 * How many requests may wait on one connection. Node parses a packet of 64 KiB in one go, which holds up to 3,600 requests of
 * 1.5 KB in memory each; a connection that brings more than this at once is closed.
 */
const WAITING_LIMIT = 128

/** What a client may still send after its last answer: a large upload as a proxy passes it on, but not for ever. */
const LINGER_BYTES = 16 * 1024 * 1024
const LINGER_SILENT_MS = 2000

/** Refused connections are logged once in this time: an attack must not fill the log. */
const LOG_REFUSED_EVERY_MS = 60_000

export interface ConnectionLimits {
  stalledTimeout: number
  lingerTimeout: number
  connectionsCheckingInterval: number
  maxConnections: number
  /** Decides, where several processes share the limit. */
  allow: AllowConnections | undefined
  log: Log
}

/** Returns the limit of connections where several processes share it. */
export function tendConnections(
  server: Server & { httpAllowHalfOpen?: boolean },
  limits: ConnectionLimits,
): ConnectionLimit | undefined {
  const { lingerTimeout, maxConnections, allow, log } = limits
  closeStalled(server, limits)
  let logAgainAt = 0
  const refused = () => {
    if (performance.now() < logAgainAt) return
    logAgainAt = performance.now() + LOG_REFUSED_EVERY_MS
    log.warn({ maxConnections }, 'connections are refused: as many are open as --max-connections allows')
  }
  if (allow === undefined) server.maxConnections = maxConnections
  server.on('drop', refused)
  // A client may end its side after its last request: it still gets the answers.
  server.httpAllowHalfOpen = true
  server.on('connection', (socket: Socket) => {
    // Node asks the system once and remembers; of a connection that was reset the system knows no address any more.
    Reflect.get(socket, 'remoteAddress')
    // Node calls this after the last answer; its own would reset a connection whose client still sends.
    socket.destroySoon = () => endSoon(socket, lingerTimeout)
  })
  return allow && new ConnectionLimit(server, allow, refused)
}

/** Arms Node's timer where bytes wait to be written: it fires if none of them leaves in time. */
function closeStalled(server: Server, { stalledTimeout, connectionsCheckingInterval }: ConnectionLimits): void {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  const sweep = setInterval(() => {
    for (const socket of open) {
      if (socket.writableLength > 0 && socket.timeout !== stalledTimeout) socket.setTimeout(stalledTimeout)
    }
  }, connectionsCheckingInterval).unref()
  server.once('close', () => clearInterval(sweep))
}

/** Node adds up what waits to be written on a connection, and stops reading while that is too much. */
type WaitingResponse = ServerResponse & { _onPendingData(bytes: number): void }

const waiting = new WeakMap<Socket, number>()

/** Calls `serve` when the answers to earlier requests of the connection have left; until then nothing more is read. */
export function waitForTurn(request: IncomingMessage, response: ServerResponse, serve: () => void): void {
  const { socket } = request
  const held = socket.writableHighWaterMark + 1
  const before = waiting.get(socket) ?? 0
  if (before === WAITING_LIMIT) {
    socket.destroy()
    return
  }
  waiting.set(socket, before + 1)
  hold(response, held)
  response.once('socket', () => {
    waiting.set(socket, waiting.get(socket)! - 1)
    hold(response, -held)
    // The answer before this one has left, so nothing is stalled.
    socket.setTimeout(0)
    serve()
  })
}

function hold(response: ServerResponse, bytes: number): void {
  ;(response as WaitingResponse)._onPendingData(bytes)
}

/** Returns whether the answer to this request must end its connection. */
export function isLast({ complete, httpVersionMinor, headers }: IncomingMessage): boolean {
  // RFC 9112, section 6.1: an HTTP/1.0 client may have forwarded the framing without understanding it.
  return !complete || (httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined)
}

/** Half closes a connection, and drops what still arrives for a while. */
function endSoon(socket: Socket, withinMs: number): void {
  // What arrives from now on is no request: the HTTP parser does not see it.
  socket.removeAllListeners('data')
  let left = LINGER_BYTES
  socket.on('data', ({ length }: Buffer) => {
    left -= length
    if (left < 0) socket.destroy()
  })
  const cut = setTimeout(() => socket.destroy(), withinMs).unref()
  socket.once('close', () => clearTimeout(cut))
  socket.setTimeout(LINGER_SILENT_MS, () => socket.destroy())
  socket.resume().end()
}
