// The content step of createPet: from the body's bytes to a NewPet, or what is wrong with them.
import type { FastifyRequest } from 'fastify'
import type { Refusal } from '../contract/errors.ts'
import { parseJson, quote } from '../contract/json.ts'
import { type NewPet, parseNewPet } from '../contract/pets.ts'
import { cameTwice } from './call.ts'

export function readNewPet(request: FastifyRequest): NewPet | Refusal {
  const bytes = request.body as Buffer | undefined
  if (bytes === undefined || bytes.length === 0) {
    return { code: 'missing_body', message: 'The body is missing: send the animal as a JSON object.' }
  }
  const refusal = checkEncoding(request)
  if (refusal !== undefined) return refusal
  const json = parseJson(bytes)
  if ('problem' in json) return { code: 'invalid_json', message: json.problem }
  const parsed = parseNewPet(json.value)
  if ('newPet' in parsed) return parsed.newPet
  return { code: 'invalid_pet', message: parsed.problems.map(({ message }) => message).join(' ') }
}

function checkEncoding(request: FastifyRequest): Refusal | undefined {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers
  for (const [, charset = ''] of type.matchAll(/;\s*charset\s*=\s*"?([^\s;"]*)/gi)) {
    if (!/^utf-?8$/i.test(charset)) return unsupported(`The body must be in UTF-8, got charset ${quote(charset)}.`)
  }
  if (!/^identity$/i.test(encoding)) {
    return unsupported(`The body must come without Content-Encoding, got ${quote(encoding)}.`)
  }
  if (cameTwice(request, 'content-type')) return unsupported('The Content-Type header came twice.')
  return undefined
}

function unsupported(message: string): Refusal {
  return { code: 'unsupported_content_type', message }
}
