// Brings the schema up to date. Of several instances that start at once, one migrates and the others wait for it.
//
// The others poll for the lock. A statement that waits for a lock holds a snapshot, and CREATE INDEX CONCURRENTLY waits for
// the end of every older snapshot: the two would wait for each other.
import { setTimeout } from 'node:timers/promises'
import {
  type AppliedMigration,
  type Migration,
  migrationFailed,
  MIGRATIONS_TABLE,
  missingMigrations,
  readMigrations,
} from '../migrations.ts'
import { CannotOpenStore } from '../store.ts'
import { type Database, inTransaction } from './connection.ts'
import { explain, sqlState, wasRefused } from './failures.ts'
import { tryLock, withBriefLocks, withLock } from './schema-locks.ts'

/** How often an instance polls while another one migrates. */
const POLL_EVERY_MS = 200

const DUPLICATE_TABLE = '42P07'

const MIGRATIONS: readonly Migration[] = readMigrations('store/postgres/migrations/')

interface MigrateOptions {
  /** Whether to create the tables of an empty database. */
  create: boolean
  /** Whether statements of one connection may run in several sessions. */
  pgbouncer: boolean
  migrations?: readonly Migration[]
}

/**
 * Resolves with the applied migrations; undefined if the database is empty and must not be filled. Throws
 * `CannotOpenStore` if the database is newer than this program and not compatible with it, if it holds another program's
 * tables, or if a migration fails.
 */
export async function migrate(
  sql: Database,
  { create, pgbouncer, migrations = MIGRATIONS }: MigrateOptions,
): Promise<Migration[] | undefined> {
  const applied: Migration[] = []
  let lacking = await lackingMigrations(sql, migrations)
  if (lacking.length === migrations.length && !create) return undefined
  while (lacking.length > 0) {
    const isIndex = lacking[0]!.concurrentIndex !== undefined
    if (isIndex && pgbouncer)
      throw new CannotOpenStore(
        `Migration ${lacking[0]!.name} builds an index while the service goes on, which can't be done through PgBouncer. Run the command migrate once with the address of PostgreSQL itself.`,
      )
    const done = await (isIndex ? buildIndex(sql, migrations) : applyTogether(sql, migrations))
    if (done === undefined) await setTimeout(POLL_EVERY_MS)
    else applied.push(...done)
    lacking = await lackingMigrations(sql, migrations)
  }
  return applied
}

/** Applies the migrations that run in one transaction; resolves with undefined if another instance migrates. */
function applyTogether(sql: Database, migrations: readonly Migration[]): Promise<Migration[] | undefined> {
  return inTransaction(sql, async (database) => {
    // A lock for the transaction, not for the session: it works behind PgBouncer, and is released if the process dies.
    if (!(await tryLock(database))) return undefined
    await database`SET LOCAL statement_timeout = 0`
    // Read again under the lock: another instance may have migrated in the meantime.
    const step = untilIndex(await lackingMigrations(database, migrations))
    for (const migration of step) {
      const isIndex = migration.concurrentIndex !== undefined
      const statements = isIndex ? migration.sql.replace(/^(CREATE .*INDEX) CONCURRENTLY/m, '$1') : migration.sql
      await apply(database, migration, () => database.unsafe(statements))
    }
    return step
  })
}

/** Returns the migrations before the next one that builds an index outside of a transaction; all for a new database. */
function untilIndex(lacking: Migration[]): Migration[] {
  const index = lacking.findIndex(({ concurrentIndex }) => concurrentIndex !== undefined)
  return index === -1 || lacking[0]!.number === 1 ? lacking : lacking.slice(0, index)
}

/**
 * Applies a migration that builds an index outside of a transaction; resolves with undefined if another instance
 * migrates. The lock belongs to the session that builds the index: if this process dies, PostgreSQL goes on building, and no
 * other instance begins before the session has ended.
 */
async function buildIndex(sql: Database, migrations: readonly Migration[]): Promise<Migration[] | undefined> {
  return withLock(sql, async () => {
    const [migration] = await lackingMigrations(sql, migrations)
    if (migration?.concurrentIndex === undefined) return []
    await apply(sql, migration, () => resumeIndex(sql, migration.concurrentIndex!, migration.sql))
    return [migration]
  })
}

/**
 * Builds an index unless it exists. An invalid index, which an interrupted build leaves, is dropped and built again. On a partitioned
 * table it is built for each partition and attached; the index of the whole is valid when all are.
 */
async function resumeIndex(sql: Database, name: string, statement: string): Promise<void> {
  const [found] = await sql<{ valid: boolean }[]>`
    SELECT i.indisvalid AS valid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = ${name} AND n.nspname = current_schema()`
  if (found?.valid === true) return
  const [on, table] = new RegExp(`${name} ON ([a-z0-9_]+)`).exec(statement)!
  // One that was made since the index of the whole has its part already.
  const partitions = await sql<{ relname: string; isDone: boolean }[]>`
    SELECT relname, EXISTS (SELECT 1 FROM pg_index JOIN pg_inherits AS part ON part.inhrelid = indexrelid
      WHERE indrelid = oid AND part.inhparent = to_regclass(${name})) AS "isDone"
    FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = to_regclass(${table!}) AND relispartition`
  if (partitions.length === 0) {
    if (found !== undefined) await sql.unsafe(`DROP INDEX CONCURRENTLY ${name}`)
    await sql.unsafe(statement)
    return
  }
  const whole = statement.replace(`CONCURRENTLY ${on}`, `${name} ON ONLY ${table}`)
  if (found === undefined) await withBriefLocks(sql, (transaction) => transaction.unsafe(whole))
  for (const { relname } of partitions.filter(({ isDone }) => !isDone)) {
    const part = `${relname}_${name}`
    await resumeIndex(sql, part, statement.replace(on, `${part} ON ${relname}`))
    await sql.unsafe(`ALTER INDEX ${name} ATTACH PARTITION ${part}`)
  }
}

/** Resolves with the migrations that the database lacks; throws `CannotOpenStore` if it is newer than this program and not compatible with it. */
export async function lackingMigrations(sql: Database, migrations = MIGRATIONS): Promise<Migration[]> {
  return missingMigrations(migrations, await readApplied(sql), 'The PostgreSQL database')
}

async function apply(sql: Database, migration: Migration, run: () => Promise<unknown>): Promise<void> {
  const { number, name, compatibleFrom } = migration
  const table = sql(MIGRATIONS_TABLE)
  try {
    await sql`CREATE TABLE IF NOT EXISTS ${table} (
      number INTEGER PRIMARY KEY, name TEXT NOT NULL, compatible_from INTEGER NOT NULL, applied_at BIGINT NOT NULL)`
    await run()
    await sql`INSERT INTO ${table} VALUES (${number}, ${name}, ${compatibleFrom}, ${Date.now()})`
  } catch (error) {
    if (number === 1 && sqlState(error) === DUPLICATE_TABLE)
      throw new CannotOpenStore(
        `The PostgreSQL database has tables of another program (${explain(error)}); nothing was changed. Create a database for the service alone.`,
        { cause: error },
      )
    throw wasRefused(error) ? migrationFailed('in PostgreSQL', migration, explain(error), error) : error
  }
}

/** Returns an empty list for a new database. Queries the catalogue, because `to_regclass` may answer from the connection's cache. */
async function readApplied(sql: Database): Promise<AppliedMigration[]> {
  const tables =
    await sql`SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = ${MIGRATIONS_TABLE}`
  if (tables.length === 0) return []
  return sql<AppliedMigration[]>`SELECT number, name, compatible_from AS "compatibleFrom" FROM ${sql(MIGRATIONS_TABLE)}`
}
