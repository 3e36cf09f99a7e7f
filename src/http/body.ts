// The body of a request: reading it within its limit, and dropping the rest of one that is not read to its end.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { Refusal } from '../contract/errors.ts'
import { BODY_LIMIT } from '../contract/limits.ts'

/** Closing at once could destroy the answer on its way; for this long the client may go on sending while it reads. */
const LINGER_MS = 2000

const TOO_LARGE = new Refusal('body_too_large', `The body may have at most ${BODY_LIMIT} bytes.`)
const BROKEN_OFF = new Refusal('malformed_request', 'The body broke off before its end.')

/** Without one of the two headers a request has no body (RFC 9112, section 6.3). */
export function announcesBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  return length !== '0' || coding !== undefined
}

/** Reads the whole body; one whose Content-Length is too large is refused without waiting for it. */
export function readBody(request: IncomingMessage): Buffer | Refusal | Promise<Buffer | Refusal> {
  if (Number(request.headers['content-length']) > BODY_LIMIT) return TOO_LARGE
  if (!announcesBody(request)) return Buffer.alloc(0)
  // Mostly it has arrived with the headers, and no stream events are needed.
  if (request.complete) return within((request.read() as Buffer | null) ?? Buffer.alloc(0))
  if (request.destroyed) return BROKEN_OFF
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > BODY_LIMIT) resolve(TOO_LARGE)
      else chunks.push(chunk)
    })
    request.on('end', () => resolve(Buffer.concat(chunks)))
    request.on('error', () => resolve(BROKEN_OFF))
  })
}

function within(body: Buffer): Buffer | Refusal {
  return body.length > BODY_LIMIT ? TOO_LARGE : body
}

/**
 * For a connection whose request was answered before it had come whole, as with a 401 or a 413: the rest is read and
 * dropped for a moment; a client that has not ended by then is cut off.
 */
export function dropRestOf(request: IncomingMessage): void {
  if (!announcesBody(request)) return
  setTimeout(() => {
    if (!request.complete) request.socket.destroy()
  }, LINGER_MS).unref()
}

/** The same for a connection that Node has handed over, and looks after no more. */
export function endSoon(socket: Duplex, lastWords: string): void {
  socket.resume().end(lastWords, 'latin1')
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
