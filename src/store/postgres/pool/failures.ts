// What an error of PostgreSQL means for the call, for its connection, and for other calls. Whatever has no meaning here is a bug: a 500.
//
//   Meaning          The call                                                       Its connection
//   unavailable      503                                                            used again
//   no right         503; `explain` names the command doctor                        used again
//   damaged          503; so does it for a table, column or key that is lost        used again
//   lock timeout     503; 409 for a create with an idempotency key (pets.ts)        used again
//   rolled back      retried once (pool.ts), then 503                               used again
//   read-only        a read or repeatable write is retried once (pool.ts), then 503 closed, with the idle ones (connections.ts)
//   bad row          creates that shared the statement are retried alone (pets.ts); used again
//                    the one that fails alone gets a 500
//   damaged row      both: the one that fails alone gets the 503 of `damaged`       used again
//
// An error without SQLSTATE is one of the network (503), or a bug. It closes the connection like `read-only`, and so does one that the
// server ends the session with (FATAL, PANIC). Then a read, or a write that may be repeated, is retried once.
import postgres from 'postgres'
import { entryOf } from '../../../contract/text/entry-of.ts'
import { DISK_FULL, StoreUnavailable } from '../../store.ts'
import { meaningOnNode } from '../citus/node-failures.ts'
import { Overdue } from '../../../timing.ts'

type Meaning =
  'unavailable' | 'no right' | 'damaged' | 'lock timeout' | 'rolled back' | 'read-only' | 'bad row' | 'damaged row'

/** By SQLSTATE, or its class: the first two characters (PostgreSQL manual, appendix A). */
const MEANINGS: Record<string, Meaning> = {
  '08': 'unavailable', // the connection
  '22': 'bad row', // data
  '2200H': 'unavailable', // a sequence has no more ids
  '22P05': 'damaged row', // the encoding of the database has no such letter
  '23': 'bad row', // integrity
  '23502': 'damaged row', // no value for a column: the default or the sequence is lost, or the column is not the service's
  '25006': 'read-only', // a standby, or a primary that was demoted
  '28': 'unavailable', // the user or password is refused
  '3D000': 'unavailable', // the database is gone
  '40': 'unavailable', // as 40003: its outcome is unknown, so it is not retried
  '40001': 'rolled back', // a serialization failure, as distributed databases report
  '40P01': 'rolled back', // a deadlock
  '42501': 'no right', // insufficient_privilege of the role of the service
  '428C9': 'damaged', // a column that is always generated
  '42703': 'damaged', // no such column
  '42P01': 'damaged', // no such table
  '42P10': 'damaged', // no such key
  '53': 'unavailable', // out of connections, memory or disk
  '55P03': 'lock timeout',
  '57': 'unavailable', // shutting down, starting up, or a statement past its timeout
  '58': 'unavailable', // an I/O error of the server
  P0: 'bad row', // an exception that a trigger raises
}

export const NO_ROOM = '53100'

/** What /readyz says of a failure that time does not repair, by SQLSTATE, its class, or a part of the code of Node.js. */
const PUBLIC_REASONS: readonly (readonly [code: RegExp, reason: string])[] = [
  [/^28/, 'The database refuses the user or password of the service.'],
  [/^3D000$/, 'The server has no database of this name.'],
  [/^53100$/, DISK_FULL],
  [/^CERT_HAS_EXPIRED$/, 'The certificate of the database has expired.'],
  [/ALTNAME|HOSTNAME/, 'The certificate of the database has another name.'],
  [/CERT|^INVALID_|LEAF_SIGNATURE/, 'The certificate of the database is not trusted.'],
]

/** Returns undefined for a failure without words of its own. */
export function publicReasonOf(error: unknown): string | undefined {
  if (error instanceof StoreUnavailable) return error.publicReason
  const { code = '' } = (error ?? {}) as { code?: string }
  return PUBLIC_REASONS.find(([pattern]) => pattern.test(code))?.[1]
}

function meaningOf(error: unknown): Meaning | undefined {
  const state = sqlState(error)
  if (state === undefined) return isNetworkError(error) ? 'unavailable' : undefined
  const meaning = entryOf(MEANINGS, state) ?? entryOf(MEANINGS, state.slice(0, 2))
  return meaning ?? meaningOnNode(error as postgres.PostgresError)
}

export function isLockTimeout(error: unknown): boolean {
  return meaningOf(error) === 'lock timeout'
}

export function sqlState(error: unknown): string | undefined {
  return error instanceof postgres.PostgresError ? error.code : undefined
}

/** Whether the connection is unusable after this error: it broke, or the server was demoted. */
export function breaksConnection(error: unknown): boolean {
  return !(error instanceof postgres.PostgresError) || error.severity !== 'ERROR' || meaningOf(error) === 'read-only'
}

/** Whether the server reported that the statement failed and had no effect. */
export function wasRefused(error: unknown): boolean {
  return sqlState(error) !== undefined && !breaksConnection(error)
}

/** Whether the server rolled the transaction back, so that a retry can't repeat anything. */
export function wasRolledBack(error: unknown): boolean {
  return meaningOf(error) === 'rolled back'
}

/** Whether the server refused the statement because of the values of one row, and so stored none of its rows. */
export function isBadRow(error: unknown): boolean {
  const said = error instanceof StoreUnavailable ? error.cause : error
  return (meaningOf(said)?.endsWith(' row') ?? false) && wasRefused(said)
}

/** Returns `StoreUnavailable` for an error that describes the state of the database; any other is a bug and returned as it is. */
export function asStoreFailure(error: unknown): unknown {
  const meaning = meaningOf(error)
  if (error instanceof StoreUnavailable || meaning === undefined || meaning === 'bad row') return error
  return new StoreUnavailable(`PostgreSQL: ${explain(error)}`, { cause: error, publicReason: publicReasonOf(error) })
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
  const raw = error instanceof Error ? error.message : String(error)
  const said = raw.replace(/^write |; if the root CA .*--use-system-ca.*/g, '')
  if (publicReasonOf(error)?.endsWith(' is not trusted.'))
    return `${said} (sslrootcert of the address names the file of certificates to trust)`
  if (meaningOf(error) === 'no right') return `${said} (the command doctor names what to grant)`
  if (meaningOf(error)?.startsWith('damaged')) return `${said} (the command doctor names what is lost)`
  if (sqlState(error) === '57014' && said.includes('statement timeout'))
    return `${said} (statement_timeout of the address; behind PgBouncer, that of the role: a command may use the address of PostgreSQL itself)`
  return said.includes('unsupported startup parameter') && !said.includes('pgbouncer=true')
    ? `${said} (behind PgBouncer, add pgbouncer=true to the address)`
    : said
}
