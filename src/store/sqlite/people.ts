// People in SQLite.
import type { DatabaseSync } from 'node:sqlite'
import { peopleStore, type PeopleStore, type Statement } from '../people-store.ts'
import { prepareAppendEvent } from './accounts.ts'
import { namedValues, prepareExact, rememberStatements, rowsOf } from './database.ts'
import type { Transactions } from './transactions.ts'

export function sqlitePeople(db: DatabaseSync, transactions: Transactions): PeopleStore {
  const rows = rowsOf(db)
  const write = rememberStatements((text) => prepareExact(db, text))
  const appendEvent = prepareAppendEvent(db)
  const run = ([text, ...values]: Statement) => Number(write(text).run(namedValues(values)).changes)
  return peopleStore(
    (text, values) => transactions.read(() => rows(text, values)),
    (event, first, ...others) =>
      transactions.write(() => {
        if (run(first) === 0) return false
        others.forEach(run)
        appendEvent(event)
        return true
      }),
  )
}
