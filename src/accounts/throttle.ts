// Throttles password guessing and sign-ups: limits the wrong passwords of an address, an account and a session, and the
// sign-ups of an address. Counts tries by name (an account, an address) in time windows, in this process, in bounded memory.
import { hash } from 'node:crypto'
import { Refused } from '../contract/errors.ts'
import { foldEmail } from '../store/account-store.ts'

export interface Allowance {
  tries: number
  withinMs: number
}

export const SIGN_UP_BY_ADDRESS: Allowance = { tries: 20, withinMs: 3_600_000 }

const PASSWORDS_WITHIN_MS = 15 * 60_000

/** High enough for an office whose people share one address. */
export const SIGN_IN_BY_ADDRESS: Allowance = { tries: 50, withinMs: PASSWORDS_WITHIN_MS }

/** A person mistypes a few times; a program tries thousands. Counts each pair, so that no other address can use up these tries. */
export const SIGN_IN_BY_ACCOUNT_AND_ADDRESS: Allowance = { tries: 10, withinMs: PASSWORDS_WITHIN_MS }

/** Limits guesses at one account from many addresses. Higher, because reaching this limit locks out the account's owner. */
export const SIGN_IN_BY_ACCOUNT: Allowance = { tries: 100, withinMs: PASSWORDS_WITHIN_MS }

/** Limits a signed-in person who confirms the current password, for example to change it. Tries at sign-in do not count here. */
export const PASSWORD_BY_SESSION: Allowance = { tries: 10, withinMs: PASSWORDS_WITHIN_MS }

const NAMES_KEPT = 20_000

/** Refuses a try until `waitMs` milliseconds have passed. */
export class TooManyTries extends Refused {
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
  readonly #allowance: Allowance
  readonly #monotonic: () => number
  /** Windows by the hash of the name, in the order in which they start and therefore end. */
  readonly #windows = new Map<string, Window>()
  /** The same hashes by the number of tries, to find the one with the fewest tries without a search. */
  readonly #byTries: readonly Set<string>[]

  constructor(allowance: Allowance, monotonic: () => number) {
    this.#allowance = allowance
    this.#monotonic = monotonic
    this.#byTries = Array.from({ length: allowance.tries + 1 }, () => new Set())
  }

  /** Returns the milliseconds to wait before the next try, 0 if it may go ahead. */
  waitMs(name: string): number {
    const window = this.#windows.get(hashOf(name))
    if (window === undefined || window.tries < this.#allowance.tries) return 0
    return Math.max(0, window.since + this.#allowance.withinMs - this.#monotonic())
  }

  /** Counts a try if it may go ahead, and returns the milliseconds to wait if not. */
  take(name: string): number {
    const waitMs = this.waitMs(name)
    if (waitMs === 0) this.count(name)
    return waitMs
  }

  /** Counts a try before it is made, so that parallel tries can't exceed the limit. */
  count(name: string): void {
    const key = hashOf(name)
    const present = this.#windows.get(key)
    if (present !== undefined && !this.#hasEnded(present)) return this.#setTries(key, present, present.tries + 1)
    this.#remove(key)
    if (!this.#hasRoom()) return
    const window = { since: this.#monotonic(), tries: 0 }
    this.#windows.set(key, window)
    this.#setTries(key, window, 1)
  }

  /** Takes back one count, for a try that was right or was not made. */
  uncount(name: string): void {
    const key = hashOf(name)
    const window = this.#windows.get(key)
    if (window === undefined) return
    if (window.tries > 1) this.#setTries(key, window, window.tries - 1)
    else this.#remove(key)
  }

  /** Removes all counts of a name. */
  forget(name: string): void {
    this.#remove(hashOf(name))
  }

  #hasEnded({ since }: Window): boolean {
    return this.#monotonic() - since >= this.#allowance.withinMs
  }

  #setTries(key: string, window: Window, tries: number): void {
    this.#byTries[window.tries]!.delete(key)
    window.tries = Math.min(tries, this.#allowance.tries)
    this.#byTries[window.tries]!.add(key)
  }

  #remove(key: string): void {
    const window = this.#windows.get(key)
    if (window === undefined) return
    this.#byTries[window.tries]!.delete(key)
    this.#windows.delete(key)
  }

  /**
   * Makes room if the table is full: removes a window that has ended, else one with the fewest tries, but never a throttled
   * one, so that a flood of new names lifts no throttle. Returns false if all are throttled; a new name is then not counted.
   */
  #hasRoom(): boolean {
    if (this.#windows.size < NAMES_KEPT) return true
    const [oldest] = this.#windows
    const key = this.#hasEnded(oldest![1]) ? oldest![0] : this.#fewestTries()
    if (key === undefined) return false
    this.#remove(key)
    return true
  }

  #fewestTries(): string | undefined {
    const fewest = this.#byTries.slice(0, -1).find((keys) => keys.size > 0)
    return fewest?.values().next().value
  }
}

/** Hashes a name, which is text from a client: every hash takes the same memory, and no email address is kept. */
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

/** Who tries a password: a client at sign-in, or a signed-in person. Plain data, which a worker can send to the primary. */
export type Trier = { email: string; address: string } | { session: string }

type Count = readonly [Throttle, name: string]

/** The counts that a try increments: those shared with other people or other accounts, and the person's own. */
interface Counts {
  shared: readonly Count[]
  own: Count
}

/** A try counts as a wrong one from `take` until `right` or `unmade` is called. */
export class PasswordTries {
  readonly #byAddress: Throttle
  readonly #byAccount: Throttle
  readonly #byBoth: Throttle
  readonly #bySession: Throttle

  constructor(monotonic: () => number) {
    this.#byAddress = new Throttle(SIGN_IN_BY_ADDRESS, monotonic)
    this.#byAccount = new Throttle(SIGN_IN_BY_ACCOUNT, monotonic)
    this.#byBoth = new Throttle(SIGN_IN_BY_ACCOUNT_AND_ADDRESS, monotonic)
    this.#bySession = new Throttle(PASSWORD_BY_SESSION, monotonic)
  }

  /**
   * Returns the milliseconds to wait, 0 if the try may go ahead. The first count that refuses decides. A refused try
   * increments no count: a throttled address would otherwise lock out every account that it names.
   */
  take(trier: Trier): number {
    const { shared, own } = this.#countsOf(trier)
    const counts = [...shared, own]
    for (const [throttle, name] of counts) {
      const waitMs = throttle.waitMs(name)
      if (waitMs > 0) return waitMs
    }
    for (const [throttle, name] of counts) throttle.count(name)
    return 0
  }

  /** Call it if the password was right: uncounts this try, and the earlier tries of the same person. */
  right(trier: Trier): void {
    const { shared, own } = this.#countsOf(trier)
    for (const [throttle, name] of shared) throttle.uncount(name)
    const [throttle, name] = own
    throttle.forget(name)
  }

  /** Call it if no password was compared: uncounts this try. */
  unmade(trier: Trier): void {
    const { shared, own } = this.#countsOf(trier)
    for (const [throttle, name] of [...shared, own]) throttle.uncount(name)
  }

  #countsOf(trier: Trier): Counts {
    if ('session' in trier) return { shared: [], own: [this.#bySession, trier.session] }
    const [account, group] = [foldEmail(trier.email), addressGroup(trier.address)]
    const shared: Count[] = [
      [this.#byAddress, group],
      [this.#byAccount, account],
    ]
    return { shared, own: [this.#byBoth, `${account} ${group}`] }
  }
}

/** The throttles of the console's forms. A worker's calls go to the primary, so they return promises. */
export interface Throttles {
  takeTry: (trier: Trier) => number | Promise<number>
  rightTry: (trier: Trier) => void | Promise<void>
  unmadeTry: (trier: Trier) => void | Promise<void>
  takeSignUp: (address: string) => number | Promise<number>
}

export function createThrottles(monotonic: () => number): Throttles {
  const tries = new PasswordTries(monotonic)
  const signUps = new Throttle(SIGN_UP_BY_ADDRESS, monotonic)
  return {
    takeTry: (trier) => tries.take(trier),
    rightTry: (trier) => tries.right(trier),
    unmadeTry: (trier) => tries.unmade(trier),
    takeSignUp: (address) => signUps.take(addressGroup(address)),
  }
}
