// The write-ahead log of a store that serves requests: synced outside the event loop, and kept short.
import { closeSync, fdatasync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'

/** While serving, a wait inside SQLite would stop every other request, so writer.ts waits outside of it. */
export const SERVING_WAIT_MS = 2

/** How often the log is measured, which takes 10 µs: as long as a small commit. */
const MEASURE_EVERY_MS = 10

/** So many frames, of a page each, are copied to the database file at a time: as many as SQLite itself would wait for. */
const CHECKPOINT_FRAMES = 1000

/**
 * With two writing processes a checkpoint never catches up. Past this length, 16 MB, the other one is held up until the log
 * starts anew, for as long as it takes to copy the rest. A process that waits for the lock reads from the log for
 * `SERVING_WAIT_MS`, so this one must wait longer.
 */
const RESTART_FRAMES = 4000
const RESTART_WAIT_MS = 20

export interface Wal {
  /** Resolves when everything that was committed before the call is durable. */
  sync(): Promise<void>
  /** Copies the log to the database file if it has become long; blocks meanwhile. */
  shorten(): void
  close(): void
}

/** Opens the log of a database for syncs. A process that does not checkpoint leaves it to another to keep the log short. */
export function openWal(db: DatabaseSync, checkpoints: boolean): Wal {
  const syncFile = promisify(fdatasync)
  // SQLite resolves links: the log lies beside the real file. Windows syncs only what is open for writing.
  const file = openSync(`${db.location()}-wal`, 'r+')
  const measure = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  /** The length at the last attempt: one that a reader has held up is not repeated at once. */
  let tried = 0
  let measuredAt = 0

  function shorten(): void {
    const now = performance.now()
    if (now - measuredAt < MEASURE_EVERY_MS) return
    measuredAt = now
    const { log, checkpointed } = measure.get() as { log: number; checkpointed: number }
    if (log < tried) tried = 0
    if (log - Math.max(checkpointed, tried) < CHECKPOINT_FRAMES) return
    tried = log
    if (log < RESTART_FRAMES) db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    else restart(db)
  }

  return { sync: () => syncFile(file), shorten: checkpoints ? shorten : () => {}, close: () => closeSync(file) }
}

function restart(db: DatabaseSync): void {
  db.exec(`PRAGMA busy_timeout = ${RESTART_WAIT_MS}`)
  try {
    db.exec('PRAGMA wal_checkpoint(RESTART)')
  } finally {
    db.exec(`PRAGMA busy_timeout = ${SERVING_WAIT_MS}`)
  }
}
