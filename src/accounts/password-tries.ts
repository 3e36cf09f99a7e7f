// Slows down the guessing of passwords: how many wrong ones an address, an account and a session may try.
import { foldEmail } from '../store/email.ts'
import { addressGroup, type Allowance, SIGN_UP_BY_ADDRESS, Throttle } from './throttle.ts'

const WITHIN_MS = 15 * 60_000

/** An address can be shared by an office. */
export const SIGN_IN_BY_ADDRESS: Allowance = { tries: 50, withinMs: WITHIN_MS }

/** A person mistypes a few times; a program tries thousands. Counted together, so that no other address locks this one out. */
export const SIGN_IN_BY_ACCOUNT_AND_ADDRESS: Allowance = { tries: 10, withinMs: WITHIN_MS }

/** For guesses at one account from many addresses; looser, since they do lock out its owner. */
export const SIGN_IN_BY_ACCOUNT: Allowance = { tries: 100, withinMs: WITHIN_MS }

/** For a signed-in person who gives the current password, such as to change it: what others try at sign-in does not count. */
export const PASSWORD_BY_SESSION: Allowance = { tries: 10, withinMs: WITHIN_MS }

/** Whose try at a password it is: at sign-in, or of a person who is signed in. Plain data, so that a worker can send it. */
export type Trier = { email: string; address: string } | { session: string }

type Count = readonly [Throttle, name: string]

/** The counts that a try moves: those shared with other people or other accounts, and the one of this person alone. */
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
   * Returns the milliseconds to wait, 0 if the try may go ahead. The first count that refuses it decides, and a refused try
   * moves none of them: a throttled address would otherwise lock out every account that it names.
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

  /** The password was right: this try does not count, and neither do earlier ones of the same person. */
  right(trier: Trier): void {
    const { shared, own } = this.#countsOf(trier)
    for (const [throttle, name] of shared) throttle.uncount(name)
    const [throttle, name] = own
    throttle.forget(name)
  }

  /** No password was compared: this try does not count. */
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

/** The counts that the console's forms move. Those of a worker are in the first process, so each may take a moment. */
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
