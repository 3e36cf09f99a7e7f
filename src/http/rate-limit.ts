// Limits the requests per account in a window of time; answers 429. A process leases requests before it serves
// them: a single process leases the whole limit at once; with workers, each process leases a part at a time from the first process.
import type { RateLimit } from '../config.ts'
import { Refusal } from '../contract/errors.ts'
import type { OperationCall, Step } from './call.ts'

interface Grant {
  /** How many requests the process may serve until the window ends. */
  granted: number
  /** How many requests are left to lease. */
  left: number
  /** When the window began, by the clock of the process that grants: tells one window from another. */
  windowStart: number
  endsInMs: number
}

/** Leases at most `wanted` requests of an account. */
export type Lease = (account: string, wanted: number) => Grant | Promise<Grant>

/** Counts leased requests. Its windows need a monotonic clock: a wall clock that is set back could make one last for hours. */
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
    return { granted, left: requests - before - granted, windowStart, endsInMs: windowStart + windowMs - now }
  }
}

/** The lease of an account in this process: `own` requests are unused, `left` can still be leased. */
interface AccountLease {
  own: number
  left: number
  windowStart: number
  until: number
}

export function createRateLimit(limit: RateLimit, monotonic: () => number, shared?: Lease): Step {
  const { requests, seconds } = limit
  const policy = `"default";q=${requests};w=${seconds}`
  const lease = shared ?? createRateWindow(limit, monotonic)
  // With several processes, each leases a hundredth of the limit at a time. So each other process has at most that many
  // requests unused when one process refuses an account; at the end of a window it can be a few leases.
  const wanted = shared === undefined ? requests : Math.max(1, Math.floor(requests / 100))
  const accountLeases = new Map<string, AccountLease>()
  const pendingLeases = new Map<string, Promise<AccountLease>>()

  /**
   * Stores a grant. Its end is counted from `askedAt`, before the lease was asked for, so it is never later than the window's.
   * It can be earlier: then the unused requests of the same window are added to the new grant. Grants must arrive in the order
   * in which they were made, as messages between two processes do: a late one of an earlier window would drop those of the next.
   */
  function keep(account: string, { granted, left, windowStart, endsInMs }: Grant, askedAt: number): AccountLease {
    // Drops the leases of an earlier window.
    const [oldest] = accountLeases.values()
    if (oldest !== undefined && oldest.windowStart !== windowStart) accountLeases.clear()
    const unused = accountLeases.get(account)?.own ?? 0
    const accountLease = { own: granted + unused, left, windowStart, until: askedAt + endsInMs }
    accountLeases.set(account, accountLease)
    return accountLease
  }

  function ask(account: string): AccountLease | Promise<AccountLease> {
    const pending = pendingLeases.get(account)
    if (pending !== undefined) return pending
    const askedAt = monotonic()
    const grant = lease(account, wanted)
    if (!(grant instanceof Promise)) return keep(account, grant, askedAt)
    const accountLease = grant
      .then((given) => keep(account, given, askedAt))
      .finally(() => pendingLeases.delete(account))
    pendingLeases.set(account, accountLease)
    return accountLease
  }

  function spend(call: OperationCall, accountLease: AccountLease): Refusal | undefined {
    const refused = accountLease.own === 0
    if (!refused) accountLease.own -= 1
    const reset = Math.max(1, Math.ceil((accountLease.until - monotonic()) / 1000))
    call.answerHeaders = [
      'RateLimit',
      `"default";r=${accountLease.own + accountLease.left};t=${reset}`,
      'RateLimit-Policy',
      policy,
    ]
    if (!refused) return undefined
    const message = `The account made more than ${requests} requests in ${seconds} s. Try again in ${reset} s.`
    return new Refusal('rate_limited', message, ['Retry-After', String(reset)])
  }

  /** Waits for a lease, and for another if other requests have spent it or its window has ended meanwhile. */
  async function spendLater(call: OperationCall, asked: Promise<AccountLease>): Promise<Refusal | undefined> {
    let accountLease = await asked
    while (!isUsable(accountLease)) accountLease = await ask(call.caller!.accountId)
    return spend(call, accountLease)
  }

  /** Returns whether the lease decides a request. If not, more must be leased. */
  function isUsable({ own, left, until }: AccountLease): boolean {
    return until > monotonic() && (own > 0 || left === 0)
  }

  return (call) => {
    const account = call.caller!.accountId
    const present = accountLeases.get(account)
    if (present !== undefined && isUsable(present)) return spend(call, present)
    const accountLease = ask(account)
    return accountLease instanceof Promise ? spendLater(call, accountLease) : spend(call, accountLease)
  }
}
