// Slows down the guessing of passwords: how many wrong ones an address, an account and a session may try.
import { foldEmail } from '../store/account-store.ts'
import type { Session } from '../store/account-store.ts'
import { addressGroup, type Allowance, Throttle } from './throttle.ts'

const WITHIN_MS = 15 * 60_000

/** An address can be shared by an office. */
export const SIGN_IN_BY_ADDRESS: Allowance = { tries: 50, withinMs: WITHIN_MS }

/** A person mistypes a few times; a program tries thousands. Counted together, so that no other address locks this one out. */
export const SIGN_IN_BY_ACCOUNT_AND_ADDRESS: Allowance = { tries: 10, withinMs: WITHIN_MS }

/** For guesses at one account from many addresses; looser, since they do lock out its owner. */
export const SIGN_IN_BY_ACCOUNT: Allowance = { tries: 100, withinMs: WITHIN_MS }

/** For a signed-in person who gives the current password, such as to change it: what others try at sign-in does not count. */
export const PASSWORD_BY_SESSION: Allowance = { tries: 10, withinMs: WITHIN_MS }

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

  atSignIn(email: string, address: string): PasswordTry {
    const [account, group] = [foldEmail(email), addressGroup(address)]
    const shared: Count[] = [
      [this.#byAddress, group],
      [this.#byAccount, account],
    ]
    return new PasswordTry(shared, [this.#byBoth, `${account} ${group}`])
  }

  inSession({ tokenHash }: Session): PasswordTry {
    return new PasswordTry([], [this.#bySession, Buffer.from(tokenHash).toString('base64url')])
  }
}

type Count = readonly [Throttle, name: string]

/** One try at a password, counted as a wrong one from `take` until `right` or `unmade` is called. */
export class PasswordTry {
  /** Shared with other people, or other accounts. */
  readonly #shared: readonly Count[]
  readonly #own: Count

  constructor(shared: readonly Count[], own: Count) {
    this.#shared = shared
    this.#own = own
  }

  /**
   * Returns the milliseconds to wait, 0 if the try may go ahead. The first count that refuses it decides, and a refused try
   * moves none of them: a throttled address would otherwise lock out every account that it names.
   */
  take(): number {
    const counts = [...this.#shared, this.#own]
    for (const [throttle, name] of counts) {
      const waitMs = throttle.waitMs(name)
      if (waitMs > 0) return waitMs
    }
    for (const [throttle, name] of counts) throttle.count(name)
    return 0
  }

  /** The password was right: this try does not count, and neither do earlier ones of the same person. */
  right(): void {
    for (const [throttle, name] of this.#shared) throttle.uncount(name)
    const [throttle, name] = this.#own
    throttle.forget(name)
  }

  /** No password was compared: this try does not count. */
  unmade(): void {
    for (const [throttle, name] of [...this.#shared, this.#own]) throttle.uncount(name)
  }
}
