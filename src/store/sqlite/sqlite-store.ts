// The embedded engine: one file, and one connection in each process.
import { statfs } from 'node:fs/promises'
import type { DatabaseSync } from 'node:sqlite'
import { factsOfStore } from '../database/environment.ts'
import { sharedParts } from '../shared-parts.ts'
import { CannotCloseStore, DISK_FULL, NoWrites, type OpenOptions, type Store } from '../store.ts'
import { openDatabase } from './database.ts'
import { folderOf } from './database-files.ts'
import { sqlitePets } from './pets.ts'
import { sqliteRecords } from './records.ts'
import { sqliteSql } from './sql.ts'
import { Transactions } from './transactions/transactions.ts'

/** How often an idle process looks at the log: with others, which write a few megabytes in this time, and after a long reader has ended. */
const SHORTEN_EVERY_MS = { withOthers: 100, alone: 1000 }

/** More than a create writes. */
const LEAST_ROOM = 1024 * 1024

/** Opens the file at `path`, or creates it unless `create` is false; throws `CannotOpenStore` with a message for the operator. */
export function openSqliteStore(path: string, options: OpenOptions = {}): Store {
  const { db, opened, wal } = openDatabase(path, options)
  const transactions = new Transactions(db, { wal, onBroken: options.serving?.onBroken })
  const everyMs = SHORTEN_EVERY_MS[(options.processes ?? 1) > 1 ? 'withOthers' : 'alone']
  const shortening = options.serving?.checkpoints
    ? setInterval(() => transactions.shortenWal(), everyMs).unref()
    : undefined
  const version = countVersions(db, transactions)
  const versionAfterSync = () => version() + transactions.unsynced.commits
  const sql = sqliteSql(db, transactions)
  const ask = db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1')
  return {
    opened,
    pets: sqlitePets(db, transactions, sql, versionAfterSync),
    ...sharedParts(sql),
    records: sqliteRecords(sql),
    ...factsOfStore(sql),
    version,
    versionAfterSync,
    connections: () => undefined,
    commits: () => transactions.synced,
    giveUp: () => transactions.giveUp(new Error('it has failed in another process of this instance')),
    async ping() {
      await transactions.read(() => ask.get())
      if (!transactions.isFull) return
      // While it is not ready, no write may come that shows that there is room again.
      const { bavail, bsize } = await statfs(folderOf(path))
      if (bavail * bsize < LEAST_ROOM) throw new NoWrites('the disk is full', { publicReason: DISK_FULL })
    },
    async close() {
      await transactions.close()
      clearInterval(shortening)
      // If it was closed before, the file descriptor of the log may belong to another file by now.
      if (!db.isOpen) return
      // Closing would copy the log to the database file without verifying its checksums. The log of a command has no commit whose
      // sync failed: SQLite syncs inside COMMIT, and undoes one that fails.
      if (transactions.isBroken && wal !== undefined) throw new CannotCloseStore('a sync of the database has failed')
      wal?.close()
      db.close()
    },
  }
}

/**
 * Returns a function that reads the version (`Store.version`): its own commits plus the changes by other
 * connections. A read takes 2 µs, cheap enough for every turn of the event loop.
 */
function countVersions(db: DatabaseSync, transactions: Transactions): () => number {
  const dataVersion = db.prepare('PRAGMA data_version')
  dataVersion.setReturnArrays(true)
  let seen: number | undefined
  let otherChanges = 0
  return () => {
    let current: number | undefined
    try {
      // Differs after every commit of another connection.
      ;[current] = dataVersion.get() as unknown as [number]
    } catch {
      // While a lock prevents reading it, anything may have changed.
    }
    if (current === undefined || current !== seen) otherChanges += 1
    seen = current
    return transactions.synced.commits + otherChanges
  }
}
