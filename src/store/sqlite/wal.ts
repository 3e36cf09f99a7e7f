// The write-ahead log of a store that serves requests: synced outside the event loop, and kept short.
import { closeSync, fdatasync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'

/** So many frames, of a page each, are copied to the database file at a time: as many as SQLite itself would wait for. */
const CHECKPOINT_FRAMES = 1000

/** With a log of 16 MB other processes wait, so that all of it is copied and it starts anew. */
const RESTART_FRAMES = 4000

export interface Wal {
  /** Resolves when everything that was committed before the call is durable. */
  sync(): Promise<void>
  /** Copies the log to the database file if it has become long; blocks meanwhile. */
  shorten(): void
  close(): void
}

/** Opens the log of a database for syncs. A process that does not checkpoint leaves it to another to keep the log short. */
export function openWal(db: DatabaseSync, checkpoints: boolean): Wal {
  const syncData = promisify(fdatasync)
  // SQLite resolves links: the log lies beside the real file. Windows syncs only what is open for writing.
  const file = openSync(`${db.location()}-wal`, 'r+')
  const measure = db.prepare('PRAGMA wal_checkpoint(NOOP)')

  function shorten(): void {
    const { log, checkpointed } = measure.get() as { log: number; checkpointed: number }
    if (log - checkpointed < CHECKPOINT_FRAMES) return
    db.exec(`PRAGMA wal_checkpoint(${log < RESTART_FRAMES ? 'PASSIVE' : 'RESTART'})`)
  }

  return { sync: () => syncData(file), shorten: checkpoints ? shorten : () => {}, close: () => closeSync(file) }
}
