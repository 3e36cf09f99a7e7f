// When a failed attempt is repeated, and after how long: the whole retry policy.
import type { PetstoreError } from './errors.ts'

const FIRST_BACKOFF = 500
const LONGEST_BACKOFF = 8_000

/** Waiting longer is not for a call that someone waits for: the caller gets the error, and `retryAfter` with it. */
const LONGEST_RETRY_AFTER = 60_000

/** Gateway errors are included: they come from a proxy, and mean that the service behind it was away or busy. */
const TRANSIENT_STATUSES = new Set([408, 429, 500, 502, 503, 504])

export interface FailedAttempt {
  error: PetstoreError
  /** 1 for the first attempt of a call. */
  attempt: number
  maxRetries: number
  /** Milliseconds until the call times out. */
  timeLeft: number
}

/** Returns how many milliseconds to wait before the next attempt, or undefined if the error is final. */
export function retryDelay(
  { error, attempt, maxRetries, timeLeft }: FailedAttempt,
  random: () => number = Math.random,
): number | undefined {
  // Every operation is safe to repeat: a read changes nothing, and all attempts of a create share one Idempotency-Key,
  // so the service adds one animal however many of them it receives. What remains is whether repeating can help.
  const transient =
    // No answer, or one that broke off on its way.
    error.code === 'network_error' ||
    error.code === 'malformed_response' ||
    // An earlier attempt of this create is still running; its answer is replayed once it is done.
    error.code === 'idempotency_in_progress' ||
    TRANSIENT_STATUSES.has(error.status ?? 0)
  if (!transient || attempt > maxRetries) return undefined

  // Exponential backoff, half of it random: clients that failed together must not return together.
  const backoff = Math.min(FIRST_BACKOFF * 2 ** (attempt - 1), LONGEST_BACKOFF) * (0.5 + random() / 2)

  // A Retry-After replaces the backoff, with some randomness on top, since it tells all clients the same moment.
  const { retryAfter } = error
  const delay = retryAfter === undefined ? backoff : retryAfter + FIRST_BACKOFF * random()

  // Never wait for a timeout: an error that says what is wrong is worth more than one that says it took too long.
  if (retryAfter !== undefined && retryAfter > LONGEST_RETRY_AFTER) return undefined
  return delay < timeLeft ? delay : undefined
}

const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$/

/** Reads a Retry-After header, in seconds or a date, as milliseconds from now. Anything else is undefined. */
export function parseRetryAfter(header: string | null, now: number = Date.now()): number | undefined {
  if (header === null) return undefined
  if (/^[0-9]{1,10}$/.test(header)) return Number(header) * 1000
  // Date.parse alone takes almost anything: "-5" is a day of 2001 to V8.
  const date = HTTP_DATE.test(header) ? Date.parse(header) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
