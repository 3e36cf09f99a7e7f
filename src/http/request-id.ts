// Every answer and log line names its request; a well-formed id from the client is kept, so that a trace continues.
import { randomUUID } from 'node:crypto'
import type { RawRequestDefaultExpression } from 'fastify'
import { redactSecrets } from '../contract/redact.ts'

const SANE = /^[\w.:/+=-]{1,128}$/

export function requestId(raw: RawRequestDefaultExpression): string {
  const incoming = raw.headers['request-id']
  return typeof incoming === 'string' && SANE.test(incoming) && redactSecrets(incoming) === incoming
    ? incoming
    : randomUUID()
}
