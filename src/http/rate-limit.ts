// The rate limit: requests per account in a window of time, counted by this instance alone. Off unless set.
import type { RateLimit } from '../config.ts'
import { Refusal } from '../contract/errors.ts'
import type { Step } from './call.ts'

/** Windows are measured with a monotonic clock: a wall clock that is set back would make one last for hours. */
export function createRateLimit(limit: RateLimit | undefined, monotonic: () => number): Step {
  if (limit === undefined) return () => undefined
  const { requests, seconds } = limit
  const windowMs = seconds * 1000
  const policy = `"default";q=${requests};w=${seconds}`
  let used = new Map<string, number>()
  let windowStart = 0

  return (request) => {
    const now = monotonic()
    if (now - windowStart >= windowMs) {
      used = new Map()
      windowStart = now - (now % windowMs)
    }
    const account = request.caller!.accountId
    const count = (used.get(account) ?? 0) + 1
    used.set(account, count)
    const reset = Math.ceil((windowStart + windowMs - now) / 1000)
    request.answerHeaders = [
      'RateLimit', `"default";r=${Math.max(requests - count, 0)};t=${reset}`,
      'RateLimit-Policy', policy,
    ]
    if (count <= requests) return undefined
    const message = `The account made more than ${requests} requests in ${seconds} s. Try again in ${reset} s.`
    return new Refusal('rate_limited', message, ['Retry-After', String(reset)])
  }
}
