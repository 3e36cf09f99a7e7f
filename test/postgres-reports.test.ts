// What the operator is told about PostgreSQL: lost, found, another host, an old primary, a missing limit.
import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Sql } from 'postgres'
import { readConfig } from '../src/config.ts'
import { openStore } from '../src/store/open-store.ts'
import { NoWrites, type Store, StoreUnavailable } from '../src/store/store.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { startPetstore } from './harness.ts'
import { until } from '../assurance/harness/until.ts'
import { openInTime, openPostgres, tell, TOLD_START, untilWorks } from './open-postgres.ts'

interface Reported {
  level: string
  message: string
  host?: string
}

interface Watched extends AsyncDisposable {
  store: Store
  reported: Reported[]
}

async function watch(url: string): Promise<Watched> {
  const reported: Reported[] = []
  const store = await openStore(readConfig({ database: url }, {}).database, {
    report: ({ level, message, details }) => reported.push({ level, message, ...details }),
  })
  return { store, reported, [Symbol.asyncDispose]: () => store.close() }
}

/** Makes the server report timeline 16, or what the test sets: the search path puts this function before PostgreSQL's own. */
async function tellTimeline(sql: Sql): Promise<void> {
  await tell(
    sql,
    `CREATE TABLE told.timeline AS SELECT 16 AS number;
    CREATE FUNCTION told.pg_walfile_name(pg_lsn) RETURNS TEXT LANGUAGE sql AS $$SELECT lpad(to_hex(number), 8, '0') || '0000000000000001' FROM told.timeline$$;`,
  )
}

describe('the store on PostgreSQL reports', { concurrency: false, timeout: 120_000 }, () => {
  it('that the database is lost, and that it is found, once each', async () => {
    await using opened = await openPostgres()
    await using watched = await watch(opened.url)
    const { store, reported } = watched
    for (let round = 0; round < 2; round += 1) {
      opened.proxy.goAway()
      for (let call = 0; call < 10; call += 1) await assert.rejects(store.ping(), StoreUnavailable)
      opened.proxy.comeBack()
      await untilWorks(() => store.ping())
    }
    const messages = reported.map(({ level, message }) => `${level}: ${message}`)
    assert.deepEqual(messages, [
      'error: database lost',
      'notice: database found',
      'error: database lost',
      'notice: database found',
    ])
  })

  it('that another host is used, also the first one again', async () => {
    await using opened = await openPostgres()
    const direct = new URL(opened.url)
    direct.port = String(opened.sql.options.port[0])
    await using other = await startCuttingProxy(direct.href)
    await using watched = await watch(opened.url.replace(/@([^/]+)/, `@$1,${new URL(other.url).host}`))
    const { store, reported } = watched
    assert.equal(store.connections()!.host, new URL(opened.url).host)
    opened.proxy.goAway()
    await untilWorks(() => store.ping())
    assert.deepEqual(
      reported.map(({ message, host }) => [message, host]),
      [['database switched to another host', new URL(other.url).host]],
    )
    assert.equal(store.connections()!.host, new URL(other.url).host)
    opened.proxy.comeBack()
    other.goAway()
    await untilWorks(() => store.ping())
    assert.deepEqual(
      [reported.at(-1)?.message, reported.at(-1)?.host, reported.length],
      ['database switched to another host', new URL(opened.url).host, 2],
    )
  })

  it('a primary that was replaced, and does not use it', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    await opened.store.close()
    await tellTimeline(sql)
    await using watched = await watch(opened.url)
    const { store, reported } = watched
    await sql`UPDATE told.timeline SET number = 15`
    await opened.endBackends()
    for (let call = 0; call < 3; call += 1) {
      await assert.rejects(
        store.ping(),
        (error) =>
          error instanceof StoreUnavailable && /it is on timeline 15, but 16 was seen before/.test(error.message),
      )
    }
    const { made } = opened.proxy.connections()
    await until(async () => {
      await store.ping().catch(() => {})
      return opened.proxy.connections().made > made + 1
    }, 'it is tried again')
    await until(async () => (await opened.backends()).length === 0, 'no connection to it stays open')
    await sql`UPDATE told.timeline SET number = 17`
    await untilWorks(() => store.ping())
    assert.deepEqual(
      reported.map(({ message }) => message.replace(/:.*/, '')),
      ['database outdated', 'database lost', 'database found'],
    )
  })

  it('nothing of the lower timeline of another cluster, such as one that was set up anew, and uses it', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    await opened.store.close()
    await tellTimeline(sql)
    await sql.unsafe(`
      CREATE TABLE told.cluster AS SELECT 7::bigint AS identifier;
      CREATE FUNCTION told.pg_control_system() RETURNS TABLE (system_identifier BIGINT) LANGUAGE sql AS $$SELECT identifier FROM told.cluster$$`)
    await using watched = await watch(opened.url)
    await sql`UPDATE told.cluster SET identifier = 8`
    await sql`UPDATE told.timeline SET number = 1`
    await opened.endBackends()
    await watched.store.ping()
    assert.deepEqual(watched.reported, [])
  })

  it('nothing of timelines behind PgBouncer, where each statement may reach another server', async () => {
    await using opened = await openPostgres()
    await opened.store.close()
    await tellTimeline(opened.sql)
    await using watched = await watch(`${opened.url}pgbouncer=true`)
    await opened.sql`UPDATE told.timeline SET number = 15`
    await opened.endBackends()
    await watched.store.ping()
    assert.deepEqual(watched.reported, [])
  })

  it('nothing when another primary takes over, and uses no connection to the replaced one any more', async () => {
    await using opened = await openPostgres()
    const { sql, proxy } = opened
    await opened.store.close()
    await tellTimeline(sql)
    await using watched = await watch(`${opened.url}pool_size=3&connect_timeout=60&statement_timeout=60000`)
    const { store, reported } = watched
    for (const state of ['in use', 'idle'] as const) {
      const unlock = await opened.lock('LOCK TABLE told.accounts')
      const calls = [store.accounts.listAccounts(), store.accounts.listAccounts()]
      await opened.untilBlocked(2)
      const outdated = await opened.backends()
      await sql`UPDATE told.timeline SET number = number + 1`
      const held = state === 'idle' ? proxy.holdNextAnswer() : undefined
      const ping = store.ping()
      await (held?.arrived ?? ping)
      await unlock()
      await Promise.all([...calls, ping])
      if (held !== undefined) assert.equal(store.connections()!.idle, 2)
      held?.release()
      await until(
        async () => (await opened.backends()).every((pid) => !outdated.includes(pid)),
        `connections that were ${state} are closed`,
      )
      await store.ping()
    }
    assert.deepEqual(reported, [])
  })

  it('that the server was replaced or restarted behind the same address', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    await opened.store.close()
    await tell(sql, TOLD_START)
    await using watched = await watch(opened.url)
    const { store, reported } = watched
    for (const change of ['0 s', '1 s']) {
      assert.deepEqual(reported, [])
      await sql`UPDATE told.start SET at = at + ${change}::text::interval`
      await opened.endBackends()
      await store.ping()
    }
    assert.deepEqual(
      reported.map(({ level, message }) => [level, message]),
      [['notice', 'database server was replaced or restarted']],
    )
  })

  it('nothing of timelines where the database does not tell', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    await opened.store.close()
    await tell(
      sql,
      'CREATE FUNCTION told.pg_walfile_name(pg_lsn) RETURNS TEXT LANGUAGE plpgsql AS $$BEGIN RAISE insufficient_privilege; END$$;',
    )
    await using watched = await watch(opened.url)
    await watched.store.ping()
    assert.deepEqual(watched.reported, [])
  })

  it('that the role behind PgBouncer has no limit for statements, unless it has one', async () => {
    await using opened = await openPostgres()
    await using unlimited = await watch(`${opened.url}pgbouncer=true`)
    assert.match(unlimited.store.opened.warnings[0] ?? '', /ALTER ROLE \w+ SET statement_timeout/)
    await opened.sql.unsafe(`ALTER DATABASE ${opened.sql.options.database} SET statement_timeout = '5s'`)
    await using limited = await watch(`${opened.url}pgbouncer=true`)
    assert.deepEqual(limited.store.opened.warnings, [])
  })

  it('how to set that limit, with a statement that works as it is, whatever the name of the role', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    const role = `shop-${crypto.randomUUID()}`
    await sql.unsafe(
      `CREATE ROLE "${role}" LOGIN PASSWORD 'limited'; GRANT ALL ON ALL TABLES IN SCHEMA public TO "${role}"`,
    )
    const url = new URL(`${opened.url}pgbouncer=true`)
    url.username = role
    url.password = 'limited'
    try {
      const warnings = async () => {
        await using watched = await watch(url.href)
        return watched.store.opened.warnings
      }
      const [warning = ''] = await warnings()
      await sql.unsafe(/ALTER ROLE .*$/.exec(warning)![0])
      assert.deepEqual(await warnings(), [])
    } finally {
      await sql.unsafe(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`)
    }
  })

  it('counts that could not be settled', async () => {
    mock.timers.enable({ apis: ['setInterval'] })
    await using opened = await openPostgres()
    await using watched = await watch(opened.url)
    await opened.sql`ALTER TABLE pet_counts_progress RENAME TO elsewhere`
    mock.timers.tick(60_000)
    mock.timers.reset()
    await until(async () => watched.reported.length === 1, 'it is reported')
    assert.match(watched.reported[0]!.message, /counts by status could not be settled/)
  })

  it('nothing of counts that are settled, to the last one, nor after it is closed', async () => {
    mock.timers.enable({ apis: ['setInterval'] })
    await using opened = await openPostgres()
    const { sql } = opened
    await opened.store.close()
    await using watched = await watch(opened.url)
    // Ids more than one step apart: settling them takes several statements.
    for (const id of [1, 400_000, 1_000_000])
      await sql`INSERT INTO pets (id, name, category_id, status) VALUES (${id}, 'Rex', 3, 'sold')`
    await sql`UPDATE pet_counts_progress SET next_id = 1000000`
    mock.timers.tick(60_000)
    await until(
      async () => (await sql`SELECT 1 FROM pet_counts WHERE status = 'sold' AND count = 3`).length === 1,
      'all animals are counted',
    )
    await until(async () => watched.store.connections()!.inUse === 0, 'settling has ended')
    await watched.store.close()
    mock.timers.tick(60_000)
    mock.timers.reset()
    await setImmediate()
    assert.deepEqual(watched.reported, [])
  })
})

it(
  '/readyz tells apart a busy pool, a database without writes and one that is unavailable',
  { timeout: 60_000 },
  async (context) => {
    await using opened = await openPostgres()
    await using petstore = await openInTime(() =>
      startPetstore({ database: `${opened.url}pool_size=1&connect_timeout=1&statement_timeout=60000` }),
    )
    const readiness = async () =>
      ((await (await fetch(`${petstore.url}/readyz`)).json()) as { message: string }).message
    const unlock = await opened.lock('LOCK TABLE accounts')
    const slow = petstore.store.accounts.listAccounts()
    await opened.untilBlocked(1)
    assert.equal(await readiness(), 'All connections to the database are busy.')
    await unlock()
    await slow
    const readOnly = context.mock.method(petstore.store, 'ping', () => Promise.reject(new NoWrites('read-only')))
    assert.equal(await readiness(), 'The database accepts no writes.')
    readOnly.mock.restore()
    opened.proxy.goAway()
    assert.equal(await readiness(), 'The database does not answer.')
    assert.ok(petstore.logged.some(({ msg }) => msg === 'database lost'))
  },
)
