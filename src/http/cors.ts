// Browser callers: any origin may call, since a key and no cookie makes the call.
import { HEADERS } from '../contract/openapi-answers.ts'

const EXPOSED = Object.keys(HEADERS).filter((name) => !name.startsWith('Access-Control-') && name !== 'Vary')
const REQUEST_HEADERS = ['Authorization', 'Content-Type', 'Idempotency-Key', 'If-None-Match', 'Request-Id']
const PREFLIGHT_SECONDS = 7200

/** On every answer to a request with an Origin, and only there: each header costs. */
export const CORS_HEADERS: readonly string[] = [
  'Access-Control-Allow-Origin', '*',
  'Access-Control-Expose-Headers', EXPOSED.join(', '),
  'Vary', 'Origin',
]

export function preflightHeaders(methods: string): string[] {
  return [
    'Access-Control-Allow-Methods', methods,
    'Access-Control-Allow-Headers', REQUEST_HEADERS.join(', '),
    'Access-Control-Max-Age', String(PREFLIGHT_SECONDS),
  ]
}
