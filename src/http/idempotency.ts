// The Idempotency-Key of a create, which makes it safe to retry.
import { hash } from 'node:crypto'
import { Refusal } from '../contract/errors.ts'
import { IDEMPOTENCY } from '../contract/limits.ts'
import { redactSecrets } from '../contract/redact.ts'
import { type Call, cameTwice } from './call.ts'

/** Returns the key as the client means it, quoted or not; undefined if none was sent. */
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
