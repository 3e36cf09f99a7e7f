// Classifies PostgreSQL's errors: which are transient, which break a connection, and after which a retry is safe.
import postgres from 'postgres'
import { StoreUnavailable } from '../store.ts'
import { Overdue } from '../../timing.ts'

/** The role of the service lacks a right: insufficient_privilege. */
const MISSING_RIGHT = '42501'

/** Error codes and classes (PostgreSQL manual, appendix A) that describe the state of the database, not a bug of this program. */
const TRANSIENT: readonly string[] = [
  '08', // the connection
  '25006', // a standby, or a primary that was demoted
  '28', // the user or password is refused
  '3D000', // the database is gone
  MISSING_RIGHT,
  '40', // a deadlock, or a serialization failure, as distributed databases report
  '53', // out of connections, memory or disk
  '55P03', // the wait for a lock timed out
  '57', // shutting down, starting up, or a statement past its timeout
  '58', // an I/O error of the server
]

/** The host no longer accepts writes. */
const READ_ONLY = '25006'

/** A serialization failure and a deadlock: the server rolled back. Not 40003, whose outcome is unknown. */
const ROLLED_BACK: ReadonlySet<string | undefined> = new Set(['40001', '40P01'])

/** Classes of errors about the values of a row: data, integrity, and exceptions that a trigger raises. */
const BAD_ROW: readonly string[] = ['22', '23', 'P0']

/** Citus reports a lost worker as XX000, "internal error", so it is recognised by its text. */
const CITUS_WORKER_LOST = 'failure on connection marked as essential'

export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

export function sqlState(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined
}

/** Whether the connection is unusable after this error: it broke, or the server was demoted. */
export function breaksConnection(error: unknown): boolean {
  return !(error instanceof postgres.PostgresError) || error.severity !== 'ERROR' || error.code === READ_ONLY
}

/** Whether the server reported that the statement failed and had no effect. */
export function wasRefused(error: unknown): boolean {
  return sqlState(error) !== undefined && !breaksConnection(error)
}

/** Whether the server rolled the transaction back, so that a retry can't repeat anything. */
export function wasRolledBack(error: unknown): boolean {
  return ROLLED_BACK.has(sqlState(error))
}

/** Whether the server refused the statement because of the values of one row, and so stored none of its rows. */
export function isBadRow(error: unknown): boolean {
  return wasRefused(error) && startsWithAny(sqlState(error)!, BAD_ROW)
}

/** Returns `StoreUnavailable` for a transient error; any other error is a bug and returned as it is. */
export function asStoreFailure(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return error
  const state = sqlState(error)
  if (state === undefined) return isNetworkError(error) ? unavailable(error) : error
  const isTransient = startsWithAny(state, TRANSIENT) || (error as Error).message.startsWith(CITUS_WORKER_LOST)
  return isTransient ? unavailable(error) : error
}

function startsWithAny(state: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => state.startsWith(prefix))
}

function unavailable(error: unknown): StoreUnavailable {
  return new StoreUnavailable(`PostgreSQL: ${explain(error)}`, { cause: error })
}

/** Recognises errors of the driver and of Node by their `code`. */
function isNetworkError(error: unknown): boolean {
  return (
    error instanceof Overdue ||
    (error instanceof Error && 'code' in error && /^(?:CONNECT|E[A-Z]+$)/.test(String(error.code)))
  )
}

export function explain(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(explain).join('; ')
  const said = error instanceof Error ? error.message.replace(/^write /, '') : String(error)
  if (sqlState(error) === MISSING_RIGHT) return `${said} (the command doctor names what to grant)`
  return said.includes('unsupported startup parameter')
    ? `${said} (behind PgBouncer, add pgbouncer=true to the address)`
    : said
}
