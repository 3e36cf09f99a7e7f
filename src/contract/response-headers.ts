// The response headers of the interface, as the OpenAPI document describes them.

export const HEADERS = {
  'Request-Id': text('Identifies this request in the logs; a well-formed one from the client is kept'),
  'Cache-Control': text('Always `private, no-cache`: store it, but revalidate before each use'),
  'Access-Control-Allow-Origin': text('Always `*`; only when the request has an Origin'),
  'Access-Control-Expose-Headers': text('Headers that a page may read; only when the request has an Origin'),
  Vary: text('Always `Origin`; only when the request has an Origin'),
  ETag: text('Strong validator of the body, for If-None-Match'),
  Link: text('Links to related addresses (RFC 8288)'),
  Location: text('The address of the new animal; no longer sent once getPet is removed', { format: 'uri-reference' }),
  'Idempotent-Replayed': text('`true` if this is the answer to an earlier request with the same Idempotency-Key', {
    const: 'true',
  }),
  Deprecation: text('Since when the operation is deprecated (RFC 9745)'),
  Sunset: text('When the operation is removed (RFC 8594)'),
  'WWW-Authenticate': text('The authentication scheme that is required'),
  RateLimit: text('What is left of the quota; only when a rate limit is set'),
  'RateLimit-Policy': text('The quota; only when a rate limit is set'),
  'Retry-After': { description: 'Seconds to wait before the next attempt', schema: { type: 'integer', minimum: 0 } },
}

export type HeaderName = keyof typeof HEADERS

function text(description: string, keywords: object = {}): object {
  return { description, schema: { type: 'string', ...keywords } }
}
