// Whole records in SQLite, for copies.
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { asRecord, type Kind, type RecordStore, type StoredRecord } from '../records.ts'
import { read } from './failures.ts'
import type { Writer } from './writer.ts'

export class SqliteRecords implements RecordStore {
  readonly #db: DatabaseSync
  readonly #writer: Writer

  constructor(db: DatabaseSync, writer: Writer) {
    this.#db = db
    this.#writer = writer
  }

  async count({ name }: Kind): Promise<number> {
    return Number((await this.#all(`SELECT count(*) AS count FROM ${name}`))[0]!['count'])
  }

  async read(kind: Kind, after: StoredRecord | undefined, limit: number): Promise<StoredRecord[]> {
    const { name, columns, key } = kind
    const behind = after === undefined ? '' : `WHERE (${key.join()}) > (${key.map(() => '?').join()})`
    const rows = await this.#all(
      `SELECT ${Object.keys(columns).join()} FROM ${name} ${behind} ORDER BY ${key.join()} LIMIT ?`,
      ...(after === undefined ? [] : key.map((column) => after[column]!)),
      limit,
    )
    return rows.map((row) => asRecord(kind, row))
  }

  async last(kind: Kind): Promise<StoredRecord | undefined> {
    const { name, columns, key } = kind
    const order = key.map((column) => `${column} DESC`).join()
    const [row] = await this.#all(`SELECT ${Object.keys(columns).join()} FROM ${name} ORDER BY ${order} LIMIT 1`)
    return row && asRecord(kind, row)
  }

  write({ name, columns }: Kind, records: readonly StoredRecord[]): Promise<void> {
    const fields = Object.keys(columns)
    const insert = this.#db.prepare(`INSERT INTO ${name} (${fields.join()}) VALUES (${fields.map(() => '?').join()})`)
    return this.#writer.write(() => {
      for (const record of records) insert.run(...fields.map((field) => record[field]!))
    })
  }

  remove({ name, key }: Kind, limit: number): Promise<number> {
    const remove = this.#db.prepare(`DELETE FROM ${name} WHERE (${key.join()}) IN (SELECT ${key.join()} FROM ${name} LIMIT ?)`)
    return this.#writer.write(() => Number(remove.run(limit).changes))
  }

  async lastId({ name }: Kind): Promise<bigint> {
    const [row] = await this.#all('SELECT seq FROM sqlite_sequence WHERE name = ?', name)
    return BigInt((row?.['seq'] as bigint | undefined) ?? 0)
  }

  raiseLastId({ name }: Kind, id: bigint): Promise<void> {
    const start = this.#db.prepare('INSERT INTO sqlite_sequence (name, seq) SELECT ?, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)')
    const raise = this.#db.prepare('UPDATE sqlite_sequence SET seq = ? WHERE name = ? AND seq < ?')
    return this.#writer.write(() => {
      start.run(name, name)
      raise.run(id, name, id)
    })
  }

  async isUnfinished(): Promise<boolean> {
    return (await this.#all("SELECT 1 FROM sqlite_schema WHERE name = 'unfinished_copy'")).length > 0
  }

  setUnfinished(unfinished: boolean): Promise<void> {
    return this.#writer.write(() => {
      this.#db.exec(unfinished ? 'CREATE TABLE IF NOT EXISTS unfinished_copy (marker INTEGER)' : 'DROP TABLE IF EXISTS unfinished_copy')
    })
  }

  #all(sql: string, ...values: SQLInputValue[]): Promise<Record<string, unknown>[]> {
    const statement = this.#db.prepare(sql)
    statement.setReadBigInts(true)
    return read(() => statement.all(...values))
  }
}
