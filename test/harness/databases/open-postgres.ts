// A store on a PostgreSQL database of its own, behind a proxy that can fail, with a connection by hand beside it.
import { setImmediate } from 'node:timers/promises'
import connectTo, { type Sql } from 'postgres'
import { newPostgresDatabase, postgres } from './engines.ts'
import { until } from '../until.ts'
import { readConfig } from '../../../src/config.ts'
import type { NewPet } from '../../../src/contract/pets.ts'
import { openStore } from '../../../src/store/opening/open-store.ts'
import { type OpenOptions, type Store, StoreUnavailable } from '../../../src/store/store.ts'
import { type CuttingProxy, startCuttingProxy } from './cutting-proxy.ts'

export const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

export interface OpenPostgres extends AsyncDisposable {
  store: Store
  /** The address of the store, through the proxy, with its parameters. */
  url: string
  proxy: CuttingProxy
  /** By hand, not through the proxy. */
  sql: Sql
  /** Process ids of the store's connections, as the server sees them. */
  backends(): Promise<number[]>
  /** Ends these processes, as a restart of the server would. */
  endBackends(): Promise<void>
  /** Holds what this statement locks, a table or rows, until the function it resolves with is called. */
  lock(statement: string): Promise<() => Promise<void>>
  /** Resolves when this many statements of the store wait for a lock. */
  untilBlocked(count: number): Promise<void>
}

/** `parameters` are those of the address, such as `pool_size=1`; `serverUrl` is a server of the test's own. */
export async function openPostgres(parameters = '', serverUrl?: string): Promise<OpenPostgres> {
  await using parts = new AsyncDisposableStack()
  const database = parts.use(
    serverUrl === undefined ? await postgres.newDatabase() : await newPostgresDatabase(serverUrl),
  )
  const proxy = parts.use(await startCuttingProxy(database.url))
  const sql = connectTo(database.url, { max: 4, onnotice: () => {} })
  parts.defer(() => sql.end({ timeout: 1 }))
  const url = `${proxy.url}?${parameters}`
  const store = await openInTime(() => openAt(url))
  parts.defer(() => store.close())

  const backends = async (blocked = false) => {
    const rows = await sql<{ pid: number; blocked: boolean }[]>`
      SELECT pid, wait_event_type IS NOT DISTINCT FROM 'Lock' AS blocked
      FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'petstore'`
    return rows.filter((row) => row.blocked || !blocked).map(({ pid }) => pid)
  }
  const disposal = parts.move()
  return {
    store,
    url,
    proxy,
    sql,
    backends: () => backends(),
    async endBackends() {
      for (const pid of await backends()) await sql`SELECT pg_terminate_backend(${pid})`
    },
    async lock(statement) {
      const locked = Promise.withResolvers<void>()
      const done = Promise.withResolvers<void>()
      const holding = sql.begin(async (transaction) => {
        await transaction.unsafe(statement)
        locked.resolve()
        await done.promise
      })
      // A test that fails while it holds the lock tells its own reason, not that the connection was closed under the lock.
      holding.catch(locked.reject)
      await locked.promise
      return async () => {
        done.resolve()
        await holding
      }
    },
    untilBlocked: (count) =>
      until(async () => (await backends(true)).length === count, `${count} statements wait for a lock`),
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  }
}

export function openAt(url: string, options?: OpenOptions): Promise<Store> {
  return openStore(readConfig({ database: url }, {}).database, options)
}

/** Opens something on PostgreSQL. Tests set short limits, which may elapse on a busy machine before the test begins: then it tries again. */
export async function openInTime<T>(open: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await open()
    } catch (error) {
      if (attempt === 10 || !/no answer within|statement timeout/.test(String(error))) throw error
    }
  }
}

/** Repeats a call until it does not fail. */
export function untilWorks(call: () => Promise<unknown>): Promise<void> {
  return until(async () => {
    await call()
    return true
  }, 'the call works')
}

/** Whether the call succeeds. */
export function works(call: Promise<unknown>): Promise<boolean> {
  return call.then(
    () => true,
    () => false,
  )
}

/** Checks that an error means an unavailable database, for this reason. */
export const unavailable = (message: RegExp) => (error: unknown) =>
  error instanceof StoreUnavailable && message.test(error.message)

/** A call that lasts for as long as the accounts are locked. */
export const slowCall = ({ store }: { store: Store }) => store.accounts.listAccounts()

/** Makes the store use this many connections at once; afterwards they are idle. */
export async function openConnections(opened: OpenPostgres, count: number): Promise<void> {
  const unlock = await opened.lock('LOCK TABLE accounts')
  const calls = Array.from({ length: count }, () => slowCall(opened))
  await opened.untilBlocked(count)
  await unlock()
  await Promise.all(calls)
}

/** Starts creates that do not share a statement. */
export async function startCreates({ pets }: Store, count: number): Promise<Promise<unknown>[]> {
  const creates: Promise<unknown>[] = []
  for (let nth = 0; nth < count; nth += 1) {
    const create = pets.create(rex)
    // It may fail before the test looks at it.
    create.catch(() => {})
    creates.push(create)
    await setImmediate()
    await setImmediate()
  }
  return creates
}

/** Makes the server tell what it is not: functions that are defined in the schema `told` come before its own. */
export async function tell(sql: Sql, definitions: string): Promise<void> {
  await sql.unsafe(`
    CREATE SCHEMA told;
    ${definitions}
    ALTER DATABASE ${sql.options.database} SET search_path = told, pg_catalog, public`)
}
