// Locks for changes of the schema: one process at a time, no long queue behind it, and which transaction it waits for.
import { setTimeout } from 'node:timers/promises'
import { type Database, inTransaction } from './pool/connection.ts'
import { isLockTimeout } from './pool/failures.ts'

/** The number of the advisory lock: "PETS" in ASCII. */
const LOCK = 0x50455453

/** Statements queue behind one that waits for the lock of a table. */
export const LOCK_TIMEOUT_MS = 50

/** Takes the lock until the end of the transaction; resolves with false if another process has it. */
export async function tryLock(sql: Database, lockFunction = 'pg_try_advisory_xact_lock'): Promise<boolean> {
  const [lock] = await sql<{ taken: boolean }[]>`SELECT ${sql.unsafe(lockFunction)}(${LOCK}) AS taken`
  return lock!.taken
}

/** Works under the lock of the session, without a time limit; resolves with undefined if another process has the lock. */
export async function withLock<T>(sql: Database, work: () => Promise<T>): Promise<T | undefined> {
  if (!(await tryLock(sql, 'pg_try_advisory_lock'))) return undefined
  try {
    await sql.unsafe('SET statement_timeout = 0; SET lock_timeout = 0')
    return await work()
  } finally {
    await sql.unsafe('RESET statement_timeout; RESET lock_timeout')
    await sql`SELECT pg_advisory_unlock(${LOCK})`
  }
}

/**
 * Runs a transaction with the animals locked against all others, for whose lock it waits briefly, and tries again later. Waits first, for
 * as long as it takes, for a lock that no request waits for: then PostgreSQL cancels an autovacuum, which it does not for a brief wait.
 */
export async function withLockedPets(sql: Database, work: (sql: Database) => Promise<unknown>): Promise<void> {
  try {
    await inTransaction(sql, async (transaction) => {
      await transaction.unsafe(`
        SET LOCAL lock_timeout = 0; LOCK TABLE pets IN SHARE UPDATE EXCLUSIVE MODE;
        SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE`)
      await work(transaction)
    })
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    await setTimeout(1000)
    await withLockedPets(sql, work)
  }
}

/**
 * Finds the transactions that hold a lock on a table or index of the service's schema, or migrate: describes each, by its identifier.
 * PostgreSQL shows locks and programs to every role, the age of a transaction only to its own role and to members of pg_read_all_stats.
 */
export async function findHolders(sql: Database): Promise<Map<string, string>> {
  const rows = await sql<{ id: string; holder: string }[]>`
    SELECT DISTINCT l.virtualtransaction AS id, CASE
      WHEN l.pid IS NULL THEN 'a prepared transaction (see pg_prepared_xacts)'
      ELSE format('session %s (%s)', l.pid, concat_ws(', ', nullif(a.application_name, ''), nullif(a.backend_type, 'client backend'),
        'role ' || a.usename, a.state, 'begun ' || date_trunc('second', a.xact_start))) END AS holder
    FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.locktype = 'advisory' AND l.objid = ${LOCK} AND l.classid = 0 OR l.locktype = 'relation'
        AND l.relation IN (SELECT oid FROM pg_class WHERE relnamespace::regnamespace::text = quote_ident(current_schema())))
    ORDER BY 1`
  return new Map(rows.map(({ id, holder }) => [id, holder]))
}
