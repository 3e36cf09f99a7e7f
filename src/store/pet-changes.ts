// Who added, changed and removed animals, newest first, in the same way for every engine. The rows of animals tell who added them,
// the audit trail tells the rest: a page reads the next of both, each by an index, and merges them by time.
import type { Pet } from '../contract/pets.ts'
import { asEvent, type EventRow, OF_PETS, type RecordedEvent } from './account-store.ts'
import { type Addition, ADDITION_ROW, additionOf, type ColumnValue, PET_ROW, petOf, type Read } from './pet-columns.ts'
import type { Page } from './pet-list.ts'

/** Which changes to list. */
export interface ChangeQuery {
  /** Only what this account did in the console. */
  by?: string | undefined
  limit: number
  /** The `next` of the page before. */
  after?: ChangePlace | undefined
}

/** The last animal and the last event that were listed; undefined before the first one. */
export interface ChangePlace {
  petId: bigint | undefined
  eventId: bigint | undefined
}

export type PetChange =
  /** The animal as it is now. Additions that were not recorded come after all that happened later, and at the end. */
  | { kind: 'added'; pet: Pet; addition: Addition | undefined }
  /** A change or a removal; `accountId` says whose, the subject ends with the animal's id (`petSubject`). */
  | { kind: 'event'; event: RecordedEvent }

export interface PetChanges {
  changes: PetChange[]
  /** Where the next page starts; undefined if this is the last one. */
  next: ChangePlace | undefined
}

/** Selects the animals that were added in the console, by an account (`acct_…`) and not by a key (`key_…`). An index has this condition. */
const ADDED_IN_CONSOLE = `added_by < 'key'`

/** Returns what a page reads: animals and events, each one more than it may list, to see whether another page follows. */
export function pagesOfChanges({ by, limit, after }: ChangeQuery): [Page, Page] {
  const own = (column: string) => (by === undefined ? [] : [{ column, value: by }])
  const pets = {
    select: `SELECT ${PET_ROW}, ${ADDITION_ROW} FROM pets`,
    ...(by === undefined ? {} : { where: ADDED_IN_CONSOLE }),
    filters: own('added_by'),
    before: after?.petId,
    limit: limit + 1,
  }
  const events = {
    select: 'SELECT id, at, account_id, action, via, subject, detail FROM audit_events',
    where: OF_PETS,
    filters: own('account_id'),
    before: after?.eventId,
    limit: limit + 1,
  }
  return [pets, events]
}

/** Merges the rows of both reads by time. An animal was added before it was changed, also in the same millisecond. */
export function mergeChanges(
  pets: readonly ColumnValue[][],
  events: readonly ColumnValue[][],
  { limit, after }: ChangeQuery,
): PetChanges {
  const added = pets.map((row) => ({ kind: 'added' as const, pet: petOf(row), addition: additionOf(row.slice(-2)) }))
  const others = events.map((row) => ({ kind: 'event' as const, event: eventOf(row) }))
  const changes: PetChange[] = []
  while (changes.length < limit && added.length + others.length > 0) {
    // An animal whose time was not recorded has that of the next older one.
    const addedAt = added.find(({ addition }) => addition !== undefined)?.addition?.at ?? Number.NEGATIVE_INFINITY
    const isAddition = others[0] === undefined || addedAt > others[0].event.at
    changes.push((isAddition ? added.shift() : others.shift())!)
  }
  if (added.length + others.length === 0) return { changes, next: undefined }
  const lastId = (rows: readonly ColumnValue[][], left: number) =>
    rows[rows.length - left - 1]?.[0] as bigint | undefined
  const petId = lastId(pets, added.length) ?? after?.petId
  return { changes, next: { petId, eventId: lastId(events, others.length) ?? after?.eventId } }
}

function eventOf([, at, accountId, action, via, subject, detail]: readonly ColumnValue[]): RecordedEvent {
  return asEvent({ at: Number(at), accountId, action, via, subject, detail } as EventRow)
}

export async function readAddition(read: Read, id: bigint): Promise<Addition | undefined> {
  const [row] = await read(`SELECT ${ADDITION_ROW} FROM pets WHERE id = $1`, [id])
  return additionOf(row)
}
