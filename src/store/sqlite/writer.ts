// Runs all writes. Writes that arrive in one turn of the event loop share one transaction and one fsync, and each is
// answered only after that commit. A lock held by another process is waited for here, outside SQLite.
import type { DatabaseSync } from 'node:sqlite'
import { whileGrowing } from '../../turns.ts'
import { StoreBusy, StoreUnavailable } from '../store.ts'
import { asStoreFailure, isBusy, LOCK_RETRY_MS, LOCK_WAIT_MS } from './failures.ts'

/** How many writes may wait. At 10,000 writes a second the last of them waits for a tenth of a second, unless another
 * process holds the lock. */
const QUEUE_LIMIT = 1000

interface Job {
  work: () => unknown
  isData: boolean
  resolve: (result: never) => void
  reject: (error: unknown) => void
  deadline: number
}

export class Writer {
  readonly #db: DatabaseSync
  #queue: Job[] = []
  #scheduled = false
  #dataCommits = 0
  #dataWrites = 0
  #closed: PromiseWithResolvers<void> | undefined

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  /** Runs `work` inside a transaction and resolves with its result once that is committed. Moves the store's version. */
  write<T>(work: () => T): Promise<T> {
    return this.#add(work, true)
  }

  /** Like `write`, but does not move the version: for bookkeeping, which no cached answer shows (see `Store.version`). */
  writeBookkeeping<T>(work: () => T): Promise<T> {
    return this.#add(work, false)
  }

  /** The number of commits so far that wrote data. */
  get dataCommits(): number {
    return this.#dataCommits
  }

  /** The number of writes in them. */
  get dataWrites(): number {
    return this.#dataWrites
  }

  /** Takes no more work, and resolves when everything queued so far is written or refused. */
  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers()
    if (!this.#scheduled) this.#closed.resolve()
    return this.#closed.promise
  }

  #add<T>(work: () => T, isData: boolean): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(new StoreUnavailable('the database is closed'))
    if (this.#queue.length >= QUEUE_LIMIT)
      return Promise.reject(new StoreBusy(`${QUEUE_LIMIT} writes wait for the database`))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, isData, resolve, reject, deadline: performance.now() + LOCK_WAIT_MS })
      // A commit of thirty costs as much as a commit of ten.
      this.#schedule(() =>
        whileGrowing(
          () => this.#queue.length,
          () => this.#flush(),
        ),
      )
    })
  }

  #schedule(later: () => void): void {
    if (this.#scheduled) return
    this.#scheduled = true
    later()
  }

  #flush(): void {
    this.#scheduled = false
    const batch = this.#queue
    this.#queue = []
    const lock = this.#commit(batch)
    if (lock !== undefined) this.#tryAgainLater(batch, lock)
    if (!this.#scheduled) this.#closed?.resolve()
  }

  /** Writes the batch in one transaction and settles its jobs; returns the error if another process holds the lock. */
  #commit(batch: readonly Job[]): Error | undefined {
    const results: unknown[] = []
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      for (const job of batch) results.push(job.work())
      // Counted before the commit, because after a commit that failed its effect is unknown.
      const dataWrites = batch.filter(({ isData }) => isData).length
      if (dataWrites > 0) this.#dataCommits += 1
      this.#db.exec('COMMIT')
      this.#dataWrites += dataWrites
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
