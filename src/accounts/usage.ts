// Counts calls per key, and remembers failed ones, in memory; writes them in batches: a request never waits for it.
import { type AccountStore, type ApiKey, FAILED_REQUESTS_KEPT, type FailedRequest, type UsageCount } from '../store/store.ts'

const HOUR_MS = 3_600_000
const FLUSH_EVERY_MS = 2000
const KEPT_MS = 90 * 24 * HOUR_MS

export class Usage {
  readonly #store: AccountStore
  readonly #clock: () => number
  #counts = new Map<string, UsageCount>()
  #lastUsed = new Map<string, number>()
  #failed: FailedRequest[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(store: AccountStore, clock: () => number) {
    this.#store = store
    this.#clock = clock
  }

  count(key: ApiKey, operation: string, status: number): void {
    const now = this.#clock()
    this.#lastUsed.set(key.id, now)
    this.#add({ keyId: key.id, hour: now - (now % HOUR_MS), operation, status, calls: 1 })
  }

  /** Of a flood of failures between two writes only the first are kept. */
  remember(failed: FailedRequest): void {
    if (this.#failed.length < FAILED_REQUESTS_KEPT) this.#failed.push(failed)
  }

  /** Writes from time to time; what can't be written now is kept and tried again. */
  start(onFailure: (error: unknown) => void): void {
    this.#timer = setInterval(() => void this.flush().catch(onFailure), FLUSH_EVERY_MS)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  async flush(): Promise<void> {
    if (this.#counts.size === 0) return
    const [counts, lastUsed, failed] = [[...this.#counts.values()], this.#lastUsed, this.#failed]
    this.#counts = new Map()
    this.#lastUsed = new Map()
    this.#failed = []
    try {
      await this.#store.recordUsage(counts, lastUsed)
    } catch (error) {
      this.#failed = [...failed, ...this.#failed].slice(0, FAILED_REQUESTS_KEPT)
      for (const count of counts) this.#add(count)
      for (const [keyId, at] of lastUsed) this.#lastUsed.set(keyId, Math.max(at, this.#lastUsed.get(keyId) ?? 0))
      throw error
    }
    if (failed.length > 0) await this.#store.recordFailures(failed)
  }

  async purge(): Promise<void> {
    await this.#store.purgeUsage(this.#clock() - KEPT_MS)
  }

  #add(count: UsageCount): void {
    const slot = `${count.keyId} ${count.hour} ${count.operation} ${count.status}`
    const present = this.#counts.get(slot)
    if (present === undefined) this.#counts.set(slot, count)
    else present.calls += count.calls
  }
}
