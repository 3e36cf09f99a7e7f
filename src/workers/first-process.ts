// The first process of an instance, as a worker sees it. If it does not answer a call in time, the worker decides by itself. If it
// hangs, the log and /readyz say so.
import { REHEARSAL } from '../contract/limits.ts'
import type { ConnectionLimit } from '../http/connection-limit.ts'
import type { Log } from '../log.ts'
import { Overdue, withinTime } from '../timing.ts'
import type { Channel } from './channel.ts'
import { CALL_LIMIT_MS, type FirstProcessMethods, HEARTBEAT_MS, type Shared, type SharedLimits } from './shared.ts'

/** The first process hangs if this many heartbeats have passed without a ping, which is 10 to 15 s after the last one. */
const MOST_MISSED = 3

/** The first process waits for CALL_LIMIT_MS for each other worker. */
const BROADCAST_LIMIT_MS = 2 * CALL_LIMIT_MS

const HANGS =
  'the first process does not answer: not ready; there are no chores, no admin port and no replacement of workers, and each ' +
  'worker counts limits by itself. If this lasts, restart the service'

export class FirstProcess {
  readonly #pid: number
  readonly #channel: Channel<FirstProcessMethods>
  readonly #log: Log
  #missed = 0
  /** A call was overdue since the last ping: the next ones do not wait. */
  #isLate = false

  constructor(pid: number, channel: Channel<FirstProcessMethods>, log: Log) {
    this.#pid = pid
    this.#channel = channel
    this.#log = log
  }

  /** Expects pings from now on. If this worker itself was suspended, its timer counts a single heartbeat for that time. */
  watch(): void {
    setInterval(() => {
      this.#missed += 1
      if (this.#missed === MOST_MISSED) this.#log.error({ firstProcess: this.#pid }, HANGS)
    }, HEARTBEAT_MS).unref()
  }

  onPing(): void {
    if (this.isHung()) this.#log.notice({ firstProcess: this.#pid }, 'the first process answers again')
    this.#missed = 0
    this.#isLate = false
  }

  readonly isHung = (): boolean => this.#missed >= MOST_MISSED

  /** Returns what this worker shares. While the first process does not answer, `own` counts the limits for this worker alone. */
  share(own: SharedLimits, connectionLimit: ConnectionLimit): Shared {
    const counted =
      <Of extends unknown[], Result>(
        name: keyof SharedLimits,
        count: (...of: Of) => Result | Promise<Result>,
        limitMs = CALL_LIMIT_MS,
      ) =>
      async (...of: Of): Promise<Result> => {
        if (this.#isLate || this.isHung()) return count(...of)
        const asked = this.#channel.call(name, ...(of as never)) as Promise<Result>
        const answer = await withinTime(asked, limitMs).catch(unlessOverdue)
        if (!(answer instanceof Overdue)) return answer
        this.#isLate = true
        return count(...of)
      }
    return {
      lease: own.lease && counted('lease', own.lease),
      hold: counted('hold', own.hold, REHEARSAL.longestDelayMs + CALL_LIMIT_MS),
      takeTry: counted('takeTry', own.takeTry),
      passwordWasRight: counted('passwordWasRight', own.passwordWasRight),
      cancelTry: counted('cancelTry', own.cancelTry),
      takeSignUp: counted('takeSignUp', own.takeSignUp),
      broadcast: async (event) => {
        await withinTime(this.#channel.call('broadcast', event), BROADCAST_LIMIT_MS).catch(unlessOverdue)
      },
      connectionLimit,
    }
  }
}

function unlessOverdue(error: unknown): Overdue {
  if (error instanceof Overdue) return error
  throw error
}
