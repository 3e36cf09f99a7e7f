// Limits the requests per account in a window of time; answers 429. Each process counts for itself, as each instance does.
import type { RateLimit } from '../../config.ts'
import { Refusal } from '../../contract/errors.ts'
import type { Step } from '../call/call.ts'

/** Its windows need a monotonic clock: a wall clock that is set back could make one last for hours. */
export function createRateLimit({ requests, seconds }: RateLimit, monotonic: () => number): Step {
  const windowMs = seconds * 1000
  const policy = `"default";q=${requests};w=${seconds}`
  let leftByAccount = new Map<string, number>()
  let windowStart = 0

  return (call) => {
    const now = monotonic()
    if (now - windowStart >= windowMs) {
      leftByAccount = new Map()
      windowStart = now - (now % windowMs)
    }
    const account = call.caller!.accountId
    const before = leftByAccount.get(account) ?? requests
    const left = Math.max(0, before - 1)
    leftByAccount.set(account, left)
    const reset = Math.max(1, Math.ceil((windowStart + windowMs - now) / 1000))
    call.answerHeaders = ['RateLimit', `"default";r=${left};t=${reset}`, 'RateLimit-Policy', policy]
    if (before > 0) return undefined
    const message = `The account made more than ${requests} requests in ${seconds} s. Try again in ${reset} s.`
    return new Refusal('rate_limited', message, ['Retry-After', String(reset)])
  }
}
