// The response headers of the interface, as the OpenAPI document describes them.

const text = { type: 'string' }

export const HEADERS = {
  'Request-Id': {
    description: 'Identifies this request in the logs; a well-formed one from the client is kept',
    schema: text,
  },
  'Cache-Control': {
    description: 'Always `private, no-cache`: store it, but revalidate before each use',
    schema: text,
  },
  'Access-Control-Allow-Origin': { description: 'Always `*`; only when the request has an Origin', schema: text },
  'Access-Control-Expose-Headers': {
    description: 'Headers that a page may read; only when the request has an Origin',
    schema: text,
  },
  Vary: { description: 'Always `Origin`; only when the request has an Origin', schema: text },
  ETag: { description: 'Strong validator of the body, for If-None-Match', schema: text },
  Link: { description: 'Links to related addresses (RFC 8288)', schema: text },
  Location: {
    description: 'The address of the new animal; no longer sent once getPet is removed',
    schema: { type: 'string', format: 'uri-reference' },
  },
  'Idempotent-Replayed': {
    description: '`true` if this is the answer to an earlier request with the same Idempotency-Key',
    schema: { type: 'string', const: 'true' },
  },
  Deprecation: { description: 'Since when the operation is deprecated (RFC 9745)', schema: text },
  Sunset: { description: 'When the operation is removed (RFC 8594)', schema: text },
  'WWW-Authenticate': { description: 'The authentication scheme that is required', schema: text },
  RateLimit: { description: 'What is left of the quota; only when a rate limit is set', schema: text },
  'RateLimit-Policy': { description: 'The quota; only when a rate limit is set', schema: text },
  'Retry-After': { description: 'Seconds to wait before the next attempt', schema: { type: 'integer', minimum: 0 } },
} as const

export type HeaderName = keyof typeof HEADERS
