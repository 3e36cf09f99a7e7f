// Opens the store at a database address, with the engine that the address names.
import { type DatabaseAddress, describeDatabase } from '../database/database-address.ts'
import type { Check } from '../database/check.ts'
import { CannotOpenStore, type Observe, type OpenOptions, type Store } from '../store.ts'

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
    const { openSqliteStore } = await import('../sqlite/sqlite-store.ts')
    return openSqliteStore(address.path, options)
  }
  const { openPostgresStore } = await import('../postgres/postgres-store.ts')
  return openPostgresStore(address.url, options)
}

type Method = (...parameters: unknown[]) => Promise<unknown>
type Methods = Record<string, Method>

/** Returns the store with the calls to its parts observed; its own methods, such as `ping`, are not. */
function observed(store: Store, observe: Observe): Store {
  const parts = Object.entries(store).map(([name, value]) => [
    name,
    isPart(value) ? observedPart(name, value, observe) : value,
  ])
  return Object.fromEntries(parts) as Store
}

/** Whether it has methods alone, unlike `opened`. */
function isPart(value: unknown): value is Methods {
  return typeof value === 'object' && Object.values(value as object).every((each) => typeof each === 'function')
}

/** Wraps each method of a part; all of them return a promise. */
function observedPart(part: string, methods: Methods, observe: Observe): Methods {
  const wrapped = Object.entries(methods).map(([name, method]): [string, Method] => {
    const call = `${part}.${name}`
    const observedMethod: Method = (...parameters) => {
      const end = observe(call)
      const answer = method(...parameters)
      if (end !== undefined) answer.then(end, end)
      return answer
    }
    return [name, observedMethod]
  })
  return Object.fromEntries(wrapped)
}

/** Checks the database without changing it, even one that can't be opened for serving. */
export async function checkDatabase(
  address: DatabaseAddress,
  clock: () => number,
  processes: number,
): Promise<Check[]> {
  if (address.engine === 'sqlite') {
    const { checkSqlite } = await import('../sqlite/check-database.ts')
    return checkSqlite(address.path, processes)
  }
  const { checkPostgres } = await import('../postgres/check-database.ts')
  return checkPostgres(address.url, clock)
}
