// Answers requests that never reach a route, also with the Error body: parser errors, timeouts and CONNECT.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Refusal } from '../../contract/errors.ts'
import { HEADERS_LIMIT, kibibytes } from '../../contract/limits.ts'
import { mayTakeLonger } from '../body.ts'
import { STATUS_CODES } from '../connections/node-http.ts'
import { closingHeaders } from './send.ts'
import type { Answered, Recorder } from './recorder.ts'
import type { Responder } from './responder.ts'
import { refusalAnswer } from './content.ts'
import { dueResponse } from '../connections/request-order.ts'
import { requestId } from '../call/call.ts'
import { ALL_METHODS, strayCall } from '../call/routes.ts'

const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT'

interface SocketError extends Error {
  code?: string
  /** How llhttp, Node's HTTP parser, describes the error. */
  reason?: string
}

/** Answers requests that Node would answer, or drop, by itself. */
export function answerUnparsedRequests(server: Server, record: Recorder, responder: Responder): void {
  /** Answers after all earlier requests of the connection: the client would take this answer for that to the first of them. */
  function answerInOrder(socket: Socket, refusal: Refusal, call: Answered): void {
    const due = dueResponse(socket)
    if (!socket.writable) socket.destroy()
    else if (due === undefined) writeLast(socket, refusal, call, record)
    // Of a request whose body is refused, the headers have been read.
    else if (!due.req.complete && !due.headersSent) {
      // Whoever reads the body learns that its rest will not come: Node tells nobody once it was answered. Earlier, this would cut off the answer.
      socket.once('close', () => due.req.destroy(new Error(refusal.message)))
      void responder.respond(strayCall(due.req), due, () => refusal)
    } else due.once('close', () => answerInOrder(socket, refusal, call))
  }

  /** Returns whether it is too early to give up a request: then looks again later, since Node reports it once. */
  function waitsLonger(error: SocketError, socket: Socket): boolean {
    const request = dueResponse(socket)?.req
    if (error.code !== TIMED_OUT || request === undefined || !mayTakeLonger(request, server.requestTimeout))
      return false
    const lookAgain = () => request.complete || server.emit('clientError', error, socket)
    setTimeout(lookAgain, server.requestTimeout).unref()
    return true
  }

  const failed = new WeakSet<Duplex>()
  server.on('clientError', (error: SocketError, stream: Duplex) => {
    const socket = stream as Socket
    // A parser that has failed fails again with every packet.
    if (failed.has(socket) || waitsLonger(error, socket)) return
    failed.add(socket)
    if (error.code === 'ECONNRESET') socket.destroy(error)
    else answerInOrder(socket, parserRefusal(error), { id: randomUUID(), ip: socket.remoteAddress })
  })
  server.on('connect', (request: IncomingMessage, stream: Duplex) => {
    const socket = stream as Socket
    const refusal = new Refusal('method_not_allowed', 'CONNECT is not allowed here.', ['Allow', ALL_METHODS])
    // Node no longer handles errors of this socket: without a listener a client that disconnects would end the process.
    socket.on('error', () => socket.destroy())
    answerInOrder(socket, refusal, { id: requestId(request), request, ip: socket.remoteAddress })
  })
}

function parserRefusal({ code, reason }: SocketError): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal('headers_too_large', `The address and headers may have at most ${kibibytes(HEADERS_LIMIT)}.`)
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Refusal('body_too_large', 'The chunk extensions of the body are too large.')
    case TIMED_OUT:
      return new Refusal('request_timeout', 'The request did not arrive completely in time.')
    default:
      return new Refusal('malformed_request', `The request is not well-formed HTTP${reason ? `: ${reason}` : ''}.`)
  }
}

/** Writes an answer to a socket for which Node has no response, and closes the connection (client-connections.ts). */
function writeLast(socket: Socket, refusal: Refusal, call: Answered, record: Recorder): void {
  const { status, headers, body } = refusalAnswer(refusal)
  const all = [...headers, 'Date', new Date().toUTCString(), ...closingHeaders(call.id)]
  const lines = all.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`, 'latin1')
  socket.destroySoon()
  record(call, status, refusal)
}
