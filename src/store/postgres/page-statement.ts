// Renders the statement of a page, by id, so that PostgreSQL reads it from the index on its filters and the id.
import type { Page } from '../pet-list.ts'

/**
 * Renders `filters = … AND others = … ORDER BY id`, but words the filters so that only the index on their columns and
 * the id provides this order. For an equality, PostgreSQL may scan all animals from the newest down and skip the others:
 * if the animals of one status are all old, that reads nearly the whole table. The limit is part of the text, not a
 * parameter: with an unknown limit, PostgreSQL plans every page again.
 */
export function pageStatement(page: Page): { text: string; parameters: (string | bigint)[] } {
  const { select, where = [], filters, others = [], after, limit } = page
  const cursor = after ?? page.before
  const [side, back, order] = after === undefined ? ['<', '>', 'DESC'] : ['>', '<', 'ASC']
  const parameters = [...filters, ...others].map(({ value }): string | bigint => value)
  if (cursor !== undefined) parameters.push(cursor)
  const columns = filters.map(({ column }) => column)
  const values = columns.map((_, index) => `$${index + 1}`)
  const conditions = [...where, ...others.map(({ column }, index) => `${column} = $${filters.length + index + 1}`)]
  const tuple = (parts: readonly string[], more: readonly string[] = []) => `(${[...parts, ...more].join()})`
  if (columns.length > 0) conditions.push(`${tuple(columns)} ${back}= ${tuple(values)}`)
  if (cursor !== undefined)
    conditions.push(`${tuple(columns, ['id'])} ${side} ${tuple(values, [`$${parameters.length}`])}`)
  else if (columns.length > 0) conditions.push(`${tuple(columns)} ${side}= ${tuple(values)}`)
  const by = [...columns, 'id'].map((column) => `${column} ${order}`).join()
  const all = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  return { text: `${select} ${all} ORDER BY ${by} LIMIT ${limit}`, parameters }
}
