// Categories in SQLite.
import type { DatabaseSync } from 'node:sqlite'
import { foldCategoryName } from '../../contract/category-name.ts'
import { type CategoryStore, inTheWay, readNames, SAME_NUMBER_OR_NAME } from '../category-store.ts'
import { prepareAppendEvent } from './accounts.ts'
import { prepareExact, rowsOf } from './database.ts'
import type { Transactions } from './transactions.ts'

export function sqliteCategories(db: DatabaseSync, transactions: Transactions): CategoryStore {
  const rows = rowsOf(db)
  const write = prepareExact(db, 'INSERT OR REPLACE INTO categories (number, name, name_folded) VALUES (?, ?, ?)')
  const appendEvent = prepareAppendEvent(db)
  return {
    save(category, former, event) {
      const folded = foldCategoryName(category.name)
      return transactions.write(() => {
        const other = inTheWay(rows(SAME_NUMBER_OR_NAME, [category.number, folded]), category, former)
        if (other !== undefined) return other
        write.run(category.number, category.name, folded)
        appendEvent(event)
        return undefined
      })
    },

    names: () => readNames((text, values) => transactions.read(() => rows(text, values))),
  }
}
