// Brings the schema up to date. Of several instances that start at once, one does it and the others wait for it.
import { type Migration, readMigrations } from '../migrations.ts'
import { CannotOpenStore } from '../store.ts'
import type { Database } from './connection.ts'
import { explain, sqlState } from './failures.ts'

/** Names our lock among the advisory locks of the database: "PETS" in ASCII. */
const LOCK = 0x50455453

const DUPLICATE_TABLE = '42P07'

/** Throws `CannotOpenStore` where the database is newer than this program, or holds another program's tables. */
export async function migrate(sql: Database): Promise<void> {
  const migrations = readMigrations(new URL('migrations/', import.meta.url))
  if ((await readVersion(sql)) === migrations.length) return
  try {
    await sql.begin(async (transaction) => {
      // A lock of the transaction, not of the session: it holds behind PgBouncer, and ends with a process that dies.
      await transaction`SET LOCAL statement_timeout = 0`
      await transaction`SELECT pg_advisory_xact_lock(${LOCK})`
      await apply(transaction as unknown as Database, migrations)
    })
  } catch (error) {
    if (sqlState(error) !== DUPLICATE_TABLE) throw error
    throw new CannotOpenStore(
      `The PostgreSQL database has tables of another program (${explain(error)}); nothing was changed. Create a database for the service alone.`,
      { cause: error },
    )
  }
}

async function apply(sql: Database, migrations: readonly Migration[]): Promise<void> {
  const version = await readVersion(sql)
  if (version > migrations.length) {
    throw new CannotOpenStore(
      `The PostgreSQL database has schema version ${version}, this program knows only up to ${migrations.length}. Run the newer program that wrote it; nothing was changed.`,
    )
  }
  if (version === 0) await sql`CREATE TABLE petstore_schema (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`
  for (const { number, name, sql: text } of migrations.slice(version)) {
    await sql.unsafe(text)
    await sql`INSERT INTO petstore_schema (number, name, applied_at) VALUES (${number}, ${name}, ${Date.now()})`
  }
}

/** 0 for an empty database. Asks the catalogue itself: `to_regclass` may answer from what this connection knew before. */
async function readVersion(sql: Database): Promise<number> {
  const tables = await sql`SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'petstore_schema'`
  if (tables.length === 0) return 0
  const [row] = await sql<{ version: number }[]>`SELECT coalesce(max(number), 0)::int AS version FROM petstore_schema`
  return row!.version
}
