// The embedded engine: one file, and one connection in each process.
import type { DatabaseSync } from 'node:sqlite'
import { type Facts, factsOfStore } from '../environment.ts'
import { CannotCloseStore, type OpenOptions, type Store } from '../store.ts'
import { sqliteAccounts } from './accounts.ts'
import { sqliteCategories } from './categories.ts'
import { openDatabase, prepareExact } from './database.ts'
import { sqliteImports, sqlitePets } from './pets.ts'
import { sqlitePeople } from './people.ts'
import { sqliteRecords } from './records.ts'
import { Transactions } from './transactions.ts'

/** How often an idle process looks at the log: with others, which write a few megabytes in this time, and after a long reader has ended. */
const SHORTEN_EVERY_MS = { withOthers: 100, alone: 1000 }

/** Opens the file at `path`, or creates it unless `create` is false; throws `CannotOpenStore` with a message for the operator. */
export function openSqliteStore(path: string, options: OpenOptions = {}): Store {
  const { db, opened, wal } = openDatabase(path, options)
  const transactions = new Transactions(db, { wal, onBroken: options.serving?.onBroken })
  const everyMs = SHORTEN_EVERY_MS[(options.processes ?? 1) > 1 ? 'withOthers' : 'alone']
  const shortening = options.serving?.checkpoints
    ? setInterval(() => transactions.shortenWal(), everyMs).unref()
    : undefined
  const version = countVersions(db, transactions)
  const ask = db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1')
  return {
    opened,
    pets: sqlitePets(db, transactions),
    accounts: { ...sqliteAccounts(db, transactions), ...sqlitePeople(db, transactions) },
    categories: sqliteCategories(db, transactions),
    imports: sqliteImports(db, transactions),
    records: sqliteRecords(db, transactions),
    ...factsOfStore(sqliteFacts(db, transactions)),
    version,
    versionToRead: () => version() + transactions.unsynced.commits,
    partitions: undefined,
    connections: () => undefined,
    commits: () => transactions.synced,
    giveUp: () => transactions.giveUp(new Error('it has failed in another process of this instance')),
    async ping() {
      await transactions.read(() => ask.get())
    },
    async close() {
      await transactions.close()
      clearInterval(shortening)
      // Closed before: the file descriptor of the log may be another file's by now.
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
 * Returns a function that reads the version (`Store.version`): its own commits of data plus the changes by other
 * connections. A read takes 2 µs, cheap enough for every turn of the event loop.
 */
function countVersions(db: DatabaseSync, transactions: Transactions): () => number {
  const dataVersion = db.prepare('PRAGMA data_version')
  dataVersion.setReturnArrays(true)
  let seen: number | undefined
  let otherChanges = 0

  /** Returns a number that differs after every commit of another connection; undefined while a lock prevents reading it. */
  function readDataVersion(): number | undefined {
    try {
      return (dataVersion.get() as unknown as [number])[0]
    } catch {
      return undefined
    }
  }

  return () => {
    const current = readDataVersion()
    if (current === undefined || current !== seen) otherChanges += 1
    seen = current
    return transactions.synced.commits + otherChanges
  }
}

function sqliteFacts(db: DatabaseSync, transactions: Transactions): Facts {
  const find = db.prepare('SELECT value FROM store_facts WHERE name = ?')
  const set = prepareExact(db, 'INSERT OR REPLACE INTO store_facts (name, value) VALUES (?, ?)')
  const remove = prepareExact(db, 'DELETE FROM store_facts WHERE name = ?')
  const read = (name: string) => (find.get(name) as { value: string } | undefined)?.value
  return {
    get: (name) => transactions.read(() => read(name)),
    change: (name, present, value) =>
      transactions.write(() => {
        if (read(name) !== present) return read(name)
        if (value === undefined) remove.run(name)
        else set.run(name, value)
        return value
      }),
  }
}
