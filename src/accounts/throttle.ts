// Slows down guessing: counts tries by name (an account, an address) in windows of time, in this process and in bounded memory.
import { hash } from 'node:crypto'
import { Refused } from '../contract/refused.ts'

export interface Allowance {
  tries: number
  withinMs: number
}

export const SIGN_UP_BY_ADDRESS: Allowance = { tries: 20, withinMs: 3_600_000 }

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
  /** By the hash of the name, in the order in which they start and therefore end. */
  readonly #windows = new Map<string, Window>()
  /** The same hashes by the number of tries, so that the one with the fewest is found without a search. */
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

  /** Counts a try that may go ahead. It is counted before it is made, so that parallel tries are not more. */
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

  /** Takes back one count: that try was right, or was not made. */
  uncount(name: string): void {
    const key = hashOf(name)
    const window = this.#windows.get(key)
    if (window === undefined) return
    if (window.tries > 1) this.#setTries(key, window, window.tries - 1)
    else this.#remove(key)
  }

  /** Forgets what was counted for a name. */
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
   * Makes room if all places are taken: by a window that has ended, else by one with the fewest tries, but never by one that
   * is throttled, so that a flood of names frees nobody. If all are throttled there is none, and a new name is not counted.
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

/** A name is what a stranger typed: a hash takes the same memory for each, and keeps no email addresses. */
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
