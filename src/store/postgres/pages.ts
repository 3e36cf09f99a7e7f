// Pages of the list in PostgreSQL: the statement of a page, and pages as JSON, of which those of one turn share a statement.
import { FIELD_LIST, type RenderedPets, renderPet } from '../../contract/pets.ts'
import { type ColumnValue, petOf } from '../pet-columns.ts'
import type { Page } from '../pet-list.ts'
import { together } from '../../timing.ts'
import { readRows } from './pool/connection.ts'
import { sqlState } from './pool/failures.ts'
import type { Pool } from './pool.ts'

/**
 * Renders `filters = … ORDER BY id`, but words the filters so that only the index on their columns and
 * the id provides this order. For an equality, PostgreSQL may scan all animals from the newest down and skip the others:
 * if the animals of one status are all old, that reads nearly the whole table. The limit is part of the text, not a
 * parameter: with an unknown limit, PostgreSQL plans every page again. `cursors` is an expression for the cursor.
 */
export function renderPage(page: Page, parameter: (value: string | bigint) => string, cursors?: string): string {
  const { select, where = 'TRUE', filters, before, after, limit } = page
  const [side, back, order] = after === undefined ? ['<', '>', 'DESC'] : ['>', '<', 'ASC']
  const columns = filters.map(({ column }) => column)
  const values = filters.map(({ value }) => parameter(value))
  const conditions = [where]
  const cursor = after ?? before
  if (columns.length > 0) conditions.push(`(${columns.join()}) ${back}= (${values.join()})`)
  if (cursor !== undefined)
    conditions.push(`(${[...columns, 'id'].join()}) ${side} (${[...values, cursors ?? parameter(cursor)].join()})`)
  else if (columns.length > 0) conditions.push(`(${columns.join()}) ${side}= (${values.join()})`)
  const by = [...columns, 'id'].map((column) => `${column} ${order}`)
  return `${select} WHERE ${conditions.join(' AND ')} ORDER BY ${by.join()} LIMIT ${limit}`
}

/** How many pages share a statement. */
const PAGES_PER_STATEMENT = 8

/** The integers of a page as text: a BigInt of each costs more. Their names are not those of the columns: ORDER BY would sort the texts. */
const SELECT_DIGITS = `SELECT ${['id::text AS digits', ...FIELD_LIST.map(({ column, schema }) => (schema.type === 'integer' ? `${column}::text AS digits` : column))].join()} FROM pets`

/** What pages as lines read of each animal. */
export const SELECT_ROWS = `SELECT ${['id', ...FIELD_LIST.map(({ column }) => column)].join()} FROM pets`

/**
 * The ids of a page, and the JSON of each field, as lines: JSON has no line feed. An absent field has an empty line. PostgreSQL escapes
 * the same characters as `renderPet`, which `test/store/rendered-animals.test.ts` shows.
 */
const LINES = [
  'id::text',
  ...FIELD_LIST.map(({ column, schema }) =>
    schema.type === 'integer' ? `${column}::text` : `to_json(${column})::text`,
  ),
].map((json) => `string_agg(coalesce(${json}, ''), E'\\n')`)

const FIELD_STARTS = FIELD_LIST.map(({ name }) => `,"${name}":`)

function petsOf(lines: readonly ColumnValue[]): RenderedPets {
  if (lines[0] === null) return { json: '', count: 0 }
  const [ids, ...fields] = lines.map((each) => (each as string).split('\n')) as [string[], ...string[][]]
  const pets = ids.map((id, row) => {
    let pet = `{"id":${id}`
    for (const [index, values] of fields.entries()) if (values[row] !== '') pet += FIELD_STARTS[index]! + values[row]!
    return pet + '}'
  })
  return { json: pets.join(), count: ids.length }
}

/**
 * Returns a function that reads a page as JSON. Those of one turn of the event loop that differ only in their cursor are read by one
 * statement, always the same for 2 to 8 cursors: an index beyond the last finds none. There, columns as lines cost both sides less than rows.
 */
export function renderedPages(pool: Pool): (page: Page) => Promise<RenderedPets> {
  /** Citus can't join with distributed animals in this way; a store may be distributed while it is open. */
  let canJoin = true

  /** Rows cost the server less than lines, which pay for themselves from two pages on. */
  async function readOne(page: Page): Promise<RenderedPets> {
    const values: (string | bigint)[] = []
    const text = renderPage({ ...page, select: SELECT_DIGITS }, (value) => `$${values.push(value)}`)
    const rows = await pool.readShort((sql) => readRows(sql, text, ...values))
    return { json: rows.map((row) => renderPet(petOf(row))).join(), count: rows.length }
  }

  async function readAlike(pages: readonly Page[]): Promise<RenderedPets[]> {
    const values: (string | bigint)[] = [`{${pages.map(({ before }) => before).join()}}`]
    const page = renderPage(pages[0]!, (value) => `$${values.push(value)}`, '($1::bigint[])[i]')
    const text = `SELECT lines.* FROM ${NUMBERS} CROSS JOIN LATERAL (${linesOf(page)}) AS lines ORDER BY i`
    const rows = await pool.readShort((sql) => readRows(sql, text, ...values))
    return rows.map(petsOf)
  }

  async function readEach(pages: readonly Page[]): Promise<readonly (RenderedPets | Promise<RenderedPets>)[]> {
    if (pages.length === 1 || !canJoin) return pages.map(readOne)
    try {
      return await readAlike(pages)
    } catch (error) {
      if (sqlState(error) !== UNSUPPORTED) throw error
      canJoin = false
      return pages.map(readOne)
    }
  }

  return together<Page, RenderedPets>(async (pages) => {
    const results: Promise<RenderedPets>[] = []
    for (const indexes of Map.groupBy(pages.keys(), (index) => likeness(pages[index]!)).values()) {
      const alike = indexes.map((index) => pages[index]!)
      // Without a cursor they are the same page.
      const read = readEach(alike[0]!.before === undefined ? alike.slice(0, 1) : alike)
      for (const [position, index] of indexes.entries())
        results[index] = read.then((found) => found[position] ?? found[0]!)
    }
    return results
  }, PAGES_PER_STATEMENT)
}

const NUMBERS = `generate_series(1, ${PAGES_PER_STATEMENT}) AS i`
const linesOf = (page: string) => `SELECT ${LINES.join()} FROM (${page}) AS page`

/** SQLSTATE feature_not_supported. */
const UNSUPPORTED = '0A000'

/** Pages with the same text differ in nothing but their cursor. */
function likeness({ filters, before, limit }: Page): string {
  const values = filters.map(({ column, value }) => [column, String(value)])
  return JSON.stringify([limit, before === undefined, values])
}
