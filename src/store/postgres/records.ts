// Reads and writes whole records in PostgreSQL, for copies.
import { INT64_MIN } from '../../contract/int64.ts'
import type { Pet } from '../../contract/pets.ts'
import { asRecord, type FoundColumn, type Kind, type RecordStore, toJson, unknownAmong } from '../records.ts'
import type { Database } from './connection.ts'
import { followChanges, readShards } from './distribution.ts'
import type { Pool } from './pool.ts'

export function postgresRecords(pool: Pool): RecordStore {
  async function lastId({ name }: Kind): Promise<bigint> {
    const [row] = await pool.read(
      (sql) => sql<{ last: bigint }[]>`
      SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM ${sql(sequenceOf(name))}`,
    )
    return row!.last
  }

  return {
    unknown: () => pool.read(readUnknown),

    async count({ name }) {
      const [row] = await pool.read(
        (sql) => sql<{ count: number }[]>`SELECT count(*)::float8 AS count FROM ${sql(name)}`,
      )
      return row!.count
    },

    async read(kind, after, limit) {
      const { name, columns, key } = kind
      const rows = await pool.read((sql) => {
        const values = key.map((column, index) =>
          index === 0 ? sql`${after?.[column] ?? null}` : sql`, ${after?.[column] ?? null}`,
        )
        const behind = after === undefined ? sql`` : sql`WHERE (${sql(key)}) > (${values})`
        return sql`SELECT ${sql(Object.keys(columns))} FROM ${sql(name)} ${behind} ORDER BY ${sql(key)} LIMIT ${limit}`
      })
      return rows.map((row) => asRecord(kind, row))
    },

    async write({ name, columns }, records) {
      await pool.write((sql) => {
        const insert = sql`INSERT INTO ${sql(name)} ${sql(records, Object.keys(columns))}`
        if (name !== 'pets') return insert
        // The animals may have ids that the index of the search and the counts have passed. One statement, and so one
        // transaction, does all.
        return sql`
          WITH progress AS (UPDATE pet_words_progress SET until_id = ${INT64_MIN}, settled_id = ${INT64_MIN}),
            written AS (${insert} RETURNING id, status),
            counted AS (SELECT until_id FROM pet_counts_progress FOR SHARE)
          UPDATE pet_counts SET count = pet_counts.count + added.count
          FROM (SELECT status, count(*) AS count FROM written, counted WHERE id <= until_id GROUP BY status) AS added
          WHERE pet_counts.status = added.status`
      })
    },

    /** Passes the keys as JSON, which needs no array types of the driver. */
    async remove({ name, columns, key }, records) {
      const keys = records.map((record) => Object.fromEntries(key.map((column) => [column, record[column]])))
      const types = key.map((column) => `${column} ${columns[column] === 'integer' ? 'BIGINT' : 'TEXT'}`).join()
      return pool.writeTransaction(async (sql) => {
        const gone = await sql<Pet[]>`
          DELETE FROM ${sql(name)} WHERE (${sql(key)}) IN
            (SELECT * FROM json_to_recordset(${toJson(keys)}::text::json) AS gone (${sql.unsafe(types)})) RETURNING *`
        if (name === 'pets' && (await readShards(sql))) await followChanges(sql, gone)
        return gone.count
      })
    },

    lastId,

    async raiseLastId(kind, id) {
      if (id < 1n || id <= (await lastId(kind))) return
      await pool.write((sql) => sql`SELECT setval(${sequenceOf(kind.name)}::text::regclass, ${id})`)
    },
  }
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

/** Returns the name that PostgreSQL gives to the sequence of an identity column. */
function sequenceOf(table: string): string {
  return `${table}_id_seq`
}
