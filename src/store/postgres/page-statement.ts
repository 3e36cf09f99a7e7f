// Renders the statement of pages by id, so that PostgreSQL reads each from the index on its filters and the id.
import type { Page } from '../pet-list.ts'

/** Where pages of a table in partitions end: at this id. Conditions on the id alone choose the partitions, so the cursor becomes one too. */
export type Reach = bigint | 'end'

/** Renders pages of the same columns; the rows of several are in no order. */
export function pageStatement(pages: readonly Page[], reach?: Reach) {
  const parameters: (string | bigint)[] = []
  const parameter = (value: string | bigint) => `$${parameters.push(value)}`
  return { text: pages.map((page) => `(${render(page, parameter, reach)})`).join(' UNION ALL '), parameters }
}

/**
 * Renders `filters = … ORDER BY id`, but words the filters so that only the index on their columns and
 * the id provides this order. For an equality, PostgreSQL may scan all animals from the newest down and skip the others:
 * if the animals of one status are all old, that reads nearly the whole table. The limit is part of the text, not a
 * parameter: with an unknown limit, PostgreSQL plans every page again.
 */
function render(page: Page, parameter: (value: string | bigint) => string, reach?: Reach): string {
  const { select, where = 'TRUE', filters, before, after, limit } = page
  const [side, back, order] = after === undefined ? ['<', '>', 'DESC'] : ['>', '<', 'ASC']
  const columns = filters.map(({ column }) => column)
  const values = filters.map(({ value }) => parameter(value))
  const conditions = [where]
  const cursor = after ?? before
  if (columns.length > 0) conditions.push(`(${columns.join()}) ${back}= (${values.join()})`)
  if (cursor !== undefined) {
    const id = parameter(cursor)
    conditions.push(`(${[...columns, 'id'].join()}) ${side} (${[...values, id].join()})`)
    if (columns.length > 0 && reach !== undefined) conditions.push(`id ${side} ${id}`)
  } else if (columns.length > 0) conditions.push(`(${columns.join()}) ${side}= (${values.join()})`)
  // First pages are few: as part of the text, it lets PostgreSQL forget all other partitions when it plans.
  if (typeof reach === 'bigint') conditions.push(`id ${back}= ${cursor === undefined ? reach : parameter(reach)}`)
  const by = [...columns, 'id'].map((column) => `${column} ${order}`)
  return `${select} WHERE ${conditions.join(' AND ')} ORDER BY ${by.join()} LIMIT ${limit}`
}
