// Reads and writes whole records in PostgreSQL, for copies.
import { type FoundColumn, type Kind, type RecordStore, recordStore, unknownAmong } from '../records.ts'
import type { Sql } from '../sql.ts'
import type { Database } from './pool/connection.ts'
import type { Pool } from './pool.ts'

export function postgresRecords(pool: Pool, sql: Sql): RecordStore {
  async function lastId({ name }: Kind): Promise<bigint> {
    const select = `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM ${name}_id_seq`
    return (await sql.read<{ last: bigint }>(select))[0]!.last
  }

  return recordStore(sql, {
    unknown: () => pool.read(readUnknown),

    lastId,

    async raiseLastId(kind, id) {
      if (id < 1n || id <= (await lastId(kind))) return
      await sql.run([`SELECT setval('${kind.name}_id_seq', $1)`, id])
    },
  })
}

/** Returns the tables and columns of the service's schema that this program does not know, without those of extensions. */
export async function readUnknown(sql: Database): Promise<string[]> {
  const found = await sql<FoundColumn[]>`
    SELECT t.relname AS table, c.attname AS column
    FROM pg_class t
    JOIN pg_namespace n ON n.oid = t.relnamespace AND n.nspname = current_schema()
    JOIN pg_attribute c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
    WHERE t.relkind IN ('r', 'p') AND NOT t.relispartition
      AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = t.oid AND d.deptype = 'e')
    ORDER BY t.relname, c.attnum`
  return unknownAmong(found)
}
