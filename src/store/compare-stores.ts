// Compares the records of two stores of any engine: reads both in the order of the key and pairs records of the same key.
import type { Kind, RecordStore, StoredRecord, Value } from './records.ts'
import { toJson } from './to-json.ts'

/** How many records are read or written at a time. */
export const BATCH = 5000

/** The records of two stores that have the same key; undefined for a store that has no such record. */
export type Pair = readonly [StoredRecord | undefined, StoredRecord | undefined]

export async function* pairRecords(kind: Kind, first: RecordStore, second: RecordStore): AsyncGenerator<Pair> {
  const [one, other] = [new Walk(first, kind), new Walk(second, kind)]
  await Promise.all([one.advance(), other.advance()])
  while (one.current !== undefined || other.current !== undefined) {
    const order = compareKeys(kind, one.current, other.current)
    yield [order <= 0 ? one.current : undefined, order >= 0 ? other.current : undefined]
    if (order <= 0) await one.advance()
    if (order >= 0) await other.advance()
  }
}

export async function* readBatches(store: RecordStore, kind: Kind): AsyncGenerator<StoredRecord[]> {
  for (let last: StoredRecord | undefined; ;) {
    const records = await store.read(kind, last, BATCH)
    if (records.length > 0) yield records
    if (records.length < BATCH) return
    last = records.at(-1)
  }
}

export function isSame(record: StoredRecord, other: StoredRecord): boolean {
  return toJson(record) === toJson(other)
}

/** Steps through all records of a kind in the order of the key; `current` is undefined at the end. */
class Walk {
  current: StoredRecord | undefined
  readonly #batches: AsyncGenerator<StoredRecord[]>
  #batch: readonly StoredRecord[] = []
  #position = 0

  constructor(store: RecordStore, kind: Kind) {
    this.#batches = readBatches(store, kind)
  }

  async advance(): Promise<void> {
    if (this.#position === this.#batch.length) {
      const next = await this.#batches.next()
      this.#batch = next.done ? [] : next.value
      this.#position = 0
    }
    this.current = this.#batch[this.#position]
    if (this.current !== undefined) this.#position += 1
  }
}

/** Returns a negative number if `one` comes first, 0 for the same key. A store that is at its end (undefined) comes last. */
function compareKeys({ key }: Kind, one: StoredRecord | undefined, other: StoredRecord | undefined): number {
  if (one === undefined || other === undefined) return one === undefined ? 1 : -1
  for (const column of key) {
    const order = compareValues(one[column]!, other[column]!)
    if (order !== 0) return order
  }
  return 0
}

/** Compares text by its UTF-8 bytes as both engines do, not by UTF-16 units as JavaScript does. */
function compareValues(one: Value, other: Value): number {
  if (typeof one === 'bigint' && typeof other === 'bigint') return one < other ? -1 : Number(one > other)
  return Buffer.compare(Buffer.from(String(one)), Buffer.from(String(other)))
}
