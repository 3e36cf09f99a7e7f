// Throttles password guessing and sign-ups: limits the wrong passwords by address, account and session, and the sign-ups by
// address. Counts tries by name (an account, an address) in time windows, in the memory of this process, which is bounded. With
// workers each process counts for itself, with its share of each limit (`shareOf`).
import { hash } from 'node:crypto'
import { Problem } from '../contract/errors.ts'
import { foldName } from '../contract/text/fold-name.ts'

export interface TryLimit {
  tries: number
  withinMs: number
}

export const SIGN_UP_BY_ADDRESS: TryLimit = { tries: 20, withinMs: 3_600_000 }

const PASSWORDS_WITHIN_MS = 15 * 60_000

/** High enough for the people of an office who share one address. */
export const SIGN_IN_BY_ADDRESS: TryLimit = { tries: 50, withinMs: PASSWORDS_WITHIN_MS }

/** A person mistypes a few times; a program tries thousands. Counted per pair, so that a stranger elsewhere can't lock the owner out. */
export const SIGN_IN_BY_ACCOUNT_AND_ADDRESS: TryLimit = { tries: 10, withinMs: PASSWORDS_WITHIN_MS }

/** Limits guesses at one account from many addresses. Higher, because reaching this limit locks out the account's owner. */
export const SIGN_IN_BY_ACCOUNT: TryLimit = { tries: 100, withinMs: PASSWORDS_WITHIN_MS }

/** Limits a signed-in person who confirms the current password, for example to change it. */
export const PASSWORD_BY_SESSION: TryLimit = { tries: 10, withinMs: PASSWORDS_WITHIN_MS }

/** Apart from passwords: a page of another site can make its visitors open links that do not work, but not try passwords. */
export const LINKS_BY_ADDRESS: TryLimit = { tries: 50, withinMs: PASSWORDS_WITHIN_MS }

/** The smallest share of a process: a person may mistype this often on one connection. */
const LEAST_TRIES = 10

const MOST_NAMES = 20_000

/** The refusal of a try; the next one is allowed after `waitMs` milliseconds. */
export class TooManyTries extends Problem {
  readonly waitMs: number
  constructor(message: string, waitMs: number) {
    super(message)
    this.waitMs = waitMs
  }
}

interface Window {
  since: number
  tries: number
}

export class Throttle {
  readonly #limit: TryLimit
  readonly #monotonic: () => number
  /** Windows by the hash of the name, in the order in which they began, and so end. */
  readonly #windows = new Map<string, Window>()

  constructor(limit: TryLimit, monotonic: () => number) {
    this.#limit = limit
    this.#monotonic = monotonic
  }

  /** Returns the milliseconds to wait before the next try, 0 if it is allowed now. */
  waitMs(name: string): number {
    const window = this.#windows.get(hashOf(name))
    if (window === undefined || window.tries < this.#limit.tries) return 0
    return Math.max(0, window.since + this.#limit.withinMs - this.#monotonic())
  }

  /** Counts a try. Call it before the password is compared, so that parallel tries can't exceed the limit. */
  count(name: string): void {
    const key = hashOf(name)
    const current = this.#windows.get(key)
    const since = this.#monotonic()
    if (current !== undefined && !this.#hasEnded(current, since)) {
      current.tries = Math.min(current.tries + 1, this.#limit.tries)
      return
    }
    this.#windows.delete(key)
    if (this.#hasRoom(since)) this.#windows.set(key, { since, tries: 1 })
  }

  /** Takes back one count, for a try with the right password or one whose password was not compared. */
  uncount(name: string): void {
    const key = hashOf(name)
    const window = this.#windows.get(key)
    if (window === undefined) return
    if (window.tries > 1) window.tries -= 1
    else this.#windows.delete(key)
  }

  forget(name: string): void {
    this.#windows.delete(hashOf(name))
  }

  #hasEnded({ since }: Window, now: number): boolean {
    return now - since >= this.#limit.withinMs
  }

  /**
   * Makes room if there are too many windows: removes one that has ended, else one with the fewest tries, but never a
   * throttled one, so that a flood of new names lifts no throttle. Returns false, to leave the new name uncounted, if all
   * names are throttled. A walk through all of them takes 0.3 ms, the password hash of a try at least 30 ms.
   */
  #hasRoom(now: number): boolean {
    if (this.#windows.size < MOST_NAMES) return true
    let found: string | undefined
    let fewest = this.#limit.tries
    for (const [key, window] of this.#windows) {
      const tries = this.#hasEnded(window, now) ? 0 : window.tries
      if (tries < fewest) [found, fewest] = [key, tries]
      if (fewest <= 1) break
    }
    return found !== undefined && this.#windows.delete(found)
  }
}

/** Hashes a name, which a client sent: every hash takes the same memory, and no email address is kept. */
function hashOf(name: string): string {
  return hash('sha256', name, 'base64url')
}

/** A client usually controls a whole IPv6 /64, so count by /64. */
export function addressGroup(address: string): string {
  const v4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (v4 !== undefined) return v4
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => '0')
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`
}

/** Who tries a password, a link or a sign-up: a client at sign-in, a signed-in person, or the client at an address. */
export type Trier = { email: string; address: string } | { session: string } | { link: string } | { signUp: string }

export interface Throttles {
  /** Counts a try as if it fails, a sign-up as if it succeeds, and returns 0; returns the milliseconds to wait if it is refused. */
  takeTry: (trier: Trier) => number
  /** Call it if the password was right: takes back this try, and the earlier tries of the same person. */
  passwordWasRight: (trier: Trier) => void
  /** Call it if the password was not compared, or no account was created: takes back this try. */
  cancelTry: (trier: Trier) => void
}

/** Divides a limit among the processes, since a client's connections may reach all of them. */
function shareOf({ tries, withinMs }: TryLimit, processes: number): TryLimit {
  return { tries: Math.max(LEAST_TRIES, Math.floor(tries / processes)), withinMs }
}

type Counter = readonly [Throttle, name: string]

/** Creates the throttles of one of the `processes` of an instance. */
export function createThrottles(monotonic: () => number, processes: number): Throttles {
  const create = (limit: TryLimit) => new Throttle(shareOf(limit, processes), monotonic)
  const byAddress = create(SIGN_IN_BY_ADDRESS)
  const byAccount = create(SIGN_IN_BY_ACCOUNT)
  const byAccountAndAddress = create(SIGN_IN_BY_ACCOUNT_AND_ADDRESS)
  const bySession = create(PASSWORD_BY_SESSION)
  const links = create(LINKS_BY_ADDRESS)
  const signUps = create(SIGN_UP_BY_ADDRESS)

  /** Returns the counters of a trier: those shared with other people or accounts, and the person's own. */
  function countersOf(trier: Trier): { shared: Counter[]; own: Counter } {
    if ('session' in trier) return { shared: [], own: [bySession, trier.session] }
    if ('signUp' in trier) return { shared: [], own: [signUps, addressGroup(trier.signUp)] }
    if ('link' in trier) return { shared: [], own: [links, addressGroup(trier.link)] }
    const [account, group] = [foldName(trier.email), addressGroup(trier.address)]
    const shared: Counter[] = [
      [byAddress, group],
      [byAccount, account],
    ]
    return { shared, own: [byAccountAndAddress, `${account} ${group}`] }
  }

  return {
    takeTry(trier) {
      const { shared, own } = countersOf(trier)
      const counters = [...shared, own]
      const waitMs = counters.map(([throttle, name]) => throttle.waitMs(name)).find((wait) => wait > 0)
      // A refused try increments no counter: a throttled address would otherwise lock out every account that it names.
      if (waitMs !== undefined) return waitMs
      for (const [throttle, name] of counters) throttle.count(name)
      return 0
    },
    passwordWasRight(trier) {
      const { shared, own } = countersOf(trier)
      for (const [throttle, name] of shared) throttle.uncount(name)
      own[0].forget(own[1])
    },
    cancelTry(trier) {
      const { shared, own } = countersOf(trier)
      for (const [throttle, name] of [...shared, own]) throttle.uncount(name)
    },
  }
}
