// Which ids are settled. Ids are assigned in order but committed in any order, so an animal can appear below ids that were read before.
// An id is settled once no id up to it can be committed any more.
//
// Only the counts find out which ids are: once a minute they move their `until_id` to a `next_id` that was noted at least a minute
// before, unless a transaction that writes is older than the note (`lockSettled`). The index of words depends on it:
//
//       settled_id            counts: until_id              words: until_id
//   ---------+-----------------------+---------------------------+------------------> ids
//    indexed | second pass: settled, | indexed as far as they    | first pass:
//    for good| read again            | were committed at the time| not read yet
//
// One case is counted wrongly: PostgreSQL does not show the service a long manual transaction of another role, whose ids are then taken
// for settled. docs/reliability.md describes how to count again.
import { StoreUnavailable } from '../store.ts'
import { hasOlderWrite, isVisibleEverywhere } from './citus/distributed.ts'
import type { Database } from './pool/connection.ts'

/** How old a noted `next_id` must be. Between taking an id and its first write, a transaction does not show as writing. */
const SETTLED_MS = 60_000

/**
 * Locks the progress of the counts until the end of the transaction. Resolves with how far they go and which id is settled; with undefined
 * if none is yet, or another instance is at it.
 */
export async function lockSettled(
  sql: Database,
  settledMs = SETTLED_MS,
): Promise<{ untilId: bigint; settledId: bigint } | undefined> {
  const [progress] = await sql<{ untilId: bigint; settledId: bigint; notedAt: bigint; isOldEnough: boolean }[]>`
    SELECT until_id AS "untilId", next_id AS "settledId", next_noted_at AS "notedAt",
      next_noted_at < floor(extract(epoch FROM clock_timestamp()) * 1000) - ${settledMs} AS "isOldEnough"
    FROM pet_counts_progress FOR UPDATE SKIP LOCKED`
  if (progress === undefined || !progress.isOldEnough) return undefined
  const older = await sql`
    SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL
      AND xact_start <= to_timestamp((${progress.notedAt}::bigint + 1) / 1000.0)`
  return older.length > 0 || (await hasOlderWrite(sql, progress.notedAt)) ? undefined : progress
}

/** Notes the newest id, which is settled in a minute. Two statements: Citus refuses a clock in an UPDATE beside a subquery on shards. */
export async function noteNewest(sql: Database): Promise<void> {
  const [{ newest } = { newest: 0n }] = await sql<{ newest: bigint }[]>`SELECT coalesce(max(id), 0) AS newest FROM pets`
  await sql`
    UPDATE pet_counts_progress SET
      next_id = greatest(until_id, ${newest}),
      next_noted_at = floor(extract(epoch FROM clock_timestamp()) * 1000)`
}

/** Throws `StoreUnavailable` if a change that this transaction sees noted may not be visible yet in the animals, on a node of Citus. */
export async function requireVisible(sql: Database): Promise<void> {
  if (!(await isVisibleEverywhere(sql)))
    throw new StoreUnavailable('A node of Citus has a change that it has not committed yet.')
}
