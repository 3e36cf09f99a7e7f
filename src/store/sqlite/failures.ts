// Classifies SQLite's errors: which mean that the database is unavailable, and what they mean to an operator.
import { StoreUnavailable } from '../store.ts'

/** Primary result codes, as in sqlite.org/rescode.html. */
const BUSY = 5
const FULL = 13
const EXPLANATIONS: Record<number, string> = {
  [BUSY]: 'another process holds its lock',
  6: 'another connection holds its lock',
  8: 'it is read-only; the file and its folder must be writable for the user that runs this',
  10: 'reading or writing the disk failed',
  11: 'the file is damaged; restore it from a backup',
  [FULL]: 'the disk is full, or no id is left',
  14: 'it cannot be opened; does the folder exist, and may this user read and write it?',
  26: 'it is not a SQLite database',
}

function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | undefined)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

/** How long a call waits for a lock that another process holds, and the pause between two attempts. */
export const LOCK_WAIT_MS = 3000
export const LOCK_RETRY_MS = 10

/** SQLITE_IOERR_FSYNC, with which SQLite reports that one of its own syncs failed. */
const FAILED_SYNC = 10 | (4 << 8)

/** Whether a sync within SQLite failed: at a checkpoint, when the log restarts, or in a commit that syncs. */
export function isFailedSync(error: unknown): boolean {
  return (error as { errcode?: unknown } | undefined)?.errcode === FAILED_SYNC
}

/** SQLITE_IOERR_SHMSIZE: no room for the -shm file. */
const NO_SHARED_MEMORY = 10 | (19 << 8)

/** Whether the disk is full: the same call may work when there is room again. */
export function isFull(error: unknown): boolean {
  const { errcode, code } = (error ?? {}) as { errcode?: unknown; code?: unknown }
  return primaryCode(error) === FULL || errcode === NO_SHARED_MEMORY || code === 'ENOSPC'
}

export function isBusy(error: unknown): error is Error {
  return primaryCode(error) === BUSY
}

export function explain(error: unknown): string {
  const known = EXPLANATIONS[isFull(error) ? FULL : (primaryCode(error) ?? -1)]
  const said = error instanceof Error ? error.message : String(error)
  return known === undefined ? said : `${known} (SQLite: ${said})`
}

/** Returns `StoreUnavailable` for a failure of the disk, the file or a lock; any other error is a bug and returned as it is. */
export function asStoreFailure(error: unknown): unknown {
  if (EXPLANATIONS[primaryCode(error) ?? -1] === undefined && !isClosed(error)) return error
  return new StoreUnavailable(explain(error), { cause: error })
}

/** Whether the call came after the store was closed. */
function isClosed(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'ERR_INVALID_STATE'
}
