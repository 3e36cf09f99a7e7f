// The port for categories: people give names to the numbers that animals have. Numbers are never changed or reused, so nothing
// removes a category.
import { foldCategoryName } from '../contract/category-name.ts'
import type { AuditEvent } from './account-store.ts'

export interface Category {
  number: bigint
  /** Checked by `categoryNameProblem`. */
  name: string
}

/** Where counting stops: this count means "1,000 or more". */
export const COUNTED_MOST = 1000

/** `category` is the one that has the number or the name already, or as it is now. */
export type CategoryWritten =
  | { outcome: 'written' }
  | { outcome: 'number taken' | 'name taken' | 'conflict'; category: Category }
  | { outcome: 'missing' }

/** Each change and its audit event are one transaction. Names are compared by `foldCategoryName`. */
export interface CategoryStore {
  /** Names a number; animals may have it already. */
  add(category: Category, event: AuditEvent): Promise<CategoryWritten>
  /** Renames a category if it still equals `expected`. */
  rename(expected: Category, name: string, event: AuditEvent): Promise<CategoryWritten>
  /** Lists categories by name, those behind the name `after`, with how many animals each has, at most `COUNTED_MOST`. */
  list(query: { limit: number; after?: string | undefined }): Promise<(Category & { animals: number })[]>
  /** Resolves with the names of those of these numbers that have one. */
  names(numbers: readonly bigint[]): Promise<Map<bigint, string>>
  /** Resolves with undefined if no category has this name. */
  byName(name: string): Promise<Category | undefined>
  /** Resolves with the lowest number from 1 that has neither a name nor animals; undefined if the first 10,000 are taken. */
  freeNumber(): Promise<bigint | undefined>
}

export const SELECT_CATEGORIES = `
  SELECT number, name, (SELECT count(*) FROM (SELECT 1 FROM pets WHERE category_id = number LIMIT ${COUNTED_MOST}) AS found)
  FROM categories`

export type CountedRow = [number: bigint, name: string, animals: bigint]

/** Converts rows of `SELECT_CATEGORIES`. */
export function countedOf(rows: readonly CountedRow[]): (Category & { animals: number })[] {
  return rows.map(([number, name, animals]) => ({ number, name, animals: Number(animals) }))
}

/** Counts up while a number is taken. */
export const FREE_NUMBER = `
  WITH RECURSIVE tried (number) AS (
    SELECT 1 UNION ALL SELECT number + 1 FROM tried WHERE number <= 10000
      AND (EXISTS (SELECT 1 FROM categories AS c WHERE c.number = tried.number)
        OR EXISTS (SELECT 1 FROM pets WHERE category_id = tried.number))
  ) SELECT max(number) FROM tried HAVING max(number) <= 10000`

/** Says why a category was not added, or not renamed, by those that have its number or the new name now. */
export function whyNotWritten(
  found: readonly Category[],
  expected: Category,
  name: string,
  isNew: boolean,
): CategoryWritten {
  const own = found.find(({ number }) => number === expected.number)
  if (own !== undefined && isNew) return { outcome: 'number taken', category: own }
  if (own === undefined && !isNew) return { outcome: 'missing' }
  if (own !== undefined && own.name !== expected.name) return { outcome: 'conflict', category: own }
  const folded = foldCategoryName(name)
  return { outcome: 'name taken', category: found.find((other) => foldCategoryName(other.name) === folded)! }
}
