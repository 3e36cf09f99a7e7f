// Imports of files in PostgreSQL.
import type { FileImport, ImportStore } from '../imports.ts'
import type { Database } from './connection.ts'
import { insert } from './pets.ts'
import type { Pool } from './pool.ts'

export function postgresImports(pool: Pool): ImportStore {
  return {
    async find(hash) {
      const [found] = await pool.read(
        (sql) => sql<FileImport[]>`SELECT ${importColumns(sql)} FROM imports WHERE hash = ${hash}`,
      )
      return found
    },

    unfinished: () =>
      pool.read(
        (sql) => sql<FileImport[]>`
        SELECT ${importColumns(sql)} FROM imports WHERE rows_done < rows_total AND NOT EXISTS (
          SELECT 1 FROM imports AS later WHERE later.file = imports.file AND later.updated_at > imports.updated_at
        ) ORDER BY updated_at`,
      ),

    async begin({ hash, file, rowsTotal }, now, again) {
      const { count } = await pool.write(
        (sql) => sql`
        INSERT INTO imports (hash, file, rows_done, rows_total, updated_at) VALUES (${hash}, ${file}, 0, ${rowsTotal}, ${now})
        ON CONFLICT (hash) DO UPDATE
          SET file = excluded.file, rows_done = 0, rows_total = excluded.rows_total, updated_at = excluded.updated_at
          WHERE (imports.rows_done >= imports.rows_total OR imports.rows_total <> excluded.rows_total) AND ${again}`,
      )
      return count === 1
    },

    addRows: ({ hash, rowsDone, rowsTotal }, rows, now) =>
      pool.writeTransaction(async (sql) => {
        const { count } = await sql`
          UPDATE imports SET rows_done = ${rowsDone + rows.length}, updated_at = ${now}
          WHERE hash = ${hash} AND rows_done = ${rowsDone} AND rows_total = ${rowsTotal}`
        if (count === 1)
          await insert(
            sql,
            rows.map((newPet) => ({ newPet, addition: { at: now, by: undefined } })),
          )
        return count === 1
      }),
  }
}

/** Reads counts and times as float8, which is exact: they are far below 2⁵³. */
function importColumns(sql: Database) {
  return sql`hash, file, rows_done::float8 AS "rowsDone", rows_total::float8 AS "rowsTotal", updated_at::float8 AS "updatedAt"`
}
