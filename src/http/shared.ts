// What the processes of one instance count together, and tell each other. In the first process these are plain functions; a
// worker has the same functions, which call those of the first process (workers/worker.ts).
import { createThrottles, type Throttles } from '../accounts/throttle.ts'
import type { Config } from '../config.ts'
import type { AllowConnections } from './connection-limit.ts'
import { createRateWindow, type Lease } from './rate-limit.ts'
import { createHold, type Hold } from './rehearse.ts'

/** What every process of an instance does when one of them asks for it. */
export type Told = 'forgetKeys' | 'flushUsage'

export interface Counted extends Throttles {
  /** Undefined without a rate limit, and in an instance of one process, which has all of it. */
  lease: Lease | undefined
  hold: Hold
}

export interface Shared extends Counted {
  /** Resolves when all other processes have done it, as far as they answer in time. */
  tellOthers: (what: Told) => Promise<void>
  /** Undefined in an instance of one process. */
  allowConnections: AllowConnections | undefined
}

/** Returns the counts of an instance, for its first process. */
export function createCounted({ rateLimit, workers }: Config, monotonic: () => number): Counted {
  const isShared = rateLimit !== undefined && workers > 1
  return {
    ...createThrottles(monotonic),
    lease: isShared ? createRateWindow(rateLimit, monotonic) : undefined,
    hold: createHold(),
  }
}

/** The connections of an instance, by process. */
export class ConnectionCounts {
  readonly #most: number
  readonly #kept = new Map<unknown, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Returns how many of its open connections a process may keep. */
  allow(process: unknown, open: number): number {
    this.#kept.delete(process)
    const elsewhere = this.#kept.values().reduce((sum, kept) => sum + kept, 0)
    const kept = Math.min(open, this.#most - elsewhere)
    this.#kept.set(process, kept)
    return kept
  }

  /** The process has ended, and its connections with it. */
  forget(process: unknown): void {
    this.#kept.delete(process)
  }
}
