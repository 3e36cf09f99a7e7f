// Slows down guessing: limits the tries per account or address, counted in this process, in bounded memory.
import { Refused } from '../contract/refused.ts'

const MINUTE_MS = 60_000

interface Allowance {
  tries: number
  withinMs: number
}

/** A person mistypes a few times; a program tries thousands. An address can be shared by an office. */
export const SIGN_IN_BY_ACCOUNT: Allowance = { tries: 10, withinMs: 15 * MINUTE_MS }
export const SIGN_IN_BY_ADDRESS: Allowance = { tries: 50, withinMs: 15 * MINUTE_MS }
export const SIGN_UP_BY_ADDRESS: Allowance = { tries: 20, withinMs: 60 * MINUTE_MS }

const NAMES_KEPT = 20_000

/** Refuses a try until `waitMs` milliseconds have passed. */
export class TooManyTries extends Refused {
  readonly waitMs: number
  constructor(message: string, waitMs: number) {
    super(message)
    this.waitMs = waitMs
  }
}

export class Throttle {
  readonly #allowance: Allowance
  readonly #clock: () => number
  /** In order of their first try, so that the oldest are evicted first. */
  readonly #windows = new Map<string, { since: number; tries: number }>()

  constructor(allowance: Allowance, clock: () => number) {
    this.#allowance = allowance
    this.#clock = clock
  }

  /** Counts a try before it is made; returns the milliseconds to wait, 0 if the try may go ahead. */
  take(name: string): number {
    const now = this.#clock()
    const { tries, withinMs } = this.#allowance
    let window = this.#windows.get(name)
    if (window === undefined || now - window.since >= withinMs) {
      window = { since: now, tries: 0 }
      this.#windows.delete(name)
      this.#makeRoom()
      this.#windows.set(name, window)
    }
    if (window.tries >= tries) return window.since + withinMs - now
    window.tries += 1
    return 0
  }

  /** Resets the count of a name after a successful try. */
  forgive(name: string): void {
    this.#windows.delete(name)
  }

  #makeRoom(): void {
    if (this.#windows.size < NAMES_KEPT) return
    const [oldest] = this.#windows.keys()
    this.#windows.delete(oldest!)
  }
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
