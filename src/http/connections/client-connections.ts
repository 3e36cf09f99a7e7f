// The connections of clients: how many there may be, and when their requests are served. Each has its requests served in order
// (request-order.ts), is closed if its client stops reading (stalled-readers.ts), and ends without losing an answer (`lingeringClose`).
//
// At most `maxConnections` are open in a process: the limit protects its event loop. Further connections are closed at once, without
// an answer: a 503 would cost nearly as much as a list, and every accepted connection slows down all others.
import type { RequestListener, Server } from 'node:http'
import type { Socket } from 'node:net'
import { logRepeated } from '../../log.ts'
import { gatherTurns } from '../../timing.ts'
import type { Arrival } from '../call/call.ts'
import { answerAfterEnd, rememberAddress, replaceEnd, takeFromParser } from './node-http.ts'
import { inOrder } from './request-order.ts'
import { closeStalled, type StallLimits } from './stalled-readers.ts'

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

/** The times are in app.ts, `TIMEOUTS`. */
interface ConnectionLimits extends StallLimits {
  lingerTimeout: number
  maxConnections: number
}

const REFUSED = 'connections are refused: as many are open as --max-connections allows'

/** Applies the rules to a server. Calls `serve` with the requests that one turn of the event loop serves. */
export function tendConnections(
  server: Server,
  limits: ConnectionLimits,
  serve: (arrivals: readonly Arrival[]) => void,
): void {
  const { lingerTimeout, maxConnections, log } = limits
  closeStalled(server, limits)
  server.maxConnections = maxConnections
  server.on('drop', () => logRepeated(log, 'warn', { maxConnections }, REFUSED))
  answerAfterEnd(server)
  server.on('connection', (socket: Socket) => {
    // Reset before it was accepted: no client reads an answer.
    if (!rememberAddress(socket)) socket.destroy()
    replaceEnd(socket, () => lingeringClose(socket, lingerTimeout))
  })
  admitRequests(server, serve)
}

/**
 * Half closes a connection after its last answer (send.ts), and drops what the client still sends, within the limits. Closing with
 * unread bytes would reset the connection, and a reset can destroy the answer.
 */
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

/**
 * Admits a request when the earlier ones of its connection are answered. All requests of a turn are parsed, then all are looked
 * up, then all are answered. Code stays in the processor's caches, and the client wakes up once for many answers: this alone
 * took a list from 0.70 to 0.90 of the rate of bare node:http.
 */
function admitRequests(server: Server, serve: (arrivals: readonly Arrival[]) => void): void {
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
  const admit: RequestListener = (request, response) =>
    inOrder(response, () => arrived({ request, response, at: performance.now() }))
  // Node has an event of its own for each kind of Expect header.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, admit)
}
