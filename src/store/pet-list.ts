// What a list reads from the table of animals, in the same way for every engine: pages by id, from an index on the filters and the id.
import { type Filters, FILTER_NAMES, type ListQuery } from '../contract/list-query.ts'
import { FIELDS, type Pet, PET_STATUSES, type PetStatus } from '../contract/pets.ts'
import { COUNTED_MOST } from './category-store.ts'
import { type ColumnValue, PET_ROW, petOf } from './pet-columns.ts'
import type { Row } from './sql.ts'

const IN_SHOP = PET_STATUSES.filter((status) => status !== 'sold')

/** A list for the console, which can also ask for one category, and for what is in the shop where it asks for no status. */
export interface PetList extends ListQuery {
  categoryId?: bigint | undefined
  inShop?: boolean | undefined
}

export function statusesOf({ status, inShop }: Pick<PetList, 'status' | 'inShop'>): readonly PetStatus[] {
  if (status !== undefined) return [status]
  return inShop ? IN_SHOP : PET_STATUSES
}

interface Filter {
  column: string
  value: string | bigint
  /** Whether few rows have the value, which SQLite must be told: without statistics it takes the index on the other filters. */
  isRare?: boolean
}

/** A page of a table with an id: `limit` rows by id descending, those below `before`, or ascending those above `after`. */
export interface Page {
  /** `SELECT … FROM …`. */
  select: string
  /** A condition without parameters. */
  where?: string
  /** What rows must equal. An index has these columns, in this order, and then the id. */
  filters: readonly Filter[]
  before?: bigint | undefined
  after?: bigint | undefined
  limit: number
}

export const SELECT_PETS = `SELECT ${PET_ROW} FROM pets`

/** Returns the page that a list reads; one for each status if it shows several of them: an index has the status before the id. */
export function pagesOfList(query: PetList): Page[] {
  const { categoryId, status, inShop } = query
  if (status === undefined && (categoryId !== undefined || inShop))
    return statusesOf(query).flatMap((each) => pagesOfList({ ...query, status: each }))
  const page = { ...query, select: SELECT_PETS, filters: filterColumns(query) }
  if (categoryId === undefined) return [page]
  const category = { column: FIELDS.categoryId.column, value: categoryId, isRare: true }
  return [{ ...page, filters: [category, ...page.filters] }]
}

/** Makes the list of the rows of its pages. */
export function listOf(rows: readonly ColumnValue[][], { categoryId, inShop, after, limit }: PetList): Pet[] {
  const found = rows.map(petOf)
  if (categoryId === undefined && !inShop) return after === undefined ? found : found.toReversed()
  const newestFirst = found.toSorted((one, other) => (one.id < other.id ? 1 : -1))
  return after === undefined ? newestFirst.slice(0, limit) : newestFirst.slice(-limit)
}

function filterColumns(filters: Filters): Filter[] {
  const given: Filter[] = []
  for (const name of FILTER_NAMES) {
    const value: string | bigint | undefined = filters[name]
    if (value !== undefined) given.push({ column: FIELDS[name].column, value })
  }
  return given
}

/** Counts the animals of the category $1. */
export const COUNT_IN_CATEGORY = PET_STATUSES.map((status) => {
  const counted = `SELECT 1 FROM pets WHERE category_id = $1 AND status = '${status}' LIMIT ${COUNTED_MOST}`
  return `SELECT '${status}' AS status, count(*) AS count FROM (${counted}) AS counted`
}).join(' UNION ALL ')

export function countsOf(rows: readonly Row[]): Record<PetStatus, number> {
  return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)])) as Record<PetStatus, number>
}
