// The Idempotency-Key of a create: what makes it safe to repeat.
import type { FastifyRequest } from 'fastify'
import type { Refusal } from '../contract/errors.ts'
import { IDEMPOTENCY } from '../contract/operations.ts'
import { cameTwice } from './call.ts'

/** The key as the client means it, quoted or not; undefined where none came. */
export function readIdempotencyKey(request: FastifyRequest): { key: string | undefined } | Refusal {
  const header = request.headers['idempotency-key']
  if (header === undefined) return { key: undefined }
  if (cameTwice(request, 'idempotency-key')) return invalid('The Idempotency-Key header came twice; send it once.')
  const text = String(header)
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1]
  const key = quoted === undefined ? text : quoted.replaceAll(/\\(["\\])/g, '$1')
  if (key.length > 0 && key.length <= IDEMPOTENCY.keyMaxLength) return { key }
  return invalid(`The Idempotency-Key must have 1 to ${IDEMPOTENCY.keyMaxLength} characters, got ${key.length}.`)
}

function invalid(message: string): Refusal {
  return { code: 'invalid_idempotency_key', message }
}
