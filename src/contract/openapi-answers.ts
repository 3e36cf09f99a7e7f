// What each operation can answer, for the OpenAPI document: every status, header and error code that really comes.
import { ERRORS, type ErrorCode, errorBody } from './errors.ts'
import { COMMON_REFUSALS, type Operation } from './operations.ts'

const text = { type: 'string' }

/** Headers by name: their meaning, schema, and an example. */
export const HEADERS = {
  'Request-Id': { description: 'Names this request in the logs; a sane one that came in is kept', schema: text },
  'Cache-Control': { description: 'Always `private, no-cache`: keep it, but ask before using it again', schema: text },
  'Access-Control-Allow-Origin': { description: 'Always `*`; only where an Origin came', schema: text },
  'Access-Control-Expose-Headers': { description: 'What a page may read; only where an Origin came', schema: text },
  Vary: { description: 'Always `Origin`; only where an Origin came', schema: text },
  ETag: { description: 'Strong validator of the body, for If-None-Match', schema: text },
  Link: { description: 'Links to related addresses, as in RFC 8288', schema: text },
  Location: {
    description: 'The address of the new animal; no longer sent once getPet is removed',
    schema: { type: 'string', format: 'uri-reference' },
  },
  'Idempotent-Replayed': {
    description: '`true` where this is the answer to an earlier request with the same Idempotency-Key',
    schema: { type: 'string', const: 'true' },
  },
  Deprecation: { description: 'Since when the operation is deprecated, as in RFC 9745', schema: text },
  Sunset: { description: 'When the operation is removed, as in RFC 8594', schema: text },
  'WWW-Authenticate': { description: 'The scheme that is asked for', schema: text },
  RateLimit: { description: 'What is left of the allowance; only where a rate limit is set', schema: text },
  'RateLimit-Policy': { description: 'The allowance; only where a rate limit is set', schema: text },
  'Retry-After': { description: 'Seconds to wait before the next try', schema: { type: 'integer', minimum: 0 } },
} as const

type HeaderName = keyof typeof HEADERS

const ALWAYS: HeaderName[] = ['Request-Id', 'Cache-Control']
const CROSS_ORIGIN: HeaderName[] = ['Access-Control-Allow-Origin', 'Access-Control-Expose-Headers', 'Vary']
const RATE: HeaderName[] = ['RateLimit', 'RateLimit-Policy']

function headersOf(operation: Operation, status: number): Record<string, object> {
  const names: HeaderName[] = [...ALWAYS, ...CROSS_ORIGIN, ...RATE]
  if (operation.deprecation !== undefined) names.push('Deprecation', 'Sunset', 'Link')
  if (status === 200 || status === 304) names.push('ETag', 'Link')
  if (status === 201) names.push('Location', 'Idempotent-Replayed')
  if (status === 401) names.push('WWW-Authenticate')
  if (status === 429 || status === 503 || status === 409) names.push('Retry-After')
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

const EXAMPLE_PET = { id: 42, name: 'Rex', categoryId: 3, status: 'available' }

const SUCCESSES: Record<Operation['id'], { description: string; schema: object; example: unknown }> = {
  listPets: {
    description: 'A page of animals, newest first',
    schema: { type: 'array', items: { $ref: '#/components/schemas/Pet' } },
    example: [EXAMPLE_PET, { id: 41, name: 'Mittens', categoryId: 7, status: 'sold' }],
  },
  createPet: { description: 'Animal added', schema: { $ref: '#/components/schemas/Pet' }, example: EXAMPLE_PET },
  getPet: { description: 'The animal', schema: { $ref: '#/components/schemas/Pet' }, example: EXAMPLE_PET },
}

const REFUSED: Record<number, string> = {
  400: 'The request is malformed or has invalid values',
  401: 'API key missing or invalid',
  404: 'The animal cannot be found',
  408: 'The request did not arrive in time',
  409: 'The same request is still running',
  410: 'The operation has been removed',
  413: 'The body is too large',
  417: 'The Expect header cannot be met',
  422: 'The Idempotency-Key belongs to another animal',
  429: 'Too many requests',
  431: 'The headers are too large',
  500: 'A fault of the service',
  503: 'The database is not available',
}

/** The `responses` of an operation. */
export function answersOf(operation: Operation): Record<string, object> {
  const { description, schema, example } = SUCCESSES[operation.id]
  const answers: Record<string, object> = {
    [operation.success]: {
      description,
      headers: headersOf(operation, operation.success),
      content: { 'application/json': { schema, example } },
    },
  }
  if (operation.conditional) {
    answers[304] = { description: 'Not changed since the ETag in If-None-Match', headers: headersOf(operation, 304) }
  }
  const byStatus = Map.groupBy([...operation.refusals, ...COMMON_REFUSALS], (code) => ERRORS[code].status)
  for (const status of [...byStatus.keys()].toSorted((a, b) => a - b)) {
    answers[status] = {
      description: REFUSED[status],
      headers: headersOf(operation, status),
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/Error' },
          examples: Object.fromEntries(byStatus.get(status)!.map((code) => [code, errorExample(code)])),
        },
      },
    }
  }
  return answers
}

function errorExample(code: ErrorCode): object {
  const { cause, cure } = ERRORS[code]
  return { summary: cause, description: cure, value: errorBody(code, cause) }
}
