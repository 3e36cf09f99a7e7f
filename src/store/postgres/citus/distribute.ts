// Distributes the animals of a running store over the nodes of Citus.
import { CannotOpenStore } from '../../store.ts'
import type { Database } from '../pool/connection.ts'
import { parseConnection } from '../pool/connection-settings.ts'
import { asStoreFailure, explain, sqlState } from '../pool/failures.ts'
import { Pool } from '../pool.ts'
import { findMigrationObstacle } from '../rights.ts'
import { withLock, withLockedPets } from '../schema-locks.ts'
import { hasCitus } from './distributed.ts'

type Say = (line: string) => void

/** Longer than it takes for a billion animals. */
const MOVE_WITHIN_MS = 86_400_000

/** Distributes the animals while instances serve; calls `say` before. Throws `CannotOpenStore` if they can't be distributed. */
export async function distribute(url: string, shards: number, say: Say): Promise<void> {
  const settings = parseConnection(url)
  if (settings.pgbouncer)
    throw new CannotOpenStore(
      "The move needs one session, which it can't have through PgBouncer. Run the command once with the address of PostgreSQL itself.",
    )
  const pool = new Pool(settings)
  try {
    await pool.writeWithin(MOVE_WITHIN_MS, (sql) => moveAlone(sql, shards, say))
  } catch (error) {
    if (sqlState(error) === undefined) throw asStoreFailure(error)
    const said = `PostgreSQL: ${explain(error)}. No animal was moved; when that is fixed, run the command again.`
    throw new CannotOpenStore(said, { cause: error })
  } finally {
    await pool.end()
  }
}

async function moveAlone(sql: Database, shards: number, say: Say): Promise<void> {
  const lack = (await findMigrationObstacle(sql))?.found
  if (lack) throw new CannotOpenStore(`PostgreSQL: ${lack}. Run the command as the owner of the tables.`)
  const done = await withLock(sql, () => move(sql, shards, say).then(() => true))
  if (!done) throw new CannotOpenStore('Another process migrates or distributes. Run the command again later.')
}

/** Citus copies the animals while they change, and makes writes wait only until the shards have the last of them. */
async function move(sql: Database, shards: number, say: Say): Promise<void> {
  const obstacle = await findObstacle(sql)
  if (obstacle) throw new CannotOpenStore(obstacle)
  say(`pets becomes ${shards} shards on the nodes, while requests go on.`)
  await withLockedPets(sql, handOver)
  await sql`SELECT create_distributed_table_concurrently('pets', 'id', shard_count => ${shards}, colocate_with => 'none')`
  // Else Citus removes its copy of the table some seconds later, which doctor and copy would not know.
  await sql`CALL citus_cleanup_orphaned_resources()`
}

/** Makes the animals a table of Citus, unless a move that was killed has. Citus makes a new sequence of their ids, from 1, without grants. */
async function handOver(sql: Database): Promise<void> {
  const known = await sql`SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'pets'::regclass`
  if (known.length > 0) return
  const again = await sql<{ statement: string }[]>`
    SELECT format('SELECT setval(''pets_id_seq'', %s, %L)', last_value, is_called) AS statement FROM pets_id_seq
    UNION ALL SELECT format('GRANT %s ON SEQUENCE pets_id_seq TO %s', privilege_type,
        CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
      FROM pg_class, aclexplode(relacl) WHERE oid = 'pets_id_seq'::regclass`
  await sql`SELECT citus_add_local_table_to_metadata('pets')`
  for (const { statement } of again) await sql.unsafe(statement)
}

async function findObstacle(sql: Database): Promise<string | undefined> {
  if (!(await hasCitus(sql)))
    return 'The database has no Citus. Install it on every node, and run there: CREATE EXTENSION citus.'
  const [row] = await sql<{ obstacle: string | null }[]>`
    SELECT CASE
      WHEN EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'pets'::regclass AND partmethod = 'h')
        THEN 'The animals are distributed already.'
      WHEN NOT citus_is_coordinator() THEN 'This server is a node of Citus. Name the coordinator in DATABASE_URL.'
      WHEN NOT EXISTS (SELECT 1 FROM citus_get_active_worker_nodes())
        THEN 'The coordinator has no nodes. Add each: SELECT citus_add_node(host, port).'
      WHEN current_setting('wal_level') <> 'logical'
        THEN 'The animals are moved by logical replication. Set wal_level = logical on every server, and restart it.'
      WHEN current_setting('output_plugin_libraries', TRUE) NOT LIKE '%citus%'
        THEN 'PostgreSQL keeps Citus from replicating. Add it on every server: output_plugin_libraries = ''pgoutput, citus''.'
      END AS obstacle`
  return row!.obstacle ?? undefined
}
