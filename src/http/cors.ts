// Browser callers: any origin may call, since a call is authorised by a key and never by a cookie.
import { HEADERS } from '../contract/headers.ts'

const EXPOSED = Object.keys(HEADERS).filter((name) => !name.startsWith('Access-Control-') && name !== 'Vary')
const REQUEST_HEADERS = ['Authorization', 'Content-Type', 'Idempotency-Key', 'If-None-Match', 'Request-Id']
const PREFLIGHT_SECONDS = 7200

/** Only on answers to requests with an Origin: every header costs time on every answer. */
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
