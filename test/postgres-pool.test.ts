// The connections to PostgreSQL are shared fairly: never more than asked for, some always left to reads, none lost for good.
import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { describe, it } from 'node:test'
import timers, { setImmediate } from 'node:timers/promises'
import { readConfig } from '../src/config.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { openStore } from '../src/store/open-store.ts'
import { Connection } from '../src/store/postgres/connection.ts'
import { type Store, StoreUnavailable } from '../src/store/store.ts'
import { until } from '../assurance/harness/until.ts'
import { openPostgres, tell, TOLD_START, untilWorks } from './open-postgres.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

/** Starts creates that do not share a statement, and tells for each whether it was done. */
async function createMany({ pets }: Store, count: number): Promise<Promise<unknown>[]> {
  const outcomes: Promise<unknown>[] = []
  for (let nth = 0; nth < count; nth += 1) {
    outcomes.push(
      pets.create(rex).then(
        () => 'created',
        (error: unknown) => error,
      ),
    )
    await setImmediate()
    await setImmediate()
  }
  return outcomes
}

describe('connections to PostgreSQL', { concurrency: false, timeout: 120_000 }, () => {
  it('that log in and then do not answer hold up no call for good', async () => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=1&statement_timeout=500')
    const { store, proxy } = opened
    proxy.holdStatements()
    for (let round = 0; round < 3; round += 1) await assert.rejects(store.ping(), StoreUnavailable)
    await assert.rejects(store.pets.create(rex), StoreUnavailable)
    proxy.passStatements()
    await untilWorks(() => store.ping())
    await untilWorks(() => store.pets.create(rex))
    await until(async () => (await opened.backends()).length <= 2, 'there are no more connections than the pool has')
  })

  it('leave a share to reads while every create waits for a lock', async () => {
    await using opened = await openPostgres('pool_size=4&connect_timeout=60&statement_timeout=60000')
    const { store } = opened
    // Conflicts with writes only.
    const unlock = await opened.lock('LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE')
    const creates = await createMany(store, 24)
    await opened.untilBlocked(3)
    for (let round = 0; round < 10; round += 1) assert.deepEqual(await store.pets.list({ limit: 21 }), [])
    // A pool that is busy is no reason to take an instance out of service.
    await store.ping()
    assert.deepEqual(
      await Promise.all(Array.from({ length: 10 }, () => store.accounts.listAccounts())),
      Array.from({ length: 10 }, () => []),
    )
    await opened.untilBlocked(3)
    await unlock()
    assert.deepEqual(new Set(await Promise.all(creates)), new Set(['created']))
  })

  it('leave a quarter to reads, not only one', async () => {
    await using opened = await openPostgres('pool_size=8&connect_timeout=60&statement_timeout=60000')
    const { store } = opened
    const unlock = await opened.lock('LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE')
    const creates = await createMany(store, 8)
    await opened.untilBlocked(6)
    const { inUse, idle, waiting } = store.connections()!
    assert.deepEqual([inUse, idle, waiting], [6, 0, 2])
    await unlock()
    assert.deepEqual(new Set(await Promise.all(creates)), new Set(['created']))
  })

  it('that the role may not have fail no call while others work; when it may, they are used', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    const role = `limited_${crypto.randomUUID().replaceAll('-', '')}`
    await sql.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'limited' CONNECTION LIMIT 3`)
    await sql.unsafe(
      `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ${role}`,
    )
    const url = new URL(`${opened.url}pool_size=8&connect_timeout=60&statement_timeout=60000`)
    url.username = role
    url.password = 'limited'
    const store = await openStore(readConfig({ database: url.href }, {}).database)
    try {
      for (let round = 0; round < 5; round += 1) {
        const lists = Array.from({ length: 20 }, () => store.pets.list({ limit: 1 }))
        const creates = await createMany(store, 20)
        assert.deepEqual(new Set(await Promise.all(creates)), new Set(['created']))
        await Promise.all(lists)
      }
      await sql.unsafe(`ALTER ROLE ${role} CONNECTION LIMIT 8`)
      await until(async () => {
        await Promise.all(await createMany(store, 20))
        return (await opened.backends()).length > 3
      }, 'more connections are used')
    } finally {
      await store.close()
      await sql.unsafe(`DROP OWNED BY ${role}`)
      await sql.unsafe(`DROP ROLE ${role}`)
    }
  })

  it('that are refused are tried again after pauses of half a minute at most, which are short again after a success', async ({
    mock,
  }) => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=60&statement_timeout=60000')
    const { store } = opened
    let time = performance.now()
    mock.method(performance, 'now', () => time)
    const [first] = await opened.backends()
    const unlock = await opened.lock('LOCK TABLE accounts')
    const calls = [store.accounts.listAccounts()]
    await opened.untilBlocked(1)
    const open = Connection.open.bind(Connection)
    let isRefused = true
    const opening = mock.method(Connection, 'open', (...parameters: Parameters<typeof open>) =>
      isRefused ? Promise.reject(new Error('too many connections')) : open(...parameters),
    )
    /** How many connections one more call tries to open, this many milliseconds later. */
    const triedAfter = async (ms: number) => {
      time += ms
      const before = opening.mock.callCount()
      calls.push(store.accounts.listAccounts())
      await setImmediate()
      return opening.mock.callCount() - before
    }
    const assertPause = async (ms: number) => assert.deepEqual([await triedAfter(ms - 1), await triedAfter(1)], [0, 1])
    assert.equal(await triedAfter(0), 1)
    for (const ms of [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) await assertPause(ms)
    isRefused = false
    assert.equal(await triedAfter(30_000), 1)
    await opened.untilBlocked(2)
    isRefused = true
    const tries = opening.mock.callCount()
    for (const pid of await opened.backends()) if (pid !== first) await opened.sql`SELECT pg_terminate_backend(${pid})`
    await until(() => opening.mock.callCount() > tries, 'the second connection is missed')
    await assertPause(250)
    isRefused = false
    await unlock()
    await Promise.all(calls)
  })

  it('whose server is gone without a word do not keep their places, the second time neither', async () => {
    await using opened = await openPostgres('pool_size=3&statement_timeout=2000')
    const { store, proxy } = opened
    for (let time = 0; time < 2; time += 1) {
      const unlock = await opened.lock('LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE')
      const creates = await createMany(store, 2)
      await opened.untilBlocked(2)
      proxy.silence()
      for (const outcome of await Promise.all(creates)) assert.ok(outcome instanceof StoreUnavailable)
      await unlock()
      await untilWorks(() => store.pets.create(rex))
      await until(async () => store.connections()!.parked === 0, 'none is parked')
      await until(() => proxy.connections().open <= 3, 'there are no more connections than the pool has')
    }
  })

  it('of overdue writes behind PgBouncer, which hides their processes, are closed only when the server was replaced', async ({
    mock,
  }) => {
    await using opened = await openPostgres()
    const { sql } = opened
    await opened.store.close()
    await tell(sql, `${TOLD_START} CREATE FUNCTION told.pg_backend_pid() RETURNS INTEGER LANGUAGE sql AS $$SELECT 1$$;`)
    const { setTimeout: pause } = timers
    // The pool asks about such connections every second.
    mock.method(timers, 'setTimeout', (ms: number, value: unknown, options: object) =>
      pause(ms === 1000 ? 10 : ms, value, options),
    )
    syncBuiltinESMExports()
    const url = `${opened.url}pgbouncer=true&pool_size=2&connect_timeout=60&statement_timeout=300`
    const store = await openStore(readConfig({ database: url }, {}).database)
    try {
      const unlock = await opened.lock('LOCK TABLE told.pets IN SHARE ROW EXCLUSIVE MODE')
      await assert.rejects(store.pets.create(rex), StoreUnavailable)
      const asking = () => sql<{ pid: number; state: string }[]>`
        SELECT pid, state FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'petstore'
          AND query LIKE '%SELECT pid FROM pg_stat_activity%'`
      await until(async () => (await asking()).some(({ state }) => state === 'idle'), 'the pool has asked')
      await sql`SELECT pg_sleep(0.1)`
      assert.equal(store.connections()!.parked, 1)
      await sql`UPDATE told.start SET at = at + interval '1 s'`
      for (const { pid } of await asking()) await sql`SELECT pg_terminate_backend(${pid})`
      await until(() => store.connections()!.parked === 0, 'it is closed')
      await unlock()
    } finally {
      mock.restoreAll()
      syncBuiltinESMExports()
      await store.close()
    }
  })

  it('are divided among the processes of an instance, and each has one at least', async () => {
    await using opened = await openPostgres()
    const unlock = await opened.lock('LOCK TABLE accounts')
    const calls: Promise<unknown>[] = []
    await using stores = new AsyncDisposableStack()
    let open = opened.proxy.connections().open
    for (const [size, processes, expected] of [
      [8, 4, 2],
      [7, 4, 1],
      [2, 4, 1],
    ] as const) {
      const url = `${opened.url}pool_size=${size}&connect_timeout=60&statement_timeout=60000`
      const store = await openStore(readConfig({ database: url }, {}).database, { processes })
      stores.defer(() => store.close())
      calls.push(...Array.from({ length: 3 }, () => store.accounts.listAccounts()))
      await until(async () => store.connections()!.inUse === expected, `${expected} of ${size} are used`)
      assert.equal(store.connections()!.waiting, 3 - expected)
      open += expected
      assert.equal(opened.proxy.connections().open, open, 'none is being opened')
    }
    await unlock()
    await Promise.all(calls)
  })

  it('are replaced after half an hour, so that a change of DNS takes effect, and not before', async ({ mock }) => {
    await using opened = await openPostgres('pool_size=1')
    const { store } = opened
    const now = performance.now.bind(performance)
    let minutes = 29
    mock.method(performance, 'now', () => now() + minutes * 60_000)
    const before = await opened.backends()
    for (let round = 0; round < 2; round += 1) await store.ping()
    assert.deepEqual(await opened.backends(), before)
    minutes = 31
    for (let round = 0; round < 2; round += 1) await store.ping()
    await until(async () => !(await opened.backends()).includes(before[0]!), 'the old connection has ended')
    await store.ping()
  })

  it('are counted for who looks: in use, idle, waiting, and which server', async () => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=60&statement_timeout=60000')
    const { store } = opened
    const host = new URL(opened.url).host
    assert.deepEqual(store.connections(), { inUse: 0, idle: 1, parked: 0, waiting: 0, host, role: 'primary' })
    const unlock = await opened.lock('LOCK TABLE accounts')
    const calls = Array.from({ length: 5 }, () => store.accounts.listAccounts())
    await opened.untilBlocked(2)
    assert.deepEqual(store.connections(), { inUse: 2, idle: 0, parked: 0, waiting: 3, host, role: 'primary' })
    await unlock()
    await Promise.all(calls)
    assert.deepEqual(store.connections(), { inUse: 0, idle: 2, parked: 0, waiting: 0, host, role: 'primary' })
  })
})
