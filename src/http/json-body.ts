// The JSON body of a request: its media type and encoding, its bytes, and its value.
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../contract/errors.ts'
import { type ParsedJson, parseJson, quote } from '../contract/json.ts'
import { Refused } from '../contract/refused.ts'
import { announcesBody, readBody } from './body.ts'
import { type Call, cameTwice } from './call.ts'

/** The media type, compared without case; its parameters are checked later. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i

/** Reads the bytes of a body that is declared as JSON. */
export function readJsonBody(request: IncomingMessage): Buffer | Refusal | Promise<Buffer | Refusal> {
  const type = request.headers['content-type']
  const isNothing = type === undefined && !announcesBody(request)
  if (isNothing || JSON_TYPE.test(type ?? '')) return readBody(request)
  return unsupported(`The body must have Content-Type: application/json, got ${type ? quote(type) : 'none'}.`)
}

export function parseJsonBody(call: Call, bytes: Buffer): ParsedJson | Refusal {
  if (bytes.length === 0) return new Refusal('missing_body', 'The body is missing: send a JSON object.')
  const refusal = checkEncoding(call)
  if (refusal !== undefined) return refusal
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
