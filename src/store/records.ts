// Whole records, for copies: every table that a store keeps, and how its rows are read and written, in the same form for every engine.
import { PET_COLUMNS } from './pet-columns.ts'
import { DERIVED_COLUMNS, derivedFrom } from './pet-writes.ts'
import { insertRows, type Row, type Sql } from './sql.ts'

/** Integers are bigint, so that they stay exact. */
export type Value = string | bigint | Buffer | null
export type StoredRecord = Record<string, Value>

export interface Kind {
  /** The name of the table, the same in every engine. */
  name: string
  columns: readonly string[]
  /** The columns of the primary key: integers, and text, which every engine sorts by its bytes. */
  key: readonly string[]
  /** Whether the database assigns the ids. */
  isCounted?: true
  /** Columns that are not read: they are computed from those of the record when it is written. */
  derived?: { columns: readonly string[]; from: (record: StoredRecord) => string[] }
}

/** The tables that a copy copies, in an order that keeps references valid: a key after its account. */
export const KINDS: readonly Kind[] = [
  {
    name: 'accounts',
    columns: ['id', 'email', 'email_folded', 'password_hash', 'created_at', 'role', 'name', 'name_folded'],
    key: ['id'],
  },
  { name: 'former_people', columns: ['id', 'name'], key: ['id'] },
  {
    name: 'api_keys',
    columns: [
      'id',
      'account_id',
      'name',
      'hash',
      'environment',
      'last_four',
      'created_at',
      'expires_at',
      'revoked_at',
      'last_used_at',
    ],
    key: ['id'],
  },
  {
    name: 'account_links',
    columns: ['hash', 'account_id', 'made_by', 'expires_at', 'replaces_hash', 'name', 'role'],
    key: ['hash'],
  },
  {
    name: 'usage_counts',
    columns: ['key_id', 'hour', 'operation', 'status', 'calls'],
    key: ['key_id', 'hour', 'operation', 'status'],
  },
  {
    name: 'failed_requests',
    columns: ['id', 'at', 'account_id', 'key_id', 'request_id', 'operation', 'status', 'code', 'message'],
    key: ['id'],
    isCounted: true,
  },
  {
    name: 'idempotency_records',
    columns: ['account_id', 'key', 'fingerprint', 'pet_id', 'created_at'],
    key: ['account_id', 'key'],
  },
  {
    name: 'audit_events',
    columns: ['id', 'at', 'account_id', 'action', 'via', 'subject', 'detail', 'pet_id', 'data', 'batch_id'],
    key: ['id'],
    isCounted: true,
  },
  {
    name: 'batches',
    columns: 'id at account_id via action data form total done changed place undoes undone_by'.split(' '),
    key: ['id'],
    isCounted: true,
  },
  { name: 'batch_pets', columns: ['batch_id', 'pet_id', 'former', 'state'], key: ['batch_id', 'pet_id'] },
  {
    name: 'imports',
    columns: ['hash', 'file', 'rows_done', 'rows_total', 'updated_at', 'plan', 'batch_id'],
    key: ['hash'],
  },
  { name: 'categories', columns: ['number', 'name', 'name_folded', 'removed_at'], key: ['number'] },
  {
    name: 'pets',
    columns: ['id', ...PET_COLUMNS, 'added_at', 'added_by', 'batch_id'],
    key: ['id'],
    isCounted: true,
    derived: { columns: DERIVED_COLUMNS, from: ({ name }) => derivedFrom(String(name)) },
  },
]

/** The tables that a copy omits, and why. Each table of an engine is either here or in `KINDS`; a test checks it. */
export const LEFT_BEHIND: Readonly<Record<string, string>> = {
  sessions: 'people sign in again',
  uploads: 'files are kept for an hour; people choose them again',
  upload_parts: 'belongs to uploads',
  store_migrations: 'describes the schema of the one database',
  store_facts: 'describes the one database; copy-store.ts carries the environment',
  sqlite_sequence: "SQLite's own; the last ids are carried by `raiseLastId`",
}

export interface FoundColumn {
  table: string
  column: string
}

/** Returns the tables and columns that this program does not know, such as "table toys": made by a newer program or by hand. */
export function unknownAmong(found: readonly FoundColumn[]): string[] {
  const unknown = found.flatMap(({ table, column }) => {
    if (Object.hasOwn(LEFT_BEHIND, table)) return []
    const kind = KINDS.find(({ name }) => name === table)
    if (kind === undefined) return [`table ${table}`]
    return [...kind.columns, ...(kind.derived?.columns ?? [])].includes(column) ? [] : [`column ${table}.${column}`]
  })
  return [...new Set(unknown)]
}

/** Returns the message that refuses a database with unknown tables or columns; undefined if it has none. */
export function whyUnknown(database: string, unknown: readonly string[]): string | undefined {
  if (unknown.length === 0) return undefined
  return `${database} has tables or columns that this program does not know: ${unknown.join(', ')}; nothing was changed. Run the newer program that made them.`
}

export function kindOf(table: string): Kind {
  return KINDS.find(({ name }) => name === table)!
}

/** Returns the name of a kind as shown to people, such as "animals" or "api keys". */
export function titleOf({ name }: Pick<Kind, 'name'>): string {
  return name === 'pets' ? 'animals' : name.replaceAll('_', ' ')
}

export const COUNTED_KINDS = KINDS.filter(({ isCounted }) => isCounted)

export interface RecordStore {
  /** The tables and columns of the database that this program does not know, and so can neither copy nor compare. */
  unknown(): Promise<string[]>
  count(kind: Kind): Promise<number>
  /** Reads at most `limit` records in the order of their key, beginning after the record `after`. */
  read(kind: Kind, after: StoredRecord | undefined, limit: number): Promise<StoredRecord[]>
  /** Adds records unchanged, ids included: all of them or none. */
  write(kind: Kind, records: readonly StoredRecord[]): Promise<void>
  /** The last id that was assigned, whether its record still exists or not; 0 before the first. */
  lastId(kind: Kind): Promise<bigint>
  /** Makes the database assign only ids above `id` from now on. */
  raiseLastId(kind: Kind, id: bigint): Promise<void>
}

/** What each engine does in its own way. */
type OwnRecords = Pick<RecordStore, 'unknown' | 'lastId' | 'raiseLastId'>

export function recordStore(sql: Sql, own: OwnRecords): RecordStore {
  return {
    ...own,

    count: async ({ name }) => Number((await sql.read(`SELECT count(*) AS count FROM ${name}`))[0]!['count']),

    async read(kind, after, limit) {
      const { name, columns, key } = kind
      const behind = after && `WHERE (${key.join()}) > (${key.map((_, index) => `$${index + 1}`).join()})`
      const select = `SELECT ${columns.join()} FROM ${name} ${behind ?? ''} ORDER BY ${key.join()} LIMIT ${limit}`
      const rows = await sql.read(select, ...(after === undefined ? [] : key.map((column) => after[column]!)))
      return rows.map((row) => recordOf(kind, row))
    },

    write({ name, columns, derived }, records) {
      return sql.transaction(function* () {
        const rows = records.map((record) => [
          ...columns.map((column) => record[column]!),
          ...(derived?.from(record) ?? []),
        ])
        yield* insertRows(name, [...columns, ...(derived?.columns ?? [])], rows)
      })
    },
  }
}

/** Makes the values of both engines comparable. */
function recordOf({ columns }: Kind, row: Row): StoredRecord {
  return Object.fromEntries(
    columns.map((column): [string, Value] => {
      const value = row[column] as Value | number | Uint8Array
      if (typeof value === 'number') return [column, BigInt(value)]
      if (value instanceof Uint8Array) return [column, Buffer.from(value)]
      return [column, value]
    }),
  )
}

/** How many records are read or written at a time. */
export const BATCH = 5000

export async function* readBatches(store: RecordStore, kind: Kind): AsyncGenerator<StoredRecord[]> {
  for (let last: StoredRecord | undefined; ;) {
    const records = await store.read(kind, last, BATCH)
    if (records.length > 0) yield records
    if (records.length < BATCH) return
    last = records.at(-1)
  }
}

/** Writes an int64 as text: a JSON number may lose its last digits when it is parsed. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => (typeof part === 'bigint' ? String(part) : part))
}
