// What a list reads from the table of animals, in the same way for every engine: pages by id, from an index on the filters and the id.
import { FILTER_NAMES, type Filters, type ListQuery } from '../contract/list-query.ts'
import { FIELD_NAMES, type FieldName, FIELDS, type Pet, PET_STATUSES, type PetStatus } from '../contract/pets.ts'
import { COUNTED_MOST } from './category-store.ts'
import { PET_ROW } from './pet-columns.ts'
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

const isFilter = (name: FieldName): boolean => FILTER_NAMES.some((each) => each === name)

/** What lists are filtered by, in the order of the columns of an index: in that of the fields, but the status before the id. */
const FILTERED = FIELD_NAMES.filter(
  (name): name is keyof Filters | 'categoryId' => name === 'categoryId' || isFilter(name),
).toSorted((one, other) => Number(one === 'status') - Number(other === 'status'))

/** Returns the only page of a list of the API, so that it also has statuses which only a later release knows. */
export function pageOf(query: PetList, select: string): Page {
  const filters: Filter[] = []
  for (const name of FILTERED) {
    const value: string | bigint | undefined = query[name]
    if (value !== undefined) filters.push({ column: FIELDS[name].column, value, isRare: name !== 'status' })
  }
  return { ...query, select, filters }
}

/** Returns the pages of a list. One of the console without a status may take a page for each: an index has the status before the id. */
export function pagesOfList(query: PetList): Page[] {
  const { categoryId, status, inShop } = query
  if (status === undefined && (inShop || (categoryId !== undefined && !isFilter('categoryId'))))
    return statusesOf(query).map((each) => pageOf({ ...query, status: each }, SELECT_PETS))
  return [pageOf(query, SELECT_PETS)]
}

/** Makes the list of what its pages hold. */
export function listOf({ after, limit }: PetList, pages: readonly Page[], found: Pet[]): Pet[] {
  if (pages.length === 1) return after === undefined ? found : found.toReversed()
  const newestFirst = found.toSorted((one, other) => (one.id < other.id ? 1 : -1))
  return after === undefined ? newestFirst.slice(0, limit) : newestFirst.slice(-limit)
}

/** Counts the animals of the category $1. */
export const COUNT_IN_CATEGORY = PET_STATUSES.map((status) => {
  const counted = `SELECT 1 FROM pets WHERE category_id = $1 AND status = '${status}' LIMIT ${COUNTED_MOST}`
  return `SELECT '${status}' AS status, count(*) AS count FROM (${counted}) AS counted`
}).join(' UNION ALL ')

export function countsOf(rows: readonly Row[]): Record<PetStatus, number> {
  return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)])) as Record<PetStatus, number>
}
