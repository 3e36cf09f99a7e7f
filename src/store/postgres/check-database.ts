// Checks a PostgreSQL database for `petstore doctor`, without changing it.
import { type Check, fine, problem, schemaCheck, unknownChecks, warning } from '../check.ts'
import { whyBehind } from '../partition-store.ts'
import type { Database } from './connection.ts'
import { parseConnection } from './connection-settings.ts'
import { readShards, touchShards } from './distribution.ts'
import { explain } from './failures.ts'
import { lackingMigrations } from './migrate.ts'
import { Pool } from './pool.ts'
import { findCheck, readPartitions } from './partitions.ts'
import { readUnknown } from './records.ts'
import { findMigrationObstacle, findMissingRights } from './rights.ts'

/** Two clocks that NTP keeps differ by far less. */
const CLOCK_TOLERANCE_MS = 5000

interface Facts {
  version: string
  standby: boolean
  readOnly: boolean
  /** Milliseconds since 1970. */
  now: number
  used: number
  most: number
  checksums: string
}

export async function checkPostgres(url: string, clock: () => number): Promise<Check[]> {
  let pool: Pool | undefined
  try {
    const settings = parseConnection(url)
    pool = new Pool(settings)
    return await pool.read(async (sql) => {
      const facts = await askFacts(sql)
      const missing = await findMissingRights(sql)
      return [
        ...checkServer(facts),
        missing === undefined
          ? fine('Rights', 'the role may use all tables')
          : (missing.isMinor ? warning : problem)('Rights', missing.found, missing.fix),
        ...(missing === undefined || missing.isMinor ? await checkSchema(sql) : []),
        checkConnections(facts, settings.poolSize),
        checkClock(facts, clock()),
      ]
    })
  } catch (error) {
    return [
      problem(
        'Database',
        explain(error),
        'Is the server running, and are host, user, password and database in DATABASE_URL right? See docs/databases.md.',
      ),
    ]
  } finally {
    await pool?.end()
  }
}

async function checkSchema(sql: Database): Promise<Check[]> {
  const lacking = await lackingMigrations(sql)
  const obstacle = lacking.length > 0 && (await findMigrationObstacle(sql))
  const schema = schemaCheck(lacking)
  const check = obstacle ? problem('Schema', `${schema.found}, and ${obstacle.found}`, obstacle.fix, 'migrate') : schema
  return [check, ...unknownChecks(await readUnknown(sql)), ...(await checkPartitions(sql))]
}

async function checkPartitions(sql: Database): Promise<Check[]> {
  const shards = await readShards(sql)
  if (shards !== undefined) {
    await touchShards(sql)
    return [fine('Shards', `${shards}, all of which answer`)]
  }
  const found = await readPartitions(sql)
  const isMoving = (await findCheck(sql)) !== undefined
  const why = isMoving ? 'the command partition is running, or was interrupted' : found && whyBehind(found)
  if (why !== undefined) return [warning('Partitions', why, 'Run as the owner of the tables:', 'partition')]
  if (found === undefined) return []
  return [fine('Partitions', `${found.count} of ${found.size} ids, ${found.ahead.toFixed(1)} ahead`)]
}

async function askFacts(sql: Database): Promise<Facts> {
  const [facts] = await sql<Facts[]>`
    SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby,
      current_setting('transaction_read_only') = 'on' AS "readOnly",
      current_setting('data_checksums') AS checksums,
      (SELECT count(*)::float8 FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
      current_setting('max_connections')::float8 - current_setting('superuser_reserved_connections')::float8 AS most,
      floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`
  return facts!
}

function checkServer({ version, standby, readOnly, checksums }: Facts): Check[] {
  const server = fine('PostgreSQL', `${version}, ${standby ? 'standby' : 'primary'}, data checksums ${checksums}`)
  if (standby) {
    const fix = 'Name the primary, or all hosts of the cluster, in DATABASE_URL.'
    return [server, problem('Role', 'this server is a standby and accepts no writes', fix)]
  }
  if (!readOnly) return [server]
  const fix = 'Reset it where it is set: ALTER DATABASE or ALTER ROLE … RESET default_transaction_read_only.'
  return [server, problem('Role', 'default_transaction_read_only is on, so no write is accepted', fix)]
}

/** Warns if another instance could not open all connections of its pool. */
function checkConnections({ used, most }: Facts, poolSize: number): Check {
  const found = `${used} of ${most} in use, pool_size ${poolSize}`
  if (most - used >= poolSize) return fine('Connections', found)
  return warning(
    'Connections',
    found,
    'Lower pool_size, raise max_connections, or put PgBouncer in between; see docs/databases.md.',
  )
}

function checkClock({ now }: Facts, own: number): Check {
  const apart = Math.abs(now - own)
  const found = `${new Date(own).toISOString()}, the server's differs by ${Math.round(apart)} ms`
  if (apart <= CLOCK_TOLERANCE_MS) return fine('Clock', found)
  return problem('Clock', found, 'Keep both clocks with NTP: keys, sessions and idempotency records expire by them.')
}
