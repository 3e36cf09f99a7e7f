// Requests that never become one: Node's parser, timeouts, Expect and CONNECT answer with the Error body too.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ERRORS, type Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import type { Log } from '../log.ts'
import { STATUS_CODES } from '../node-http.ts'
import { refusalAnswer } from './answer.ts'
import { endSoon } from './body.ts'
import type { Metrics } from './metrics.ts'
import { requestId } from './request-id.ts'

interface SocketError extends Error {
  code?: string
  /** What llhttp says of the broken part. */
  reason?: string
}

/** What Node hangs on a socket: the answer that is due next on it, and the request it reads. */
type HttpSocket = Socket & {
  _httpMessage?: ServerResponse | null
  parser?: { incoming: IncomingMessage | null } | null
}

interface Parts {
  log: Log
  metrics: Metrics | undefined
}

/** For the server's `clientError`. */
export function createSocketErrorHandler(parts: Parts) {
  const failed = new WeakSet<HttpSocket>()

  function answer(error: SocketError, socket: HttpSocket): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy(error)
      return
    }
    const due = socket._httpMessage ?? undefined
    // Answers to earlier requests of the connection go first, or the client would take this one for theirs.
    if (due !== undefined && (due.req.complete || due.headersSent)) {
      due.once('close', () => answer(error, socket))
      return
    }
    // The request was answered before it had come whole: there is nothing left to say about the rest of it.
    if (due === undefined && socket.parser?.incoming?.complete === false) {
      socket.destroy()
      return
    }
    const refusal = parserRefusal(error)
    const id = randomUUID()
    tell(parts, { requestId: id, address: socket.remoteAddress, error: error.code }, refusal)
    if (due === undefined) socket.end(rawAnswer(refusal, id), 'latin1')
    else writeRefusal(due, refusal, id)
  }

  return (error: SocketError, socket: Duplex): void => {
    // A parser that has failed fails again with each packet.
    if (failed.has(socket as HttpSocket)) return
    failed.add(socket as HttpSocket)
    answer(error, socket as HttpSocket)
  }
}

/** Requests that Node would answer, or drop, by itself. */
export function answerSpecialRequests(server: Server, parts: Parts): void {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const message = `The Expect header takes only 100-continue, got ${quote(String(request.headers.expect))}.`
    const refusal: Refusal = { code: 'expectation_failed', message }
    const id = requestId(request)
    tell(parts, seenOf(request, id), refusal)
    writeRefusal(response, refusal, id)
  })
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    const refusal: Refusal = { code: 'method_not_allowed', message: 'CONNECT is not possible here.', headers: ['Allow', 'GET, HEAD, OPTIONS, POST'] }
    const id = requestId(request)
    tell(parts, seenOf(request, id), refusal)
    // Nobody else listens on this socket any more: a client that hangs up must not end the process.
    socket.on('error', () => socket.destroy())
    afterEarlierAnswers(socket as HttpSocket, () => endSoon(socket, rawAnswer(refusal, id)))
  })
}

/** Answers to earlier requests of the connection go first, or the client would take this one for theirs. */
function afterEarlierAnswers(socket: HttpSocket, write: () => void): void {
  const due = socket._httpMessage ?? undefined
  if (due === undefined) write()
  else due.once('close', () => afterEarlierAnswers(socket, write))
}

function parserRefusal({ code, reason }: SocketError): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { code: 'headers_too_large', message: 'The address and headers may have at most 16 KiB together.' }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { code: 'body_too_large', message: 'The chunk extensions of the body are too large.' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { code: 'request_timeout', message: 'The request did not arrive whole in time.' }
    default:
      return { code: 'malformed_request', message: `The request is not well-formed HTTP${reason ? `: ${reason}` : ''}.` }
  }
}

function seenOf({ method, socket }: IncomingMessage, id: string): object {
  return { requestId: id, method, address: socket.remoteAddress }
}

/** These never reach the one way out (answer.ts), so they are logged and counted here. */
function tell({ log, metrics }: Parts, seen: object, { code }: Refusal): void {
  const { status } = ERRORS[code]
  metrics?.refused(status)
  log.info({ ...seen, status, code }, 'request')
}

function closingHeaders(id: string): string[] {
  return ['Request-Id', id, 'Cache-Control', 'private, no-cache', 'Connection', 'close']
}

function writeRefusal(response: ServerResponse, refusal: Refusal, id: string): void {
  const { status, headers, body } = refusalAnswer(refusal)
  response.writeHead(status, [...headers, ...closingHeaders(id)]).end(body, 'latin1')
}

function rawAnswer(refusal: Refusal, id: string): string {
  const { status, headers, body } = refusalAnswer(refusal)
  const all = [...headers, 'Date', new Date().toUTCString(), ...closingHeaders(id)]
  const lines = all.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`
}
