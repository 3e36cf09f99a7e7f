// What differs once the animals are distributed over the nodes of Citus, by a hash of the id. All other tables stay on the coordinator,
// and so do the service's connections.
//
// Citus runs no trigger that could reach the coordinator, so a distributed table has none: `followChanges` does their work. A transaction
// that writes on several nodes is prepared on them, then committed on the coordinator, then on the nodes: for a moment, or until a node
// that died is back, only its part on the coordinator is visible.
import { type NewPet, type Pet, PET_STATUSES } from '../../../contract/pets.ts'
import type { Statements } from '../../sql.ts'
import type { Database } from '../pool/connection.ts'

/** Whether the triggers of the animals do their work, as of the statement that asks: a store may be distributed while it is open. */
const HAS_TRIGGERS = `EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'pets'::regclass AND tgname = 'pets_rename')`

export const hasCitus = async (sql: Database) =>
  (await sql`SELECT 1 FROM pg_extension WHERE extname = 'citus'`).length > 0

/** Resolves with the number of shards; undefined if the animals are not distributed. */
async function countShards(sql: Database): Promise<number | undefined> {
  if (!(await hasCitus(sql))) return undefined
  const [row] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM pg_dist_shard JOIN pg_dist_partition USING (logicalrelid)
    WHERE logicalrelid = to_regclass('pets') AND partmethod = 'h'`
  return row!.count || undefined
}

/** Resolves like `countShards`, after a read from each shard; rejects if a node is lost. */
export async function pingShards(sql: Database): Promise<number | undefined> {
  const shards = await countShards(sql)
  if (shards !== undefined) await sql`SELECT max(id) FROM pets`
  return shards
}

/**
 * Does the work of the triggers, if there are none, in the transaction that changed this animal to `after`, or removed it: the rules are
 * those of `pets_count_change` and `pets_note_rename` in migrations/0001-first.sql. That transaction has a lock
 * on the table, so the triggers are as they were.
 */
export function* followChanges({ id, name, status }: Pet, after?: NewPet): Statements<void> {
  if ((yield [`SELECT 1 WHERE ${HAS_TRIGGERS}`]).count > 0) return
  if (status !== after?.status) {
    const [progress] = (yield ['SELECT until_id FROM pet_counts_progress FOR SHARE']).rows
    const isCounted = id <= (progress!['until_id'] as bigint)
    // All of them, in one order: opposite changes of two would deadlock.
    for (const each of isCounted ? PET_STATUSES.toSorted() : []) {
      const change = Number(each === after?.status) - Number(each === status)
      yield ['UPDATE pet_counts SET count = count + $1 WHERE status = $2', change, each]
    }
  }
  if (name !== after?.name) yield ['INSERT INTO pet_renames (pet_id, name) VALUES ($1, $2)', id, name]
}

/**
 * Resolves with false if a transaction that was visible on the coordinator before this call may not be on a node. Waits a second, so
 * that those which are just being committed do not count.
 */
export async function isVisibleEverywhere(sql: Database): Promise<boolean> {
  if ((await countShards(sql)) === undefined) return true
  const prepared = await sql`
    SELECT 1 FROM pg_sleep(1.1), run_command_on_workers($$
      SELECT count(*) FROM pg_prepared_xacts
      WHERE database = current_database() AND prepared < clock_timestamp() - INTERVAL '1 second' $$)
    WHERE NOT success OR result <> '0'`
  return prepared.length === 0
}

/** Resolves with whether a transaction that began up to this time, in milliseconds, writes. On the coordinator it may have no `backend_xid`. */
export async function hasOlderWrite(sql: Database, at: bigint): Promise<boolean> {
  if ((await countShards(sql)) === undefined) return false
  const older = await sql`
    WITH activity AS MATERIALIZED (SELECT * FROM citus_stat_activity WHERE datname = current_database())
    SELECT 1 FROM activity AS begun JOIN activity AS writing USING (global_pid)
    WHERE NOT begun.is_worker_query AND writing.backend_xid IS NOT NULL
      AND begun.xact_start <= to_timestamp((${at}::bigint + 1) / 1000.0) LIMIT 1`
  return older.length > 0 || !(await isVisibleEverywhere(sql))
}
