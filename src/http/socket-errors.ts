// Requests that never become one: Node's parser, timeouts, Expect and CONNECT answer with the Error body too.
import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Refusal } from '../contract/errors.ts'
import type { Log } from '../log.ts'
import { refusalAnswer } from './answer.ts'
import { requestId } from './request-id.ts'

interface SocketError extends Error {
  code?: string
  /** What llhttp says of the broken part. */
  reason?: string
}

/** For Fastify's `clientErrorHandler`. */
export function createSocketErrorHandler(log: Log) {
  return (error: SocketError, socket: Duplex & { _httpMessage?: { headersSent: boolean } }): void => {
    // Where an answer is on its way already, or nobody listens, there is nothing left to say.
    if (error.code === 'ECONNRESET' || !socket.writable || socket._httpMessage?.headersSent) {
      socket.destroy(error)
      return
    }
    const id = randomUUID()
    const refusal = parserRefusal(error)
    log.info({ requestId: id, code: refusal.code, error: error.code }, 'request')
    socket.end(rawAnswer(refusal, id))
  }
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

function rawAnswer(refusal: Refusal, id: string): string {
  const { status, headers, body = '' } = refusalAnswer(refusal)
  const all = [...headers, 'Request-Id', id, 'Cache-Control', 'private, no-cache', 'Content-Length', String(Buffer.byteLength(body)), 'Connection', 'close']
  const lines = all.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${String(body)}`
}

/** Requests that Node would answer, or drop, by itself. */
export function answerSpecialRequests(server: Server): void {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const message = `The Expect header takes only 100-continue, got ${JSON.stringify(request.headers.expect)}.`
    const { status, headers, body } = refusalAnswer({ code: 'expectation_failed', message })
    const common = ['Request-Id', requestId(request), 'Cache-Control', 'private, no-cache', 'Connection', 'close']
    response.writeHead(status, [...headers, ...common]).end(body)
  })
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    const refusal: Refusal = { code: 'method_not_allowed', message: 'CONNECT is not possible here.', headers: ['Allow', 'GET, HEAD, OPTIONS, POST'] }
    socket.end(rawAnswer(refusal, requestId(request)))
  })
}
