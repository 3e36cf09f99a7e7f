// From a database address to an open store; the only place that knows all engines.
import type { DatabaseAddress } from '../config.ts'
import type { Store } from './store.ts'

/** An engine is loaded only when it is used. */
export async function openStore(address: DatabaseAddress): Promise<Store> {
  if (address.engine === 'sqlite') {
    const { openSqliteStore } = await import('./sqlite/sqlite-store.ts')
    return openSqliteStore(address.path)
  }
  const { openPostgresStore } = await import('./postgres/postgres-store.ts')
  return openPostgresStore(address.url)
}
