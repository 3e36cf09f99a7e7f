// A migration that builds an index on PostgreSQL: creates go on, several instances agree, and an interruption is made good.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { postgres } from '../harness/databases/engines.ts'
import { until } from '../harness/until.ts'
import { type Migration, readMigrations } from '../../src/store/database/migrations.ts'
import { parseConnection } from '../../src/store/postgres/pool/connection-settings.ts'
import { asStoreFailure } from '../../src/store/postgres/pool/failures.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { Pool } from '../../src/store/postgres/pool.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { readSchema } from '../harness/databases/database-schema.ts'
import { type OpenPostgres, openPostgres, rex } from '../harness/databases/open-postgres.ts'

/** No create may take longer, whatever is built meanwhile: most of them wait for a commit, a few milliseconds. One that is blocked ends after 5 s. */
const CREATE_MOST_MS = 4000

const own = readMigrations('store/postgres/migrations/')

/** The migrations of a newer program: a column, an index on it that is built while creates go on, and a table. */
const NEWER: readonly Migration[] = [
  { sql: 'ALTER TABLE pets ADD COLUMN nickname TEXT;', concurrentIndex: undefined },
  { sql: 'CREATE INDEX CONCURRENTLY pets_by_nickname ON pets (nickname, id);', concurrentIndex: 'pets_by_nickname' },
  { sql: 'CREATE TABLE toys (id INTEGER);', concurrentIndex: undefined },
].map((migration, index) => ({
  ...migration,
  number: own.length + index + 1,
  name: `newer-${index + 1}`,
  compatibleFrom: 1,
  hash: '',
}))
const NAMES = NEWER.map(({ name }) => name)

/** Starts as an instance of a newer program does; resolves with the names of the migrations that it applied. */
async function start(url: string, migrations = [...own, ...NEWER], pgbouncer = false): Promise<string[]> {
  const pool = new Pool(parseConnection(url))
  try {
    const applied = await pool.writeWithin(100_000, (sql) => migrate(sql, { create: true, pgbouncer, migrations }))
    return applied!.map(({ name }) => name)
  } finally {
    await pool.end()
  }
}

/** A table that lacks only the index, and a transaction on it: until that ends, no index on it can be finished. */
async function openUnfinished(): Promise<OpenPostgres & { release: () => Promise<void> }> {
  const opened = await openPostgres()
  await start(opened.url, [...own, NEWER[0]!])
  const release = await opened.lock(`INSERT INTO pets (id, name, category_id, status) VALUES (-1, 'Rex', 1, 'sold')`)
  return { ...opened, release }
}

/** Resolves with the process that builds the index, once it does. */
async function untilBuilding({ sql }: OpenPostgres): Promise<number> {
  let found: { pid: number }[] = []
  await until(async () => {
    found = await sql`SELECT pid FROM pg_stat_progress_create_index WHERE datname = current_database()`
    return found.length > 0
  }, 'the index is being built')
  return found[0]!.pid
}

async function findIndex({ sql }: OpenPostgres): Promise<{ oid: number; valid: boolean } | undefined> {
  const [found] = await sql<{ oid: number; valid: boolean }[]>`
    SELECT indexrelid::int AS oid, indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('pets_by_nickname')`
  return found
}

async function appliedNames({ sql }: OpenPostgres): Promise<unknown[]> {
  const rows = await sql`SELECT name FROM store_migrations WHERE number > ${own.length} ORDER BY number`
  return rows.map((row) => row['name'])
}

it('A migration on PostgreSQL whose connection breaks is no failed migration: a later start may apply it', async () => {
  await using opened = await openPostgres()
  const unlock = await opened.lock('LOCK TABLE pets')
  const failed = assert.rejects(
    start(opened.url, [...own, NEWER[0]!]),
    (error) => asStoreFailure(error) instanceof StoreUnavailable,
  )
  await opened.untilBlocked(1)
  await opened.endBackends()
  await Promise.all([failed, unlock()])
  assert.deepEqual(await start(opened.url, [...own, NEWER[0]!]), NAMES.slice(0, 1))
})

it('A migration on PostgreSQL that meets a table of its own name fails under its own name: only the first one blames another program', async () => {
  await using opened = await openPostgres()
  await opened.sql`CREATE TABLE toys (name TEXT)`
  const [, , toys] = NEWER
  await assert.rejects(
    start(opened.url, [...own, { ...toys!, number: own.length + 1 }]),
    /^CannotOpenStore: Cannot open the database in PostgreSQL: migration newer-3 failed, nothing was changed: .*toys/,
  )
})

describe('an index on PostgreSQL', { concurrency: false }, () => {
  it('lets creates go on meanwhile, and is made by one of several instances that start at once', async () => {
    await using opened = await openUnfinished()
    const starting = Promise.all([start(opened.url), start(opened.url), start(opened.url)])
    await untilBuilding(opened)
    let slowest = 0
    const create = async () => {
      const began = performance.now()
      assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
      slowest = Math.max(slowest, performance.now() - began)
    }
    for (let created = 0; created < 50; created += 1) await create()
    assert.equal((await findIndex(opened))?.valid, false, 'it is still being built')
    const [ended] = await Promise.all([starting, opened.release(), ...Array.from({ length: 50 }, create)])
    assert.deepEqual(ended.flat().toSorted(), NAMES.slice(1))
    assert.equal((await findIndex(opened))?.valid, true)
    assert.deepEqual(await appliedNames(opened), NAMES)
    assert.ok(slowest < CREATE_MOST_MS, `the slowest create took ${Math.round(slowest)} ms`)
  })

  it('is made again where PostgreSQL was interrupted: what that left is invalid', async () => {
    await using opened = await openUnfinished()
    const failed = assert.rejects(start(opened.url), (error) => asStoreFailure(error) instanceof StoreUnavailable)
    await opened.sql`SELECT pg_terminate_backend(${await untilBuilding(opened)})`
    await failed
    await opened.release()
    assert.equal((await findIndex(opened))?.valid, false)
    assert.deepEqual(await appliedNames(opened), NAMES.slice(0, 1))
    assert.deepEqual(await start(opened.url), NAMES.slice(1))
    assert.equal((await findIndex(opened))?.valid, true)
  })

  it('is not made again where the instance died and PostgreSQL went on: the next one waits for that', async () => {
    await using opened = await openUnfinished()
    const pool = new Pool(parseConnection(opened.url))
    const options = { create: true, pgbouncer: false, migrations: [...own, ...NEWER] }
    const failed = assert.rejects(pool.writeWithin(100_000, (sql) => migrate(sql, options)))
    await untilBuilding(opened)
    await Promise.all([pool.end(), failed])
    const building = await findIndex(opened)
    const next = start(opened.url)
    await opened.sql`SELECT pg_sleep(1)`
    assert.deepEqual(await findIndex(opened), building)
    await opened.release()
    assert.deepEqual(await next, NAMES.slice(1))
    assert.deepEqual(await findIndex(opened), { ...building, valid: true })
  })
})

describe('a migration that builds an index on PostgreSQL', { concurrency: false }, () => {
  it('takes longer than a statement may, as other migrations may, and leaves neither that limit off nor its lock', async () => {
    await using opened = await openPostgres()
    const slow = { ...NEWER[0]!, sql: `${NEWER[0]!.sql} SELECT pg_sleep(1.5);` }
    const release = await opened.lock('LOCK TABLE categories IN ROW EXCLUSIVE MODE; SELECT pg_current_xact_id()')
    const pool = new Pool(parseConnection(`${opened.url}pool_size=1&connect_timeout=30&statement_timeout=1000`))
    try {
      const options = { create: true, pgbouncer: false, migrations: [...own, slow, ...NEWER.slice(1)] }
      const migrated = pool.writeWithin(100_000, (sql) => migrate(sql, options))
      await Promise.race([migrated, untilBuilding(opened)])
      await opened.sql`SELECT pg_sleep(1.5)`
      await release()
      assert.equal((await migrated)?.length, NEWER.length)
      const [left] = await pool.read(
        (sql) => sql`
          SELECT current_setting('statement_timeout') AS limit,
            (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks`,
      )
      assert.deepEqual({ ...left }, { limit: '1s', locks: 0 })
    } finally {
      await pool.end()
    }
  })

  it('is tried again by the next start where the data did not allow it, and says so', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    await start(opened.url, [...own, NEWER[0]!])
    await sql`INSERT INTO pets (name, category_id, status, nickname) VALUES ('Rex', 1, 'sold', 'R'), ('Rob', 1, 'sold', 'R')`
    const unique = { ...NEWER[1]!, sql: 'CREATE UNIQUE INDEX CONCURRENTLY pets_by_nickname ON pets (nickname);' }
    const migrations = [...own, NEWER[0]!, unique]
    await assert.rejects(
      start(opened.url, migrations),
      /migration newer-2 failed, the next start tries it again: .*unique/,
    )
    await sql`UPDATE pets SET nickname = NULL`
    assert.deepEqual(await start(opened.url, migrations), ['newer-2'])
    assert.equal((await findIndex(opened))?.valid, true)
  })

  it('is made in its own schema, whatever index another schema of the database has', async () => {
    await using opened = await openPostgres()
    const { sql } = opened
    await sql.unsafe(`CREATE SCHEMA shop CREATE TABLE pets (nickname TEXT)
      CREATE INDEX pets_by_nickname ON pets (nickname)`)
    assert.deepEqual(await start(opened.url), NAMES)
    assert.equal((await findIndex(opened))?.valid, true)
  })

  it('is refused behind PgBouncer, with what to do', async () => {
    await using opened = await openPostgres()
    await assert.rejects(
      start(opened.url, undefined, true),
      /^CannotOpenStore: Migration newer-2 builds an index .* can't be done through PgBouncer\. Run the command migrate once/,
    )
    assert.equal(await findIndex(opened), undefined)
  })

  it('runs with all others in one transaction on a new database', async () => {
    await using database = await postgres.newEmptyDatabase()
    const broken = { ...NEWER[2]!, sql: 'INSERT INTO nowhere VALUES (1);' }
    await assert.rejects(start(database.url, [...own, ...NEWER.slice(0, 2), broken], true), /nothing was changed/)
    assert.deepEqual(await readSchema(database.url), {})
    assert.equal((await start(database.url, undefined, true)).length, own.length + NEWER.length)
  })
})
