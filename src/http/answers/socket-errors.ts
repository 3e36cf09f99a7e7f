// Answers requests that never reach a route, also with the Error body: parser errors, timeouts and CONNECT.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Refusal } from '../../contract/errors.ts'
import { HEADERS_LIMIT, kibibytes } from '../../contract/limits.ts'
import { STATUS_CODES } from '../connections/node-http.ts'
import { closingHeaders } from './send.ts'
import type { Answered, Recorder } from './recorder.ts'
import type { Responder } from './responder.ts'
import { refusalAnswer } from './content.ts'
import { dueResponse } from '../connections/request-order.ts'
import { requestId } from '../call/call.ts'
import { ALL_METHODS, strayCall } from '../call/routes.ts'

interface SocketError extends Error {
  code?: string
  /** How llhttp, Node's HTTP parser, describes the error. */
  reason?: string
}

/** Answers requests that Node would answer, or drop, by itself. */
export function answerUnparsedRequests(server: Server, record: Recorder, responder: Responder): void {
  const failed = new WeakSet<Duplex>()
  server.on('clientError', (error: SocketError, socket: Duplex) => {
    // A parser that has failed fails again with every packet.
    if (failed.has(socket)) return
    failed.add(socket)
    answerSocketError(error, socket as Socket, record, responder)
  })
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    const refusal = new Refusal('method_not_allowed', 'CONNECT is not allowed here.', ['Allow', ALL_METHODS])
    const call = { id: requestId(request), request, ip: request.socket.remoteAddress }
    // Node no longer handles errors of this socket: without a listener a client that disconnects would end the process.
    socket.on('error', () => socket.destroy())
    afterEarlierAnswers(socket as Socket, () => writeLast(socket as Socket, refusal, call, record))
  })
}

function answerSocketError(error: SocketError, socket: Socket, record: Recorder, responder: Responder): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy(error)
    return
  }
  const due = dueResponse(socket)
  // Sends the answers to earlier requests first: the client would take this one for the answer to the first of them.
  if (due !== undefined && (due.req.complete || due.headersSent)) {
    due.once('close', () => answerSocketError(error, socket, record, responder))
    return
  }
  const refusal = parserRefusal(error)
  if (due === undefined) writeLast(socket, refusal, { id: randomUUID(), ip: socket.remoteAddress }, record)
  // Of a request whose body is refused, the headers have been read.
  else void responder.respond(strayCall(due.req), due, () => refusal)
}

/** Calls `write` when the answers to all earlier requests of the connection have been sent. */
function afterEarlierAnswers(socket: Socket, write: () => void): void {
  const due = dueResponse(socket)
  if (due === undefined) write()
  else due.once('close', () => afterEarlierAnswers(socket, write))
}

function parserRefusal({ code, reason }: SocketError): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal('headers_too_large', `The address and headers may have at most ${kibibytes(HEADERS_LIMIT)}.`)
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Refusal('body_too_large', 'The chunk extensions of the body are too large.')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
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
