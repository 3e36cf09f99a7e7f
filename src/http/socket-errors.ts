// Requests that never reach a route: parser errors, timeouts, Expect and CONNECT get the Error body too.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ERRORS, Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { HEADERS_LIMIT, kibibytes } from '../contract/limits.ts'
import { STATUS_CODES } from './node-http.ts'
import { createRefusalAnswer } from './answer.ts'
import { dueResponse, inTurn, lastResponse } from './connections.ts'
import type { Recorder } from './record.ts'
import { requestId } from './call.ts'
import { ALL_METHODS } from './routes.ts'

/** Its links are relative: nothing here knows the public address. */
const refusalAnswer = createRefusalAnswer()

interface SocketError extends Error {
  code?: string
  /** What llhttp says of the broken part. */
  reason?: string
  /** What was being read. */
  rawPacket?: Buffer
}

/** For the server's `clientError`. */
export function createSocketErrorHandler(record: Recorder) {
  const failed = new WeakSet<Socket>()

  function answer(error: SocketError, socket: Socket): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy(error)
      return
    }
    const due = dueResponse(socket)
    // Answers to earlier requests of the connection go first, or the client would take this one for theirs.
    if (due !== undefined && (due.req.complete || due.headersSent)) {
      due.once('close', () => answer(error, socket))
      return
    }
    // The request was answered before it had arrived completely: nothing is left to say about the rest of it.
    if (due === undefined && lastResponse(socket)?.req.complete === false) {
      socket.destroy()
      return
    }
    const refusal = parserRefusal(error)
    const id = randomUUID()
    record({ id, ip: socket.remoteAddress }, ERRORS[refusal.code].status, refusal)
    if (due === undefined) writeLast(socket, rawAnswer(refusal, id))
    else writeRefusal(due, refusal, id)
  }

  return (error: SocketError, socket: Duplex): void => {
    // A parser that has failed fails again with every packet.
    if (failed.has(socket as Socket)) return
    failed.add(socket as Socket)
    answer(error, socket as Socket)
  }
}

/** Answers requests that Node would answer, or drop, by itself. */
export function answerSpecialRequests(server: Server, record: Recorder): void {
  function recorded(request: IncomingMessage, refusal: Refusal): string {
    const id = requestId(request)
    record({ id, raw: request, ip: request.socket.remoteAddress }, ERRORS[refusal.code].status, refusal)
    return id
  }

  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const message = `The Expect header takes only 100-continue, got ${quote(String(request.headers.expect))}.`
    const refusal = new Refusal('expectation_failed', message)
    inTurn(response, () => writeRefusal(response, refusal, recorded(request, refusal)))
  })
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    const refusal = new Refusal('method_not_allowed', 'CONNECT is not allowed here.', ['Allow', ALL_METHODS])
    const id = recorded(request, refusal)
    // Node has let go of this socket: without a listener a client that hangs up would end the process.
    socket.on('error', () => socket.destroy())
    afterEarlierAnswers(socket as Socket, () => writeLast(socket as Socket, rawAnswer(refusal, id)))
  })
}

/** Answers to earlier requests of the connection go first, or the client would take this one for theirs. */
function afterEarlierAnswers(socket: Socket, write: () => void): void {
  const due = dueResponse(socket)
  if (due === undefined) write()
  else due.once('close', () => afterEarlierAnswers(socket, write))
}

function parserRefusal({ code, reason, rawPacket }: SocketError): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal(
        'headers_too_large',
        `The address and headers may have at most ${kibibytes(HEADERS_LIMIT)} together.`,
      )
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Refusal('body_too_large', 'The chunk extensions of the body are too large.')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Refusal('request_timeout', 'The request did not arrive completely in time.')
    default:
      return new Refusal(
        'malformed_request',
        otherProtocol(rawPacket) ?? `The request is not well-formed HTTP${reason ? `: ${reason}` : ''}.`,
      )
  }
}

/** Says which other protocol was spoken here, as by a client with the wrong address. */
function otherProtocol(packet: Buffer = Buffer.of()): string | undefined {
  // A record of a TLS handshake: its type, and the major version that all of TLS has.
  if (packet[0] === 0x16 && packet[1] === 0x03) {
    return 'This port speaks plain HTTP, but a TLS handshake came: use an http:// address, or the address of the proxy that does TLS.'
  }
  if (packet.toString('latin1', 0, 14) === 'PRI * HTTP/2.0') {
    return 'This port speaks HTTP/1.1, but HTTP/2 came: do not use HTTP/2 with prior knowledge here.'
  }
  return undefined
}

function closingHeaders(id: string): string[] {
  return ['Request-Id', id, 'Cache-Control', 'private, no-cache', 'Connection', 'close']
}

function writeRefusal(response: ServerResponse, refusal: Refusal, id: string): void {
  const { status, headers, body } = refusalAnswer(refusal)
  response.writeHead(status, [...headers, ...closingHeaders(id)]).end(body, 'latin1')
}

/** Writes on a socket that Node has no response for, and ends it (connections.ts). */
function writeLast(socket: Socket, answer: string): void {
  socket.write(answer, 'latin1')
  socket.destroySoon()
}

function rawAnswer(refusal: Refusal, id: string): string {
  const { status, headers, body } = refusalAnswer(refusal)
  const all = [...headers, 'Date', new Date().toUTCString(), ...closingHeaders(id)]
  const lines = all.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`
}
