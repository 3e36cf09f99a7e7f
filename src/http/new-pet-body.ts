// The content step of createPet: from the body's bytes to a NewPet, or what is wrong with them.
import type { IncomingMessage } from 'node:http'
import type { Refusal } from '../contract/errors.ts'
import { parseJson, quote } from '../contract/json.ts'
import { type NewPet, parseNewPet } from '../contract/pets.ts'
import { announcesBody, readBody } from './body.ts'
import { type Call, cameTwice } from './call.ts'

/** The media type, compared without case; its parameters are looked at later. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i

/** The body's bytes, for who says that they are JSON. */
export function readJson(request: IncomingMessage): Buffer | Refusal | Promise<Buffer | Refusal> {
  const type = request.headers['content-type']
  const isNothing = type === undefined && !announcesBody(request)
  if (isNothing || JSON_TYPE.test(type ?? '')) return readBody(request)
  return unsupported(`The body must come with Content-Type: application/json, got ${type ? quote(type) : 'none'}.`)
}

export function parsePetBody(call: Call, bytes: Buffer): NewPet | Refusal {
  if (bytes.length === 0) return { code: 'missing_body', message: 'The body is missing: send the animal as a JSON object.' }
  const refusal = checkEncoding(call)
  if (refusal !== undefined) return refusal
  const json = parseJson(bytes)
  if ('problem' in json) return { code: 'invalid_json', message: json.problem }
  const parsed = parseNewPet(json.value)
  if ('newPet' in parsed) return parsed.newPet
  return { code: 'invalid_pet', message: parsed.problems.map(({ message }) => message).join(' ') }
}

function checkEncoding(call: Call): Refusal | undefined {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = call.raw.headers
  for (const [, charset = ''] of type.matchAll(/;\s*charset\s*=\s*"?([^\s;"]*)/gi)) {
    if (!/^utf-?8$/i.test(charset)) return unsupported(`The body must be in UTF-8, got charset ${quote(charset)}.`)
  }
  if (!/^identity$/i.test(encoding)) {
    return unsupported(`The body must come without Content-Encoding, got ${quote(encoding)}.`)
  }
  if (cameTwice(call, 'content-type')) return unsupported('The Content-Type header came twice.')
  return undefined
}

function unsupported(message: string): Refusal {
  return { code: 'unsupported_content_type', message }
}
