// Renders the statement of a page, by id, so that PostgreSQL reads it from the index on its first filter and the id.
import type { Page } from '../pet-columns.ts'

/**
 * Renders `first = … AND others = … ORDER BY id`, but words the first filter so that only the index on its column and
 * the id provides this order. For an equality, PostgreSQL may scan all animals from the newest down and skip the others:
 * if the animals of one status are all old, that reads nearly the whole table. The limit is part of the text, not a
 * parameter: with an unknown limit, PostgreSQL plans every page again.
 */
export function pageStatement(page: Page): { text: string; parameters: (string | bigint)[] } {
  const { where = [], after, limit } = page
  const cursor = after ?? page.before
  const [side, order] = after === undefined ? ['<', 'DESC'] : ['>', 'ASC']
  const [first, ...others] = page.filters
  const parameters = page.filters.map(({ value }): string | bigint => value)
  if (cursor !== undefined) parameters.push(cursor)
  const last = `$${parameters.length}`
  const equal = others.map(({ column }, index) => `${column} = $${index + 2}`)
  const render = (conditions: readonly string[], by: string) => {
    const all = [...where, ...conditions]
    const text = `${page.select} ${all.length === 0 ? '' : `WHERE ${all.join(' AND ')}`} ORDER BY ${by} LIMIT ${limit}`
    return { text, parameters }
  }
  if (first === undefined) return render(cursor === undefined ? [] : [`id ${side} ${last}`], `id ${order}`)
  const { column } = first
  const from = `${column} ${after === undefined ? '>=' : '<='} $1`
  const to = cursor === undefined ? `${column} <= $1` : `(${column}, id) ${side} ($1, ${last})`
  return render([from, to, ...equal], `${column} ${order}, id ${order}`)
}
