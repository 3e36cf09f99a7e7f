// Every answer and log line names its request; a sane name that came in is kept, so that a trace goes on.
import { randomBytes } from 'node:crypto'
import type { RawRequestDefaultExpression } from 'fastify'

const SANE = /^[\w.:/+=-]{1,128}$/

/** Random once a process, then counted: as unique as a random id for each, and a microsecond cheaper. */
const PROCESS = randomBytes(9).toString('base64url')
let count = 0

export function requestId(raw: RawRequestDefaultExpression): string {
  const incoming = raw.headers['request-id']
  return typeof incoming === 'string' && SANE.test(incoming) ? incoming : newRequestId()
}

export function newRequestId(): string {
  count += 1
  return `${PROCESS}-${count}`
}
