// Ends a call at its timeout or when the caller's signal aborts, whichever comes first.
import { TimeoutError } from './errors.ts'

/** The longest delay that setTimeout accepts. With a longer one it fires at once. */
const LONGEST_TIMEOUT = 2 ** 31 - 1

export class Deadline {
  readonly #controller = new AbortController()
  readonly #callerSignal: AbortSignal | undefined
  readonly #timer: ReturnType<typeof setTimeout>
  readonly #end: number

  /** Throws the reason of the caller's signal if that is already aborted. */
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

  /** Aborts with a TimeoutError, or with the reason of the caller's signal. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get timeLeft(): number {
    return this.#end - performance.now()
  }

  /** Waits; rejects with the reason of `signal` if the call ends earlier. */
  wait(milliseconds: number): Promise<void> {
    const { signal } = this
    return new Promise((resolve, reject) => {
      const ended = () => {
        clearTimeout(timer)
        // Passes the reason on unchanged. The caller chooses it; it is usually an Error.
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

  /** Clears the timer and the listener on the caller's signal, which may live much longer than the call. */
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
