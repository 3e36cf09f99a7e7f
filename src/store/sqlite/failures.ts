// What an error of SQLite means, and how long to wait for a lock.
//
// | Meaning | A read or write (transactions.ts) | Opening (database.ts, migrate.ts) |
// |---|---|---|
// | locked | tried again for LOCK_WAIT_MS.call, then 503 | waits for LOCK_WAIT_MS.start; open-for-serving.ts tries again |
// | full | 503 | open-for-serving.ts tries again |
// | failed sync | 503 for good; `onBroken` ends the instance | refused |
// | unavailable | 503 | refused |
// | none: not in FAILURES | the error itself, as 500: a bug. `petstore copy` refuses the row (copy-store.ts) | refused |
//
// Commands (backup.ts, check-database.ts) wait for LOCK_WAIT_MS.command, then refuse with the explanation.
import { DISK_FULL, StoreUnavailable } from '../store.ts'

interface Failure {
  means: 'locked' | 'full' | 'failed sync' | 'unavailable'
  /** For the operator; without it, the error's own message. */
  explanation?: string
}

const full: Failure = { means: 'full', explanation: 'the disk is full, or no id is left' }
const unavailable = (explanation: string): Failure => ({ means: 'unavailable', explanation })
const diskFailed = unavailable('reading or writing the disk failed')

/** By the code of SQLite (sqlite.org/rescode.html) or Node.js. An extended code that is not here means what its primary code means. */
const FAILURES: Readonly<Record<string | number, Failure>> = {
  5: { means: 'locked', explanation: 'another process holds its lock' },
  6: unavailable('another connection holds its lock'),
  8: unavailable('it is read-only; the file and its folder must be writable for the user that runs this'),
  10: diskFailed,
  /** SQLITE_IOERR_FSYNC: at a checkpoint, when the log restarts, or in a commit that syncs. */
  1034: { ...diskFailed, means: 'failed sync' },
  /** SQLITE_IOERR_SHMSIZE: no room for the -shm file. */
  4874: full,
  11: unavailable('the file is damaged; restore it from a backup'),
  13: full,
  14: unavailable('it cannot be opened; does the folder exist, and may this user read and write it?'),
  26: unavailable('it is not a SQLite database'),
  ENOSPC: full,
  /** The store was closed. */
  ERR_INVALID_STATE: { means: 'unavailable' },
}

function failureOf(error: unknown): Failure | undefined {
  const { errcode, code } = (error ?? {}) as { errcode?: number; code?: string }
  return errcode === undefined ? FAILURES[code ?? ''] : (FAILURES[errcode] ?? FAILURES[errcode & 0xff])
}

export function isBusy(error: unknown): error is Error {
  return failureOf(error)?.means === 'locked'
}

export function isFull(error: unknown): boolean {
  return failureOf(error)?.means === 'full'
}

export function isFailedSync(error: unknown): boolean {
  return failureOf(error)?.means === 'failed sync'
}

export function explain(error: unknown): string {
  const explanation = failureOf(error)?.explanation
  const said = error instanceof Error ? error.message : String(error)
  return explanation === undefined ? said : `${explanation} (SQLite: ${said})`
}

/** Returns `StoreUnavailable`, which is answered with 503, for a failure of the table; any other error is returned as it is. */
export function asStoreFailure(error: unknown): unknown {
  const publicReason = isFull(error) ? DISK_FULL : undefined
  return failureOf(error) === undefined ? error : new StoreUnavailable(explain(error), { cause: error, publicReason })
}

/** How long to wait for a lock of another process. All but `call` wait inside SQLite, which blocks the event loop. */
export const LOCK_WAIT_MS = {
  /** A start or a command opens the database while another process starts or migrates. Later attempts, beside requests, do not wait. */
  start: 10_000,
  /** A start waits for readers of the log; writes of other processes wait too. */
  startForReaders: 100,
  /** A read or a write waits this long, in attempts of `statement`, with a pause of `LOCK_RETRY_MS` between them. */
  call: 3000,
  /** A statement of an open store. */
  statement: 2,
  /** A checkpoint that restarts the log: longer than `statement`, for which a process that waits to write holds a read lock. */
  restart: 20,
  /** Backup, restore and doctor. To find out whether its target is in use, restore does not wait. */
  command: 3000,
}

/** The pause between two attempts. */
export const LOCK_RETRY_MS = 10

/** Blocks the thread for that time, where it has nothing else to do before the database is open. */
export function pauseThread(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_RETRY_MS)
}
