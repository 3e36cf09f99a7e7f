// Runs the statements of the parts that are written once (store/sql.ts) in SQLite.
import type { DatabaseSync } from 'node:sqlite'
import type { Result, Sql, SqlValue, Statement, Statements } from '../sql.ts'
import { prepareExact, rememberStatements } from './database.ts'
import type { Transactions } from './transactions/transactions.ts'

type Prepared = (values: readonly SqlValue[]) => Result

export function sqliteSql(db: DatabaseSync, transactions: Transactions): Sql {
  const prepared = rememberStatements((text) => prepare(db, text))
  const execute = ([text, ...values]: Statement): Result => prepared(text)(values)

  /** Runs inside a transaction. */
  function finish<T>(statements: Statements<T>): T {
    let next = statements.next()
    while (!next.done) next = statements.next(execute(next.value))
    return next.value
  }

  return {
    read: (...statement) => transactions.read(() => execute(statement).rows as never),
    run: (statement) => transactions.write(() => execute(statement).count),
    transaction: (statements) => transactions.write(() => finish(statements())),
    oneByOne: [],
    lock: () => '',
    jsonTable(parameter, name, columns) {
      const values = columns.replaceAll(/"?(\w+)"? (?:TEXT|BIGINT)/g, `value ->> '$1' AS "$1"`)
      return `(SELECT ${values} FROM json_each(${parameter})) AS ${name}`
    },
  }
}

/** Binds by position: by name, SQLite would search the names for each parameter. */
function prepare(db: DatabaseSync, text: string): Prepared {
  const statement = prepareExact(db, text.replaceAll(/\$\d+/g, '?'))
  const places = Array.from(text.matchAll(/\$(\d+)/g), ([, number]) => Number(number) - 1)
  const bound = (values: readonly SqlValue[]) => places.map((place) => values[place]!)
  if (statement.columns().length === 0)
    return (values) => ({ rows: [], count: Number(statement.run(...bound(values)).changes) })
  return (values) => {
    const rows = statement.all(...bound(values))
    return { rows, count: rows.length }
  }
}
