// The tables that a database really has, read from its own catalogue.
import { DatabaseSync } from 'node:sqlite'
import connectTo from 'postgres'

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
