// Counts requests per key and remembers failed ones, in memory, and writes them in batches: no request waits for it.
import { type AccountStore, type ApiKey, FAILED_REQUESTS_KEPT, type FailedRequest, type UsageCount } from '../store/store.ts'

const HOUR_MS = 3_600_000
const FLUSH_EVERY_MS = 2000
const KEPT_MS = 90 * 24 * HOUR_MS

/** What a key did since the last write. There are few counts, so searching them is faster than composing a map key (1 % of a list). */
interface KeyUse {
  lastUsedAt: number
  counts: UsageCount[]
}

export class Usage {
  readonly #store: AccountStore
  readonly #clock: () => number
  #uses = new Map<string, KeyUse>()
  #failed: FailedRequest[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(store: AccountStore, clock: () => number) {
    this.#store = store
    this.#clock = clock
  }

  count(key: ApiKey, operation: string, status: number): void {
    const now = this.#clock()
    this.#add(key.id, now, now - (now % HOUR_MS), operation, status, 1)
  }

  /** Keeps only the first failures between two writes, so that a flood of them takes bounded memory. */
  remember(failed: FailedRequest): void {
    if (this.#failed.length < FAILED_REQUESTS_KEPT) this.#failed.push(failed)
  }

  /** Writes periodically; what can't be written is kept and tried again. */
  start(onFailure: (error: unknown) => void): void {
    this.#timer = setInterval(() => void this.flush().catch(onFailure), FLUSH_EVERY_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  async flush(): Promise<void> {
    if (this.#uses.size === 0) return
    const [uses, failed] = [this.#uses, this.#failed]
    this.#uses = new Map()
    this.#failed = []
    try {
      const counts = [...uses.values()].flatMap((use) => use.counts)
      await this.#store.recordUsage(counts, new Map([...uses].map(([keyId, { lastUsedAt }]) => [keyId, lastUsedAt])))
    } catch (error) {
      this.#failed = [...failed, ...this.#failed].slice(0, FAILED_REQUESTS_KEPT)
      for (const [keyId, { lastUsedAt, counts }] of uses) {
        for (const { hour, operation, status, calls } of counts) this.#add(keyId, lastUsedAt, hour, operation, status, calls)
      }
      throw error
    }
    if (failed.length > 0) await this.#store.recordFailures(failed)
  }

  async purge(): Promise<void> {
    await this.#store.purgeUsage(this.#clock() - KEPT_MS)
  }

  #add(keyId: string, at: number, hour: number, operation: string, status: number, calls: number): void {
    let use = this.#uses.get(keyId)
    if (use === undefined) {
      use = { lastUsedAt: at, counts: [] }
      this.#uses.set(keyId, use)
    }
    use.lastUsedAt = Math.max(use.lastUsedAt, at)
    const present = use.counts.find((count) => count.status === status && count.operation === operation && count.hour === hour)
    if (present === undefined) use.counts.push({ keyId, hour, operation, status, calls })
    else present.calls += calls
  }
}
