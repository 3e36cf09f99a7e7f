// The end of a call: its timeout, or the caller's signal, whichever comes first.
import { TimeoutError } from './errors.ts'

/** The longest delay that setTimeout takes; beyond it, it fires at once. */
const LONGEST_TIMEOUT = 2 ** 31 - 1

export class Deadline {
  readonly #controller = new AbortController()
  readonly #callerSignal: AbortSignal | undefined
  readonly #timer: ReturnType<typeof setTimeout>
  readonly #end: number

  /** Throws the signal's reason if it is aborted already. */
  constructor(operation: string, timeout: number, callerSignal: AbortSignal | undefined) {
    checkTimeout(timeout)
    callerSignal?.throwIfAborted()
    this.#end = performance.now() + timeout
    this.#callerSignal = callerSignal
    this.#timer = setTimeout(() => {
      this.#controller.abort(
        new TimeoutError({ code: 'timeout', message: `${operation} took longer than ${timeout} ms.` }),
      )
    }, timeout)
    callerSignal?.addEventListener('abort', this.#abort)
  }

  /** Its reason is a TimeoutError, or the reason of the caller's signal. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get timeLeft(): number {
    return this.#end - performance.now()
  }

  /** Waits; rejects with the signal's reason if the call ends before. */
  wait(milliseconds: number): Promise<void> {
    const { signal } = this
    return new Promise((resolve, reject) => {
      const ended = () => {
        clearTimeout(timer)
        // The reason is the caller's to choose: usually an Error, and passed on as it is.
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors
        reject(signal.reason)
      }
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', ended)
        resolve()
      }, milliseconds)
      signal.addEventListener('abort', ended)
    })
  }

  /** Lets go of the timer and of the caller's signal, which may live much longer than the call. */
  dispose(): void {
    clearTimeout(this.#timer)
    this.#callerSignal?.removeEventListener('abort', this.#abort)
  }

  readonly #abort = (): void => this.#controller.abort(this.#callerSignal?.reason)
}

export function checkTimeout(timeout: number): void {
  if (timeout > 0 && timeout <= LONGEST_TIMEOUT) return
  throw new RangeError(`timeout must be a number of milliseconds from 1 to ${LONGEST_TIMEOUT}, got ${String(timeout)}.`)
}
