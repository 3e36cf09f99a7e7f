// The JSON body of a request: its media type and encoding, and its value.
import { Refusal, Refused } from '../contract/errors.ts'
import { type ParsedJson, parseJson, quote } from '../contract/json.ts'
import { announcesBody } from './body.ts'
import { type Call, cameTwice } from './call.ts'

/** The media type, compared without case; its parameters are checked later. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i

/** Refuses a body that is not declared as plain JSON; needs only its headers, so that it need not be sent for this. */
export function checkJsonHeaders(call: Call): Refusal | undefined {
  const type = call.raw.headers['content-type']
  const isNothing = type === undefined && !announcesBody(call.raw)
  if (isNothing || JSON_TYPE.test(type ?? '')) return checkEncoding(call)
  return unsupported(`The body must have Content-Type: application/json, got ${type ? quote(type) : 'none'}.`)
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
