// Whole records in PostgreSQL, for copies.
import { asRecord, type Kind, type RecordStore, type StoredRecord } from '../records.ts'
import type { Pool } from './pool.ts'

export class PostgresRecords implements RecordStore {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async count({ name }: Kind): Promise<number> {
    const [row] = await this.#pool.read((sql) => sql<{ count: number }[]>`SELECT count(*)::float8 AS count FROM ${sql(name)}`)
    return row!.count
  }

  async read(kind: Kind, after: StoredRecord | undefined, limit: number): Promise<StoredRecord[]> {
    const { name, columns, key } = kind
    const rows = await this.#pool.read((sql) => {
      const values = key.map((column, index) => (index === 0 ? sql`${after?.[column] ?? null}` : sql`, ${after?.[column] ?? null}`))
      const behind = after === undefined ? sql`` : sql`WHERE (${sql(key)}) > (${values})`
      return sql`SELECT ${sql(Object.keys(columns))} FROM ${sql(name)} ${behind} ORDER BY ${sql(key)} LIMIT ${limit}`
    })
    return rows.map((row) => asRecord(kind, row))
  }

  /** Of kinds with one column as key: those that a copy goes on with. */
  async last(kind: Kind): Promise<StoredRecord | undefined> {
    const { name, columns, key } = kind
    const [row] = await this.#pool.read((sql) => sql`
      SELECT ${sql(Object.keys(columns))} FROM ${sql(name)} ORDER BY ${sql(key[0]!)} DESC LIMIT 1`)
    return row && asRecord(kind, row)
  }

  async write({ name, columns }: Kind, records: readonly StoredRecord[]): Promise<void> {
    await this.#pool.write((sql) => sql`INSERT INTO ${sql(name)} ${sql(records, Object.keys(columns))}`)
  }

  async remove({ name, key }: Kind, limit: number): Promise<number> {
    const { count } = await this.#pool.write((sql) => sql`
      DELETE FROM ${sql(name)} WHERE (${sql(key)}) IN (SELECT ${sql(key)} FROM ${sql(name)} LIMIT ${limit})`)
    return count
  }

  async lastId({ name }: Kind): Promise<bigint> {
    const [row] = await this.#pool.read((sql) => sql<{ last: bigint }[]>`
      SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM ${sql(sequenceOf(name))}`)
    return row!.last
  }

  async raiseLastId({ name }: Kind, id: bigint): Promise<void> {
    if (id < 1n || id <= (await this.lastId({ name } as Kind))) return
    await this.#pool.write((sql) => sql`SELECT setval(${sequenceOf(name)}::text::regclass, ${id})`)
  }

  async isUnfinished(): Promise<boolean> {
    const tables = await this.#pool.read((sql) => sql`
      SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'unfinished_copy'`)
    return tables.length > 0
  }

  async setUnfinished(unfinished: boolean): Promise<void> {
    await this.#pool.write((sql) =>
      unfinished ? sql`CREATE TABLE IF NOT EXISTS unfinished_copy (marker INTEGER)` : sql`DROP TABLE IF EXISTS unfinished_copy`,
    )
  }
}

/** The name that PostgreSQL gives to the sequence of an identity column. */
function sequenceOf(table: string): string {
  return `${table}_id_seq`
}
