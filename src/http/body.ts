// The body of a request: checks its headers, asks for it with `100 Continue`, and reads it within its limit, as bytes or as JSON.
// client-connections.ts handles the rest of a body that was refused.
import type { IncomingMessage } from 'node:http'
import { Refusal, Problem } from '../contract/errors.ts'
import { type ParsedJson, parseJson, quote } from '../contract/json.ts'
import { BODY_LIMIT } from '../contract/limits.ts'
import type { Call, OperationCall } from './call/call.ts'
import { cameTwice } from './call/framing.ts'
import { dueResponse } from './connections/request-order.ts'

const TOO_LARGE = new Refusal('body_too_large', `The body may have at most ${BODY_LIMIT} bytes.`)
const BROKEN_OFF = new Refusal('malformed_request', 'The body broke off before its end.')

/** Matches the media type in any case. `checkEncoding` checks its parameters. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i

/** Refuses the body of an operation by its headers alone, before the client has to send it. */
export function checkBodyHeaders(call: OperationCall): Refusal | undefined {
  return call.operation.body && (checkJsonHeaders(call) ?? checkBodySize(call.request))
}

export function checkJsonHeaders(call: Call): Refusal | undefined {
  const type = call.request.headers['content-type']
  const isNothing = type === undefined && !announcesBody(call.request)
  if (isNothing || JSON_TYPE.test(type ?? '')) return checkEncoding(call)
  return unsupported(`The body must have Content-Type: application/json, got ${type ? quote(type) : 'none'}.`)
}

function checkEncoding(call: Call): Refusal | undefined {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = call.request.headers
  for (const [, charset = ''] of type.matchAll(/;\s*charset\s*=\s*"?([^\s;"]*)/gi)) {
    if (!/^utf-?8$/i.test(charset)) return unsupported(`The body must be in UTF-8, got charset ${quote(charset)}.`)
  }
  if (!/^identity$/i.test(encoding)) {
    return unsupported(`The body must have no Content-Encoding, got ${quote(encoding)}.`)
  }
  if (cameTwice(call, 'content-type')) return unsupported('The Content-Type header was sent twice.')
  return undefined
}

function unsupported(message: string): Refusal {
  return new Refusal('unsupported_content_type', message)
}

/** Returns whether the request has a body: it needs one of these two headers (RFC 9112, section 6.3). */
export function announcesBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  return length !== '0' || coding !== undefined
}

/** Refuses a body whose Content-Length is over the limit, before any of it is read. */
export function checkBodySize({ headers }: IncomingMessage): Refusal | undefined {
  return Number(headers['content-length']) > BODY_LIMIT ? TOO_LARGE : undefined
}

/** Reads the JSON body of an operation with `parseValue`, after `checkBodyHeaders`. */
export async function readJsonBody<T>(
  call: OperationCall,
  parseValue: (json: unknown) => T | Problem,
): Promise<T | Refusal> {
  const bytes = await readBody(call.request)
  const json = bytes instanceof Refusal ? bytes : parseJsonBody(bytes)
  if (json instanceof Refusal) return json
  const value = parseValue(json.value)
  return value instanceof Problem ? new Refusal(call.operation.body!.invalid, value.message) : value
}

export function parseJsonBody(bytes: Buffer): ParsedJson | Refusal {
  if (bytes.length === 0) return new Refusal('missing_body', 'The body is missing: send a JSON object.')
  const json = parseJson(bytes)
  return json instanceof Problem ? new Refusal('invalid_json', json.message) : json
}

/** Reads the whole body, after `checkBodySize`. */
export function readBody(request: IncomingMessage): Buffer | Refusal | Promise<Buffer | Refusal> {
  if (!announcesBody(request)) return Buffer.alloc(0)
  askForBody(request)
  // Usually the body has arrived with the headers, and no stream events are needed.
  if (request.complete) {
    const body = readArrived(request)
    return body.length > BODY_LIMIT ? TOO_LARGE : body
  }
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

/** Sends `100 Continue` to a client that waits for it. */
export function askForBody({ headers, httpVersionMinor, socket }: IncomingMessage): void {
  // An HTTP/1.0 client does not know it (RFC 9110, section 10.1.1).
  if (headers.expect !== undefined && httpVersionMinor > 0) dueResponse(socket)?.writeContinue()
}

/** The least rate of a form with a file, in bytes a second: so slow a line takes 20 minutes for the largest one. */
const LEAST_RATE = 4 * 1024

/** For each form with a file: how many bytes its connection had brought at the last look. */
const counted = new WeakMap<IncomingMessage, number>()

/** Lets a form with a file take longer than other requests, as long as it comes at the least rate. */
export function takeTime(request: IncomingMessage): void {
  counted.set(request, request.socket.bytesRead)
}

/** Returns whether a request that has not arrived in time may take as long again. */
export function mayTakeLonger(request: IncomingMessage, ms: number): boolean {
  const before = counted.get(request) ?? Infinity
  if (request.complete || request.socket.bytesRead - before < (LEAST_RATE * ms) / 1000) return false
  takeTime(request)
  return true
}

/** Returns a body that has arrived. Depending on Node's version, `read()` returns all of its buffers or only the first one. */
function readArrived(request: IncomingMessage): Buffer {
  const chunks: Buffer[] = []
  for (let chunk = request.read() as Buffer | null; chunk !== null; chunk = request.read() as Buffer | null)
    chunks.push(chunk)
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}
