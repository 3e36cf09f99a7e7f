// Categories in PostgreSQL.
import type { Fragment } from 'postgres'
import { foldCategoryName } from '../../contract/category-name.ts'
import type { AuditEvent } from '../account-store.ts'
import {
  type Category,
  type CategoryStore,
  type CategoryWritten,
  type CountedRow,
  countedOf,
  FREE_NUMBER,
  SELECT_CATEGORIES,
  whyNotWritten,
} from '../category-store.ts'
import { withEvent } from './accounts.ts'
import type { Database } from './connection.ts'
import { sqlState } from './failures.ts'
import type { Pool } from './pool.ts'

const UNIQUE_VIOLATION = '23505'

export function postgresCategories(pool: Pool): CategoryStore {
  /** Writes with the audit event, or resolves with why not. A rename to a name that is taken violates its unique index. */
  async function write(
    expected: Category,
    name: string,
    event: AuditEvent,
    change?: (sql: Database) => Fragment,
  ): Promise<CategoryWritten> {
    const { number } = expected
    const folded = foldCategoryName(name)
    const insert = (sql: Database) => sql`
      INSERT INTO categories (number, name, name_folded) VALUES (${number}, ${name}, ${folded}) ON CONFLICT DO NOTHING`
    const isWritten = await pool
      .write((sql) => withEvent(sql, event, (change ?? insert)(sql)))
      .catch((error: unknown) => {
        if (sqlState(error) === UNIQUE_VIOLATION) return false
        throw error
      })
    if (isWritten) return { outcome: 'written' }
    const found = await pool.read(
      (sql) => sql<Category[]>`SELECT number, name FROM categories WHERE number = ${number} OR name_folded = ${folded}`,
    )
    return whyNotWritten([...found], expected, name, change === undefined)
  }

  return {
    add: (category, event) => write(category, category.name, event),

    rename: (expected, name, event) =>
      write(
        expected,
        name,
        event,
        (sql) => sql`
        UPDATE categories SET name = ${name}, name_folded = ${foldCategoryName(name)}
        WHERE number = ${expected.number} AND name = ${expected.name}`,
      ),

    async list({ limit, after = '' }) {
      const text = `${SELECT_CATEGORIES} WHERE name_folded > $1 ORDER BY name_folded LIMIT $2`
      const rows: unknown = await pool.read((sql) => sql.unsafe(text, [foldCategoryName(after), limit]).values())
      return countedOf(rows as CountedRow[])
    },

    async names(numbers) {
      const found = await pool.read(
        (sql) => sql<Category[]>`
        SELECT number, name FROM categories WHERE number = ANY (string_to_array(${numbers.join()}, ',')::bigint[])`,
      )
      return new Map(found.map(({ number, name }) => [number, name]))
    },

    async byName(name) {
      const folded = foldCategoryName(name)
      // PostgreSQL can't compare with U+0000.
      if (folded.includes('\0')) return undefined
      const [found] = await pool.read(
        (sql) => sql<Category[]>`SELECT number, name FROM categories WHERE name_folded = ${folded}`,
      )
      return found && { ...found }
    },

    async freeNumber() {
      const rows: unknown = await pool.read((sql) => sql.unsafe(FREE_NUMBER).values())
      const [number] = (rows as (bigint | number)[][])[0] ?? []
      return number === undefined ? undefined : BigInt(number)
    },
  }
}
