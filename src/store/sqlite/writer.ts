// All writing goes through here. Writes that arrive in one turn of the event loop share one transaction and one fsync;
// each is answered only after that commit. A lock held by another process is waited for outside SQLite.
import type { DatabaseSync } from 'node:sqlite'
import { StoreUnavailable } from '../store.ts'
import { asStoreFailure, isBusy, LOCK_RETRY_MS, LOCK_WAIT_MS } from './failures.ts'

/** How many turns of the event loop a write may wait for others. */
const GATHER_TURNS = 4

interface Job {
  work: () => unknown
  resolve: (result: never) => void
  reject: (error: unknown) => void
  deadline: number
}

export class Writer {
  readonly #db: DatabaseSync
  #queue: Job[] = []
  #scheduled = false
  #closed = false

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  /** Runs `work` inside a transaction and resolves with its result once that is committed. */
  write<T>(work: () => T): Promise<T> {
    if (this.#closed) return Promise.reject(new StoreUnavailable('the database is closed'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve, reject, deadline: performance.now() + LOCK_WAIT_MS })
      this.#schedule(() => this.#gather(0, GATHER_TURNS))
    })
  }

  /** Takes no more work, and resolves when everything queued so far is written or refused. */
  async close(): Promise<void> {
    this.#closed = true
    while (this.#scheduled) await new Promise((resolve) => setTimeout(resolve, 1))
  }

  #schedule(later: () => void): void {
    if (this.#scheduled) return
    this.#scheduled = true
    later()
  }

  /** While each turn brings more writes, the next may too: a commit costs as much for thirty as for ten. */
  #gather(seen: number, turns: number): void {
    const queued = this.#queue.length
    if (queued > seen && turns > 0) setImmediate(() => this.#gather(queued, turns - 1))
    else this.#flush()
  }

  #flush(): void {
    this.#scheduled = false
    const batch = this.#queue
    this.#queue = []
    const lock = this.#commit(batch)
    if (lock !== undefined) this.#tryAgainLater(batch, lock)
  }

  /** Writes the batch in one transaction and answers its jobs; where another process holds the lock, tells so. */
  #commit(batch: readonly Job[]): Error | undefined {
    const results: unknown[] = []
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      for (const job of batch) results.push(job.work())
      this.#db.exec('COMMIT')
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      if (isBusy(error)) return error
      // One bad row must not fail its neighbours: each gets a transaction of its own.
      if (batch.length > 1) this.#commitSingly(batch)
      else batch[0]!.reject(asStoreFailure(error))
      return undefined
    }
    for (const [index, job] of batch.entries()) job.resolve(results[index] as never)
    return undefined
  }

  #commitSingly(batch: readonly Job[]): void {
    for (const job of batch) {
      const lock = this.#commit([job])
      if (lock !== undefined) this.#tryAgainLater([job], lock)
    }
  }

  #tryAgainLater(batch: readonly Job[], lock: Error): void {
    const now = performance.now()
    for (const job of batch) {
      if (job.deadline > now) this.#queue.push(job)
      else job.reject(asStoreFailure(lock))
    }
    if (this.#queue.length > 0) this.#schedule(() => setTimeout(() => this.#flush(), LOCK_RETRY_MS))
  }
}
