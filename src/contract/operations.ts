// The table of the interface's operations (spec, section 4), each a self-contained entry. Routing, Allow, the OpenAPI document,
// the reference, the welcome page and the tests of every operation read it.
import type { ErrorCode } from './errors.ts'
import { int64Schema } from './int64.ts'
import { IDEMPOTENCY } from './limits.ts'
import { LIST_PARAMETERS } from './list-query.ts'
import { exampleNewPet, NewPetSchema, PetSchema } from './pets.ts'

/** The version of the interface (spec, section 9); `VERSION` is the program's. */
export const INTERFACE_VERSION = '1.0.0'
export const VERSION = '1.0.0'
export const BASE_PATH = '/v1'

/** The errors of any operation, as the reference lists them. */
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
  'invalid_rehearsal',
  'rate_limited',
  'internal_error',
  'service_unavailable',
]

/** The response headers of the interface, as the OpenAPI document describes them. */
export const HEADERS = {
  'Request-Id': text('Identifies this request in the logs; a well-formed one from the client is kept'),
  'Cache-Control': text('Always `private, no-cache`: store it, but revalidate before each use'),
  'X-Content-Type-Options': text('Always `nosniff`: the body is of the type that Content-Type names'),
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

export const EXAMPLE_PET = { id: 42, ...exampleNewPet(0) }

const listPets = {
  id: 'listPets',
  method: 'GET',
  path: '/pets',
  repeat: 'safe',
  tag: 'Pets',
  summary: 'List animals',
  description:
    "Returns the store's animals, newest first. While more follow, the `Link` header holds the address of the next page " +
    '(`rel="next"`). Paging while animals are being added returns none twice and misses none of the older ones.',
  parameters: LIST_PARAMETERS,
  success: {
    status: 200,
    description: 'A page of animals, newest first',
    content: {
      schema: { type: 'array', items: PetSchema },
      example: [EXAMPLE_PET, { id: 41, ...exampleNewPet(1) }],
    },
    headers: ['Link'],
  },
  refusals: ['invalid_parameter'],
} as const satisfies Operation

const createPet = {
  id: 'createPet',
  method: 'POST',
  path: '/pets',
  repeat: 'with key',
  tag: 'Pets',
  summary: 'Add an animal',
  description:
    'Adds an animal and returns it with its `id`; by then it is stored durably. Send an `Idempotency-Key` to make the ' +
    'request safe to retry: the same key and the same animal return the first answer again.',
  parameters: [
    {
      name: 'Idempotency-Key',
      in: 'header',
      description: `Makes the request safe to retry for ${IDEMPOTENCY.keptHours} hours; quoted or not`,
      schema: { type: 'string', minLength: 1, maxLength: IDEMPOTENCY.keyMaxLength },
      example: '7d1f5c2e-3a54-4f0e-9f0b-5c1f3f3d8a10',
    },
  ],
  body: { schema: NewPetSchema, example: exampleNewPet(0), invalid: 'invalid_pet' },
  success: {
    status: 201,
    description: 'Animal added',
    content: { schema: PetSchema, example: EXAMPLE_PET },
    headers: ['Location', 'Idempotent-Replayed'],
  },
  refusals: ['invalid_idempotency_key', 'idempotency_in_progress', 'idempotency_key_reused'],
} as const satisfies Operation

const getPet = {
  id: 'getPet',
  method: 'GET',
  path: '/pets/{petId}',
  repeat: 'safe',
  tag: 'Pets',
  summary: 'Get an animal',
  description: 'Returns one animal.',
  parameters: [
    {
      name: 'petId',
      in: 'path',
      required: true,
      description: 'Identifier of the animal',
      schema: int64Schema,
      // Usually the first animal of a store has this id, so that a tool that sends the example finds an animal.
      example: 1,
    },
  ],
  success: { status: 200, description: 'The animal', content: { schema: PetSchema, example: EXAMPLE_PET } },
  refusals: ['pet_not_found', 'operation_removed'],
  deprecation: {
    since: Date.UTC(2026, 10, 14),
    sunset: Date.UTC(2030, 11, 5),
    successor: '/pets?status=available',
    advice: 'Use `GET /pets` with a `status` filter instead.',
    guide:
      'List the animals with the status that you need, and find yours by its id. The list is newest first; follow the Link ' +
      'header with rel="next" for the next page. It has the same fields as this operation. From the removal date on, the ' +
      'response to an added animal has no Location header.',
    documentation: '/docs/deprecations#getPet',
  },
} as const satisfies Operation

const ENTRIES = [listPets, createPet, getPet] as const

export type OperationId = (typeof ENTRIES)[number]['id']

export const OPERATIONS: readonly (Operation & { id: OperationId })[] = ENTRIES.map(withBodyRefusals)

/** Adds the errors of reading a body (http/body.ts). */
function withBodyRefusals<T extends Operation>(operation: T): T {
  if (operation.body === undefined) return operation
  const ofBody: ErrorCode[] = ['missing_body', 'unsupported_content_type', 'invalid_json', operation.body.invalid]
  return { ...operation, refusals: [...ofBody, ...operation.refusals, 'body_too_large'] }
}

/** Whether `/pets/{petId}`, the address of an animal, is still served. */
export function petsHaveAddress(now: number): boolean {
  return !isRemoved(getPet, now)
}

export interface Operation {
  id: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Relative to the base path; a parameter is a whole segment, such as `{petId}`. */
  path: string
  /**
   * Whether a client that got no answer may send the request again: `safe` changes nothing, `idempotent` nothing more the second
   * time, `with key` nothing more with the same Idempotency-Key. The client's retries and the tools at /mcp read it.
   */
  repeat: 'safe' | 'idempotent' | 'with key' | 'never'
  tag: keyof typeof TAGS
  summary: string
  description: string
  parameters: readonly Parameter[]
  body?: Content & {
    /** The error code of a body that is valid JSON but does not match the schema. */
    invalid: ErrorCode
  }
  success: Success
  /** Errors of this operation, besides those of any operation and those of reading a body. */
  refusals: readonly ErrorCode[]
  deprecation?: Deprecation
}

/** The groups of the reference. */
export const TAGS = { Pets: 'The animals of the store' } as const

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description: string
  schema: object
  example: unknown
}

export interface Content {
  /** A schema with a title becomes a component of the OpenAPI document. */
  schema: object
  example: unknown
}

interface Success {
  status: 200 | 201 | 204
  description: string
  /** Undefined if the response has no body. */
  content?: Content
  /** Headers of this response, besides those of every response. */
  headers?: readonly HeaderName[]
}

export interface Deprecation {
  /** When the operation was deprecated, and when it is removed, in milliseconds since the epoch. */
  since: number
  sunset: number
  /** The path to call instead, relative to the base address, and the sentence that recommends it. */
  successor: string
  advice: string
  guide: string
  /** The page that documents the deprecation, relative to the deployment's root. */
  documentation: string
}

export function isRemoved({ deprecation }: Operation, now: number): boolean {
  return deprecation !== undefined && now >= deprecation.sunset
}

/** Returns the path with the example of each parameter, such as `/pets/1`. */
export function examplePath({ path, parameters }: Operation): string {
  return parameters.reduce((filled, { name, example }) => filled.replace(`{${name}}`, String(example)), path)
}

// Written out, because loading Intl would take more time at each start than the whole console.
const MONTHS = 'January February March April May June July August September October November December'.split(' ')

/** Formats a date in UTC, such as "5 December 2030". */
export function longDate(at: number): string {
  const date = new Date(at)
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`
}
