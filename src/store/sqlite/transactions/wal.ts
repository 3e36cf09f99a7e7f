// For a store that serves requests: syncs its write-ahead log outside the event loop, and keeps the log short.
import { closeSync, fdatasync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import type { Report } from '../../store.ts'
import { LOCK_WAIT_MS } from '../failures.ts'

/** How often the length of the log is measured. Measuring takes 10 µs, as long as a small commit. */
const MEASURE_EVERY_MS = 10

/** A checkpoint begins when the log has this many new frames, of a page each: the default of SQLite's own checkpoints. */
const CHECKPOINT_FRAMES = 1000

/**
 * With two writing processes a passive checkpoint never catches up. Past this length, 16 MB, this process blocks the other
 * writer until the rest is copied and the log restarts.
 */
const RESTART_FRAMES = 4000

/**
 * The bytes that the file of the log stays below, unless a process reads from the database for long, such as a backup: what is
 * written meanwhile stays in the log. Past this, the log is truncated as soon as that process has ended. Attempts are rare, because
 * each holds up all writes.
 */
export const WAL_LIMIT = 64_000_000
const LONG_FRAMES = WAL_LIMIT / 4096
const LONG_RETRY_MS = 1000

export interface Wal {
  /** Resolves when everything that was committed before the call is durable. */
  sync(): Promise<void>
  /** Checkpoints the log if it has become long; blocks the event loop meanwhile. */
  shorten(): void
  close(): void
}

/**
 * Opens the log of a database for syncs, instead of SQLite's own syncs and checkpoints. Without `checkpoints`, as in a worker, the first
 * process keeps the log short.
 */
export function openWal(db: DatabaseSync, checkpoints: boolean, report: Report = () => {}): Wal {
  db.exec('PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0')
  const syncFile = promisify(fdatasync)
  // `location` has symbolic links resolved: the log lies beside the real file. Windows syncs only files open for writing.
  const file = openSync(`${db.location()}-wal`, 'r+')
  const measure = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  /** The length at the last attempt, so that a checkpoint that a reader has blocked is not repeated at once. */
  let tried = 0
  let triedAt = -Infinity
  let measuredAt = 0
  /** The length that the next warning is due at. */
  let warnAt = LONG_FRAMES

  function shorten(): void {
    const now = performance.now()
    if (now - measuredAt < MEASURE_EVERY_MS) return
    measuredAt = now
    const { log, checkpointed } = measure.get() as { log: number; checkpointed: number }
    reportLength(log)
    if (log < tried) tried = 0
    const isLong = log > LONG_FRAMES
    const isDue = isLong ? now - triedAt >= LONG_RETRY_MS : log - Math.max(checkpointed, tried) >= CHECKPOINT_FRAMES
    if (!isDue) return
    tried = log
    triedAt = now
    if (log < RESTART_FRAMES) db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    else restart(db, isLong ? 'TRUNCATE' : 'RESTART')
  }

  /** Warns when the log gets long, and each time that it has doubled. */
  function reportLength(log: number): void {
    if (log < LONG_FRAMES && warnAt > LONG_FRAMES) {
      warnAt = LONG_FRAMES
      report({ level: 'notice', message: 'the write-ahead log is short again' })
    } else if (log > warnAt) {
      warnAt = 2 * log
      const message = 'the write-ahead log grows while another process, such as a backup, reads from the database'
      report({ level: 'warn', message, details: { megabytes: Math.round((log * 4096) / 1e6) } })
    }
  }

  return { sync: () => syncFile(file), shorten: checkpoints ? shorten : () => {}, close: () => closeSync(file) }
}

function restart(db: DatabaseSync, mode: 'RESTART' | 'TRUNCATE'): void {
  db.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_MS.restart}`)
  try {
    db.exec(`PRAGMA wal_checkpoint(${mode})`)
  } finally {
    db.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_MS.statement}`)
  }
}
