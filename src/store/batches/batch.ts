// A batch as it is stored: who did what to how many animals, and how far it has come. Read as far as this program understands it: a later
// release may have written other data, or it is damaged.
import { type FieldName, FIELD_NAMES, fieldFromText, type NewPet, type Pet } from '../../contract/pets.ts'
import { type ColumnValue, objectOf, textsOf } from '../pet-columns.ts'

/** A newer program may have written another action, and more data. */
export interface Batch {
  id: bigint
  at: number
  accountId: string
  action: 'changed' | 'removed' | 'imported' | 'undone'
  /** A field that got a value, as text, or a file, with the key of its import. An Undo has the data of its batch. */
  data: { field?: FieldName; to?: string; file?: string; hash?: string }
  total: number
  /** How many were looked at, up to the id `place`. */
  done: number
  place: bigint
  changed: number
  undoes: bigint | undefined
  undoneBy: bigint | undefined
}

/** What goes on by slices, and what an Undo takes back: not what only a newer program knows. */
export const GOING_ON: ReadonlySet<string> = new Set<Batch['action']>(['changed', 'removed'])
export const UNDOABLE: ReadonlySet<string> = new Set<Batch['action']>(['changed', 'imported'])

/** What `batchOf` reads, in this order. */
export const BATCH_ROW = 'id, at, account_id, action, data, total, done, changed, place, undoes, undone_by'

/** Below every id. */
const LOWEST = -(2n ** 63n)

export function batchOf(row: readonly unknown[]): Batch {
  const [id, at, accountId, action, json, total, done, changed, ...ids] = row as [bigint, ...ColumnValue[]]
  const numbers = { at: Number(at), total: Number(total), done: Number(done), changed: Number(changed) }
  const [place = LOWEST, undoes, undoneBy] = ids.map((each) => each ?? undefined)
  const { field, ...data } = textsOf(objectOf(json))
  const known = FIELD_NAMES.some((name) => name === field) ? { ...data, field } : data
  return { id, accountId, action, data: known, ...numbers, place, undoes, undoneBy } as Batch
}

/** Reads an animal as it was when a batch began; undefined if it is not known. */
export function formerOf(id: bigint, json: string): Pet | undefined {
  const texts = textsOf(objectOf(json))
  const fields = FIELD_NAMES.flatMap((name) => (name in texts ? [[name, fieldFromText(name, texts[name]!)]] : []))
  const pet = { id, ...(Object.fromEntries(fields) as NewPet) }
  return typeof pet.name === 'string' && typeof pet.categoryId === 'bigint' ? pet : undefined
}
