// Categories to choose from: no records of them exist, so those of the newest animals are offered.
import { LIMIT } from '../contract/limits.ts'
import type { Store } from '../store/store.ts'

export async function categoriesInUse({ pets }: Store): Promise<bigint[]> {
  const newest = await pets.list({ limit: LIMIT.maximum })
  return [...new Set(newest.map(({ categoryId }) => categoryId))].toSorted((a, b) => (a < b ? -1 : 1))
}
