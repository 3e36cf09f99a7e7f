// Who added, changed and removed animals, newest first, in the same way for every engine. The rows of animals tell who added them,
// the audit trail tells the rest: a page reads the next of both, each by an index, and merges them by time.
import type { Pet } from '../contract/pets.ts'
import { asEvent, OF_PETS, type RecordedEvent } from './account-store.ts'
import { type Addition, ADDITION_COLUMNS, additionOf, type ColumnValue, PET_ROW, petOf } from './pet-columns.ts'
import type { Page } from './pet-list.ts'

/** Which changes to list. */
export interface ChangeQuery {
  /** Only what this account did in the console, or only the animals that were added with this key: the id of either. */
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

/** Returns what a page reads: animals and events, each one more than it may list, to see whether another page follows. */
export function pagesOfChanges({ by, limit, after }: ChangeQuery): [Page, Page] {
  const filters = (column: string) => (by === undefined ? [] : [{ column, value: by }])
  return [
    {
      select: `SELECT ${PET_ROW}, ${Object.keys(ADDITION_COLUMNS).join()} FROM pets`,
      filters: filters('added_by'),
      before: after?.petId,
      limit: limit + 1,
    },
    {
      select: 'SELECT id, at, account_id, action, via, subject, detail FROM audit_events',
      where: [OF_PETS],
      filters: filters('account_id'),
      before: after?.eventId,
      limit: limit + 1,
    },
  ]
}

/** Merges the rows of both reads by time. An animal was added before it was changed, also in the same millisecond. */
export function mergeChanges(
  pets: readonly ColumnValue[][],
  events: readonly ColumnValue[][],
  { limit, after }: ChangeQuery,
): PetChanges {
  const added = pets.map((row) => ({ pet: petOf(row), addition: additionOf(row.slice(-2)) }))
  const times = timesOf(added.map(({ addition }) => addition?.at))
  const changes: PetChange[] = []
  let [petId, eventId] = [after?.petId, after?.eventId]
  for (let [pet, event] = [0, 0]; pet + event < Math.min(limit, pets.length + events.length);) {
    if (event === events.length || times[pet]! > Number(events[event]![1])) {
      changes.push({ kind: 'added', ...added[pet]! })
      petId = added[pet]!.pet.id
      pet += 1
    } else {
      const row = events[event]!
      changes.push({ kind: 'event', event: eventOf(row) })
      eventId = row[0] as bigint
      event += 1
    }
  }
  return { changes, next: pets.length + events.length > limit ? { petId, eventId } : undefined }
}

/** Gives an animal whose time was not recorded that of the next older one. */
function timesOf(recorded: readonly (number | undefined)[]): number[] {
  return recorded.map((_, index) => recorded.slice(index).find((at) => at !== undefined) ?? Number.NEGATIVE_INFINITY)
}

function eventOf([, at, accountId, action, via, subject, detail]: readonly ColumnValue[]): RecordedEvent {
  const texts = { accountId, action, via, subject, detail } as Record<keyof RecordedEvent, string>
  return asEvent({ ...texts, at: Number(at), detail: detail as string | null })
}
