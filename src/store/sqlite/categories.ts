// Categories in SQLite.
import type { DatabaseSync } from 'node:sqlite'
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
import { prepareAppendEvent } from './accounts.ts'
import { prepareRows, rememberStatements } from './database.ts'
import type { Transactions } from './transactions.ts'

export function sqliteCategories(db: DatabaseSync, transactions: Transactions): CategoryStore {
  const prepare = rememberStatements((sql) => prepareRows(db, sql))
  const appendEvent = prepareAppendEvent(db)

  function all(sql: string, ...values: (string | bigint | number)[]): Category[] {
    const rows = prepare(sql).all(...values) as unknown as [bigint, string][]
    return rows.map(([number, name]) => ({ number, name }))
  }

  /** Writes with the audit event, or returns why not. */
  function write(expected: Category, name: string, event: AuditEvent, isNew: boolean): Promise<CategoryWritten> {
    const { number } = expected
    const folded = foldCategoryName(name)
    return transactions.write(() => {
      const found = all('SELECT number, name FROM categories WHERE number = ? OR name_folded = ?', number, folded)
      const own = found.find((other) => other.number === number)
      const isFree = found.length === (isNew ? 0 : 1) && own?.name === (isNew ? undefined : expected.name)
      if (!isFree) return whyNotWritten(found, expected, name, isNew)
      prepare('INSERT OR REPLACE INTO categories (number, name, name_folded) VALUES (?, ?, ?)').run(
        number,
        name,
        folded,
      )
      appendEvent(event)
      return { outcome: 'written' }
    })
  }

  return {
    add: (category, event) => write(category, category.name, event, true),

    rename: (expected, name, event) => write(expected, name, event, false),

    list: ({ limit, after = '' }) =>
      transactions.read(() => {
        const page = prepare(`${SELECT_CATEGORIES} WHERE name_folded > ? ORDER BY name_folded LIMIT ?`)
        return countedOf(page.all(foldCategoryName(after), limit) as unknown as CountedRow[])
      }),

    async names(numbers) {
      const named = 'SELECT number, name FROM categories WHERE number IN (SELECT value FROM json_each(?))'
      const found = await transactions.read(() => all(named, `[${numbers.join()}]`))
      return new Map(found.map(({ number, name }) => [number, name]))
    },

    async byName(name) {
      const [found] = await transactions.read(() =>
        all('SELECT number, name FROM categories WHERE name_folded = ?', foldCategoryName(name)),
      )
      return found
    },

    freeNumber: () => transactions.read(() => (prepare(FREE_NUMBER).get() as unknown as [bigint] | undefined)?.[0]),
  }
}
