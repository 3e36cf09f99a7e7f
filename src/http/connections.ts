// Connections: whose turn it is on each, and an end that never destroys an answer on its way. The rules, for every route:
//
// - One request at a time. Requests pipelined behind it wait until its answer has left, and nothing more is read meanwhile.
//   So answers come in order, a GET sees the effect of the POST before it, and a client that does not read its answers
//   holds one answer and `WAITING_LIMIT` parsed requests at most, whatever it sends.
// - At most `maxConnections` are open, in all processes of the instance together. More are closed at once, without an answer: answering 503 would cost nearly as much
//   as a list, and every connection that is accepted makes all others slower.
// - A connection whose client takes nothing of its answer for `stalledTimeout` is closed. Looking for such connections once a
//   second costs a request nothing; a timer for each answer would.
// - An answer is the last of its connection if the request has not arrived completely (`isLast`). A proxy that reused the
//   connection would make its next client wait for the rest of that body.
// - After the last answer the connection is half closed, and what the client still sends is read and dropped, within
//   bounds of time and bytes (`endSoon`). Closing with unread bytes resets a connection, and a reset destroys the answer on its way.
// - `100 Continue` is sent only when the body is going to be read (body.ts): a request refused without it never sends it.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Log } from '../log.ts'
import { type AllowConnections, ConnectionLimit } from './connection-limit.ts'
import { answerAfterEnd, rememberAddress, replaceEnd, stopReading, takeFromParser, unsentBytes } from './node-http.ts'

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
export function tendConnections(server: Server, limits: ConnectionLimits): ConnectionLimit | undefined {
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
  answerAfterEnd(server)
  server.on('connection', (socket: Socket) => {
    rememberAddress(socket)
    replaceEnd(socket, () => endSoon(socket, lingerTimeout))
  })
  return allow && new ConnectionLimit(server, allow, refused)
}

/** Closes connections with bytes to send of which none has left for `stalledTimeout`, looking at them again and again. */
function closeStalled(server: Server, { stalledTimeout, connectionsCheckingInterval }: ConnectionLimits): void {
  const open = new Set<Socket>()
  /** How many bytes have left on connections that have more to send, and when this number was first seen. */
  const progress = new Map<Socket, { sent: number; at: number }>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      progress.delete(socket)
    })
  })
  const sweep = setInterval(() => {
    const now = performance.now()
    for (const socket of open) {
      const unsent = unsentBytes(socket)
      const sent = socket.bytesWritten - unsent
      const before = progress.get(socket)
      if (unsent === 0) progress.delete(socket)
      else if (sent !== before?.sent) progress.set(socket, { sent, at: now })
      else if (now - before.at >= stalledTimeout) socket.destroy()
    }
  }, connectionsCheckingInterval).unref()
  server.once('close', () => clearInterval(sweep))
}

/** The requests of a connection. */
interface Turns {
  /** The response whose turn it is, or was last. */
  current: ServerResponse
  waiting: { response: ServerResponse; readOn: () => void; serve: () => void }[]
}

const turnsOn = new WeakMap<Socket, Turns>()

/** Returns the response that is due on a connection, or the last one that was. */
export function lastResponse(socket: Socket): ServerResponse | undefined {
  return turnsOn.get(socket)?.current
}

/** Returns the response that is due on a connection, if it has not left yet. */
export function dueResponse(socket: Socket): ServerResponse | undefined {
  const last = lastResponse(socket)
  return last?.writableFinished === false ? last : undefined
}

/** Calls `serve` when the answers to earlier requests of the connection have left; until then nothing more is read. */
export function inTurn(response: ServerResponse, serve: () => void): void {
  const { socket } = response.req
  const turns = turnsOn.get(socket)
  if (turns !== undefined && (!turns.current.writableFinished || turns.waiting.length > 0)) {
    waitForTurn(turns, response, serve)
    return
  }
  if (turns === undefined) turnsOn.set(socket, { current: response, waiting: [] })
  else turns.current = response
  serve()
}

function waitForTurn(turns: Turns, response: ServerResponse, serve: () => void): void {
  const { current, waiting } = turns
  if (waiting.length === WAITING_LIMIT) {
    response.req.socket.destroy()
    return
  }
  waiting.push({ response, readOn: stopReading(response), serve })
  if (waiting.length === 1) current.once('close', () => serveNext(turns))
}

function serveNext(turns: Turns): void {
  const { response, readOn, serve } = turns.waiting.shift()!
  // The answer before this one was the last of its connection, or the client has left.
  if (!response.req.socket.writable) return
  turns.current = response
  readOn()
  if (turns.waiting.length > 0) response.once('close', () => serveNext(turns))
  serve()
}

/** Returns whether the answer to this request must end its connection. */
export function isLast({ complete, httpVersionMinor, headers }: IncomingMessage): boolean {
  // RFC 9112, section 6.1: an HTTP/1.0 client may have forwarded the framing without understanding it.
  return !complete || (httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined)
}

/** Half closes a connection, and drops what still arrives for a while. */
function endSoon(socket: Socket, withinMs: number): void {
  let left = LINGER_BYTES
  takeFromParser(socket, ({ length }) => {
    left -= length
    if (left < 0) socket.destroy()
  })
  const cut = setTimeout(() => socket.destroy(), withinMs).unref()
  socket.once('close', () => clearTimeout(cut))
  socket.setTimeout(LINGER_SILENT_MS, () => socket.destroy())
  socket.resume().end()
}
