// Brings the schema up to date. Of several instances that start at once, one does it and the others wait for it.
import {
  type AppliedMigration,
  type Migration,
  migrationFailed,
  MIGRATIONS_TABLE,
  missingMigrations,
  readMigrations,
} from '../migrations.ts'
import { CannotOpenStore } from '../store.ts'
import type { Database } from './connection.ts'
import { explain, sqlState, wasRefused } from './failures.ts'

/** The number of our advisory lock: "PETS" in ASCII. */
const LOCK = 0x50455453

const DUPLICATE_TABLE = '42P07'

/**
 * Resolves with the migrations that it has applied; undefined if the database has none and must not be created. Throws
 * `CannotOpenStore` if the database is newer than this program and not compatible with it, if it holds another program's
 * tables, or if a migration fails.
 */
export async function migrate(sql: Database, create: boolean): Promise<Migration[] | undefined> {
  const migrations = ownMigrations()
  const lacking = await missing(sql, migrations)
  if (lacking.length === migrations.length && !create) return undefined
  if (lacking.length === 0) return []
  return sql.begin(async (transaction) => {
    // A lock for the transaction, not for the session: it works behind PgBouncer, and is released if the process dies.
    await transaction`SET LOCAL statement_timeout = 0`
    await transaction`SELECT pg_advisory_xact_lock(${LOCK})`
    // Read again under the lock: another instance may have migrated in the meantime.
    const database = transaction as unknown as Database
    const found = await missing(database, migrations)
    for (const migration of found) await apply(database, migration)
    return found
  })
}

/** Resolves with the migrations that the database lacks; throws `CannotOpenStore` if it is newer than this program and not compatible with it. */
export function lackingMigrations(sql: Database): Promise<Migration[]> {
  return missing(sql, ownMigrations())
}

function ownMigrations(): Migration[] {
  return readMigrations(new URL('migrations/', import.meta.url))
}

async function missing(sql: Database, migrations: readonly Migration[]): Promise<Migration[]> {
  return missingMigrations(migrations, await readApplied(sql), 'The PostgreSQL database')
}

async function apply(sql: Database, migration: Migration): Promise<void> {
  const { number, name, compatibleFrom, sql: statements } = migration
  const table = sql(MIGRATIONS_TABLE)
  try {
    await sql`CREATE TABLE IF NOT EXISTS ${table} (
      number INTEGER PRIMARY KEY, name TEXT NOT NULL, compatible_from INTEGER NOT NULL, applied_at BIGINT NOT NULL)`
    await sql.unsafe(statements)
    await sql`INSERT INTO ${table} VALUES (${number}, ${name}, ${compatibleFrom}, ${Date.now()})`
  } catch (error) {
    if (number === 1 && sqlState(error) === DUPLICATE_TABLE) throw ofAnotherProgram(error)
    throw wasRefused(error) ? migrationFailed('in PostgreSQL', migration, explain(error), error) : error
  }
}

function ofAnotherProgram(error: unknown): CannotOpenStore {
  return new CannotOpenStore(
    `The PostgreSQL database has tables of another program (${explain(error)}); nothing was changed. Create a database for the service alone.`,
    { cause: error },
  )
}

/** Returns none for a new database. Queries the catalogue, because `to_regclass` may answer from the connection's cache. */
async function readApplied(sql: Database): Promise<AppliedMigration[]> {
  const tables =
    await sql`SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = ${MIGRATIONS_TABLE}`
  if (tables.length === 0) return []
  return sql<AppliedMigration[]>`SELECT number, name, compatible_from AS "compatibleFrom" FROM ${sql(MIGRATIONS_TABLE)}`
}
