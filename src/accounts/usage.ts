// Counts requests per key, collects failed requests, and writes both in batches: no request waits for the write.
import { type ApiKey, FAILED_REQUESTS_KEPT, type FailedRequest, type UsageCount } from '../store/account-store.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'

const HOUR_MS = 3_600_000
const FLUSH_EVERY_MS = 2000
const KEPT_MS = 90 * 24 * HOUR_MS

/** The most failed requests that wait in memory: of one account, as many as the store keeps, and of all accounts together. */
export const FAILED_WAITING = { ofAccount: FAILED_REQUESTS_KEPT, ofAll: 10_000 } as const

/** The use of a key since the last write. Searching its few counts is faster than a map, by 1 % of a list request. */
interface KeyUse {
  lastUsedAt: number
  counts: UsageCount[]
}

const NOT_WRITTEN = 'usage counts or failed requests could not be written; those that fit in memory are tried again'

export class Usage {
  readonly #store: Pick<Store, 'accounts'>
  readonly #clock: () => number
  #uses = new Map<string, KeyUse>()
  /** By account, so that an account with many failed requests does not crowd out other accounts. */
  #failed = new Map<string, FailedRequest[]>()
  #failedCount = 0
  #timer: NodeJS.Timeout | undefined
  /** Resolves when the current flush ends. */
  #writing = Promise.resolve()
  /** The flush that begins after the current one. */
  #next: Promise<void> | undefined

  constructor(store: Pick<Store, 'accounts'>, clock: () => number) {
    this.#store = store
    this.#clock = clock
  }

  count(key: ApiKey, operation: string, status: number): void {
    const now = this.#clock()
    this.#add({ keyId: key.id, hour: now - (now % HOUR_MS), operation, status, calls: 1 }, now)
  }

  /** Collects a failed request. Drops those beyond the bounds until the next write, so that a flood takes bounded memory. */
  remember(failed: FailedRequest): void {
    if (this.#failedCount >= FAILED_WAITING.ofAll) return
    const ofAccount = this.#failed.get(failed.accountId) ?? []
    if (ofAccount.length >= FAILED_WAITING.ofAccount) return
    ofAccount.push(failed)
    this.#failed.set(failed.accountId, ofAccount)
    this.#failedCount += 1
  }

  /** Writes periodically. Reports a failed write, and tries again with the next one. */
  start(report: (error: unknown, message: string) => void): void {
    this.#timer = setInterval(
      () => void this.flush().catch((error: unknown) => report(error, NOT_WRITTEN)),
      FLUSH_EVERY_MS,
    )
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  /** Resolves when everything counted so far is written, including what an earlier flush is still writing. */
  flush(): Promise<void> {
    this.#next ??= this.#writing.then(() => {
      this.#next = undefined
      const written = this.#writeCounts().then(() => this.#writeFailed())
      this.#writing = written.catch(() => {})
      return written
    })
    return this.#next
  }

  async #writeCounts(): Promise<void> {
    if (this.#uses.size === 0) return
    const uses = this.#uses
    this.#uses = new Map()
    try {
      const counts = [...uses.values()].flatMap((use) => use.counts)
      const lastUsed = new Map([...uses].map(([keyId, { lastUsedAt }]) => [keyId, lastUsedAt]))
      await this.#store.accounts.recordUsage(counts, lastUsed)
    } catch (error) {
      for (const { lastUsedAt, counts } of uses.values()) {
        for (const count of counts) this.#add(count, lastUsedAt)
      }
      throw error
    }
  }

  async #writeFailed(): Promise<void> {
    if (this.#failed.size === 0) return
    const failed = this.#failed
    this.#failed = new Map()
    this.#failedCount = 0
    try {
      await this.#store.accounts.recordFailures([...failed.values()].flat())
    } catch (error) {
      // Another error would come again with every retry.
      if (error instanceof StoreUnavailable) this.#keep(failed)
      throw error
    }
  }

  /** Puts unwritten requests back before newer ones, so that beyond the bounds the newer ones are dropped. */
  #keep(failed: ReadonlyMap<string, FailedRequest[]>): void {
    const newer = this.#failed
    this.#failed = new Map()
    this.#failedCount = 0
    for (const requests of [failed, newer]) {
      for (const request of [...requests.values()].flat()) this.remember(request)
    }
  }

  async purge(): Promise<void> {
    await this.#store.accounts.purgeUsage(this.#clock() - KEPT_MS)
  }

  #add(added: UsageCount, at: number): void {
    const { keyId, hour, operation, status } = added
    let use = this.#uses.get(keyId)
    if (use === undefined) this.#uses.set(keyId, (use = { lastUsedAt: at, counts: [] }))
    use.lastUsedAt = Math.max(use.lastUsedAt, at)
    const same = use.counts.find(
      (count) => count.status === status && count.operation === operation && count.hour === hour,
    )
    if (same === undefined) use.counts.push(added)
    else same.calls += added.calls
  }
}
