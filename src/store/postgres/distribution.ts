// The animals distributed over the workers of Citus, by a hash of the id. All other tables stay on the coordinator, and so do the
// service's connections.
//
// Citus runs no trigger that could reach the coordinator, so a distributed table has none: this file does the work of those in
// migrations/0002-count-lock-order.sql and 0004-search.sql. A transaction that writes on several nodes is prepared on the workers, then
// committed on the coordinator, then on the workers: for a moment, or until a worker that died is back, only its part on the
// coordinator is visible.
import { type NewPet, type Pet, PET_STATUSES } from '../../contract/pets.ts'
import { toJson } from '../records.ts'
import { PartitionRefused } from '../store.ts'
import type { Database } from './connection.ts'
import { withLockedPets } from './schema-locks.ts'

/** Whether the triggers of the animals do their work. */
export const HAS_TRIGGERS = `EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'pets'::regclass AND tgname = 'pets_rename')`

/** Some three seconds of pause. Callers wait five by default. */
const MOST_MOVED = 500_000

const hasCitus = async (sql: Database) => (await sql`SELECT 1 FROM pg_extension WHERE extname = 'citus'`).length > 0

/** Resolves with the number of shards; undefined if the animals are not distributed. */
export async function readShards(sql: Database): Promise<number | undefined> {
  if (!(await hasCitus(sql))) return undefined
  const [row] = await sql<{ count: number }[]>`
    SELECT count(*)::int AS count FROM pg_dist_shard WHERE logicalrelid = to_regclass('pets')`
  return row!.count || undefined
}

/** Reads from every shard; rejects if a worker is lost. */
export const touchShards = (sql: Database) => sql`SELECT max(id) FROM pets`

/** Does the work of the triggers, in the transaction that changed these animals to `after`, or removed them. */
export async function followChanges(
  sql: Database,
  former: readonly Pick<Pet, 'id' | 'name' | 'status'>[],
  after?: NewPet,
): Promise<void> {
  const moved = former.filter(({ status }) => status !== after?.status)
  if (moved.length > 0) {
    const [counts] = await sql<{ untilId: bigint }[]>`
      SELECT until_id AS "untilId" FROM pet_counts_progress FOR SHARE`
    const counted = moved.filter(({ id }) => id <= counts!.untilId)
    // All of them, in one order: opposite changes of two would deadlock.
    for (const status of counted.length === 0 ? [] : PET_STATUSES.toSorted()) {
      const change =
        (status === after?.status ? counted.length : 0) - counted.filter((pet) => pet.status === status).length
      await sql`UPDATE pet_counts SET count = count + ${change} WHERE status = ${status}`
    }
  }
  const renamed = former.filter(({ name }) => name !== after?.name).map(({ id, name }) => ({ id, name }))
  await sql`
    INSERT INTO pet_renames (pet_id, name)
    SELECT id, name FROM json_to_recordset(${toJson(renamed)}::text::json) AS former (id BIGINT, name TEXT)`
}

/**
 * Resolves with false if a transaction that was visible on the coordinator before this call may not be on a worker. Waits a second, so
 * that those which are just being committed do not count.
 */
export async function isVisibleEverywhere(sql: Database): Promise<boolean> {
  if ((await readShards(sql)) === undefined) return true
  const prepared = await sql`
    SELECT 1 FROM pg_sleep(1.1), run_command_on_workers($$
      SELECT count(*) FROM pg_prepared_xacts
      WHERE database = current_database() AND prepared < clock_timestamp() - INTERVAL '1 second' $$)
    WHERE NOT success OR result <> '0'`
  return prepared.length === 0
}

/** Resolves with whether a transaction that began up to this time, in milliseconds, writes. On the coordinator it may have no `backend_xid`. */
export async function hasOlderWrite(sql: Database, at: bigint): Promise<boolean> {
  if ((await readShards(sql)) === undefined) return false
  const older = await sql`
    WITH activity AS MATERIALIZED (SELECT * FROM citus_stat_activity WHERE datname = current_database())
    SELECT 1 FROM activity AS begun JOIN activity AS writing USING (global_pid)
    WHERE NOT begun.is_worker_query AND writing.backend_xid IS NOT NULL
      AND begun.xact_start <= to_timestamp((${at}::bigint + 1) / 1000.0) LIMIT 1`
  return older.length > 0 || !(await isVisibleEverywhere(sql))
}

/** Distributes the animals, while requests wait; resolves with the milliseconds that they waited. */
export async function distribute(sql: Database, shards: number, say: (line: string) => void): Promise<number> {
  const obstacle = await findObstacle(sql)
  if (obstacle) throw new PartitionRefused(obstacle)
  say(
    `pets becomes ${shards} shards on the workers; requests wait meanwhile. Instances of earlier releases would not count changes and removals any more.`,
  )
  return withLockedPets(sql, async (transaction) => {
    for (const trigger of ['pets_count_delete', 'pets_count_update', 'pets_rename'])
      await transaction`DROP TRIGGER ${sql(trigger)} ON pets`
    await transaction`SELECT create_distributed_table('pets', 'id', shard_count => ${shards}, colocate_with => 'none')`
  })
}

async function findObstacle(sql: Database): Promise<string | undefined> {
  if (!(await hasCitus(sql)))
    return 'The database has no Citus. Install it on every node, and run there: CREATE EXTENSION citus.'
  const [row] = await sql<{ obstacle: string | null }[]>`
    SELECT CASE
      WHEN EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'pets'::regclass)
        THEN 'The animals are distributed already.'
      WHEN NOT citus_is_coordinator() THEN 'This server is a worker of Citus. Name the coordinator in DATABASE_URL.'
      WHEN NOT EXISTS (SELECT 1 FROM citus_get_active_worker_nodes())
        THEN 'The coordinator has no workers. Add each: SELECT citus_add_node(host, port).'
      WHEN (SELECT relkind = 'p' FROM pg_class WHERE oid = 'pets'::regclass) THEN 'The animals are in partitions. ' || copy
      WHEN (SELECT count(*) FROM (SELECT 1 FROM pets LIMIT ${MOST_MOVED + 1}) AS first) > ${MOST_MOVED}
        THEN 'There are more than ' || ${MOST_MOVED} || ' animals: requests would wait too long. ' || copy
      END AS obstacle
    FROM (VALUES ('Distribute an empty database, and copy the store into it with the command copy.')) AS instead (copy)`
  return row!.obstacle ?? undefined
}
