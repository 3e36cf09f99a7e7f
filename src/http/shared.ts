// The limits that the processes of one instance count together, and their broadcasts. In the first process these are plain
// functions; in a worker each function calls that of the first process (worker.ts).
import { createThrottles, type Throttles } from '../accounts/throttle.ts'
import type { Config } from '../config.ts'
import type { AllowConnections } from './connection-limit.ts'
import { createRateWindow, type Lease } from './rate-limit.ts'
import { createHold, type Hold } from './rehearse.ts'

/** An event that one process sends to all others of its instance. */
export type Broadcast = 'forgetKeys' | 'flushUsage'

export type OnBroadcast = Record<Broadcast, () => void | Promise<void>>

export interface Counted extends Throttles {
  /** Undefined without a rate limit, and in an instance of one process, which does not share the limit. */
  lease: Lease | undefined
  hold: Hold
}

export interface Shared extends Counted {
  /** Resolves when all other processes have handled the event or have not answered in time. */
  broadcast: (event: Broadcast) => Promise<void>
  /** Undefined in an instance of one process. */
  allowConnections: AllowConnections | undefined
}

/** Creates the counts of an instance, in its first process. */
export function createCounted({ rateLimit, workers }: Config, monotonic: () => number): Counted {
  const isShared = rateLimit !== undefined && workers > 1
  return {
    ...createThrottles(monotonic),
    lease: isShared ? createRateWindow(rateLimit, monotonic) : undefined,
    hold: createHold(),
  }
}

/** The number of open connections of each process of an instance. */
export class ConnectionCounts {
  readonly #most: number
  readonly #kept = new Map<unknown, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Returns how many of its open connections a process may keep. */
  allow(process: unknown, open: number): number {
    this.#kept.delete(process)
    const keptByOthers = this.#kept.values().reduce((sum, kept) => sum + kept, 0)
    const kept = Math.min(open, this.#most - keptByOthers)
    this.#kept.set(process, kept)
    return kept
  }

  /** Forgets a process that has ended, and its connections. */
  forget(process: unknown): void {
    this.#kept.delete(process)
  }
}
