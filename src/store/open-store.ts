// Opens the store at a database address; the only place that knows all engines.
import { type DatabaseAddress, databasePlace } from '../config.ts'
import { CannotOpenStore, type Store } from './store.ts'

interface OpenOptions {
  /** Whether a copy that was interrupted may be opened. */
  unfinished?: boolean
  /** Whether a missing database is created; else that throws `NoDatabase`. */
  create?: boolean
}

/** Throws `CannotOpenStore`. */
export async function openStore(address: DatabaseAddress, { unfinished = false, create = true }: OpenOptions = {}): Promise<Store> {
  const store = await openEngine(address, create)
  if (unfinished || !(await store.isUnfinishedCopy())) return store
  await store.close()
  throw new CannotOpenStore(`${databasePlace(address)} holds a copy that was interrupted; run the same copy again to finish it.`)
}

/** Loads only the engine that is used. */
async function openEngine(address: DatabaseAddress, create: boolean): Promise<Store> {
  if (address.engine === 'sqlite') {
    const { openSqliteStore } = await import('./sqlite/sqlite-store.ts')
    return openSqliteStore(address.path, create)
  }
  const { openPostgresStore } = await import('./postgres/postgres-store.ts')
  return openPostgresStore(address.url, create)
}
