// What differs once the animals are distributed over the nodes of Citus, by a hash of the id. All other tables stay on the coordinator,
// and so do the service's connections.
//
// A transaction that writes on several nodes is prepared on them, then committed on the coordinator, then on the nodes: for a moment, or
// until a node that died is back, only its part on the coordinator is visible.
import type { Database } from '../pool/connection.ts'

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
