// What handlers read of a request: the JSON body, the Idempotency-Key and the query string.
import { hash } from 'node:crypto'
import { parse } from 'node:querystring'
import { Refusal, Refused } from '../contract/errors.ts'
import { type ParsedJson, parseJson, quote } from '../contract/json.ts'
import { IDEMPOTENCY } from '../contract/limits.ts'
import type { RawQuery } from '../contract/list-query.ts'
import { redactSecrets } from '../contract/redact.ts'
import { announcesBody, checkBodySize, readBody } from './body.ts'
import { type Call, cameTwice, type OperationCall } from './call.ts'

/** The media type, compared without case; its parameters are checked later. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i

/** Refuses the body of an operation by its headers alone, so that it need not be sent for this. */
export function checkBodyHeaders(call: OperationCall): Refusal | undefined {
  return call.operation.body && (checkJsonHeaders(call) ?? checkBodySize(call.raw))
}

export function checkJsonHeaders(call: Call): Refusal | undefined {
  const type = call.raw.headers['content-type']
  const isNothing = type === undefined && !announcesBody(call.raw)
  if (isNothing || JSON_TYPE.test(type ?? '')) return checkEncoding(call)
  return unsupported(`The body must have Content-Type: application/json, got ${type ? quote(type) : 'none'}.`)
}

/** Reads the JSON body of an operation with `parseValue`, after `checkBodyHeaders`. Its entry documents each refusal. */
export async function readJsonBody<T>(
  call: OperationCall,
  parseValue: (json: unknown) => T | Refused,
): Promise<Exclude<T, Refused> | Refusal> {
  const bytes = await readBody(call.raw)
  const json = bytes instanceof Refusal ? bytes : parseJsonBody(bytes)
  if (json instanceof Refusal) return json
  const value = parseValue(json.value)
  return value instanceof Refused
    ? new Refusal(call.operation.body!.invalid, value.message)
    : (value as Exclude<T, Refused>)
}

export function parseJsonBody(bytes: Buffer): ParsedJson | Refusal {
  if (bytes.length === 0) return new Refusal('missing_body', 'The body is missing: send a JSON object.')
  const json = parseJson(bytes)
  return json instanceof Refused ? new Refusal('invalid_json', json.message) : json
}

function checkEncoding(call: Call): Refusal | undefined {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = call.raw.headers
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

/** Returns the key that makes a create safe to retry, as the client means it, quoted or not; undefined if none was sent. */
export function readIdempotencyKey(request: Call): { key: string | undefined } | Refusal {
  const header = request.raw.headers['idempotency-key']
  if (header === undefined) return { key: undefined }
  if (cameTwice(request, 'idempotency-key')) return invalid('The Idempotency-Key header was sent twice; send it once.')
  const text = String(header)
  // In quotes, with each character escaped.
  if (text.length > 2 * IDEMPOTENCY.keyMaxLength + 2) return wrongLength(text.length)
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1]
  const key = quoted === undefined ? text : quoted.replaceAll(/\\(["\\])/g, '$1')
  if (key.length > 0 && key.length <= IDEMPOTENCY.keyMaxLength) return { key: storable(key) }
  return wrongLength(key.length)
}

/** The store keeps the key as it was sent, unless it holds a secret: that is kept as a hash, which serves as well. */
function storable(key: string): string {
  return redactSecrets(key) === key ? key : `sha256:${hash('sha256', key)}`
}

function wrongLength(length: number): Refusal {
  return invalid(`The Idempotency-Key must have 1 to ${IDEMPOTENCY.keyMaxLength} characters, got ${length}.`)
}

function invalid(message: string): Refusal {
  return new Refusal('invalid_idempotency_key', message)
}

/** By default Node would read only the first thousand parameters. */
const ALL_PARAMETERS = { maxKeys: 0, decodeURIComponent: decodeOrKeep }

/** Reads every parameter as it was sent; what cannot be decoded is kept as it is. */
export function parseQueryString(query: string): RawQuery {
  return parse(query, '&', '=', ALL_PARAMETERS)
}

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
