// Runs every read and write of a process. Writes share commits (write-queue.ts), and each resolves when its commit is durable.
//
// The state says what calls get; only `#refuse` and `#syncEnded` change it:
//
//     open ── a sync takes too long ──▶ overdue           all calls are refused; they would only wait behind the sync
//     overdue ── that sync ends ──▶ open
//     any ── a sync fails, in any process ──▶ broken      all calls are refused for good: the disk may have lost commits, and
//                                                         the next sync may succeed nevertheless
//
// The phase says what calls wait for; only `#writeAll`, and `#sync` for it, change it:
//
//     idle ── a write comes ──▶ writing ── a commit was made ──▶ syncing ── the sync has ended ──▶ writing
//     writing ── no write waits ──▶ idle
//
// `#writeAll` gathers a batch, commits it, syncs the log, answers the writes, checkpoints, and begins again while writes wait. Reads run
// in every phase, and wait for a sync in progress. After `close`, new writes are refused; it resolves when the phase is
// idle or the state broken.
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { withinTime } from '../../../timing.ts'
import { CannotCloseStore, type CommitStats, StoreUnavailable } from '../../store.ts'
import { asStoreFailure, explain, isBusy, isFailedSync, isFull, LOCK_RETRY_MS, LOCK_WAIT_MS } from '../failures.ts'
import type { Wal } from './wal.ts'
import { type Write, writeBatch, WriteQueue, type Written } from './write-queue.ts'

/** How long `close` waits for the last sync. */
const LAST_SYNC_MS = 1000

type State = { name: 'open' } | { name: 'overdue' | 'broken'; refusal: StoreUnavailable }
type Phase = 'idle' | 'writing' | 'syncing'

const OPEN: State = { name: 'open' }

export interface TransactionOptions {
  /** The write-ahead log to sync after each commit; without it, COMMIT itself syncs. */
  wal?: Wal | undefined
  /** How long a write or a read waits for a sync. */
  syncWaitMs?: number
  /** Called once when a sync has failed. From then on every call is refused. */
  onBroken?: ((error: StoreUnavailable) => void) | undefined
}

export class Transactions {
  /** The durable commits so far, and the writes in them. */
  readonly synced: CommitStats = { commits: 0, writes: 0 }
  /** The commits whose sync is in progress. */
  unsynced: CommitStats = { commits: 0, writes: 0 }
  /** Whether the last write found no room. */
  isFull = false
  readonly #db: DatabaseSync
  readonly #wal: Wal | undefined
  readonly #syncWaitMs: number
  readonly #onBroken: (error: StoreUnavailable) => void
  readonly #queue = new WriteQueue()
  #state: State = OPEN
  #phase: Phase = 'idle'
  /** Resolves when the last sync has ended or is overdue; the state then says which. */
  #syncing: Promise<void> | undefined
  #closed: PromiseWithResolvers<void> | undefined

  constructor(db: DatabaseSync, { wal, syncWaitMs = LOCK_WAIT_MS.call, onBroken = () => {} }: TransactionOptions = {}) {
    this.#db = db
    this.#wal = wal
    this.#syncWaitMs = syncWaitMs
    this.#onBroken = onBroken
  }

  /** Whether a sync has failed. Until the next start recovers the log, it is unknown which of the last commits the disk has. */
  get isBroken(): boolean {
    return this.#state.name === 'broken'
  }

  /** Runs `work` inside a transaction and resolves with its result once the commit is durable. Moves the store's version. */
  write<T>(work: () => T): Promise<T> {
    return this.writeTogether(work, runEach<T>)
  }

  /** Like `write`, for items that `all` writes together at less cost; it returns the result of each. */
  writeTogether<I, T>(item: I, all: (items: readonly I[]) => readonly T[]): Promise<T> {
    if (this.#state.name !== 'open') return Promise.reject(this.#state.refusal)
    if (this.#closed !== undefined) return Promise.reject(new StoreUnavailable('the database is closed'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.add({ item, all, resolve, reject, deadline: performance.now() + LOCK_WAIT_MS.call })
      if (this.#phase === 'idle') void this.#writeAll()
    })
  }

  /**
   * Runs a read. Its result may include a commit that a power cut could still undo, so it waits for the sync in progress.
   * Retries without blocking the event loop while the file is locked, which is rare for readers in WAL mode.
   */
  async read<T>(work: () => T): Promise<T> {
    let deadline: number | undefined
    for (;;) {
      try {
        const found = work()
        if (this.#phase === 'syncing') await this.#syncing
        if (this.#state.name !== 'open') throw this.#state.refusal
        return found
      } catch (error) {
        deadline ??= performance.now() + LOCK_WAIT_MS.call
        if (!isBusy(error) || performance.now() > deadline) throw asStoreFailure(error)
        await setTimeout(LOCK_RETRY_MS)
      }
    }
  }

  /** Refuses new writes, and resolves when all queued writes are durable or refused. Rejects with `CannotCloseStore`. */
  async close(): Promise<void> {
    this.#closed ??= Promise.withResolvers()
    if (this.#phase === 'idle' || this.isBroken) this.#closed.resolve()
    const closed = this.#closed.promise
    await withinTime(closed, LAST_SYNC_MS).catch(() => {
      if (this.#phase === 'syncing') throw new CannotCloseStore('the disk did not sync the last writes')
      return closed
    })
  }

  /** Checkpoints a long log, unless a batch is being written: `#writeAll` does it after each batch. */
  shortenWal(): void {
    if (this.#phase === 'idle') this.#shortenWal()
  }

  /** Refuses all calls for good, after a failed sync in another process. */
  giveUp(error: unknown): void {
    this.#refuse('broken', error)
  }

  /** Writes batch after batch until nothing is left to write. */
  async #writeAll(): Promise<void> {
    this.#phase = 'writing'
    let isLockedOut = false
    while (this.#queue.length > 0) {
      await (isLockedOut ? setTimeout(LOCK_RETRY_MS) : this.#queue.gather())
      if (this.isBroken) break
      const started = performance.now()
      const batch = this.#queue.takeAll()
      const committed = this.#commitOrBreak(batch)
      // A commit blocks the event loop, so what is queued now was put back until its deadline: another process holds the lock.
      isLockedOut = this.#queue.length > 0
      if (committed.length > 0 && this.#wal !== undefined) await this.#sync(this.#wal, batch)
      // COMMIT itself has synced, or it failed. A failed one may have taken effect, and is counted all the same.
      else this.#countSynced()
      for (const { write, result } of committed) {
        if (this.#state.name === 'broken') write.reject(this.#state.refusal)
        else write.resolve(result as never)
      }
      if (this.#wal === undefined) continue
      this.#queue.expectNextOf(batch, performance.now() - started)
      // Sends the responses before the checkpoint blocks the event loop.
      await setImmediate()
      this.#shortenWal()
    }
    this.#phase = 'idle'
    this.#closed?.resolve()
  }

  /** Like `#commit`, but refuses the whole batch after a failed sync. */
  #commitOrBreak(batch: readonly Write[]): Written[] {
    try {
      return this.#commit(batch)
    } catch (error) {
      this.#break(error, batch)
      return []
    }
  }

  /** Returns the writes that were committed; the others were rejected or queued again. Throws if a sync inside SQLite failed. */
  #commit(batch: readonly Write[]): Written[] {
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      const written = writeBatch(batch)
      // Counted before COMMIT, because a COMMIT that fails may have taken effect.
      this.unsynced.commits += 1
      this.#db.exec('COMMIT')
      this.unsynced.writes += batch.length
      this.isFull = false
      return written
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      if (isFailedSync(error)) throw error
      if (isFull(error)) this.isFull = true
      if (isBusy(error)) this.#queue.putBack(batch, error)
      // A write that fails must not fail the others, so each gets a separate transaction.
      else if (batch.length > 1) return batch.flatMap((write) => this.#commit([write]))
      else batch[0]!.reject(asStoreFailure(error))
      return []
    }
  }

  /** Resolves when the sync has ended. If it fails or is overdue, the batch and all other calls are refused. */
  async #sync(wal: Wal, batch: readonly Write[]): Promise<void> {
    this.#phase = 'syncing'
    const sync = wal.sync().then(
      () => this.#syncEnded(),
      (error: unknown) => this.#break(error, batch),
    )
    this.#syncing = withinTime(sync, this.#syncWaitMs).catch((error: unknown) => {
      this.#refuse('overdue', error, batch)
    })
    await this.#syncing
    await sync
    this.#phase = 'writing'
  }

  /** Runs before the reads that wait for the sync resume, because they have read the version that it counts. */
  #syncEnded(): void {
    this.#countSynced()
    if (this.#state.name === 'overdue') this.#state = OPEN
  }

  /** Refuses these writes, the queued writes and all later calls. */
  #refuse(name: 'overdue' | 'broken', error: unknown, batch: readonly Write[] = []): StoreUnavailable {
    const refusal = new StoreUnavailable(`the disk did not sync: ${explain(error)}`, { cause: error })
    if (!this.isBroken) this.#state = { name, refusal }
    for (const write of [...batch, ...this.#queue.takeAll()]) write.reject(refusal)
    if (this.isBroken) this.#closed?.resolve()
    return refusal
  }

  #break(error: unknown, batch: readonly Write[] = []): void {
    this.#onBroken(this.#refuse('broken', error, batch))
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
      if (isFailedSync(error)) this.#break(error)
    }
  }
}

function runEach<T>(works: readonly (() => T)[]): T[] {
  return works.map((work) => work())
}
