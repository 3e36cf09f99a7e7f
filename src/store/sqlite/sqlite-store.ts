// The embedded engine: one file, and one connection in each process.
import { factsOfStore } from '../facts.ts'
import type { OpenOptions, Store } from '../store.ts'
import { SqliteAccounts } from './accounts.ts'
import { createDataVersion } from './data-version.ts'
import { openDatabase } from './database.ts'
import { SqliteFacts } from './facts.ts'
import { SqliteImports } from './imports.ts'
import { SqlitePets } from './pets.ts'
import { SqliteRecords } from './records.ts'
import { Writer } from './writer.ts'

/** How often an idle process checkpoints for the others. In this time two processes write a few megabytes. */
const SHORTEN_EVERY_MS = 100

/** Opens the file at `path`, or creates it unless `create` is false; throws `CannotOpenStore` with a message for the operator. */
export function openSqliteStore(path: string, options: OpenOptions = {}): Store {
  const { db, opened, wal } = openDatabase(path, options)
  const writer = new Writer(db, { wal, onBroken: options.serving?.onBroken })
  // Other processes of the instance make the log grow even while this process writes nothing.
  const isShared = options.serving?.checkpoints === true && (options.processes ?? 1) > 1
  const shortening = isShared ? setInterval(() => writer.shortenWal(), SHORTEN_EVERY_MS).unref() : undefined
  const version = createDataVersion(db, writer)
  const ask = db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1')
  return {
    opened,
    pets: new SqlitePets(db, writer),
    accounts: new SqliteAccounts(db, writer),
    imports: new SqliteImports(db, writer),
    records: new SqliteRecords(db, writer),
    ...factsOfStore(new SqliteFacts(db, writer)),
    version,
    versionToRead: () => version() + writer.unsyncedDataCommits,
    connections: () => undefined,
    commits: () => ({ commits: writer.dataCommits, writes: writer.dataWrites }),
    async ping() {
      await writer.read(() => ask.get())
    },
    async close() {
      await writer.close()
      clearInterval(shortening)
      // Closing would copy the log to the database file without verifying its checksums.
      if (writer.isBroken) return
      wal?.close()
      db.close()
    },
  }
}
