// Opens the store at a database address; the only place that knows all engines.
import { type DatabaseAddress, databasePlace } from '../database-address.ts'
import type { Check } from './check.ts'
import { CannotOpenStore, type OpenOptions, type Store } from './store.ts'

/** Throws `CannotOpenStore`. */
export async function openStore(address: DatabaseAddress, options: OpenOptions = {}): Promise<Store> {
  const store = await openEngine(address, options)
  try {
    if (options.unfinished !== true && (await store.isUnfinishedCopy())) {
      throw new CannotOpenStore(
        `${databasePlace(address)} holds a copy that was interrupted; run the same copy again to finish it.`,
      )
    }
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Loads only the engine that is used. */
async function openEngine(address: DatabaseAddress, options: OpenOptions): Promise<Store> {
  if (address.engine === 'sqlite') {
    const { openSqliteStore } = await import('./sqlite/sqlite-store.ts')
    return openSqliteStore(address.path, options)
  }
  const { openPostgresStore } = await import('./postgres/postgres-store.ts')
  return openPostgresStore(address.url, options)
}

/** Checks the database without changing it, whatever its state. */
export async function checkDatabase(address: DatabaseAddress, clock: () => number): Promise<Check[]> {
  if (address.engine === 'sqlite') {
    const { checkSqlite } = await import('./sqlite/check-database.ts')
    return checkSqlite(address.path, clock())
  }
  const { checkPostgres } = await import('./postgres/check-database.ts')
  return checkPostgres(address.url, clock)
}
