// A migration on PostgreSQL beside whoever holds a table: it waits for as long as that takes, says for whom, and holds up no request.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import connectTo, { type Sql } from 'postgres'
import { postgres } from '../harness/databases/engines.ts'
import { startPostgres } from '../harness/databases/postgres-server.ts'
import { until } from '../harness/until.ts'
import { type Migration, readMigrations } from '../../src/store/database/migrations.ts'
import { parseConnection } from '../../src/store/postgres/pool/connection-settings.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { Pool } from '../../src/store/postgres/pool.ts'
import { changedProgram } from '../harness/programs/changed-program.ts'

/** How long a request may take beside a migration; the service gives up after 5 s. */
const REQUEST_MOST_MS = 4000

const own = readMigrations('store/postgres/migrations/')

/** A migration that needs the animals for itself. */
const NEWER: readonly Migration[] = [
  ...own,
  {
    number: own.length + 1,
    name: 'newer',
    compatibleFrom: 1,
    hash: '',
    sql: 'ALTER TABLE pets ADD COLUMN nickname TEXT;',
    concurrentIndex: undefined,
  },
]

interface Migrating {
  /** Resolves with the names of the migrations that were applied. */
  applied: Promise<string[]>
  isOver: () => boolean
  /** What the migration says that it waits for. */
  said: string[]
}

/** Migrates as an instance does at its start. */
function startMigrating(url: string, migrations: readonly Migration[]): Migrating {
  const pool = new Pool(parseConnection(url))
  const said: string[] = []
  const onWait = (message: string) => void said.push(message)
  const options = { create: true, pgbouncer: false, migrations, onWait }
  let isOver = false
  const run = async () => {
    try {
      return (await pool.writeWithin(100_000, (sql) => migrate(sql, options)))!.map(({ name }) => name)
    } finally {
      isOver = true
      await pool.end()
    }
  }
  const applied = run()
  applied.catch(() => {})
  return { applied, isOver: () => isOver, said }
}

/** A connection with a transaction that holds what these statements lock. */
async function hold(url: string, program: string, ...statements: string[]): Promise<Sql & AsyncDisposable> {
  const sql = connectTo(url.replace(/\?.*/, ''), {
    max: 1,
    onnotice: () => {},
    connection: { application_name: program },
  })
  for (const statement of ['BEGIN ISOLATION LEVEL REPEATABLE READ', ...statements]) await sql.unsafe(statement)
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) })
}

/** Lists and creates, as requests do, in turn until the function that it returns is called, which waits until some more have succeeded. */
function startRequests(url: string): () => Promise<void> {
  const sql = connectTo(url.replace(/\?.*/, ''), { max: 1, connection: { statement_timeout: REQUEST_MOST_MS } })
  let enough = Infinity
  let count = 0
  const run = async () => {
    for (; count < enough; count += 1) {
      await sql`SELECT id, name, category_id, status FROM pets ORDER BY id DESC LIMIT 20`
      await sql`INSERT INTO pets (name, category_id, status) VALUES ('Rex', 3, 'available')`
    }
  }
  const requests = run()
  requests.catch(() => {})
  return async () => {
    enough = count + 3
    try {
      await requests
    } finally {
      await sql.end({ timeout: 1 })
    }
  }
}

describe('a migration on PostgreSQL', { concurrency: false }, () => {
  for (const [index, { name, concurrentIndex }] of own.entries()) {
    if (index === 0) continue
    it(`lets lists and creates go on while a backup reads every table: ${name}`, async () => {
      await using database = await postgres.newEmptyDatabase()
      const { url } = database
      await startMigrating(url, own.slice(0, index)).applied
      const tables = await readTables(url)
      await using backup = await hold(url, 'pg_dump', `LOCK TABLE ${tables} IN ACCESS SHARE MODE`, 'SELECT 1 FROM pets')
      const stopRequests = startRequests(url)
      const migrating = startMigrating(url, own.slice(0, index + 1))
      await until(() => migrating.isOver() || migrating.said.length > 0, 'it is over, or says what it waits for')
      if (!migrating.isOver())
        assert.match(
          migrating.said[0]!,
          new RegExp(
            concurrentIndex === undefined
              ? `^The migration ${name} waits for session \\d+ \\(pg_dump, role petstore, idle in transaction, begun [^)]+\\)\\.$`
              : `^The migration ${name} builds an index .* these hold it up: SELECT pg_blocking_pids\\(\\d+\\)$`,
          ),
        )
      await stopRequests()
      await backup.end()
      assert.deepEqual(await migrating.applied, [name])
    })
  }

  it('says that a prepared transaction, which has no session, holds it up', async () => {
    await using stack = new AsyncDisposableStack()
    const server = stack.adopt(await startPostgres('max_prepared_transactions=1'), (started) => started.end())
    const { url } = server
    await startMigrating(url, own).applied
    await using forgotten = await hold(url, 'forgotten', 'UPDATE pets SET name = name')
    await forgotten.unsafe("PREPARE TRANSACTION 'forgotten'")
    const migrating = startMigrating(url, NEWER)
    await until(() => migrating.said.length > 0, 'it says what it waits for')
    assert.equal(migrating.said[0], 'The migration newer waits for a prepared transaction (see pg_prepared_xacts).')
    await forgotten.unsafe("ROLLBACK PREPARED 'forgotten'")
    assert.deepEqual(await migrating.applied, ['newer'])
  })

  it('names the session also to a role that may not see what it does, in a schema of another name', async () => {
    await using database = await postgres.newEmptyDatabase()
    const { url } = database
    const role = `keeper_${new URL(url).pathname.slice(1)}`
    await using admin = await hold(url, 'admin', 'COMMIT')
    await admin.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'keeper'; CREATE SCHEMA "Our shop" AUTHORIZATION ${role};
      ALTER ROLE ${role} SET search_path = "Our shop"; ALTER ROLE ${role} SET lock_timeout = '10ms'`)
    try {
      const keeper = url.replace(/\/\/[^@]+@/, `//${role}:keeper@`)
      await startMigrating(keeper, own).applied
      await using report = await hold(url, 'report', 'SELECT count(*) FROM "Our shop".pets')
      const migrating = startMigrating(keeper, NEWER)
      await until(() => migrating.said.length > 0, 'it says what it waits for')
      assert.match(migrating.said[0]!, /^The migration newer waits for session \d+ \(report, role petstore\)\.$/)
      await report.end()
      assert.deepEqual(await migrating.applied, ['newer'])
    } finally {
      await admin.unsafe(`DROP SCHEMA "Our shop" CASCADE; DROP ROLE ${role}`)
    }
  })

  it('makes a start say what it waits for, and a signal ends that start', async () => {
    await using folder = await changedProgram(own.length, `-- compatible from 1\n${NEWER.at(-1)!.sql}\n`)
    await using database = await postgres.newEmptyDatabase()
    const { url } = database
    await startMigrating(url, own).applied
    const tables = await readTables(url)
    await using backup = await hold(url, 'pg_dump', `LOCK TABLE ${tables} IN ACCESS SHARE MODE`, 'SELECT 1 FROM pets')
    for (const words of ['migrate', 'serve --port 0']) {
      const child = folder.start(words.split(' '), { env: { DATABASE_URL: url } })
      let said = ''
      for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (text: Buffer) => (said += String(text)))
      const ended = once(child, 'exit')
      await until(() => said.includes(`waits for session`), 'it says what it waits for')
      assert.match(said, /The migration \d{4}-newer waits for session \d+ \(pg_dump, /)
      child.kill('SIGTERM')
      await ended
    }
    await backup.end()
  })
})

async function readTables(url: string): Promise<string> {
  const sql = connectTo(url.replace(/\?.*/, ''), { max: 1 })
  const rows = await sql<
    { name: string }[]
  >`SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`
  await sql.end()
  return rows.map(({ name }) => name).join()
}
