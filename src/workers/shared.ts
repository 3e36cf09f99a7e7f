// What the processes of one instance share: the limits that its first process counts for all of them, and the methods that the
// first process and its workers call in each other (channel.ts). In a worker each limit is such a call (worker.ts).
import { CACHED_MS } from '../accounts/api-keys.ts'
import { createThrottles, type Throttles } from '../accounts/throttle.ts'
import type { Config } from '../config.ts'
import type { Timeouts } from '../http/app.ts'
import type { ConnectionLimit } from '../http/connection-limit.ts'
import type { Snapshot } from '../http/metrics.ts'
import { createRateWindow, type Lease } from '../http/rate-limit.ts'
import { createHold, type Hold } from '../http/rehearse.ts'

/**
 * Bounds how long a process that hangs delays a scrape, a revocation or a request that needs a limit. A revocation that stops
 * waiting for such a process must be safe: by then that process has no cached key that is still valid.
 */
export const CALL_LIMIT_MS = CACHED_MS + 1000

/** The first process pings every worker this often. */
export const HEARTBEAT_MS = 5000

/** An event that one process sends to all others of its instance. */
export type Broadcast = 'forgetKeys' | 'flushUsage' | 'giveUpStore'

export type OnBroadcast = Record<Broadcast, () => void | Promise<void>>

export interface SharedLimits extends Throttles {
  /** Undefined without a rate limit, and in an instance of one process, which does not share the limit. */
  lease: Lease | undefined
  hold: Hold
}

export interface Shared extends SharedLimits {
  /** Resolves when all other processes have handled the event or have not answered in time. */
  broadcast: (event: Broadcast) => Promise<void>
  /** Undefined in an instance of one process. */
  connectionLimit: ConnectionLimit | undefined
}

/** Creates the limits of an instance, in its first process, and those that a worker counts by itself while that one hangs. */
export function createSharedLimits({ rateLimit, workers }: Config, monotonic: () => number): SharedLimits {
  const isShared = rateLimit !== undefined && workers > 1
  return {
    ...createThrottles(monotonic),
    lease: isShared ? createRateWindow(rateLimit, monotonic) : undefined,
    hold: createHold(),
  }
}

/** The argument with which the first process starts a worker where program and Node.js are one file (deploy/build-executables.ts). */
export const WORKER_ARGUMENT = 'worker'

/** The methods that a worker calls in the first process. */
export type FirstProcessMethods = { [Name in keyof SharedLimits]: NonNullable<SharedLimits[Name]> } & {
  broadcast: Shared['broadcast']
  leaseSlots(wanted: number): Promise<number>
  /** Sends the listening socket to the worker, which accepts connections from it as soon as it arrives, and leases it slots. */
  sendSocket(): Promise<number>
  /** Whether the first process has opened its store: a worker opens the database after it. */
  isStoreOpen(): boolean
  /** Ends the instance, because the worker cannot continue with its store: a sync has failed. */
  fail(message: string): void
}

/** The methods that the first process calls in a worker. */
export type WorkerMethods = {
  /** Resolves with the worker's version: when it accepts connections, or without serving if it is not that of the first process. */
  start(version: string, config: Config, timeouts: Timeouts | undefined): Promise<string>
  /** Returns if the worker's event loop is not blocked, and tells the worker that the first process's is not. */
  ping(): void
  giveBackSlots(): Promise<number>
  onBroadcast(event: Broadcast): Promise<void>
  /** Resolves with undefined if metrics are off. */
  snapshot(): Promise<Snapshot | undefined>
  drain(): void
  /** Resolves when requests are answered, usage counts are written and the store is closed; the process then ends. */
  stop(): Promise<void>
}
