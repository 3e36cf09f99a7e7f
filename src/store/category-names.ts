// Reads the names of all categories, at once and without counting animals: there are at most `CATEGORIES_MOST`.
import { type Category, CategoryNames } from '../contract/category-name.ts'
import { kindOf, readBatches } from './records.ts'
import type { Store } from './store.ts'

export async function readCategoryNames({ records }: Store): Promise<CategoryNames> {
  const batches = await Array.fromAsync(readBatches(records, kindOf('categories')))
  return new CategoryNames(batches.flat() as unknown as Category[])
}
