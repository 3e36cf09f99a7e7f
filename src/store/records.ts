// Describes every table that a store keeps, and its rows in the same form for every engine, for copies.
import { ADDITION_COLUMNS, COLUMN_TYPES } from './pet-columns.ts'

/** Integers are bigint, so that they stay exact. */
export type Value = string | bigint | Buffer | null
export type StoredRecord = Record<string, Value>

export interface Kind {
  /** The name of the table, the same in every engine. */
  name: string
  columns: Record<string, 'text' | 'integer' | 'bytes'>
  /** The columns of the primary key: integers, and text, which every engine sorts by its bytes. */
  key: readonly string[]
  /** Whether the database refuses to change or remove records of this kind. */
  appendOnly?: true
}

/** The tables that a copy copies, in an order that keeps references valid: a key after its account. */
export const KINDS: readonly Kind[] = [
  {
    name: 'accounts',
    columns: {
      id: 'text',
      email: 'text',
      email_folded: 'text',
      password_hash: 'text',
      created_at: 'integer',
      role: 'text',
    },
    key: ['id'],
  },
  {
    name: 'api_keys',
    columns: {
      id: 'text',
      account_id: 'text',
      name: 'text',
      hash: 'bytes',
      environment: 'text',
      last_four: 'text',
      created_at: 'integer',
      expires_at: 'integer',
      revoked_at: 'integer',
      last_used_at: 'integer',
    },
    key: ['id'],
  },
  {
    name: 'account_links',
    columns: { hash: 'text', account_id: 'text', made_by: 'text', expires_at: 'integer' },
    key: ['hash'],
  },
  {
    name: 'usage_counts',
    columns: { key_id: 'text', hour: 'integer', operation: 'text', status: 'integer', calls: 'integer' },
    key: ['key_id', 'hour', 'operation', 'status'],
  },
  {
    name: 'failed_requests',
    columns: {
      id: 'integer',
      at: 'integer',
      account_id: 'text',
      key_id: 'text',
      request_id: 'text',
      operation: 'text',
      status: 'integer',
      code: 'text',
      message: 'text',
    },
    key: ['id'],
  },
  {
    name: 'idempotency_records',
    columns: { account_id: 'text', key: 'text', fingerprint: 'bytes', pet_id: 'integer', created_at: 'integer' },
    key: ['account_id', 'key'],
  },
  {
    name: 'audit_events',
    columns: {
      id: 'integer',
      at: 'integer',
      account_id: 'text',
      action: 'text',
      via: 'text',
      subject: 'text',
      detail: 'text',
    },
    key: ['id'],
    appendOnly: true,
  },
  {
    name: 'imports',
    columns: { hash: 'text', file: 'text', rows_done: 'integer', rows_total: 'integer', updated_at: 'integer' },
    key: ['hash'],
  },
  { name: 'categories', columns: { number: 'integer', name: 'text', name_folded: 'text' }, key: ['number'] },
  { name: 'pets', columns: { id: 'integer', ...COLUMN_TYPES, ...ADDITION_COLUMNS }, key: ['id'] },
]

/** The tables that a copy omits, and why. Each table of an engine is either here or in `KINDS`; a test checks it. */
export const LEFT_BEHIND: Readonly<Record<string, string>> = {
  sessions: 'people sign in again',
  pet_counts: 'the target counts the animals itself as they are written',
  pet_counts_progress: 'belongs to pet_counts',
  pet_words: 'derived from the names of animals; the service on the target fills it',
  pet_words_progress: 'belongs to pet_words; writing animals starts it anew',
  pet_renames: 'belongs to pet_words',
  petstore_migrations: 'describes the schema of the one database',
  store_facts: 'describes the one database; copy-store.ts carries the environment',
  sqlite_sequence: "SQLite's own; the last ids are carried by `raiseLastId`",
}

/** A column that exists in a database. */
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
    return Object.hasOwn(kind.columns, column) ? [] : [`column ${table}.${column}`]
  })
  return [...new Set(unknown)]
}

/** Returns the message that refuses a database with unknown tables or columns; undefined if it has none. */
export function whyUnknown(database: string, unknown: readonly string[]): string | undefined {
  if (unknown.length === 0) return undefined
  return `${database} has tables or columns that this program does not know: ${unknown.join(', ')}; nothing was changed. Run the newer program that made them.`
}

/** Returns the kind of a table. */
export function kindOf(table: string): Kind {
  return KINDS.find(({ name }) => name === table)!
}

/** Returns the name of a kind as shown to people, such as "animals" or "api keys". */
export function titleOf({ name }: Pick<Kind, 'name'>): string {
  return name === 'pets' ? 'animals' : name.replaceAll('_', ' ')
}

/** The kinds whose ids the database assigns. */
export const COUNTED_KINDS = KINDS.filter(({ key, columns }) => key.join() === 'id' && columns['id'] === 'integer')

export interface RecordStore {
  /** The tables and columns of the database that this program does not know, and so can neither copy nor compare. */
  unknown(): Promise<string[]>
  count(kind: Kind): Promise<number>
  /** Reads at most `limit` records in the order of their key, beginning after the record `after`. */
  read(kind: Kind, after: StoredRecord | undefined, limit: number): Promise<StoredRecord[]>
  /** Adds records unchanged, ids included: all of them or none. */
  write(kind: Kind, records: readonly StoredRecord[]): Promise<void>
  /** Removes the records that have the key of one of these; resolves with their number. */
  remove(kind: Kind, records: readonly StoredRecord[]): Promise<number>

  /** The last id that was assigned, whether its record still exists or not; 0 before the first. */
  lastId(kind: Kind): Promise<bigint>
  /** Makes the database assign only ids above `id` from now on. */
  raiseLastId(kind: Kind, id: bigint): Promise<void>
}

/** Converts a row as a driver read it into a record. */
export function asRecord({ columns }: Kind, row: Record<string, unknown>): StoredRecord {
  return Object.fromEntries(
    Object.entries(columns).map(([column, type]) => {
      const value = row[column] as string | number | bigint | Uint8Array | null
      if (value === null) return [column, null]
      if (type === 'integer') return [column, BigInt(value as number | bigint)]
      return [column, type === 'bytes' ? Buffer.from(value as Uint8Array) : storable(value as string)]
    }),
  )
}

/** Replaces U+0000, which PostgreSQL can't store; in SQLite, messages of an earlier release may contain it. */
function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD')
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
