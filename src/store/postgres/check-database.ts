// Checks a PostgreSQL database for `petstore doctor`, without changing it.
import { type Check, faultCheck, fine, problem, schemaCheck, unknownChecks, warning } from '../database/check.ts'
import type { Database } from './pool/connection.ts'
import { parseConnection } from './pool/connection-settings.ts'
import { explain, NO_ROOM, sqlState, wasRefused } from './pool/failures.ts'
import { findIdFaults } from './ids.ts'
import { findUnserved, lackingMigrations, MIGRATIONS } from './migrate.ts'
import { findCreateFault } from './pets.ts'
import { Pool } from './pool.ts'
import { CannotOpenStore } from '../store.ts'
import { readUnknown } from './records.ts'
import { findMigrationObstacle, findMissingRights } from './rights.ts'
import { findSchemaFaults } from './schema-faults.ts'

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
  hindrance: string
  /** The settings that switch durability or triggers off. */
  unsafe: string
}

const CONNECTING_FIX =
  'Is the server running, has it connections left, and TLS if sslmode asks for it? Are host, user, password and database in DATABASE_URL right? See docs/databases.md.'

export async function checkPostgres(url: string, clock: () => number): Promise<Check[]> {
  let pool: Pool | undefined
  try {
    const settings = parseConnection(url)
    pool = new Pool(settings)
    const facts = await pool.read(askFacts)
    const unserved = await pool.read(findUnserved)
    const missing = await pool.read(findMissingRights)
    const shards = facts.readOnly ? undefined : await pool.ping()
    return [
      ...checkServer(facts),
      ...(unserved === undefined ? [] : [faultCheck(unserved.name, unserved)]),
      missing === undefined ? fine('Rights', 'the role may use all tables') : faultCheck('Rights', missing),
      ...(missing === undefined ? await pool.read((sql) => checkSchema(sql, shards !== undefined)) : []),
      ...(shards === undefined ? [] : [fine('Shards', `${shards}, all of which answer`)]),
      checkConnections(facts, settings.poolSize),
      checkClock(facts, clock()),
      checkSettings(facts),
      await pool.read(checkRoom),
      ...(facts.hindrance === '' ? [] : [problem('Writes', facts.hindrance, HINDRANCE_FIX)]),
    ]
  } catch (error) {
    return [
      problem(
        'Database',
        explain(error),
        error instanceof CannotOpenStore ? 'The service cannot open it either.' : CONNECTING_FIX,
      ),
    ]
  } finally {
    await pool?.end()
  }
}

async function checkSchema(sql: Database, isDistributed: boolean): Promise<Check[]> {
  const lacking = await lackingMigrations(sql)
  const isNew = lacking.length === MIGRATIONS.length
  const obstacle = lacking.length > 0 && (await findMigrationObstacle(sql, isNew))
  const schema = schemaCheck(lacking)
  const check = obstacle ? problem('Schema', `${schema.found}, and ${obstacle.found}`, obstacle.fix) : schema
  const applied = MIGRATIONS.slice(0, MIGRATIONS.length - lacking.length)
  const faults = await findSchemaFaults(sql, applied, isDistributed)
  const ids = isNew || faults.some(({ found }) => found.startsWith('column')) ? [] : await findIdFaults(sql)
  const found = faults.length + ids.length + lacking.length === 0 && !isDistributed && (await findCreateFault(sql))
  return [
    check,
    ...(found ? [problem('Creates', found, 'Compare the tables with those of a new database.')] : []),
    ...faults.map((fault) => faultCheck('Structure', fault)),
    ...ids.map((fault) => faultCheck('Ids', fault)),
    ...unknownChecks(await readUnknown(sql)),
  ]
}

/** Sorts 10 MB, which PostgreSQL writes to its disk for a moment. */
async function checkRoom(sql: Database): Promise<Check> {
  try {
    await sql.unsafe(`SET LOCAL work_mem = 64; SET LOCAL temp_tablespaces = '';
      SELECT count(*) FROM (SELECT FROM generate_series(1, 10000) AS n ORDER BY repeat(n::text, 250) OFFSET 0) AS sorted`)
    return fine('Disk space', 'PostgreSQL can write 10 MB')
  } catch (error) {
    if (!wasRefused(error)) throw error
    if (sqlState(error) !== NO_ROOM) return fine('Disk space', 'not checked: temporary files are limited')
    return problem('Disk space', explain(error), 'Free space for PostgreSQL: without it creates are answered with 503.')
  }
}

/** Warns of settings with which a crash loses creates that were answered, or triggers do not fire. */
function checkSettings({ unsafe }: Facts): Check {
  if (unsafe === '') return fine('Durability', 'commits are synced before they are answered')
  return warning(
    'Durability',
    `${unsafe}: a crash loses animals that were answered with 201, or counts go wrong`,
    'Reset it where it is set: ALTER SYSTEM, ALTER DATABASE or ALTER ROLE … RESET, or postgresql.conf; an unlogged table by ALTER TABLE … SET LOGGED.',
  )
}

const HINDRANCE_FIX = 'Start the standby, or reset synchronous_standby_names.'

async function askFacts(sql: Database): Promise<Facts> {
  const [facts] = await sql<Facts[]>`
    SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby,
      current_setting('transaction_read_only') = 'on' AS "readOnly",
      current_setting('data_checksums') AS checksums, CASE WHEN current_setting('synchronous_standby_names') <> ''
          AND current_setting('synchronous_commit') NOT IN ('off', 'local')
          AND NOT EXISTS (SELECT FROM pg_stat_replication) AND NOT pg_is_in_recovery()
        THEN 'every create waits for a synchronous standby, and none is connected' ELSE '' END AS hindrance,
      array_to_string(ARRAY(SELECT name || ' = ' || setting FROM pg_settings
          WHERE (name, setting) IN (('synchronous_commit', 'off'), ('fsync', 'off'), ('full_page_writes', 'off'))
            OR (name = 'session_replication_role' AND setting <> 'origin')
        UNION ALL SELECT 'unlogged table ' || oid::regclass FROM pg_class WHERE relkind = 'r' AND relpersistence = 'u'
          AND relnamespace::regnamespace::text = quote_ident(current_schema())), ', ') AS unsafe,
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
