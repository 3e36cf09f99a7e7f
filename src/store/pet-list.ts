// What a list reads from the table of animals, in the same way for every engine: pages by id, from an index on the filters and the id.
import { type Filters, FILTER_NAMES, type ListQuery } from '../contract/list-query.ts'
import { FIELDS, type Pet, PET_STATUSES } from '../contract/pets.ts'
import { type ColumnValue, PET_ROW, petOf } from './pet-columns.ts'

/** A list for the console, which can also ask for one category. */
export interface PetList extends ListQuery {
  categoryId?: bigint | undefined
}

interface Filter {
  column: string
  value: string | bigint
}

/** A page of a table with an id: `limit` rows by id descending, those below `before`, or ascending those above `after`. */
export interface Page {
  /** `SELECT … FROM …`. */
  select: string
  /** Conditions without parameters. */
  where?: readonly string[]
  /** What rows must equal. An index has these columns, in this order, and then the id. */
  filters: readonly Filter[]
  /** What rows must equal besides. */
  others?: readonly Filter[]
  before?: bigint | undefined
  after?: bigint | undefined
  limit: number
}

const SELECT_PETS = `SELECT ${PET_ROW} FROM pets`

/** Returns the page that a list reads. A category without a status has one for each: its index has the status before the id. */
export function pagesOfList(query: PetList): Page[] {
  const { categoryId, status } = query
  if (categoryId !== undefined && status === undefined)
    return PET_STATUSES.flatMap((each) => pagesOfList({ ...query, status: each }))
  const [first, ...others] = filterColumns(query)
  const page = { ...query, select: SELECT_PETS }
  if (first === undefined) return [{ ...page, filters: [] }]
  const category = categoryId === undefined ? [] : [{ column: FIELDS.categoryId.column, value: categoryId }]
  return [{ ...page, filters: [...category, first], others }]
}

/** Makes the list of the rows of its pages. */
export function listOf(pages: readonly ColumnValue[][][], { after, limit }: PetList): Pet[] {
  const found = pages.flat().map(petOf)
  const direction = after === undefined ? -1 : 1
  if (pages.length > 1) found.sort((one, other) => (one.id < other.id ? -direction : direction))
  const list = found.slice(0, limit)
  return after === undefined ? list : list.toReversed()
}

/** Returns the columns and values of the filters that are given. */
function filterColumns(filters: Filters): Filter[] {
  const given: Filter[] = []
  for (const name of FILTER_NAMES) {
    const value: string | bigint | undefined = filters[name]
    if (value !== undefined) given.push({ column: FIELDS[name].column, value })
  }
  return given
}
