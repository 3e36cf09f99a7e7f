// Every error code of the service, once: its status, its cause and its cure. The reference is made from this table.

interface ErrorKind {
  status: number
  /** What happened, as the reference tells it. */
  cause: string
  /** What the caller can do about it. */
  cure: string
}

export const ERRORS = {
  malformed_request: {
    status: 400,
    cause: 'The request breaks a rule of HTTP itself: no Host header or two of them, an unreadable header, line or chunk.',
    cure: 'Send well-formed HTTP/1.1; an ordinary HTTP client does. The message names the broken part.',
  },
  invalid_parameter: {
    status: 400,
    cause: 'A query parameter has a value that it does not take, or was given more than once.',
    cure: 'Send the parameter once, with a value that the message allows; take a cursor from the Link header unchanged.',
  },
  missing_body: {
    status: 400,
    cause: 'The operation needs a JSON body and none came.',
    cure: 'Send the animal as a JSON object, with Content-Type: application/json.',
  },
  unsupported_content_type: {
    status: 400,
    cause: 'The body came without Content-Type: application/json, in another character set than UTF-8, or compressed.',
    cure: 'Send plain UTF-8 JSON, with Content-Type: application/json and no Content-Encoding.',
  },
  invalid_json: {
    status: 400,
    cause: 'The body is not JSON, not UTF-8, or nested too deep.',
    cure: 'Check the body with a JSON parser; the message says where reading stopped.',
  },
  invalid_pet: {
    status: 400,
    cause: 'The body is JSON but no NewPet: a required field is missing, or a value is invalid.',
    cure: 'Correct the fields that the message names.',
  },
  invalid_idempotency_key: {
    status: 400,
    cause: 'The Idempotency-Key header is empty, longer than 255 characters, or was sent twice.',
    cure: 'Send one key of 1 to 255 characters, such as a UUID.',
  },
  missing_api_key: {
    status: 401,
    cause: 'The request has no Authorization header.',
    cure: 'Create an account, generate a key, and send Authorization: Bearer <API_KEY>.',
  },
  malformed_authorization: {
    status: 401,
    cause: 'The Authorization header is not of the form Bearer <API_KEY>, or was sent twice.',
    cure: 'Send exactly one header, Authorization: Bearer <API_KEY>.',
  },
  malformed_api_key: {
    status: 401,
    cause: 'The key is not of the shape that this service makes, or its checksum is wrong: a character was lost or changed.',
    cure: 'Copy the whole key again, from pets_ to its last character.',
  },
  wrong_environment: {
    status: 401,
    cause: 'The key belongs to the other environment: production takes pets_live_ keys, staging pets_test_ keys.',
    cure: 'Call the base address that the key was made for, or generate a key here.',
  },
  unknown_api_key: {
    status: 401,
    cause: 'The key is well formed, but no account of this deployment has it.',
    cure: 'Generate a new key; the account that owned this one may have been deleted.',
  },
  revoked_api_key: {
    status: 401,
    cause: 'The key was revoked.',
    cure: 'Generate a new key and use that.',
  },
  expired_api_key: {
    status: 401,
    cause: 'The expiry date of the key has passed.',
    cure: 'Generate a new key and use that.',
  },
  pet_not_found: {
    status: 404,
    cause: 'No animal has this identifier.',
    cure: 'Take the id from an answer of listPets or createPet.',
  },
  unknown_path: {
    status: 404,
    cause: 'There is nothing at this path.',
    cure: 'Check the path, without a trailing slash: the operations are /v1/pets and /v1/pets/{petId}.',
  },
  method_not_allowed: {
    status: 405,
    cause: 'The path exists, but not with this method.',
    cure: 'Use a method of the Allow header.',
  },
  request_timeout: {
    status: 408,
    cause: 'The request did not arrive whole in time.',
    cure: 'Send it again, faster or over a better connection.',
  },
  idempotency_in_progress: {
    status: 409,
    cause: 'Another request with the same Idempotency-Key is still running.',
    cure: 'Send the same request again in a few seconds: it then gets the answer of the first.',
  },
  operation_removed: {
    status: 410,
    cause: 'The operation was deprecated and has been removed on its announced date.',
    cure: 'Use the replacement that the message names.',
  },
  body_too_large: {
    status: 413,
    cause: 'The body is larger than 16 KiB.',
    cure: 'Send the animal alone; its largest valid form is far smaller.',
  },
  expectation_failed: {
    status: 417,
    cause: 'The Expect header asks for something other than 100-continue.',
    cure: 'Leave the Expect header out.',
  },
  idempotency_key_reused: {
    status: 422,
    cause: 'The Idempotency-Key was used for a different animal in the last 24 hours.',
    cure: 'Use a new key for each animal, and the same key only to repeat a request.',
  },
  rate_limited: {
    status: 429,
    cause: 'The account made more requests than this deployment allows.',
    cure: 'Wait for the seconds of Retry-After; RateLimit-Policy tells the allowance.',
  },
  headers_too_large: {
    status: 431,
    cause: 'The address and headers of the request are larger than 16 KiB.',
    cure: 'Send fewer or shorter headers, and a shorter address.',
  },
  internal_error: {
    status: 500,
    cause: 'A fault of the service.',
    cure: 'Report it with the Request-Id of the answer. With an Idempotency-Key it is safe to try again.',
  },
  store_unavailable: {
    status: 503,
    cause: 'The database cannot be reached, is busy, or has no room left.',
    cure: 'Try again after the seconds of Retry-After; add an Idempotency-Key to repeat a create safely.',
  },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof ERRORS

/** A refusal is data: what went wrong, and the headers that must tell it. It becomes an answer in http/answer.ts. */
export interface Refusal {
  code: ErrorCode
  message: string
  headers?: readonly string[]
}

export function isRefusal(value: object | undefined): value is Refusal {
  return value !== undefined && 'code' in value
}

export const ErrorSchema = {
  type: 'object',
  description: 'What went wrong',
  required: ['code', 'message', 'status'],
  properties: {
    code: { type: 'string', enum: Object.keys(ERRORS), description: 'Machine-readable error code' },
    message: { type: 'string', description: 'Human-readable description' },
    status: { type: 'integer', description: 'The HTTP status code' },
  },
} as const

export interface ErrorBody {
  code: ErrorCode
  message: string
  status: number
}

export function errorBody(code: ErrorCode, message: string): ErrorBody {
  return { code, message, status: ERRORS[code].status }
}
