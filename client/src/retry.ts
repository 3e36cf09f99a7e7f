// The retry policy: which failed attempts are retried, and after which delay.
import type { PetstoreError } from './errors.ts'

const FIRST_BACKOFF = 500
const LONGEST_BACKOFF = 8_000

/** A longer Retry-After is not waited for: the caller gets the error with its `retryAfter`. */
const LONGEST_RETRY_AFTER = 60_000

/** Includes gateway errors: a proxy sends them when the service behind it is unavailable or busy. */
const TRANSIENT_STATUSES = new Set([408, 429, 500, 502, 503, 504])

/** The service refuses a request with it before it does anything. */
const NOTHING_DONE = 429

export interface FailedAttempt {
  error: PetstoreError
  /** Whether a second request does no harm where the first was carried out but its answer was lost. */
  isRepeatable: boolean
  /** 1 for the first attempt of a call. */
  attempt: number
  maxRetries: number
  /** Milliseconds until the call times out. */
  timeLeft: number
}

/** Returns how many milliseconds to wait before the next attempt, or undefined if the error is final. */
export function retryDelay(
  { error, isRepeatable, attempt, maxRetries, timeLeft }: FailedAttempt,
  random: () => number = Math.random,
): number | undefined {
  const transient =
    // No answer arrived, or an incomplete one.
    error.code === 'network_error' ||
    error.code === 'malformed_response' ||
    // An earlier attempt of this create is still running; the service replays its answer when it is done.
    error.code === 'idempotency_in_progress' ||
    TRANSIENT_STATUSES.has(error.status ?? 0)
  if (!transient || attempt > maxRetries || (!isRepeatable && error.status !== NOTHING_DONE)) return undefined

  // Exponential backoff, half of it random: clients that failed together must not retry together.
  const backoff = Math.min(FIRST_BACKOFF * 2 ** (attempt - 1), LONGEST_BACKOFF) * (0.5 + random() / 2)

  // A Retry-After replaces the backoff. Adds some randomness, because all clients get the same Retry-After.
  const { retryAfter } = error
  const delay = retryAfter === undefined ? backoff : retryAfter + FIRST_BACKOFF * random()

  if (retryAfter !== undefined && retryAfter > LONGEST_RETRY_AFTER) return undefined
  // Never waits until the timeout: the error of the last attempt says more than a TimeoutError.
  return delay < timeLeft ? delay : undefined
}

const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$/

/** Returns the milliseconds until the moment of a Retry-After header (seconds or a date), or undefined if it is malformed. */
export function parseRetryAfter(header: string | null, now: number = Date.now()): number | undefined {
  if (header === null) return undefined
  if (/^[0-9]{1,10}$/.test(header)) return Number(header) * 1000
  // Date.parse alone accepts almost anything: V8 reads "-5" as a day in 2001.
  const date = HTTP_DATE.test(header) ? Date.parse(header) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** Whether an attempt that failed like this may have been carried out. */
export function mayBeDone({ status }: PetstoreError): boolean {
  return status !== NOTHING_DONE
}
