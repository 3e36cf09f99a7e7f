// The rate limit: requests per account in a window of time, counted by this instance alone. Off unless set. Requests are spent
// from a lease. A lone process leases all that an account has; workers lease a part at a time from the process that counts.
import type { RateLimit } from '../config.ts'
import { Refusal } from '../contract/errors.ts'
import type { OperationCall, Step } from './call.ts'

export interface Grant {
  /** Requests that may be spent until the window ends. */
  granted: number
  /** What is left for others to lease. */
  left: number
  endsInMs: number
}

/** Leases up to so many requests of an account. */
export type Lease = (account: string, wanted: number) => Grant | Promise<Grant>

/** Counts what was leased. Windows are measured with a monotonic clock: a wall clock that is set back would make one last for hours. */
export function createRateWindow(
  { requests, seconds }: RateLimit,
  monotonic: () => number,
): (account: string, wanted: number) => Grant {
  const windowMs = seconds * 1000
  let leased = new Map<string, number>()
  let windowStart = 0

  return (account, wanted) => {
    const now = monotonic()
    if (now - windowStart >= windowMs) {
      leased = new Map()
      windowStart = now - (now % windowMs)
    }
    const before = leased.get(account) ?? 0
    const granted = Math.min(wanted, requests - before)
    leased.set(account, before + granted)
    return { granted, left: requests - before - granted, endsInMs: windowStart + windowMs - now }
  }
}

/** What an account may still do here. */
interface Allowance {
  own: number
  left: number
  until: number
}

/** How much a worker leases at a time: as many requests may lie unused in each other worker when an account is refused. */
function leaseOf({ requests }: RateLimit): number {
  return Math.max(1, Math.floor(requests / 100))
}

export function createRateLimit(limit: RateLimit | undefined, monotonic: () => number, shared?: Lease): Step {
  if (limit === undefined) return () => undefined
  const { requests, seconds } = limit
  const policy = `"default";q=${requests};w=${seconds}`
  const lease = shared ?? createRateWindow(limit, monotonic)
  const wanted = shared === undefined ? requests : leaseOf(limit)
  const allowances = new Map<string, Allowance>()
  const asking = new Map<string, Promise<Allowance>>()

  /** The window ends no later than this: it is counted from before the lease was asked for, which may have taken a while. */
  function keep(account: string, { granted, left, endsInMs }: Grant, askedAt: number): Allowance {
    // Those of an earlier window are of no use any more.
    const [oldest] = allowances.values()
    if (oldest !== undefined && oldest.until <= monotonic()) allowances.clear()
    const allowance = { own: granted, left, until: askedAt + endsInMs }
    allowances.set(account, allowance)
    return allowance
  }

  function ask(account: string): Allowance | Promise<Allowance> {
    const asked = asking.get(account)
    if (asked !== undefined) return asked
    const askedAt = monotonic()
    const grant = lease(account, wanted)
    if (!(grant instanceof Promise)) return keep(account, grant, askedAt)
    const answer = grant.then((given) => keep(account, given, askedAt)).finally(() => asking.delete(account))
    asking.set(account, answer)
    return answer
  }

  function spend(call: OperationCall, allowance: Allowance): Refusal | undefined {
    const refused = allowance.own === 0
    if (!refused) allowance.own -= 1
    const reset = Math.ceil((allowance.until - monotonic()) / 1000)
    call.answerHeaders = [
      'RateLimit',
      `"default";r=${allowance.own + allowance.left};t=${reset}`,
      'RateLimit-Policy',
      policy,
    ]
    if (!refused) return undefined
    const message = `The account made more than ${requests} requests in ${seconds} s. Try again in ${reset} s.`
    return new Refusal('rate_limited', message, ['Retry-After', String(reset)])
  }

  /** Others that waited for the same lease may have spent it, or its window may have ended on the way. */
  async function spendLater(
    call: OperationCall,
    account: string,
    asked: Promise<Allowance>,
  ): Promise<Refusal | undefined> {
    let allowance = await asked
    while (!isUsable(allowance)) allowance = await ask(account)
    return spend(call, allowance)
  }

  /** Whether the allowance lets a request pass or refuses it; else more must be leased. */
  function isUsable({ own, left, until }: Allowance): boolean {
    return until > monotonic() && (own > 0 || left === 0)
  }

  return (call) => {
    const account = call.caller!.accountId
    const present = allowances.get(account)
    if (present !== undefined && isUsable(present)) return spend(call, present)
    const allowance = ask(account)
    return allowance instanceof Promise ? spendLater(call, account, allowance) : spend(call, allowance)
  }
}
