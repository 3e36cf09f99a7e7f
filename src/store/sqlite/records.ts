// Reads and writes whole records in SQLite, for copies.
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { INT64_MIN } from '../../contract/int64.ts'
import { asRecord, type FoundColumn, type RecordStore, unknownAmong } from '../records.ts'
import { prepareExact } from './database.ts'
import type { Transactions } from './transactions.ts'

export function sqliteRecords(db: DatabaseSync, transactions: Transactions): RecordStore {
  function all(sql: string, ...values: SQLInputValue[]): Promise<Record<string, unknown>[]> {
    const statement = prepareExact(db, sql)
    return transactions.read(() => statement.all(...values))
  }

  return {
    unknown: () => transactions.read(() => unknownAmong(readColumns(db))),

    count: async ({ name }) => Number((await all(`SELECT count(*) AS count FROM ${name}`))[0]!['count']),

    async read(kind, after, limit) {
      const { name, columns, key } = kind
      const behind = after === undefined ? '' : `WHERE (${key.join()}) > (${key.map(() => '?').join()})`
      const rows = await all(
        `SELECT ${Object.keys(columns).join()} FROM ${name} ${behind} ORDER BY ${key.join()} LIMIT ?`,
        ...(after === undefined ? [] : key.map((column) => after[column]!)),
        limit,
      )
      return rows.map((row) => asRecord(kind, row))
    },

    write({ name, columns }, records) {
      const fields = Object.keys(columns)
      const insert = prepareExact(db, `INSERT INTO ${name} (${fields.join()}) VALUES (${fields.map(() => '?').join()})`)
      return transactions.write(() => {
        for (const record of records) insert.run(...fields.map((field) => record[field]!))
        // The animals may have ids that the index of the search has passed.
        if (name === 'pets') db.exec(`UPDATE pet_words_progress SET until_id = ${INT64_MIN}`)
      })
    },

    remove({ name, key }, records) {
      const remove = prepareExact(db, `DELETE FROM ${name} WHERE ${key.map((column) => `${column} = ?`).join(' AND ')}`)
      return transactions.write(() => {
        let removed = 0
        for (const record of records) removed += Number(remove.run(...key.map((column) => record[column]!)).changes)
        return removed
      })
    },

    async lastId({ name }) {
      const [row] = await all('SELECT seq FROM sqlite_sequence WHERE name = ?', name)
      return BigInt((row?.['seq'] as bigint | undefined) ?? 0)
    },

    raiseLastId({ name }, id) {
      const start = prepareExact(
        db,
        'INSERT INTO sqlite_sequence (name, seq) SELECT ?, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)',
      )
      const raise = prepareExact(db, 'UPDATE sqlite_sequence SET seq = ? WHERE name = ? AND seq < ?')
      return transactions.write(() => {
        start.run(name, name)
        raise.run(id, name, id)
      })
    },
  }
}

/** Reads the columns of all tables, except for those of SQLite itself. */
export function readColumns(db: DatabaseSync): FoundColumn[] {
  return db
    .prepare(
      `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema t JOIN pragma_table_info(t.name) c
       WHERE t.type = 'table' AND t.name NOT GLOB 'sqlite_*' ORDER BY t.name, c.cid`,
    )
    .all() as unknown as FoundColumn[]
}
