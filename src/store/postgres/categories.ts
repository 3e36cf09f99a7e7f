// Categories in PostgreSQL.
import { foldCategoryName } from '../../contract/category-name.ts'
import { type CategoryStore, inTheWay, readNames, SAME_NUMBER_OR_NAME } from '../category-store.ts'
import { withEvent } from './accounts.ts'
import { sqlState } from './failures.ts'
import type { Pool } from './pool.ts'

const UNIQUE_VIOLATION = '23505'

export function postgresCategories(pool: Pool): CategoryStore {
  const save: CategoryStore['save'] = async (category, former, event) => {
    const { number, name } = category
    const folded = foldCategoryName(name)
    const isSaved = await pool
      .write((sql) => {
        const insert = sql`
          INSERT INTO categories (number, name, name_folded) VALUES (${number}, ${name}, ${folded}) ON CONFLICT (number)
          DO UPDATE SET name = excluded.name, name_folded = excluded.name_folded WHERE categories.name = ${former ?? null}`
        return withEvent(sql, event, insert)
      })
      .catch((error: unknown) => {
        // Another number has the name.
        if (sqlState(error) === UNIQUE_VIOLATION) return false
        throw error
      })
    if (isSaved) return undefined
    const found = await pool.rows(SAME_NUMBER_OR_NAME, [number, folded])
    // Nothing is in the way any more if that was renamed in between.
    return inTheWay(found, category, former) ?? save(category, former, event)
  }

  return { save, names: () => readNames((text, values) => pool.rows(text, values)) }
}
