// Runs the statements of the parts that are written once (store/sql.ts) in PostgreSQL.
import type { Result, Sql, Statement, Statements } from '../sql.ts'
import { type Database, PREPARED } from './pool/connection.ts'
import { sqlState } from './pool/failures.ts'
import type { Pool } from './pool.ts'

const UNIQUE_VIOLATION = '23505'

export function postgresSql(pool: Pool): Sql {
  return {
    async read(...statement) {
      if (statement.some((value) => typeof value === 'string' && value.includes('\0'))) return []
      return pool.read(async (sql) => (await execute(sql, statement)).rows as never)
    },
    run(statement, { isRepeatable } = {}) {
      const work = async (sql: Database) => (await execute(sql, statement)).count
      return isRepeatable ? pool.writeRepeatable(work) : pool.write(work)
    },
    transaction(statements) {
      const attempt = () => pool.writeTransaction((sql) => finish(sql, statements()))
      return attempt().catch((error: unknown) => {
        // Another instance has written the same in between: the statements see it now.
        if (sqlState(error) === UNIQUE_VIOLATION) return attempt()
        throw error
      })
    },
    oneByOne: [["SELECT pg_advisory_xact_lock(hashtext('petstore one by one'))"]],
    lock: (clause) => clause,
    jsonTable: (parameter, name, columns) => `json_to_recordset(${parameter}::text::json) AS ${name} (${columns})`,
  }
}

/** Runs the statements inside the transaction of the caller. */
async function finish<T>(sql: Database, statements: Statements<T>): Promise<T> {
  let next = statements.next()
  while (!next.done) next = statements.next(await execute(sql, next.value))
  return next.value
}

/** Sends integers as text: the driver would prepare the statement again for each way that integers and nulls alternate. */
async function execute(sql: Database, [text, ...values]: Statement): Promise<Result> {
  const sent = values.map((value) => (typeof value === 'bigint' ? String(value) : value))
  const rows = await sql.unsafe(text, sent, PREPARED)
  return { rows, count: rows.count }
}
