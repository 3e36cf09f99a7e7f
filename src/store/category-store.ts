// The port for categories: people give names to the numbers that animals have. Numbers are never changed or reused, so nothing
// removes a category.
import { type Category, CategoryNames } from '../contract/category-name.ts'
import type { AuditEvent } from './account-store.ts'
import type { Read } from './pet-columns.ts'

export type { Category }

/** Where counting stops: this count means "1,000 or more". */
export const COUNTED_MOST = 1000

/** Names are compared by `foldCategoryName`. */
export interface CategoryStore {
  /**
   * Gives a number its name, if it still has the name `former`, undefined for none, and adds the audit event in the same
   * transaction. If not, resolves with the category in the way: the number with the name that it has now, or another number
   * that has the new name.
   */
  save(category: Category, former: string | undefined, event: AuditEvent): Promise<Category | undefined>
  /** Resolves with all names: there are at most `CATEGORIES_MOST`. */
  names(): Promise<CategoryNames>
}

export const SAME_NUMBER_OR_NAME = 'SELECT number, name FROM categories WHERE number = $1 OR name_folded = $2'

/** Returns the category, of those with the same number or name, that forbids to save this one. */
export function inTheWay(
  found: readonly Row[],
  { number }: Category,
  former: string | undefined,
): Category | undefined {
  return found.map(categoryOf).find((other) => other.number !== number || other.name !== former)
}

type Row = readonly unknown[]

function categoryOf([number, name]: Row): Category {
  return { number: number as bigint, name: name as string }
}

export async function readNames(read: Read): Promise<CategoryNames> {
  const rows = await read('SELECT number, name FROM categories', [])
  return new CategoryNames(rows.map(categoryOf))
}
