// Runs all writes. Writes that arrive within a few turns of the event loop, or a few milliseconds after a shared commit, share
// one transaction and one sync. Each resolves after that sync. Waits longer than 2 ms for another process's lock happen here.
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { whileGrowing, withinTime } from '../../timing.ts'
import { CannotCloseStore, type CommitStats, StoreBusy, StoreUnavailable } from '../store.ts'
import { asStoreFailure, explain, isBusy, isFailedSync, LOCK_RETRY_MS, LOCK_WAIT_MS } from './failures.ts'
import type { Wal } from './wal.ts'

/** How many writes may wait. At 10,000 writes a second the last one waits for a tenth of a second, unless another process
 * holds the lock. */
const QUEUE_LIMIT = 1000

/** How long `close` waits for the last sync. */
const LAST_SYNC_MS = 1000

/**
 * The clients that were just answered are likely to write again, so the next commit waits for them: for as long as the last
 * commit and sync took, within these bounds. Otherwise each commit would serve half of the clients, and twice as many be made.
 */
const NEXT_WRITES_WAIT_MS = { least: 1, most: 5 }

interface Job {
  work: () => unknown
  isData: boolean
  resolve: (result: never) => void
  reject: (error: unknown) => void
  deadline: number
}

interface Committed {
  job: Job
  result: unknown
}

export interface WriterOptions {
  /** The write-ahead log to sync after each commit; without it, COMMIT itself syncs. */
  wal?: Wal | undefined
  /** How long a write or a read waits for a sync. */
  syncWaitMs?: number
  /** Called once when a sync has failed. From then on every call is refused. */
  onBroken?: ((error: StoreUnavailable) => void) | undefined
}

export class Writer {
  /** The durable commits so far that wrote data, and the writes in them. */
  readonly synced: CommitStats = { commits: 0, writes: 0 }
  /** The commits of data whose sync is in progress. */
  unsynced: CommitStats = { commits: 0, writes: 0 }
  /** Whether a sync has failed. Until the next start recovers the log, it is unknown which of the last commits the disk has. */
  isBroken = false
  readonly #db: DatabaseSync
  readonly #wal: Wal | undefined
  readonly #syncWaitMs: number
  readonly #onBroken: (error: StoreUnavailable) => void
  #queue: Job[] = []
  #isWriting = false
  #isLockedOut = false
  /** How many writes the next batch is likely to have by `until`: those that wait, and one for each that was just answered. */
  #expected = { writes: 0, until: 0 }
  #onExpectedArrived = () => {}
  /** Resolves when the sync in progress has ended or is overdue; if it is overdue, `#refusal` is set. */
  #syncing: Promise<void> | undefined
  /** The error that every call gets while a sync is overdue, or after one has failed. */
  #refusal: StoreUnavailable | undefined
  #closed: PromiseWithResolvers<void> | undefined

  constructor(db: DatabaseSync, { wal, syncWaitMs = LOCK_WAIT_MS, onBroken = () => {} }: WriterOptions = {}) {
    this.#db = db
    this.#wal = wal
    this.#syncWaitMs = syncWaitMs
    this.#onBroken = onBroken
  }

  /** Runs `work` inside a transaction and resolves with its result once the commit is durable. Moves the store's version. */
  write<T>(work: () => T): Promise<T> {
    return this.#add(work, true)
  }

  /** Like `write`, but does not move the version: for bookkeeping, which no cached response shows (see `Store.version`). */
  writeBookkeeping<T>(work: () => T): Promise<T> {
    return this.#add(work, false)
  }

  /**
   * Runs a read. Its result may include a commit that a power cut could still undo, so it waits for the sync in progress.
   * Retries without blocking the event loop while the file is locked, which is rare for readers in WAL mode.
   */
  async read<T>(work: () => T): Promise<T> {
    const deadline = performance.now() + LOCK_WAIT_MS
    for (;;) {
      try {
        const found = work()
        if (this.#syncing !== undefined) await this.#syncing
        if (this.#refusal !== undefined) throw this.#refusal
        return found
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw asStoreFailure(error)
        await setTimeout(LOCK_RETRY_MS)
      }
    }
  }

  /** Refuses new work, and resolves when all queued writes are durable or refused. Rejects with `CannotCloseStore`. */
  async close(): Promise<void> {
    this.#closed ??= Promise.withResolvers()
    if (!this.#isWriting || this.isBroken) this.#closed.resolve()
    const closed = this.#closed.promise
    await withinTime(closed, LAST_SYNC_MS).catch(() => {
      if (this.#syncing !== undefined) throw new CannotCloseStore('the disk did not sync the last writes')
      return closed
    })
  }

  /** Checkpoints a long log, unless a batch is being written: `#writeAll` does it after each batch. */
  shortenWal(): void {
    if (!this.#isWriting) this.#shortenWal()
  }

  /** Refuses all calls for good, after a failed sync here or in another process: the next sync may succeed although writes are lost. */
  giveUp(error: unknown): void {
    this.isBroken = true
    this.#refuse(error, [])
    this.#closed?.resolve()
  }

  #add<T>(work: () => T, isData: boolean): Promise<T> {
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal)
    if (this.#closed !== undefined) return Promise.reject(new StoreUnavailable('the database is closed'))
    if (this.#queue.length >= QUEUE_LIMIT)
      return Promise.reject(new StoreBusy(`${QUEUE_LIMIT} writes wait for the database`))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, isData, resolve, reject, deadline: performance.now() + LOCK_WAIT_MS })
      if (this.#queue.length === this.#expected.writes) this.#onExpectedArrived()
      if (this.#isWriting) return
      this.#isWriting = true
      void this.#writeAll()
    })
  }

  /** Writes batch after batch until nothing is left to write. */
  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#gather()
      if (this.isBroken) return
      const batch = this.#queue.splice(0)
      const started = performance.now()
      try {
        const committed = this.#commit(batch)
        if (committed.length > 0) await this.#sync(batch)
        else this.#countSynced()
        for (const { job, result } of committed) {
          if (this.isBroken) job.reject(this.#refusal)
          else job.resolve(result as never)
        }
      } catch (error) {
        this.#break(error, batch)
        return
      }
      if (this.#wal === undefined) continue
      if (batch.length > 1) this.#expectNextOf(batch, performance.now() - started)
      // Sends the responses before the checkpoint blocks the event loop.
      await setImmediate()
      this.#shortenWal()
    }
    this.#isWriting = false
    this.#closed?.resolve()
  }

  /** Waits for more writes, which is nearly free: one commit and one sync serve them all. */
  async #gather(): Promise<void> {
    const leftMs = this.#expected.until - performance.now()
    if (this.#isLockedOut) await setTimeout(LOCK_RETRY_MS)
    else if (this.#queue.length < this.#expected.writes && leftMs > 0)
      await new Promise<void>((resolve) => {
        this.#onExpectedArrived = resolve
        void setTimeout(leftMs).then(resolve)
      })
    else await new Promise<void>((resolve) => whileGrowing(() => this.#queue.length, resolve))
    this.#isLockedOut = false
  }

  #expectNextOf({ length }: readonly Job[], batchMs: number): void {
    const { least, most } = NEXT_WRITES_WAIT_MS
    const until = performance.now() + Math.min(Math.max(batchMs, least), most)
    this.#expected = { writes: length + this.#queue.length, until }
  }

  /**
   * Writes the batch in one transaction. Returns the committed writes; the others were rejected or queued again. Throws if a
   * sync inside SQLite failed.
   */
  #commit(batch: readonly Job[]): Committed[] {
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      const committed = batch.map((job) => ({ job, result: job.work() }))
      // Counted before COMMIT, because a COMMIT that fails may have taken effect.
      const dataWrites = batch.filter(({ isData }) => isData).length
      if (dataWrites > 0) this.unsynced.commits += 1
      this.#db.exec('COMMIT')
      this.unsynced.writes += dataWrites
      return committed
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      if (isFailedSync(error)) throw error
      if (isBusy(error)) this.#tryAgainLater(batch, error)
      // A write that fails must not fail the others, so each gets a separate transaction.
      else if (batch.length > 1) return batch.flatMap((job) => this.#commit([job]))
      else batch[0]!.reject(asStoreFailure(error))
      return []
    }
  }

  #tryAgainLater(batch: readonly Job[], lock: Error): void {
    const now = performance.now()
    for (const job of batch) {
      if (job.deadline > now) this.#queue.push(job)
      else job.reject(asStoreFailure(lock))
    }
    this.#isLockedOut = true
  }

  /**
   * Resolves when the batch is durable; rejects if the sync failed. While the sync is overdue, refuses the batch and all
   * other calls.
   */
  async #sync(batch: readonly Job[]): Promise<void> {
    if (this.#wal === undefined) {
      this.#countSynced()
      return
    }
    // Counted before the reads that wait for the sync resume, because they have read the new version.
    const sync = this.#wal.sync().then(() => this.#countSynced())
    this.#syncing = withinTime(sync, this.#syncWaitMs).catch((error: unknown) => this.#refuse(error, batch))
    await this.#syncing
    await sync
    this.#syncing = undefined
    if (!this.isBroken) this.#refusal = undefined
  }

  /** Refuses these writes, the queued writes and all later calls. */
  #refuse(error: unknown, jobs: readonly Job[]): void {
    this.#refusal = new StoreUnavailable(`the disk did not sync: ${explain(error)}`, { cause: error })
    for (const job of [...jobs, ...this.#queue.splice(0)]) job.reject(this.#refusal)
  }

  #break(error: unknown, jobs: readonly Job[]): void {
    this.#refuse(error, jobs)
    this.giveUp(error)
    this.#onBroken(this.#refusal!)
  }

  #countSynced(): void {
    this.synced.commits += this.unsynced.commits
    this.synced.writes += this.unsynced.writes
    this.unsynced = { commits: 0, writes: 0 }
  }

  /** Checkpoints a long log, unless a sync has failed: the checkpoint could copy what the disk has lost. */
  #shortenWal(): void {
    if (this.isBroken) return
    try {
      this.#wal?.shorten()
    } catch (error) {
      // After any other failure, such as a full disk, the next attempt may succeed.
      if (isFailedSync(error)) this.#break(error, [])
    }
  }
}
