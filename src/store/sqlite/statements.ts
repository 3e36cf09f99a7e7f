// Prepares statements: each once, and exact for ids above 2⁵³.
import type { DatabaseSync, StatementSync } from 'node:sqlite'

/**
 * Prepares a statement whose integers are bigints, as those above 2⁵³ must be. Every statement that writes needs it: `run` of
 * node:sqlite also returns the id that this connection has assigned last, in whichever table.
 */
export function prepareExact(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql)
  statement.setReadBigInts(true)
  return statement
}

/** Returns a function that prepares a statement when its text is first used, and returns the same one from then on. */
export function rememberStatements(prepare: (sql: string) => StatementSync): (sql: string) => StatementSync {
  const prepared = new Map<string, StatementSync>()
  return (sql) => {
    const statement = prepared.get(sql) ?? prepare(sql)
    prepared.set(sql, statement)
    return statement
  }
}
