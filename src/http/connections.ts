// Connections: the order of requests on each, and how each ends without losing an answer. The rules, for every route:
//
// - One request at a time. Pipelined requests wait until the answer before theirs has been sent, and the service reads no more
//   from the connection meanwhile. So answers come in order, a GET sees the effect of the POST before it, and a client that does
//   not read its answers holds at most one answer and `WAITING_LIMIT` parsed requests in memory, whatever it sends.
// - At most `maxConnections` are open in all processes of the instance together. Further connections are closed at once, without
//   an answer: a 503 would cost nearly as much as a list, and every accepted connection slows down all others.
// - A connection whose client stops reading its answer is closed, and logged (`closeStalled`). A check of all connections once
//   a second costs a request nothing; a timer for each answer would.
// - An answer is the last of its connection if the request has not arrived completely (`isLast`). If a proxy reused the
//   connection, its next client would wait for the rest of that body.
// - After the last answer the connection is half closed. What the client still sends is read and dropped, within limits of time
//   and bytes (`lingeringClose`). Closing with unread bytes would reset the connection, and a reset can destroy the answer.
// - `100 Continue` is sent only when the body is about to be read (body.ts), so a client does not send a body that is refused.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Log, logRepeated } from '../log.ts'
import { gatherTurns } from '../timing.ts'
import { type Arrival, loggedRequest } from './call.ts'
import type { ConnectionLimit, OnRefused } from './connection-limit.ts'
import { answerAfterEnd, rememberAddress, replaceEnd, stopReading, takeFromParser, unsentBytes } from './node-http.ts'

/**
 * How many requests may wait on one connection; it is closed if it brings more at once. Node parses a packet of 64 KiB in one
 * go, and such a packet holds up to 3,600 requests, each of which takes 1.5 KB of memory.
 */
const WAITING_LIMIT = 128

/**
 * How many requests are served in one turn of the event loop; the others wait for the next turns. A new connection takes several
 * turns, on the admin port too: with 1,000 busy connections its /livez had a p99 of 119 ms without this limit, 29 ms with it.
 */
const REQUESTS_A_TURN = 128

/**
 * How many turns in a row may accept a connection before requests are served. Node accepts one connection per turn: were each of these
 * turns to serve as many requests as there are, new connections would wait for seconds beside 800 busy ones.
 */
const ACCEPTING_TURNS = 32

/** How much a client may still send after the last answer: enough for a large upload through a proxy. */
const LINGER_BYTES = 16 * 1024 * 1024
/** How long such a client may send nothing. */
const LINGER_SILENT_MS = 2000

/**
 * A client that reads at least this many bytes a second is never taken for one that has stopped, unless it needs more than
 * `LONGEST_STALL_MS` for what the operating systems buffer for it.
 */
export const SLOWEST_RATE = 16 * 1024
/** How long a client may read nothing, however much is buffered for it. */
export const LONGEST_STALL_MS = 300_000

/** The times are in app.ts, `TIMEOUTS`. */
interface ConnectionLimits {
  stalledTimeout: number
  lingerTimeout: number
  connectionsCheckingInterval: number
  maxConnections: number
  /** Undefined unless several processes share `maxConnections`. */
  connectionLimit: ConnectionLimit | undefined
  monotonic: () => number
  log: Log
}

const REFUSAL_REASONS: Record<Parameters<OnRefused>[0], string> = {
  limit: 'as many are open as --max-connections allows',
  'no answer': 'this worker has as many as it may accept by itself, and the first process does not answer',
}

/** Applies the rules to a server. Calls `serve` with the requests that one turn of the event loop serves. */
export function tendConnections(
  server: Server,
  limits: ConnectionLimits,
  serve: (arrivals: readonly Arrival[]) => void,
): void {
  const { lingerTimeout, maxConnections, connectionLimit, log } = limits
  closeStalled(server, limits)
  const onRefused: OnRefused = (reason) =>
    logRepeated(log, 'warn', { maxConnections }, `connections are refused: ${REFUSAL_REASONS[reason]}`)
  if (connectionLimit === undefined) server.maxConnections = maxConnections
  server.on('drop', () => onRefused('limit'))
  answerAfterEnd(server)
  server.on('connection', (socket: Socket) => {
    // Reset before it was accepted: no client reads an answer.
    if (!rememberAddress(socket)) socket.destroy()
    replaceEnd(socket, () => lingeringClose(socket, lingerTimeout))
  })
  connectionLimit?.watch(server, onRefused)
  admitRequests(server, connectionLimit, serve)
}

/**
 * Admits a request when the earlier ones of its connection are answered and the connection is kept. All requests of a turn are
 * parsed, then all are looked up, then all are answered. Code stays in the processor's caches, and the client wakes up once for
 * many answers: this alone took a list from 0.70 to 0.90 of the rate of bare node:http.
 */
function admitRequests(
  server: Server,
  limit: ConnectionLimit | undefined,
  serve: (arrivals: readonly Arrival[]) => void,
): void {
  let accepted = false
  let acceptingTurns = 0
  for (const event of ['connection', 'drop']) server.on(event, () => (accepted = true))
  /** Returns whether more connections may be waiting, which come first. */
  function isAccepting(): boolean {
    const isFirst = accepted && acceptingTurns < ACCEPTING_TURNS
    acceptingTurns = isFirst ? acceptingTurns + 1 : 0
    accepted = false
    return isFirst
  }
  const arrived = gatherTurns(serve, REQUESTS_A_TURN, isAccepting)
  const admit: RequestListener = (request, response) => {
    if (limit === undefined || limit.isKept(request.socket, () => admit(request, response)))
      arrived({ request, response, at: performance.now() })
  }
  const admitInOrder: RequestListener = (request, response) => inOrder(response, () => admit(request, response))
  server.on('request', admitInOrder)
  server.on('checkContinue', admitInOrder)
}

/** Returns the open connections of a server, as a set that stays current. */
export function openConnections(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  return open
}

/**
 * Closes connections whose clients have stopped reading. Only the bytes that the operating system takes from the process can be
 * seen, and it takes them in steps: over loopback it buffers 4 MB, and takes 1.4 MB more once the client has read as much. So
 * every byte that was taken gives the client the time to read it at `SLOWEST_RATE`, within `stalledTimeout` and `LONGEST_STALL_MS`.
 */
function closeStalled(server: Server, limits: ConnectionLimits): void {
  const { stalledTimeout, connectionsCheckingInterval, monotonic, log } = limits
  const open = openConnections(server)
  /** For connections that have bytes to send: how many the operating system has taken, and when they are closed if it takes no more. */
  const deadlines = new WeakMap<Socket, { taken: number; at: number }>()
  const check = setInterval(() => {
    const now = monotonic()
    for (const socket of open) {
      const unsent = unsentBytes(socket)
      const taken = socket.bytesWritten - unsent
      const before = deadlines.get(socket)
      if (unsent === 0) deadlines.delete(socket)
      else if (taken !== before?.taken) {
        const { at, taken: known } = before ?? { at: now, taken: 0 }
        const readAt = Math.max(at, now) + ((taken - known) / SLOWEST_RATE) * 1000
        const [earliest, latest] = [now + stalledTimeout, now + LONGEST_STALL_MS]
        deadlines.set(socket, { taken, at: Math.min(Math.max(readAt, earliest), latest) })
      } else if (now >= before.at) {
        const request = dueResponse(socket)?.req
        const details = { ...(request && loggedRequest(request)), sentBytes: taken, address: socket.remoteAddress }
        logRepeated(log, 'warn', details, 'a client has stopped reading its answer: its connection is closed')
        socket.destroy()
      }
    }
  }, connectionsCheckingInterval).unref()
  server.once('close', () => clearInterval(check))
}

/** The requests of a connection. */
interface Queue {
  /** The response of the request that is being served, or was served last. */
  current: ServerResponse
  waiting: { response: ServerResponse; resumeReading: () => void; serve: () => void }[]
}

const queues = new WeakMap<Socket, Queue>()

/** Returns the response that is due on a connection, or undefined if every response has been sent. */
export function dueResponse(socket: Socket): ServerResponse | undefined {
  const last = queues.get(socket)?.current
  return last?.writableFinished === false ? last : undefined
}

/** Calls `serve` when the answers to earlier requests of the connection have been sent; reads nothing more until then. */
export function inOrder(response: ServerResponse, serve: () => void): void {
  const { socket } = response.req
  const queue = queues.get(socket)
  if (queue !== undefined && (!queue.current.writableFinished || queue.waiting.length > 0)) {
    waitInQueue(queue, response, serve)
    return
  }
  if (queue === undefined) queues.set(socket, { current: response, waiting: [] })
  else queue.current = response
  serve()
}

function waitInQueue(queue: Queue, response: ServerResponse, serve: () => void): void {
  const { current, waiting } = queue
  if (waiting.length === WAITING_LIMIT) {
    response.req.socket.destroy()
    return
  }
  waiting.push({ response, resumeReading: stopReading(response), serve })
  if (waiting.length === 1) current.once('close', () => serveNext(queue))
}

function serveNext(queue: Queue): void {
  const { response, resumeReading, serve } = queue.waiting.shift()!
  // The previous answer was the last of its connection, or the client has disconnected.
  if (!response.req.socket.writable) return
  queue.current = response
  resumeReading()
  if (queue.waiting.length > 0) response.once('close', () => serveNext(queue))
  serve()
}

/** Returns whether the answer to this request must end its connection. */
export function isLast({ complete, httpVersionMinor, headers }: IncomingMessage): boolean {
  // RFC 9112, section 6.1: an HTTP/1.0 client may have forwarded the framing without understanding it.
  return !complete || (httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined)
}

/** Half closes a connection, and drops what the client still sends, within the limits. */
function lingeringClose(socket: Socket, withinMs: number): void {
  let left = LINGER_BYTES
  takeFromParser(socket, ({ length }) => {
    left -= length
    if (left < 0) socket.destroy()
  })
  const timer = setTimeout(() => socket.destroy(), withinMs).unref()
  socket.once('close', () => clearTimeout(timer))
  socket.setTimeout(LINGER_SILENT_MS, () => socket.destroy())
  socket.resume().end()
}
