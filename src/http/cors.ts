// Browser callers: any origin may call, since a call is authorised by a key and never by a cookie.
import { HEADERS } from '../contract/headers.ts'

const EXPOSED = Object.keys(HEADERS).filter((name) => !name.startsWith('Access-Control-') && name !== 'Vary')
const PREFLIGHT_SECONDS = 7200

/** Only on answers to requests with an Origin: every header costs time on every answer. */
export const CORS_HEADERS: readonly string[] = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  EXPOSED.join(', '),
  'Vary',
  'Origin',
]

/** Allows everything, so that a page gets the real answer, such as a 404 or 405, and not only "Failed to fetch". `*` never covers Authorization. */
export const PREFLIGHT_HEADERS: readonly string[] = [
  'Access-Control-Allow-Methods',
  '*',
  'Access-Control-Allow-Headers',
  '*, Authorization',
  'Access-Control-Max-Age',
  String(PREFLIGHT_SECONDS),
]
