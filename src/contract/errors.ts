// The table of error codes, each with its status, cause and fix; the reference is generated from it. Below it, what a function
// returns instead of its value if it refuses its input.
import { BODY_LIMIT, HEADERS_LIMIT, IDEMPOTENCY, kibibytes } from './limits.ts'

interface ErrorKind {
  status: number
  /** What happened, for the reference. */
  cause: string
  /** What the caller can do about it. */
  fix: string
}

export const ERRORS = {
  malformed_request: {
    status: 400,
    cause:
      'The request breaks a rule of HTTP itself: no Host header or two of them, an unreadable header, line or chunk.',
    fix: 'Send well-formed HTTP/1.1, as any ordinary HTTP client does. The message names the broken part.',
  },
  invalid_parameter: {
    status: 400,
    cause: 'A query parameter has an invalid value, or was given more than once.',
    fix: 'Send the parameter once, with a value that the message allows; take a cursor from the Link header unchanged.',
  },
  missing_body: {
    status: 400,
    cause: 'The operation needs a JSON body and the request has none.',
    fix: 'Send a JSON object as the body, with Content-Type: application/json.',
  },
  unsupported_content_type: {
    status: 400,
    cause: 'The body has no Content-Type: application/json, is in a character set other than UTF-8, or is compressed.',
    fix: 'Send plain UTF-8 JSON, with Content-Type: application/json and no Content-Encoding.',
  },
  invalid_json: {
    status: 400,
    cause: 'The body is not valid JSON, not UTF-8, or nested too deep.',
    fix: 'Check the body with a JSON parser; the message says where parsing stopped.',
  },
  invalid_pet: {
    status: 400,
    cause: 'The body is JSON but not a NewPet: a required field is missing, or a value is invalid.',
    fix: 'Correct the fields that the message names.',
  },
  invalid_idempotency_key: {
    status: 400,
    cause: `The Idempotency-Key header is empty, longer than ${IDEMPOTENCY.keyMaxLength} characters, or was sent twice.`,
    fix: `Send one key of 1 to ${IDEMPOTENCY.keyMaxLength} characters, such as a UUID.`,
  },
  invalid_rehearsal: {
    status: 400,
    cause: 'The Petstore-Rehearse header, which staging understands, asks for something that cannot be rehearsed.',
    fix: 'Send one of the values that the message lists, or leave the header out.',
  },
  missing_api_key: {
    status: 401,
    cause: 'The request has no Authorization header.',
    fix: 'Create an account and generate a key in the console, at / of this service, and send Authorization: Bearer <API_KEY>.',
  },
  malformed_authorization: {
    status: 401,
    cause: 'The Authorization header does not have the form Bearer <API_KEY>, or was sent twice.',
    fix: 'Send exactly one header, Authorization: Bearer <API_KEY>.',
  },
  malformed_api_key: {
    status: 401,
    cause:
      'The key does not have the form of a key of this service, or its checksum is wrong: a character was lost or changed.',
    fix: 'Copy the whole key again, from pets_ to its last character.',
  },
  wrong_environment: {
    status: 401,
    cause: 'The key belongs to the other environment: production takes pets_live_ keys, staging pets_test_ keys.',
    fix: 'Call the base address that the key was made for, or generate a key here.',
  },
  unknown_api_key: {
    status: 401,
    cause: 'The key is well formed, but no account of this deployment has it.',
    fix: 'Generate a new key; the account that owned this one may have been deleted.',
  },
  revoked_api_key: {
    status: 401,
    cause: 'The key was revoked, or its account has no right to keys.',
    fix: 'Generate a new key and use that; a manager of the store gives the right to keys.',
  },
  expired_api_key: {
    status: 401,
    cause: 'The key has expired.',
    fix: 'Generate a new key and use that.',
  },
  pet_not_found: {
    status: 404,
    cause: 'No animal has this identifier.',
    fix: 'Take the id from a response of listPets or createPet.',
  },
  unknown_path: {
    status: 404,
    cause: 'There is nothing at this path.',
    fix: 'Check the path, without a trailing slash; the message lists the paths of the operations.',
  },
  method_not_allowed: {
    status: 405,
    cause: 'The path exists, but not with this method.',
    fix: 'Use a method of the Allow header.',
  },
  request_timeout: {
    status: 408,
    cause: 'The request did not arrive completely in time.',
    fix: 'Send it again, faster or over a better connection.',
  },
  idempotency_in_progress: {
    status: 409,
    cause: 'Another request with the same Idempotency-Key is still running.',
    fix: 'Send the same request again in a few seconds: it then gets the answer of the first.',
  },
  operation_removed: {
    status: 410,
    cause: 'The operation was deprecated and has been removed on its announced date.',
    fix: 'Use the replacement that the message names.',
  },
  body_too_large: {
    status: 413,
    cause: `The body is larger than ${kibibytes(BODY_LIMIT)}.`,
    fix: 'Send a smaller body: the largest valid one is far smaller than this limit.',
  },
  expectation_failed: {
    status: 417,
    cause: 'The Expect header asks for something other than 100-continue.',
    fix: 'Leave the Expect header out.',
  },
  misdirected_request: {
    status: 421,
    cause:
      'The console or the admin port was called under a host name that is not its own, while only its own machine reaches it.',
    fix: 'Call it at an IP address or localhost; to serve the console under a name, configure its base address.',
  },
  idempotency_key_reused: {
    status: 422,
    cause: `The Idempotency-Key was used for a different body in the last ${IDEMPOTENCY.keptHours} hours.`,
    fix: 'Use a new key for each new resource, and the same key only to retry the same request.',
  },
  rate_limited: {
    status: 429,
    cause: 'The account made more requests than this deployment allows.',
    fix: 'Wait for the number of seconds in Retry-After; RateLimit-Policy states the quota.',
  },
  headers_too_large: {
    status: 431,
    cause: `The address and headers of the request are larger than ${kibibytes(HEADERS_LIMIT)}.`,
    fix: 'Send fewer or shorter headers, and a shorter address.',
  },
  internal_error: {
    status: 500,
    cause: 'The service failed to handle the request; this is a bug.',
    fix: 'Report it with the Request-Id of the response. With an Idempotency-Key it is safe to retry.',
  },
  service_unavailable: {
    status: 503,
    cause: 'The database cannot be reached, is busy, or has no space left.',
    fix: 'Retry after the number of seconds in Retry-After; send an Idempotency-Key to retry a create safely.',
  },
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof ERRORS
export type ErrorStatus = (typeof ERRORS)[ErrorCode]['status']

export const ErrorSchema = {
  title: 'Error',
  type: 'object',
  description: 'Why a request failed',
  required: ['code', 'message', 'status'],
  properties: {
    code: {
      type: 'string',
      description: 'Machine-readable error code. Codes may be added: treat an unknown one by its status.',
      examples: Object.keys(ERRORS),
    },
    message: { type: 'string', description: 'Human-readable description' },
    status: { type: 'integer', description: 'The HTTP status code' },
  },
} as const

export type ErrorBody = ReturnType<typeof errorBody>

export function errorBody(code: ErrorCode, message: string): { code: ErrorCode; message: string; status: number } {
  return { code, message, status: ERRORS[code].status }
}

/** Returns the Link header of an error to its documentation; `root` is the deployment's public address, if configured. */
export function helpLink(code: ErrorCode, root = ''): string {
  return `<${root}/docs/errors#${code}>; rel="help"`
}

/**
 * The result of a function that refuses its input: such a function returns its value or a `Problem`, and callers test with
 * `instanceof Problem`.
 */
export class Problem {
  /** A whole sentence for the client or operator. */
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** One field of a form or body has an invalid value; `field` is empty if the problem is the whole form or body. */
export class FieldProblem extends Problem {
  readonly field: string
  constructor(field: string, message: string) {
    super(message)
    this.field = field
  }
}

export class InvalidFields extends Problem {
  readonly problems: readonly FieldProblem[]
  constructor(problems: readonly FieldProblem[]) {
    super(problems.map(({ message }) => message).join(' '))
    this.problems = problems
  }
}

/** The refusal of a request, as data; http/answers/content.ts turns it into a response. */
export class Refusal extends Problem {
  readonly code: ErrorCode
  /** Headers that the response must carry, as alternating names and values. */
  readonly headers: readonly string[]
  constructor(code: ErrorCode, message: string, headers: readonly string[] = []) {
    super(message)
    this.code = code
    this.headers = headers
  }
}
