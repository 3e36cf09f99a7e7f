// Opens the store at a database address, with the engine that the address names.
import { type DatabaseAddress, describeDatabase } from './database-address.ts'
import type { Check } from './check.ts'
import { CannotOpenStore, type Observe, type OpenOptions, type Store } from './store.ts'

/** Throws `CannotOpenStore`. */
export async function openStore(address: DatabaseAddress, options: OpenOptions = {}): Promise<Store> {
  const store = await openEngine(address, options)
  try {
    if (options.unfinished !== true && (await store.isUnfinishedCopy())) {
      throw new CannotOpenStore(
        `${describeDatabase(address)} holds a copy that was interrupted; run the same copy again to finish it.`,
      )
    }
    return options.observe === undefined ? store : observed(store, options.observe)
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

/** Returns the store with the calls to its parts measured; its own methods, such as `ping`, are not. */
function observed(store: Store, observe: Observe): Store {
  return {
    ...store,
    pets: observedPart('pets', store.pets, observe),
    accounts: observedPart('accounts', store.accounts, observe),
    categories: observedPart('categories', store.categories, observe),
    imports: observedPart('imports', store.imports, observe),
    records: observedPart('records', store.records, observe),
  }
}

type Method = (...parameters: unknown[]) => Promise<unknown>

/** Wraps each method of a part; all of them return a promise. */
function observedPart<T extends object>(part: string, methods: T, observe: Observe): T {
  const measured = Object.entries<Method>(methods as Record<string, Method>).map(([name, call]): [string, Method] => [
    name,
    async (...parameters) => {
      const started = performance.now()
      try {
        return await call(...parameters)
      } finally {
        observe(`${part}.${name}`, (performance.now() - started) / 1000)
      }
    },
  ])
  return Object.fromEntries(measured) as T
}

/** Checks the database without changing it, even one that can't be opened for serving. */
export async function checkDatabase(address: DatabaseAddress, clock: () => number): Promise<Check[]> {
  if (address.engine === 'sqlite') {
    const { checkSqlite } = await import('./sqlite/check-database.ts')
    return checkSqlite(address.path, clock())
  }
  const { checkPostgres } = await import('./postgres/check-database.ts')
  return checkPostgres(address.url, clock)
}
