// Reads and writes whole records in SQLite, for copies.
import type { DatabaseSync } from 'node:sqlite'
import { type FoundColumn, type RecordStore, recordStore, unknownAmong } from '../records.ts'
import type { Sql } from '../sql.ts'

export function sqliteRecords(sql: Sql): RecordStore {
  return recordStore(sql, {
    unknown: async () => unknownAmong(await sql.read<FoundColumn>(COLUMNS)),

    async lastId({ name }) {
      const [row] = await sql.read<{ seq: bigint }>('SELECT seq FROM sqlite_sequence WHERE name = $1', name)
      return row?.seq ?? 0n
    },

    async raiseLastId({ name }, id) {
      await sql.transaction(function* () {
        yield [
          'INSERT INTO sqlite_sequence (name, seq) SELECT $1, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = $1)',
          name,
        ]
        yield ['UPDATE sqlite_sequence SET seq = $1 WHERE name = $2 AND seq < $1', id, name]
      })
    },
  })
}

const COLUMNS = `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema t JOIN pragma_table_info(t.name) c
  WHERE t.type = 'table' AND t.name NOT GLOB 'sqlite_*' ORDER BY t.name, c.cid`

/** Reads the columns of all tables, except for those of SQLite itself. */
export function readColumns(db: DatabaseSync): FoundColumn[] {
  return db.prepare(COLUMNS).all() as unknown as FoundColumn[]
}
