// PostgreSQL's failures in our words: which of them pass by themselves, and which end a connection.
import postgres from 'postgres'
import { StoreUnavailable } from '../store.ts'

/** Codes and classes of codes (PostgreSQL, appendix A) that tell of the database's state, not of a bug of ours. */
const PASSING: readonly string[] = [
  '08', // the connection
  '25006', // a standby, or a primary that was demoted
  '28', // the password is refused
  '3D000', // the database is gone
  '40', // a deadlock, or a distributed database that asks to try again
  '53', // out of connections, memory or disk
  '55P03', // a lock was waited for in vain
  '57', // shutting down, starting up, or a statement past its time
  '58', // its disk
]

/** The host is not the one that takes writes any more. */
const READ_ONLY = '25006'

export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

export function sqlState(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined
}

/** Whether the connection is of no use after this error: it broke, or its host was demoted. */
export function breaksConnection(error: unknown): boolean {
  return !(error instanceof postgres.PostgresError) || error.severity !== 'ERROR' || error.code === READ_ONLY
}

/** The server answered that this statement failed, and goes on: it has done nothing of it. */
export function wasRefused(error: unknown): boolean {
  return sqlState(error) !== undefined && !breaksConnection(error)
}

/** The server answered that it did not do it, so that trying again does nothing twice. */
export function wasRolledBack(error: unknown): boolean {
  return sqlState(error)?.startsWith('40') === true
}

/** A failure that passes by itself is told as `StoreUnavailable`; anything else is a bug and stays what it is. */
export function asStoreFailure(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return error
  const state = sqlState(error)
  if (state === undefined) return isNetworkError(error) ? unavailable(error) : error
  return PASSING.some((prefix) => state.startsWith(prefix)) ? unavailable(error) : error
}

function unavailable(error: unknown): StoreUnavailable {
  return new StoreUnavailable(`PostgreSQL: ${explain(error)}`, { cause: error })
}

/** The driver and Node name them by `code`; ours, of a call past its time, is one of them. */
function isNetworkError(error: unknown): boolean {
  return error instanceof ConnectionLost || (error instanceof Error && 'code' in error && /^(?:CONNECT|E[A-Z]+$)/.test(String(error.code)))
}

/** A connection that we cut off ourselves, or that turned out to be useless. */
export class ConnectionLost extends Error {
  override name = 'ConnectionLost'
}

export function explain(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(explain).join('; ')
  const said = error instanceof Error ? error.message.replace(/^write /, '') : String(error)
  return said.includes('unsupported startup parameter') ? `${said} (behind PgBouncer, add pgbouncer=true to the address)` : said
}
