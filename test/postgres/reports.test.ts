// What the operator is told about PostgreSQL: lost, found, another host, an old primary, a missing limit.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { NoWrites, type Report, type Store } from '../../src/store/store.ts'
import { startPetstore } from '../harness/harness.ts'
import { until } from '../harness/until.ts'
import {
  openAt,
  openInTime,
  openPostgres,
  slowCall,
  tell,
  unavailable,
  untilWorks,
} from '../harness/databases/open-postgres.ts'

interface Watched extends AsyncDisposable {
  store: Store
  /** The level and message of each report. */
  reported: string[]
}

async function watch(url: string): Promise<Watched> {
  const reported: string[] = []
  const report: Report = ({ level, message }) => void reported.push(`${level}: ${message.replace(/:.*/, '')}`)
  const store = await openAt(url, { report })
  return { store, reported, [Symbol.asyncDispose]: () => store.close() }
}

describe('the store on PostgreSQL reports', { concurrency: false }, () => {
  it('a primary that was replaced, and does not use it; nothing of other clusters, PgBouncer, or where the database does not tell', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    await opened.store.close()
    await tell(
      sql,
      `CREATE TABLE told.server AS SELECT 16 AS timeline, 7::bigint AS identifier;
      CREATE FUNCTION told.pg_walfile_name(pg_lsn) RETURNS TEXT LANGUAGE sql AS $$SELECT lpad(to_hex(timeline), 8, '0') || '0000000000000001' FROM told.server$$;
      CREATE FUNCTION told.pg_control_system() RETURNS TABLE (system_identifier BIGINT) LANGUAGE sql AS $$SELECT identifier FROM told.server$$;`,
    )
    await using watched = await watch(opened.url)
    await using behindPgbouncer = await watch(`${opened.url}pgbouncer=true`)
    const { store, reported } = watched
    await sql`UPDATE told.server SET timeline = 15`
    await opened.endBackends()
    await behindPgbouncer.store.ping()
    await behindPgbouncer.store.close()
    for (let call = 0; call < 3; call += 1)
      await assert.rejects(store.ping(), unavailable(/it is on timeline 15, but 16 was seen before/))
    const { made } = opened.proxy.connections()
    await until(async () => {
      await store.ping().catch(() => {})
      return opened.proxy.connections().made > made + 1
    }, 'it is tried again')
    await until(async () => (await opened.backends()).length === 0, 'no connection to it stays open')
    await sql`UPDATE told.server SET timeline = 17`
    await untilWorks(() => store.ping())
    const expected = ['error: database lost', 'notice: database found']
    assert.deepEqual(reported, expected)
    // A cluster that was set up anew, and a database that refuses to tell.
    await sql`UPDATE told.server SET timeline = 1, identifier = 8`
    await opened.endBackends()
    await store.ping()
    await sql`CREATE OR REPLACE FUNCTION told.pg_walfile_name(pg_lsn) RETURNS TEXT LANGUAGE plpgsql AS
      $$BEGIN RAISE insufficient_privilege; END$$`
    await opened.endBackends()
    await store.ping()
    assert.deepEqual([reported, behindPgbouncer.reported], [expected, []])
  })

  it('that the server was replaced or restarted behind the same address', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    await opened.store.close()
    await tell(
      sql,
      `CREATE TABLE told.start AS SELECT now() AS at;
      CREATE FUNCTION told.pg_postmaster_start_time() RETURNS TIMESTAMPTZ LANGUAGE sql AS $$SELECT at FROM told.start$$;`,
    )
    await using watched = await watch(opened.url)
    const { store, reported } = watched
    for (const change of ['0 s', '1 s']) {
      assert.deepEqual(reported, [])
      await sql`UPDATE told.start SET at = at + ${change}::text::interval`
      await opened.endBackends()
      await store.ping()
    }
    assert.deepEqual(reported, ['notice: database server was replaced or restarted'])
  })

  it('that the role behind PgBouncer has no limit for statements, with a statement that sets one, whatever its name', async () => {
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
      await sql.unsafe(/ALTER ROLE .* SET statement_timeout.*$/.exec(warning)![0])
      assert.deepEqual(await warnings(), [])
    } finally {
      await sql.unsafe(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`)
    }
  })
})

it('/readyz tells apart a busy pool, a database without writes and one that is unavailable', async (context) => {
  await using opened = await openPostgres()
  await using petstore = await openInTime(() =>
    startPetstore({ database: `${opened.url}pool_size=1&connect_timeout=1&statement_timeout=60000` }),
  )
  const readiness = async () => ((await (await fetch(`${petstore.url}/readyz`)).json()) as { message: string }).message
  const unlock = await opened.lock('LOCK TABLE accounts')
  const slow = slowCall(petstore)
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
})
