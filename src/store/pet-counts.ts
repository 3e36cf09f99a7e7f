// Counts animals for people: of each status, in the store or a category, up to a bound, in the same way for every engine.
import { PET_STATUSES, type PetStatus } from '../contract/pets.ts'
import { nextSlice } from '../timing.ts'
import { pageOf, type Summarize } from './pet-list.ts'

/** Where counting stops: one more means "more than 10,000". */
export const COUNTED_MOST = 10_000

export type PetCounts = Record<PetStatus, number>

/** How many categories' counts are kept. */
const KEPT = 1000

/** Returns a function that counts. Keeps what it has counted, also while that is being counted, until the version is another one. */
export function petCounts(
  summarize: Summarize,
  versionOf: () => unknown,
): (categoryId?: bigint, most?: number) => Promise<PetCounts> {
  let version: unknown
  let kept = new Map<string, Promise<PetCounts>>()
  return (categoryId, most = COUNTED_MOST) => {
    const now = versionOf()
    if (now !== version || kept.size === KEPT) [version, kept] = [now, new Map()]
    const [keeper, key] = [kept, `${categoryId} ${most}`]
    const counting = keeper.get(key) ?? count(summarize, categoryId, most)
    keeper.set(key, counting)
    counting.catch(() => keeper.delete(key))
    return counting
  }
}

/** Counts each status in a turn of its own: with SQLite each takes up to a ms. */
async function count(summarize: Summarize, categoryId: bigint | undefined, most: number): Promise<PetCounts> {
  const counted = PET_STATUSES.map(async (status) => {
    const page = pageOf({ categoryId, status, limit: most + 1 }, 'SELECT id FROM pets')
    await nextSlice()
    return [status, Number((await summarize(page, () => 'count(*)'))[0])] as const
  })
  return Object.fromEntries(await Promise.all(counted)) as PetCounts
}
