// Opens the store at a database address; the only place that knows all engines.
import { type DatabaseAddress, databasePlace } from '../config.ts'
import { CannotOpenStore, type Store } from './store.ts'

/** Throws `CannotOpenStore`; also for an unfinished copy, unless the caller asks for it with `unfinished`. */
export async function openStore(address: DatabaseAddress, { unfinished = false } = {}): Promise<Store> {
  const store = await openEngine(address)
  if (unfinished || !(await store.isUnfinishedCopy())) return store
  await store.close()
  throw new CannotOpenStore(`${databasePlace(address)} holds a copy that was interrupted; run the same petstore copy again to finish it.`)
}

/** Loads only the engine that is used. */
async function openEngine(address: DatabaseAddress): Promise<Store> {
  if (address.engine === 'sqlite') {
    const { openSqliteStore } = await import('./sqlite/sqlite-store.ts')
    return openSqliteStore(address.path)
  }
  const { openPostgresStore } = await import('./postgres/postgres-store.ts')
  return openPostgresStore(address.url)
}
