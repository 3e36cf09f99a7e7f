// Who added, changed and removed animals, newest first, in the same way for every engine. The rows of animals tell who added them,
// the audit trail tells the rest: a page reads the next of both, each by an index, and merges them by time.
import { OF_PETS, PET_SUBJECT, type PetAction, type PetData } from './account-store.ts'
import { type Addition, ADDITION_ROW, additionOf, type ColumnValue } from './pet-columns.ts'
import type { Page } from './pet-list.ts'

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

export interface PetChange {
  /** `pet.added`, or the action of an event. */
  action: PetAction | 'pet.added'
  /** The animal, as `aboutPet` names it. */
  subject: string
  petId: bigint | undefined
  detail: string | undefined
  data: PetData | undefined
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

/** Returns what a page reads: animals and events, each one more than it may list, to see whether another page follows. */
export function pagesOfChanges({ by, limit, after }: ChangeQuery): [Page, Page] {
  const own = (column: string) => (by === undefined ? [] : [{ column, value: by }])
  const pets = {
    select: `SELECT id, 'pet.added', ${PET_SUBJECT}, id, NULL, NULL, ${ADDITION_ROW} FROM pets`,
    ...(by === undefined ? {} : { where: ADDED_IN_CONSOLE }),
    filters: own('added_by'),
    before: after?.petId,
    limit: limit + 1,
  }
  const events = {
    select: 'SELECT id, action, subject, pet_id, detail, data, at, account_id FROM audit_events',
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
  const [added, others] = [pets.map(changeOf), events.map(changeOf)]
  const changes: PetChange[] = []
  while (changes.length < limit && added.length + others.length > 0) {
    // An animal whose time was not recorded is listed with the next older one.
    const addedAt = added.find(({ done }) => done !== undefined)?.done?.at ?? Number.NEGATIVE_INFINITY
    const isAddition = others[0] === undefined || addedAt > others[0].done!.at
    changes.push((isAddition ? added.shift() : others.shift())!)
  }
  if (added.length + others.length === 0) return { changes, next: undefined }
  const lastId = (rows: readonly ColumnValue[][], left: number) =>
    rows[rows.length - left - 1]?.[0] as bigint | undefined
  const petId = lastId(pets, added.length) ?? after?.petId
  return { changes, next: { petId, eventId: lastId(events, others.length) ?? after?.eventId } }
}

function changeOf([, action, subject, petId, detail, data, ...addition]: readonly ColumnValue[]): PetChange {
  const told = { petId: petId ?? undefined, detail: detail ?? undefined, data: dataOf(data) }
  return { action, subject, ...told, done: additionOf(addition) } as PetChange
}

/** Reads the data of an event, as far as this program understands it: a later release may have written other data, or it is damaged. */
export function dataOf(json: unknown): PetData | undefined {
  if (typeof json !== 'string') return undefined
  let data: Record<string, unknown>
  try {
    data = Object(JSON.parse(json))
  } catch {
    return undefined
  }
  const texts = (value: unknown): Record<string, string> =>
    Object.fromEntries(
      Object.entries(Object(value)).filter(([, each]) => typeof each === 'string') as [string, string][],
    )
  const { from, to, categories, added } = data
  if (from === undefined && to === undefined) return undefined
  const { at, by } = Object(added) as Record<string, unknown>
  return {
    from: texts(from),
    ...(to !== undefined && { to: texts(to) }),
    ...(categories !== undefined && { categories: texts(categories) }),
    ...(typeof at === 'number' &&
      !Number.isNaN(new Date(at).getTime()) && { added: { at, by: typeof by === 'string' ? by : undefined } }),
  }
}
