// The `responses` of an operation in the OpenAPI document: every status, header and error code that it really returns.
import { ERRORS, type ErrorCode, type ErrorStatus, ErrorSchema, errorBody } from './errors.ts'
import type { HeaderName } from './headers.ts'
import type { Operation } from './operation.ts'
import { COMMON_REFUSALS } from './operations.ts'

const ALWAYS: readonly HeaderName[] = [
  'Request-Id',
  'Cache-Control',
  'Access-Control-Allow-Origin',
  'Access-Control-Expose-Headers',
  'Vary',
]

const RATE: readonly HeaderName[] = ['RateLimit', 'RateLimit-Policy']

/** Refused before the rate is counted, by the order of checks. */
const BEFORE_RATE: ReadonlySet<ErrorStatus> = new Set([401, 408, 410, 417, 431])

const ERROR_HEADERS: Partial<Record<ErrorStatus, readonly HeaderName[]>> = {
  401: ['WWW-Authenticate'],
  409: ['Retry-After'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

const ERROR_DESCRIPTIONS: Record<ErrorStatus, string> = {
  400: 'The request is malformed or has invalid values',
  401: 'API key missing or invalid',
  404: 'The requested resource cannot be found',
  405: 'The method is not allowed',
  408: 'The request did not arrive in time',
  409: 'The first request with this Idempotency-Key is still running',
  410: 'The operation has been removed',
  413: 'The body is too large',
  417: 'The Expect header cannot be met',
  421: 'The host name is not one of this service',
  422: 'The Idempotency-Key was used for another body',
  429: 'Too many requests',
  431: 'The headers are too large',
  500: 'Internal error of the service',
  503: 'The service is temporarily unavailable',
}

export function responsesOf(operation: Operation): Record<string, object> {
  const { success, conditional, refusals } = operation
  const validator: readonly HeaderName[] = conditional ? ['ETag'] : []
  const own = [...validator, ...(success.headers ?? [])]
  const responses: Record<string, object> = {
    [success.status]: {
      description: success.description,
      headers: headersOf(operation, [...RATE, ...own]),
      ...(success.content && { content: { 'application/json': success.content } }),
    },
  }
  if (conditional)
    responses[304] = {
      description: 'Not modified since the ETag in If-None-Match',
      headers: headersOf(operation, [...RATE, ...own]),
    }
  const byStatus = Map.groupBy([...refusals, ...COMMON_REFUSALS], (code) => ERRORS[code].status)
  for (const [status, codes] of [...byStatus].toSorted(([a], [b]) => a - b)) {
    responses[status] = {
      description: ERROR_DESCRIPTIONS[status],
      headers: headersOf(operation, [
        'Link',
        ...(BEFORE_RATE.has(status) ? [] : RATE),
        ...(ERROR_HEADERS[status] ?? []),
      ]),
      content: {
        'application/json': {
          schema: ErrorSchema,
          examples: Object.fromEntries(codes.map((code) => [code, errorExample(code)])),
        },
      },
    }
  }
  return responses
}

function headersOf({ deprecation }: Operation, own: readonly HeaderName[]): Record<string, object> {
  const deprecated: readonly HeaderName[] = deprecation === undefined ? [] : ['Deprecation', 'Sunset', 'Link']
  return Object.fromEntries(
    [...ALWAYS, ...deprecated, ...own].map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  )
}

function errorExample(code: ErrorCode): object {
  const { cause, fix } = ERRORS[code]
  return { summary: cause, description: fix, value: errorBody(code, cause) }
}
