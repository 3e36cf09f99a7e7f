// What both engines do alike with animals, by statements that both understand: changes and removals of those that nobody else has
// changed since, and what need not be fast.
import { isSamePet, type NewPet } from '../contract/pets.ts'
import type { Author } from './account-store.ts'
import type { Addition, ColumnValue } from './pet-columns.ts'
import { readChanges } from './pet-changes.ts'
import { petCounts } from './pet-counts.ts'
import type { Page, Summarize } from './pet-list.ts'
import { changePet, removePet } from './pet-writes.ts'
import { searchPets } from './search-pets.ts'
import { plain, type Sql } from './sql.ts'
import type { NotWritten, PetStore } from './store.ts'

/** How many idempotency records are purged in one transaction, which creates may have to wait for. */
const PURGED_AT_ONCE = 1000

/** The last time that there is to JavaScript, in milliseconds. */
const LAST_TIME = 8_640_000_000_000_000

interface PetReads {
  get: PetStore['get']
  page: (page: Page) => Promise<ColumnValue[][]>
  summarize: Summarize
}

/** `versionOf` differs when counts may have changed. */
export function sharedPets(sql: Sql, { get, page, summarize }: PetReads, versionOf: () => unknown) {
  /** Writes the animal as `after`, or removes it, with the audit event, if it equals `expected`. Resolves with undefined then. */
  async function write(id: bigint, expected: NewPet, after: NewPet | undefined, author: Author) {
    const former = { ...expected, id }
    const isWritten = await sql.transaction(() =>
      after === undefined ? removePet(former, author) : changePet(former, after, author),
    )
    if (isWritten) return undefined
    const pet = await get(id)
    if (pet === undefined) return { outcome: 'missing' } satisfies NotWritten
    if (!isSamePet(pet, expected)) return { outcome: 'conflict', pet } satisfies NotWritten
    // The animal was changed and changed back in between.
    return write(id, expected, after, author)
  }

  async function additions(ids: readonly bigint[]): Promise<Map<bigint, Addition>> {
    // A few sizes have few statements, which are kept; the last id fills up.
    const places = Array.from({ length: 2 ** Math.ceil(Math.log2(ids.length || 1)) }, (_, nth) => `$${nth + 1}`)
    const select = `SELECT id, added_at AS at, added_by AS by FROM pets WHERE id IN (${places.join()}) AND added_at BETWEEN -${LAST_TIME} AND ${LAST_TIME}`
    const rows = await sql.read(select, ...places.map((_, nth) => ids[nth] ?? ids.at(-1) ?? null))
    return new Map(rows.map(({ id, ...addition }) => [id as bigint, plain(addition) as Addition]))
  }

  return {
    addition: async (id) => (await additions([id])).get(id),
    additions,

    update: async (id, expected, wanted, author) =>
      (await write(id, expected, wanted, author)) ?? { outcome: 'updated' },
    remove: async (id, expected, author) => (await write(id, expected, undefined, author)) ?? { outcome: 'removed' },

    changes: (query) => readChanges(page, summarize, query),

    search: (query) => searchPets(summarize, get, query),

    countByStatus: petCounts(summarize, versionOf),

    /** Passes over records that are in use. */
    purgeIdempotencyRecords(before) {
      const remove = `DELETE FROM idempotency_records WHERE (account_id, key) IN
        (SELECT account_id, key FROM idempotency_records WHERE created_at < $1
         ORDER BY created_at LIMIT ${PURGED_AT_ONCE} ${sql.lock('FOR UPDATE SKIP LOCKED')})`
      return sql.run([remove, before])
    },
  } satisfies Partial<PetStore>
}
