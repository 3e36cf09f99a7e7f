// The three operations (spec, section 4): routing, checks, deprecation, OpenAPI and reference all read this table.
import { type ErrorCode } from './errors.ts'

export const VERSION = '1.0.0'
export const BASE_PATH = '/v1'

/** A deployment is one of the two; same paths, own data and keys. */
export const ENVIRONMENTS = ['production', 'staging'] as const
export type Environment = (typeof ENVIRONMENTS)[number]

/** The largest request body, in bytes. */
export const BODY_LIMIT = 16 * 1024

export const IDEMPOTENCY = { keyMaxLength: 255, keptHours: 24 } as const

export interface Deprecation {
  /** Since when, and from when on the operation is gone; milliseconds of UTC. */
  since: number
  sunset: number
  /** Relative to the base address. */
  successor: string
  /** Where people read about it, relative to the deployment's root. */
  documentation: string
}

export interface Operation {
  id: 'listPets' | 'createPet' | 'getPet'
  method: 'GET' | 'POST'
  path: string
  summary: string
  description: string
  success: 200 | 201
  /** Whether its answers carry an ETag and take If-None-Match. */
  conditional: boolean
  /** Refusals of its own, beside those that any operation can give. */
  refusals: readonly ErrorCode[]
  deprecation?: Deprecation
}

/** What any operation can answer instead of its success, in the order of checks. */
export const COMMON_REFUSALS: readonly ErrorCode[] = [
  'malformed_request',
  'headers_too_large',
  'request_timeout',
  'expectation_failed',
  'missing_api_key',
  'malformed_authorization',
  'malformed_api_key',
  'wrong_environment',
  'unknown_api_key',
  'revoked_api_key',
  'expired_api_key',
  'rate_limited',
  'internal_error',
  'store_unavailable',
]

const listPets: Operation = {
  id: 'listPets',
  method: 'GET',
  path: '/pets',
  summary: 'List animals',
  description:
    'Answers the animals of the store, newest first. While more follow, the `Link` header holds the address of the ' +
    'next page (`rel="next"`). Paging through while animals are added gives none twice and misses none of the old ones.',
  success: 200,
  conditional: true,
  refusals: ['invalid_parameter'],
}

const createPet: Operation = {
  id: 'createPet',
  method: 'POST',
  path: '/pets',
  summary: 'Add an animal',
  description:
    'Adds an animal and answers it with its `id`; by then it is stored for good. Send an `Idempotency-Key` to make ' +
    'the request safe to repeat: the same key and the same animal give the first answer again.',
  success: 201,
  conditional: false,
  refusals: [
    'missing_body',
    'unsupported_content_type',
    'invalid_json',
    'invalid_pet',
    'invalid_idempotency_key',
    'body_too_large',
    'idempotency_in_progress',
    'idempotency_key_reused',
  ],
}

const getPet: Operation = {
  id: 'getPet',
  method: 'GET',
  path: '/pets/{petId}',
  summary: 'Get an animal',
  description:
    'Answers one animal. **Deprecated: to be removed on 5 December 2030.** Use `GET /pets` with a `status` filter ' +
    'instead. From that date on the operation answers 410.',
  success: 200,
  conditional: true,
  refusals: ['pet_not_found', 'operation_removed'],
  deprecation: {
    since: Date.UTC(2026, 10, 14),
    sunset: Date.UTC(2030, 11, 5),
    successor: '/pets?status=available',
    documentation: '/docs/deprecations#getPet',
  },
}

export const OPERATIONS: readonly Operation[] = [listPets, createPet, getPet]

export function isRemoved(operation: Operation, now: number): boolean {
  return operation.deprecation !== undefined && now >= operation.deprecation.sunset
}

/** Whether an address of one animal (`/pets/{petId}`) still leads anywhere. */
export function petsHaveAddress(now: number): boolean {
  return !isRemoved(getPet, now)
}
