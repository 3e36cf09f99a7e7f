// The locks of those who change tables: one process at a time, and never a long queue behind them.
import { setTimeout } from 'node:timers/promises'
import { type Database, inTransaction } from './connection.ts'
import { isLockTimeout } from './failures.ts'

/** The number of the advisory lock: "PETS" in ASCII. */
const LOCK = 0x50455453

/** Statements queue behind one that waits for the lock of a table. */
const LOCK_TIMEOUT_MS = 50

/** Takes the lock until the end of the transaction; resolves with false if another process has it. */
export async function tryLock(sql: Database, function_ = 'pg_try_advisory_xact_lock'): Promise<boolean> {
  const [lock] = await sql<{ taken: boolean }[]>`SELECT ${sql.unsafe(function_)}(${LOCK}) AS taken`
  return lock!.taken
}

/** Works under the lock of the session, without a time limit; resolves with undefined if another process has the lock. */
export async function withLock<T>(sql: Database, work: () => Promise<T>): Promise<T | undefined> {
  if (!(await tryLock(sql, 'pg_try_advisory_lock'))) return undefined
  try {
    await sql`SET statement_timeout = 0`
    return await work()
  } finally {
    await sql`RESET statement_timeout`
    await sql`SELECT pg_advisory_unlock(${LOCK})`
  }
}

/** Runs a transaction that waits briefly for the locks of tables, and tries again later; rejects after some nine minutes. */
export async function withBriefLocks(
  sql: Database,
  work: (sql: Database) => Promise<unknown>,
  tries = 500,
): Promise<void> {
  try {
    await inTransaction(sql, async (transaction) => {
      await transaction.unsafe(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`)
      await work(transaction)
    })
  } catch (error) {
    if (tries === 1 || !isLockTimeout(error)) throw error
    await setTimeout(1000)
    await withBriefLocks(sql, work, tries - 1)
  }
}

/**
 * Runs such a transaction with the animals locked against all others; resolves with the milliseconds that they were. Waits first, for as
 * long as it takes, for a lock that no request waits for: then PostgreSQL cancels an autovacuum, which it does not for a brief wait.
 */
export async function withLockedPets(sql: Database, work: (sql: Database) => Promise<unknown>): Promise<number> {
  let lockedAt = 0
  await withBriefLocks(sql, async (transaction) => {
    await transaction.unsafe(`
      SET LOCAL lock_timeout = 0; LOCK TABLE pets IN SHARE UPDATE EXCLUSIVE MODE;
      SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE`)
    lockedAt = performance.now()
    await work(transaction)
  })
  return performance.now() - lockedAt
}
