// The body of a request: asking for it, and reading it within its limit. What becomes of the rest of one that is refused is
// in connections.ts.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Refusal } from '../contract/errors.ts'
import { BODY_LIMIT } from '../contract/limits.ts'

const TOO_LARGE = new Refusal('body_too_large', `The body may have at most ${BODY_LIMIT} bytes.`)
const BROKEN_OFF = new Refusal('malformed_request', 'The body broke off before its end.')

/** Without one of the two headers a request has no body (RFC 9112, section 6.3). */
export function announcesBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  return length !== '0' || coding !== undefined
}

/** Refuses a body that announces itself as too large, without waiting for it. */
export function checkBodySize({ headers }: IncomingMessage): Refusal | undefined {
  return Number(headers['content-length']) > BODY_LIMIT ? TOO_LARGE : undefined
}

/** Clients that send their body only after `100 Continue`. */
const awaitingContinue = new WeakMap<IncomingMessage, ServerResponse>()

/** Remembers that the client waits to be asked for the body. */
export function expectContinue(request: IncomingMessage, response: ServerResponse): void {
  awaitingContinue.set(request, response)
}

/** Sends `100 Continue` to a client that waits for it, after every check that needs no body. */
export function askForBody(request: IncomingMessage): void {
  if (request.headers.expect === undefined || checkBodySize(request) !== undefined) return
  awaitingContinue.get(request)?.writeContinue()
  awaitingContinue.delete(request)
}

/** Reads the whole body, after `checkBodySize`. */
export function readBody(request: IncomingMessage): Buffer | Refusal | Promise<Buffer | Refusal> {
  if (!announcesBody(request)) return Buffer.alloc(0)
  askForBody(request)
  // Usually the body has arrived with the headers, and no stream events are needed.
  if (request.complete) return withinLimit(readArrived(request))
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

/**
 * Returns what has arrived of the body. `read()` returns all buffers at once or only the first one, depending on the version
 * of Node, so it is called until nothing is left.
 */
function readArrived(request: IncomingMessage): Buffer {
  const chunks: Buffer[] = []
  for (let chunk = request.read() as Buffer | null; chunk !== null; chunk = request.read() as Buffer | null)
    chunks.push(chunk)
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

function withinLimit(body: Buffer): Buffer | Refusal {
  return body.length > BODY_LIMIT ? TOO_LARGE : body
}
