// All that a store keeps, kind by kind and row by row: the language in which one store is copied into another.

/** Whole numbers are bigint, exact in both directions. */
export type Value = string | bigint | Buffer | null
export type StoredRecord = Record<string, Value>

export interface Kind {
  /** The name of its table, the same in every engine. */
  name: string
  columns: Record<string, 'text' | 'integer' | 'bytes'>
  /** The columns that tell one from another, and in whose order they are read. */
  key: readonly string[]
  /** Records are only ever added, in the order of their ids: a copy that stopped goes on behind the last one. */
  appendOnly: boolean
}

/** In an order that keeps references whole: a key after its account. Sessions stay behind: people sign in again. */
export const KINDS: readonly Kind[] = [
  {
    name: 'accounts',
    columns: { id: 'text', email: 'text', email_folded: 'text', password_hash: 'text', created_at: 'integer' },
    key: ['id'],
    appendOnly: false,
  },
  {
    name: 'api_keys',
    columns: {
      id: 'text',
      account_id: 'text',
      name: 'text',
      hash: 'bytes',
      last_four: 'text',
      created_at: 'integer',
      expires_at: 'integer',
      revoked_at: 'integer',
      last_used_at: 'integer',
    },
    key: ['id'],
    appendOnly: false,
  },
  {
    name: 'usage_counts',
    columns: { key_id: 'text', hour: 'integer', operation: 'text', status: 'integer', calls: 'integer' },
    key: ['key_id', 'hour', 'operation', 'status'],
    appendOnly: false,
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
    appendOnly: false,
  },
  {
    name: 'idempotency_records',
    columns: { account_id: 'text', key: 'text', fingerprint: 'bytes', pet_id: 'integer', created_at: 'integer' },
    key: ['account_id', 'key'],
    appendOnly: false,
  },
  {
    name: 'audit_events',
    columns: { id: 'integer', at: 'integer', account_id: 'text', action: 'text', via: 'text', subject: 'text' },
    key: ['id'],
    appendOnly: true,
  },
  {
    name: 'pets',
    columns: { id: 'integer', name: 'text', category_id: 'integer', status: 'text' },
    key: ['id'],
    appendOnly: true,
  },
]

/** The kinds whose ids the database gives. */
export const COUNTED_KINDS = KINDS.filter(({ key, columns }) => key.length === 1 && columns[key[0]!] === 'integer')

export interface RecordStore {
  count(kind: Kind): Promise<number>
  /** At most `limit` records in the order of their key, those after this one. */
  read(kind: Kind, after: StoredRecord | undefined, limit: number): Promise<StoredRecord[]>
  /** The last one in the order of the key; undefined where there is none. */
  last(kind: Kind): Promise<StoredRecord | undefined>
  /** Adds records just as they are, ids included: all of them or none. */
  write(kind: Kind, records: readonly StoredRecord[]): Promise<void>
  /** Removes at most `limit` records and tells how many. */
  remove(kind: Kind, limit: number): Promise<number>

  /** The last id that was given, whether its record is still there or not; 0 before the first. */
  lastId(kind: Kind): Promise<bigint>
  /** From now on, ids above this one are given. */
  raiseLastId(kind: Kind, id: bigint): Promise<void>

  /** A store that is being copied into says so until the copy is whole. */
  isUnfinished(): Promise<boolean>
  setUnfinished(unfinished: boolean): Promise<void>
}

/** Brings what a driver read into the form of the port. */
export function asRecord({ columns }: Kind, row: Record<string, unknown>): StoredRecord {
  return Object.fromEntries(
    Object.entries(columns).map(([column, type]) => {
      const value = row[column] as string | number | bigint | Uint8Array | null
      if (value === null) return [column, null]
      if (type === 'integer') return [column, BigInt(value as number | bigint)]
      return [column, type === 'bytes' ? Buffer.from(value as Uint8Array) : (value as string)]
    }),
  )
}
