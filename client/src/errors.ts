// The errors that a call can reject with: an error answer of the service, or the reason why no answer of the service arrived.
import type { ErrorCode } from './contract.ts'

/** Codes of the client itself, for errors that the service did not send. */
export type ClientErrorCode = 'network_error' | 'timeout' | 'unexpected_response' | 'malformed_response'

export interface ErrorFields {
  // Codes may be added within a version of the API; `string & {}` keeps code completion for the known ones.
  code: ErrorCode | ClientErrorCode | (string & {})
  message: string
  /** The HTTP status; undefined if no answer arrived. */
  status?: number | undefined
  /** Identifies the request in the logs of the service; quote it when you report a problem. */
  requestId?: string | undefined
  /** How many milliseconds the service asks to wait before the next request. */
  retryAfter?: number | undefined
  cause?: unknown
}

/** The base of all errors of this package. */
export class PetstoreError extends Error {
  static {
    this.prototype.name = 'PetstoreError'
  }
  readonly code: ErrorFields['code']
  readonly status: number | undefined
  readonly requestId: string | undefined
  readonly retryAfter: number | undefined

  constructor({ code, message, status, requestId, retryAfter, cause }: ErrorFields) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
    this.status = status
    this.requestId = requestId
    this.retryAfter = retryAfter
  }
}

/** 401: the API key is missing or invalid; the message says which and why. */
export class AuthenticationError extends PetstoreError {
  static {
    this.prototype.name = 'AuthenticationError'
  }
}

/** 404: no such animal, or nothing at this address. */
export class NotFoundError extends PetstoreError {
  static {
    this.prototype.name = 'NotFoundError'
  }
}

/** 429: the account made too many requests; retries, if any, met the limit too. */
export class RateLimitError extends PetstoreError {
  static {
    this.prototype.name = 'RateLimitError'
  }
}

/** Any other 4xx. The request must be changed before it can succeed, except after 408 and `idempotency_in_progress`. */
export class InvalidRequestError extends PetstoreError {
  static {
    this.prototype.name = 'InvalidRequestError'
  }
}

/** 5xx: the service, or a proxy in front of it, failed. */
export class ServerError extends PetstoreError {
  static {
    this.prototype.name = 'ServerError'
  }
}

/** The answer is not one of this service: a redirect, a web page, or malformed JSON. */
export class UnexpectedResponseError extends PetstoreError {
  static {
    this.prototype.name = 'UnexpectedResponseError'
  }
}

/** No answer arrived: the address is wrong, the service is down, or the connection was lost. `cause` is a copy of what fetch threw. */
export class NetworkError extends PetstoreError {
  static {
    this.prototype.name = 'NetworkError'
  }
}

/** The call took longer than its `timeout`. */
export class TimeoutError extends PetstoreError {
  static {
    this.prototype.name = 'TimeoutError'
  }
}

const BY_STATUS: Record<number, typeof PetstoreError> = {
  401: AuthenticationError,
  404: NotFoundError,
  429: RateLimitError,
}

/** Returns the error of an answer. Its class depends only on the status, so an answer with an unknown code still gets the right class. */
export function errorOfStatus(status: number, fields: ErrorFields): PetstoreError {
  const ErrorClass =
    BY_STATUS[status] ?? (status >= 500 ? ServerError : status >= 400 ? InvalidRequestError : UnexpectedResponseError)
  return new ErrorClass({ ...fields, status })
}
