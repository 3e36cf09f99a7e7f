// Prepares each statement once.
import type { StatementSync } from 'node:sqlite'

/** Returns a function that prepares a statement when its text is first used, and returns the same one from then on. */
export function rememberStatements(prepare: (sql: string) => StatementSync): (sql: string) => StatementSync {
  const prepared = new Map<string, StatementSync>()
  return (sql) => {
    const statement = prepared.get(sql) ?? prepare(sql)
    prepared.set(sql, statement)
    return statement
  }
}
