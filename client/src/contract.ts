// The contract as the client sees it. Written by `npm run openapi` of the service; changes made here are lost.

/** How every base address ends. */
export const BASE_PATH = '/v1'

/** `repeat`: whether a request may be sent again whose answer did not arrive. */
export const OPERATIONS = {
  listPets: { method: 'GET', path: '/pets', repeat: 'safe' },
  createPet: { method: 'POST', path: '/pets', repeat: 'with key' },
  getPet: { method: 'GET', path: '/pets/{petId}', repeat: 'safe' },
} as const

export type OperationId = keyof typeof OPERATIONS

/** The largest page that can be asked for. */
export const MAX_LIMIT = 100

/** Availability of the animal */
export type PetStatus = 'available' | 'pending' | 'sold'

/** What listPets can be asked for. */
export interface ListPetsQuery {
  /** Maximum number of animals returned */
  limit?: number | undefined
  /** Only animals with this status */
  status?: PetStatus | undefined
  /** Where the page starts; opaque, taken from the `Link` header of the previous page */
  cursor?: string | undefined
}

/** An animal of the store */
export interface Pet {
  /** Unique identifier, assigned by the service on creation */
  id: bigint
  /** The animal's name, kept exactly as sent */
  name: string
  /** Identifier of the category the animal belongs to */
  categoryId: bigint
  status: PetStatus
}

/** An animal to add; without a status it is available */
export interface NewPet {
  /** The animal's name, kept exactly as sent */
  name: string
  /** Identifier of the category the animal belongs to */
  categoryId: number | bigint
  status?: PetStatus | undefined
}

/** How each field goes over the wire, and whether it is always there. */
export const FIELDS = {
  Pet: {
    id: { type: 'bigint', always: true },
    name: { type: 'string', always: true },
    categoryId: { type: 'bigint', always: true },
    status: { type: 'string', always: true },
  },
  NewPet: {
    name: { type: 'string', always: true },
    categoryId: { type: 'bigint', always: true },
    status: { type: 'string', always: false },
  },
} as const satisfies { [S in keyof Schemas]: Record<keyof Schemas[S], object> }

export interface Schemas {
  Pet: Pet
  NewPet: NewPet
}

/** The codes of the errors that the service answers with; codes may be added. */
export type ErrorCode =
  | 'malformed_request'
  | 'invalid_parameter'
  | 'missing_body'
  | 'unsupported_content_type'
  | 'invalid_json'
  | 'invalid_pet'
  | 'invalid_idempotency_key'
  | 'invalid_rehearsal'
  | 'missing_api_key'
  | 'malformed_authorization'
  | 'malformed_api_key'
  | 'wrong_environment'
  | 'unknown_api_key'
  | 'revoked_api_key'
  | 'expired_api_key'
  | 'pet_not_found'
  | 'unknown_path'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'idempotency_in_progress'
  | 'operation_removed'
  | 'body_too_large'
  | 'expectation_failed'
  | 'misdirected_request'
  | 'idempotency_key_reused'
  | 'rate_limited'
  | 'headers_too_large'
  | 'internal_error'
  | 'service_unavailable'
