// What an engine gives to the parts of the store that are written once: reads, writes and transactions of statements that both engines
// understand, with the parameters $1, $2 …. Only the animals, which must be fast, have statements in each engine.
import type { AuditEvent } from './account-store.ts'

export type SqlValue = string | number | bigint | Uint8Array | null
/** Columns by name; an integer is a bigint. */
export type Row = Readonly<Record<string, unknown>>
export type Statement = readonly [text: string, ...values: SqlValue[]]

/** The rows that a statement has read, and how many it has read or changed. */
export interface Result {
  rows: readonly Row[]
  count: number
}

/**
 * The statements of a transaction: `yield` hands one to the engine and returns its result. SQLite runs them all in one turn of the event
 * loop, so that no other call sees half of them; PostgreSQL sends one after the other.
 */
export type Statements<T> = Generator<Statement, T, Result>

export interface Sql {
  /** Reads rows. On PostgreSQL, where no text has U+0000, a look-up by such text finds none. */
  read: <T = Row>(...statement: Statement) => Promise<readonly T[]>
  /** Runs one statement, and resolves with how many rows it has changed. PostgreSQL repeats a repeatable one that got no answer. */
  run: (statement: Statement, how?: { isRepeatable?: boolean }) => Promise<number>
  /** Runs the statements in one transaction. PostgreSQL may run them again, so what yields them has no other effect. */
  transaction: <T>(statements: () => Statements<T>) => Promise<T>
  /** The first statements of transactions that run one after the other, so that each sees what the one before has left. */
  oneByOne: readonly Statement[]
  /** Renders the clause that locks the rows of a SELECT, such as FOR UPDATE; none on SQLite, where one transaction writes at a time. */
  lock: (clause: string) => string
  /** Renders a table of the objects in a parameter of JSON, for FROM: `columns` are TEXT or BIGINT, such as `id TEXT, at BIGINT`. */
  jsonTable: (parameter: string, name: string, columns: string) => string
}

/** Converts a row without an int64 that needs all its bits: times and counts become numbers, and null becomes undefined. */
export function plain(row: Row): object {
  const entries = Object.entries(row).map(([name, value]) => [
    name,
    typeof value === 'bigint' ? Number(value) : (value ?? undefined),
  ])
  return Object.fromEntries(entries) as object
}

/** How many rows a statement inserts: SQLite takes at most 32,766 parameters. */
const INSERTED_AT_ONCE = 250

export function* insertRows(table: string, columns: readonly string[], rows: readonly SqlValue[][]): Statements<void> {
  const placeholders = (_: unknown, at: number) =>
    `(${columns.map((_column, index) => `$${at * columns.length + index + 1}`).join()})`
  for (let done = 0; done < rows.length; done += INSERTED_AT_ONCE) {
    const batch = rows.slice(done, done + INSERTED_AT_ONCE)
    yield [`INSERT INTO ${table} (${columns.join()}) VALUES ${batch.map(placeholders).join()}`, ...batch.flat()]
  }
}

export function eventStatement({ data, ...event }: AuditEvent): Statement {
  const { at, accountId, action, via, subject, detail = null, petId = null, batchId = null } = event
  const columns = 'at, account_id, action, via, subject, detail, pet_id, data, batch_id'
  const insert = `INSERT INTO audit_events (${columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
  return [insert, at, accountId, action, via, subject, detail, petId, data ? JSON.stringify(data) : null, batchId]
}

/** Makes a change and adds its event. Returns false, without an event, if the first statement changes nothing. */
export function* changeWithEvent(event: AuditEvent, first: Statement, ...others: Statement[]): Statements<boolean> {
  if ((yield first).count === 0) return false
  for (const statement of others) yield statement
  if (event.about !== undefined) yield eventStatement({ ...event, ...event.about })
  yield eventStatement(event)
  return true
}
