// The tables that a database really has, read from its own catalogue, with their rows; and the migrations that make them.
import { DatabaseSync } from 'node:sqlite'
import connectTo from 'postgres'
import { askPostgres } from './ask-postgres.ts'
import { readMigrations } from '../../../src/store/database/migrations.ts'

/** Today's migrations: number, name and compatibility are the same on both engines (src/store/database/migrations.test.ts). */
export const MIGRATIONS = readMigrations('store/sqlite/migrations/')

/** Their names, as commands list them. */
export const MIGRATION_NAMES = MIGRATIONS.map(({ name }) => name).join(', ')

export interface Column {
  type: string
  /** Undefined for the default of the database. */
  collation?: string | undefined
}

/** Each table with its columns. */
export type Schema = Record<string, Record<string, Column>>

export async function readSchema(url: string): Promise<Schema> {
  const columns = url.startsWith('sqlite:') ? readSqlite(url.slice('sqlite:'.length)) : await readPostgres(url)
  const schema: Schema = {}
  for (const { table, column, ...rest } of columns) (schema[table] ??= {})[column] = rest
  return schema
}

type Row = Column & { table: string; column: string }

function readSqlite(path: string): Row[] {
  const db = new DatabaseSync(path, { readOnly: true })
  const rows = db
    .prepare(
      `
    SELECT t.name AS "table", c.name AS "column", lower(c.type) AS type
    FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY t.name, c.cid`,
    )
    .all()
  db.close()
  return rows.map((row) => ({ ...row })) as unknown as Row[]
}

async function readPostgres(url: string): Promise<Row[]> {
  const sql = connectTo(url, { max: 1 })
  const rows = await sql<Row[]>`
    SELECT table_name AS "table", column_name AS "column", data_type AS type, collation_name AS collation
    FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`
  await sql.end()
  return rows.map((row) => ({ ...row }))
}

/** The rows of each table, exact and in a fixed order; only the columns of this schema. */
export async function readRows(url: string, schema: Schema): Promise<Record<string, object[]>> {
  const rows: Record<string, object[]> = {}
  for (const [table, columns] of Object.entries(schema)) {
    const names = Object.keys(columns)
      .map((column) => `"${column}"`)
      .join(', ')
    rows[table] = await askDatabase(url, `SELECT ${names} FROM ${table} ORDER BY ${names}`)
  }
  return rows
}

/** Runs statements on a database, those for SQLite on one connection; resolves with the rows of the last one. */
export async function askDatabase(url: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  let rows: Record<string, unknown>[] = []
  if (url.startsWith('postgres')) {
    // Without the service's own parameters, which the driver would send to the server.
    for (const statement of statements) rows = [...(await askPostgres(url.replace(/\?.*/, ''), statement))]
    return rows
  }
  using db = new DatabaseSync(url.slice('sqlite:'.length), { defensive: false })
  for (const statement of statements) {
    const prepared = db.prepare(statement)
    prepared.setReadBigInts(true)
    rows = prepared.all()
  }
  return rows
}
