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
  unpublished,
  UNPUBLISHED_TABLE,
} from '../database/migrations.ts'
import type { Fault } from '../database/check.ts'
import { CannotOpenStore } from '../store.ts'
import { type Database, inTransaction } from './pool/connection.ts'
import { explain, isLockTimeout, sqlState, wasRefused } from './pool/failures.ts'
import { findHolders, LOCK_TIMEOUT_MS, tryLock, withLock } from './schema-locks.ts'

/** The pause after a lock of a table was not free, or while another instance migrates. */
const TRY_AGAIN_MS = 1000

const DUPLICATE_TABLE = '42P07'

export const MIGRATIONS: readonly Migration[] = readMigrations('store/postgres/migrations/')

interface MigrateOptions {
  /** Whether to create the tables of an empty database. */
  create: boolean
  /** Whether statements of one connection may run in several sessions. */
  pgbouncer: boolean
  migrations?: readonly Migration[]
  /** Receives what the migration waits for, a whole sentence. */
  onWait?: OnWait | undefined
}

type OnWait = (message: string) => void

/**
 * Waits for the locks of the tables until it gets them, each time so briefly that requests are not held up behind it.
 * Resolves with the applied migrations; undefined if the database is empty and must not be filled. Throws
 * `CannotOpenStore` if the database is newer than this program and not compatible with it, if it holds another program's
 * tables, or if a migration fails.
 */
export async function migrate(
  sql: Database,
  { create, pgbouncer, migrations = MIGRATIONS, onWait = () => {} }: MigrateOptions,
): Promise<Migration[] | undefined> {
  const applied: Migration[] = []
  /** How often each transaction was met that holds something. */
  const met = new Map<string, number>()
  let lacking = await lackingMigrations(sql, migrations)
  if (lacking.length === migrations.length && !create) return undefined
  while (lacking.length > 0) {
    const isIndex = lacking[0]!.concurrentIndex !== undefined
    if (isIndex && pgbouncer)
      throw new CannotOpenStore(
        `Migration ${lacking[0]!.name} builds an index while the service goes on, which can't be done through PgBouncer. Run the command migrate once with the address of PostgreSQL itself.`,
      )
    const done = await (isIndex ? buildIndex(sql, migrations, onWait) : applyTogether(sql, migrations))
    if (done === undefined) {
      for (const [id, holder] of await findHolders(sql)) {
        met.set(id, (met.get(id) ?? 0) + 1)
        if (met.get(id) === 2) onWait(`The migration ${lacking[0]!.name} waits for ${holder}.`)
      }
      await setTimeout(TRY_AGAIN_MS)
    } else applied.push(...done)
    lacking = await lackingMigrations(sql, migrations)
  }
  return applied
}

/**
 * Applies the migrations that run in one transaction. Resolves with undefined if it would have to wait, for a table or for another
 * instance.
 */
async function applyTogether(sql: Database, migrations: readonly Migration[]): Promise<Migration[] | undefined> {
  try {
    return await inTransaction(sql, async (database) => {
      // A lock for the transaction, not for the session: it works behind PgBouncer, and is released if the process dies.
      if (!(await tryLock(database))) return undefined
      // Every later request on a table queues behind a statement that waits for its lock, also one that only reads.
      await database.unsafe(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`)
      // Read again under the lock: another instance may have migrated in the meantime.
      const step = untilIndex(await lackingMigrations(database, migrations))
      for (const migration of step) {
        const statements = migration.sql.replace(/^(CREATE .*INDEX) CONCURRENTLY/m, '$1')
        await apply(database, migration, () => database.unsafe(statements))
      }
      return step
    })
  } catch (error) {
    if (isLockTimeout(error)) return undefined
    throw error
  }
}

/** Returns the migrations before the next one that builds an index outside of a transaction; all for a new database. */
function untilIndex(lacking: Migration[]): Migration[] {
  const index = lacking.findIndex(({ concurrentIndex }) => concurrentIndex !== undefined)
  return index === -1 || lacking[0]!.number === 1 ? lacking : lacking.slice(0, index)
}

/**
 * Applies a migration that builds an index outside of a transaction; resolves with undefined if another instance migrates. It waits for
 * every transaction that is older, which holds up no request. The lock belongs to the session that builds the index: if this process
 * dies, PostgreSQL goes on building, and no other instance begins before the session has ended.
 */
function buildIndex(sql: Database, migrations: readonly Migration[], onWait: OnWait): Promise<Migration[] | undefined> {
  return withLock(sql, async () => {
    const [migration] = await lackingMigrations(sql, migrations)
    if (migration?.concurrentIndex === undefined) return []
    const [session] = await sql<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`
    onWait(
      `The migration ${migration.name} builds an index while the service goes on. It waits for every older transaction; these hold it up: SELECT pg_blocking_pids(${session!.pid})`,
    )
    await apply(sql, migration, () => resumeIndex(sql, migration.concurrentIndex!, migration.sql))
    return [migration]
  })
}

/** Builds an index unless it exists. An invalid index, which an interrupted build leaves, is dropped and built again. */
async function resumeIndex(sql: Database, name: string, statement: string): Promise<void> {
  const [found] = await sql<{ valid: boolean }[]>`
    SELECT i.indisvalid AS valid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = ${name} AND n.nspname = current_schema()`
  if (found?.valid === true) return
  if (found !== undefined) await sql.unsafe(`DROP INDEX CONCURRENTLY ${name}`)
  await sql.unsafe(statement)
}

/** Resolves with why the service does not serve this database, undefined if it does: its encoding can't hold every name. */
export async function findUnserved(sql: Database): Promise<(Fault & { name: string }) | undefined> {
  const [{ encoding } = {}] = await sql<{ encoding: string }[]>`SELECT current_setting('server_encoding') AS encoding`
  if (encoding === 'UTF8') return undefined
  return {
    name: 'Encoding',
    found: `the encoding of the database is ${encoding}, and the service needs UTF8`,
    fix: "Make another: CREATE DATABASE petstore_utf8 ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0; copy a store from this one into it with the command copy.",
  }
}

/** Resolves with the migrations that the database lacks; throws `CannotOpenStore` if a checkout made it, or if it is newer than this program and not compatible with it. */
export async function lackingMigrations(sql: Database, migrations = MIGRATIONS): Promise<Migration[]> {
  return missingMigrations(migrations, await readApplied(sql), 'The PostgreSQL database')
}

async function apply(sql: Database, migration: Migration, run: () => Promise<unknown>): Promise<void> {
  const { number, name, compatibleFrom, hash } = migration
  const table = sql(MIGRATIONS_TABLE)
  try {
    await sql`CREATE TABLE IF NOT EXISTS ${table} (
      number INTEGER PRIMARY KEY, name TEXT NOT NULL, compatible_from INTEGER NOT NULL, hash TEXT NOT NULL, applied_at BIGINT NOT NULL)`
    await run()
    await sql`INSERT INTO ${table} VALUES (${number}, ${name}, ${compatibleFrom}, ${hash}, ${Date.now()})`
  } catch (error) {
    if (number === 1 && sqlState(error) === DUPLICATE_TABLE)
      throw new CannotOpenStore(
        `The PostgreSQL database has tables of another program (${explain(error)}); nothing was changed. Create a database for the service alone.`,
        { cause: error },
      )
    if (isLockTimeout(error)) throw error
    throw wasRefused(error) ? migrationFailed('in PostgreSQL', migration, explain(error), error) : error
  }
}

/** Returns an empty list for a new database. */
async function readApplied(sql: Database): Promise<AppliedMigration[]> {
  await refuseUnpublished(sql)
  if (!(await hasTable(sql, MIGRATIONS_TABLE))) return []
  return sql<
    AppliedMigration[]
  >`SELECT number, name, compatible_from AS "compatibleFrom", hash FROM ${sql(MIGRATIONS_TABLE)}`
}

/** Throws `CannotOpenStore` for the database of a checkout of before the first release. Any role may ask. */
export async function refuseUnpublished(sql: Database): Promise<void> {
  if (await hasTable(sql, UNPUBLISHED_TABLE)) throw unpublished('The PostgreSQL database')
}

/** Queries the catalogue, because `to_regclass` may answer from the connection's cache. */
async function hasTable(sql: Database, name: string): Promise<boolean> {
  const tables =
    await sql`SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = ${name}`
  return tables.length > 0
}
