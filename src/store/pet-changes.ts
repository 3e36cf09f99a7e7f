// Who added, changed and removed animals, newest first, in the same way for every engine. The rows of animals tell who added them, the
// audit trail what happened later, and batches what many of them have in common: a page reads the next of each, and merges them by time.
import { nextSlice } from '../timing.ts'
import { OF_PETS, PET_SUBJECT, type PetAction, type PetData } from './account-store.ts'
import { type Batch, BATCH_ROW, batchOf } from './batches/batch.ts'
import { type Addition, ADDITION_ROW, additionOf, type ColumnValue, objectOf, textsOf } from './pet-columns.ts'
import type { Page, Summarize } from './pet-list.ts'

export interface ChangeQuery {
  /** Only what this account did in the console. */
  by?: string | undefined
  limit: number
  /** The `next` of the page before. */
  after?: ChangePlace | undefined
}

/** The last animal, event and batch that were listed; undefined before the first one. */
export interface ChangePlace {
  petId: bigint | undefined
  eventId: bigint | undefined
  batchId: bigint | undefined
}

export interface PetChange {
  /** `pet.added`, or the action of an event, or that of a batch. */
  action: PetAction | 'pet.added' | 'batch'
  /** The animal, as `aboutPet` names it. */
  subject: string
  petId: bigint | undefined
  detail: string | undefined
  data: PetData | undefined
  /** What was done to many animals, which have no changes of their own then. */
  batch?: Batch
  /** When and by whom. Additions that were not recorded come after all that happened later, and at the end. */
  done: Addition | undefined
}

export interface PetChanges {
  changes: PetChange[]
  /** Where the next page starts; undefined if this is the last one. */
  next: ChangePlace | undefined
}

/** Selects the animals that were added in the console, by an account (`acct_…`) and not by a key (`key_…`). An index has this condition. */
export const ADDED_IN_CONSOLE = `added_by < 'key'`

/** Returns what a page reads: animals, events and batches, each one more than it may list, to see whether another page follows. */
export function pagesOfChanges({ by, limit, after }: ChangeQuery): [Page, Page, Page] {
  const page = (select: string, where: string | undefined, column: string, before: bigint | undefined): Page => ({
    select,
    ...(where !== undefined && { where }),
    filters: by === undefined ? [] : [{ column, value: by }],
    before,
    limit: limit + 1,
  })
  const pets = `SELECT id, 'pet.added', ${PET_SUBJECT}, id, NULL, NULL, ${ADDITION_ROW}, batch_id FROM pets`
  const events = 'SELECT id, action, subject, pet_id, detail, data, at, account_id, batch_id FROM audit_events'
  return [
    page(pets, by === undefined ? undefined : ADDED_IN_CONSOLE, 'added_by', after?.petId),
    page(events, OF_PETS, 'account_id', after?.eventId),
    page(`SELECT ${BATCH_ROW} FROM batches`, 'changed > 0', 'account_id', after?.batchId),
  ]
}

type Rows = readonly (readonly ColumnValue[])[]

/** How many rows of batches are passed over at a time, which takes SQLite some ms. */
const PASSED_OVER = 5000

export async function readChanges(
  read: (page: Page) => Promise<ColumnValue[][]>,
  summarize: Summarize,
  query: ChangeQuery,
): Promise<PetChanges> {
  /** Reads rows that belong to no batch, which is listed itself. */
  async function readSingle(page: Page, table: string): Promise<ColumnValue[][]> {
    const rows: ColumnValue[][] = []
    const isSingle = [page.where, 'batch_id IS NULL'].filter((each) => each !== undefined).join(' AND ')
    for (let { before } = page; ;) {
      const found = await read({ ...page, before })
      rows.push(...found.filter((row) => row.at(-1) === null))
      if (rows.length >= page.limit || found.length < page.limit) return rows.slice(0, page.limit)
      before = found.at(-1)![0] as bigint
      await nextSlice()
      const select = `SELECT id, batch_id FROM ${table}`
      const columns = () => 'count(*) - count(batch_id), min(id)'
      const [count, oldest] = await summarize({ ...page, select, before, limit: PASSED_OVER }, columns)
      // No more than these have, so that no other rows are passed over.
      const limit = Math.min(Number(count), page.limit - rows.length)
      const single = limit > 0 ? await read({ ...page, where: isSingle, before, limit }) : []
      rows.push(...single)
      if (rows.length >= page.limit || oldest === null) return rows
      // An animal that was removed meanwhile makes the last one lie behind them.
      const last = single.at(-1)?.[0] as bigint | undefined
      before = last !== undefined && last < (oldest as bigint) ? last : (oldest as bigint)
    }
  }

  const [pets, events, batches] = pagesOfChanges(query)
  const single = [readSingle(pets, 'pets'), readSingle(events, 'audit_events')] as const
  return mergeChanges(await Promise.all([...single, read(batches)]), query)
}

/** Merges by time. An animal was added before it was changed, also in the same millisecond. */
function mergeChanges([pets, events, batches]: [Rows, Rows, Rows], { limit, after }: ChangeQuery): PetChanges {
  const all = [events.map(changeOf), batches.map(batchChangeOf), pets.map(changeOf)] as const
  // An animal whose time was not recorded is listed with the next older one.
  const timeOf = (list: readonly PetChange[]) =>
    list.find(({ done }) => done !== undefined)?.done?.at ?? (list.length > 0 ? 0 : Number.NEGATIVE_INFINITY)
  const changes: PetChange[] = []
  while (changes.length < limit && all.some((list) => list.length > 0)) {
    const newest = all.reduce<PetChange[]>((best, list) => (timeOf(list) > timeOf(best) ? list : best), [])
    changes.push(newest.shift()!)
  }
  if (all.every((list) => list.length === 0)) return { changes, next: undefined }
  const lastId = (rows: Rows, left: readonly PetChange[]) =>
    rows[rows.length - left.length - 1]?.[0] as bigint | undefined
  const petId = lastId(pets, all[2]) ?? after?.petId
  const eventId = lastId(events, all[0]) ?? after?.eventId
  return { changes, next: { petId, eventId, batchId: lastId(batches, all[1]) ?? after?.batchId } }
}

function batchChangeOf(row: readonly ColumnValue[]): PetChange {
  const batch = batchOf(row)
  const none = { petId: undefined, detail: undefined, data: undefined }
  return { action: 'batch', subject: '', ...none, batch, done: { at: batch.at, by: batch.accountId } }
}

function changeOf([, action, subject, petId, detail, data, at, by]: readonly ColumnValue[]): PetChange {
  const told = { petId: petId ?? undefined, detail: detail ?? undefined, data: dataOf(data) }
  return { action, subject, ...told, done: additionOf([at!, by!]) } as PetChange
}

/** Reads the data of an event, as far as this program understands it: a later release may have written other data, or it is damaged. */
export function dataOf(json: unknown): PetData | undefined {
  const { from, to, categories, added } = objectOf(json)
  if (from === undefined && to === undefined) return undefined
  const { at, by } = Object(added) as Record<string, unknown>
  return {
    from: textsOf(from),
    ...(to !== undefined && { to: textsOf(to) }),
    ...(categories !== undefined && { categories: textsOf(categories) }),
    ...(typeof at === 'number' &&
      !Number.isNaN(new Date(at).getTime()) && { added: { at, by: typeof by === 'string' ? by : undefined } }),
  }
}
