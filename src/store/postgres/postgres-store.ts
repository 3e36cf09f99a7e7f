// The engine for several instances, which share one PostgreSQL database.
import { describeDatabase } from '../database/database-address.ts'
import { factsOfStore } from '../database/environment.ts'
import { type Migration, openedBy } from '../database/migrations.ts'
import { sharedParts } from '../shared-parts.ts'
import { CannotOpenStore, NoDatabase, NoWrites, type OpenOptions, type Store, StoreUnavailable } from '../store.ts'
import { parseConnection } from './pool/connection-settings.ts'
import { asStoreFailure } from './pool/failures.ts'
import { findUnserved, migrate, refuseUnpublished } from './migrate.ts'
import { repairIds } from './ids.ts'
import { findCreateFault, gatherCreates, postgresPets, requireRoom } from './pets.ts'
import { Pool } from './pool.ts'
import { postgresRecords } from './records.ts'
import { findMissingRights } from './rights.ts'
import { postgresSql } from './sql.ts'

/** The longest time that a timer can have: a migration has no limit, and reports what it waits for. */
const MIGRATE_WITHIN_MS = 2 ** 31 - 1

/** How long a statement of a command may take, such as the count of a table in a copy. */
const COMMAND_STATEMENT_MS = 6 * 3_600_000

/**
 * Connects to the database at this address and migrates it; creates the tables of an empty one unless `create` is false.
 * Throws `CannotOpenStore` with a message for the operator.
 */
export async function openPostgresStore(
  url: string,
  { create = true, processes = 1, serving, isCommand, report = () => {}, onWait }: OpenOptions = {},
): Promise<Store> {
  const parsed = parseConnection(url)
  const statementTimeoutMs = isCommand ? COMMAND_STATEMENT_MS : parsed.statementTimeoutMs
  const settings = { ...parsed, statementTimeoutMs, poolSize: Math.max(1, Math.floor(parsed.poolSize / processes)) }
  let isOpen = false
  // Until the store is open, its failures reach the caller as exceptions, not as reports.
  const pool = new Pool(settings, (event) => isOpen && report(event))
  let applied: Migration[] | undefined
  let warnings: string[]
  try {
    await pool.read(refuseUnpublished)
    // A command may need less, such as to read.
    const missing = serving && (await pool.read(findMissingRights))
    if (missing) throw new CannotOpenStore(`PostgreSQL: ${missing.found}. ${missing.fix}`, { transient: true })
    // A command that creates no store may read such a one, to copy it.
    const unserved = create && (await pool.read(findUnserved))
    if (unserved) throw new CannotOpenStore(`PostgreSQL: ${unserved.found}. ${unserved.fix}`)
    const { pgbouncer } = settings
    applied = await pool.writeWithin(MIGRATE_WITHIN_MS, (sql) => migrate(sql, { create, pgbouncer, onWait }))
    if (applied === undefined) throw new NoDatabase(describeDatabase({ engine: 'postgres', url }))
    const fault = serving && (await pool.write(repairIds))
    if (fault) throw new CannotOpenStore(`PostgreSQL: ${fault.found}. ${fault.fix}`, { transient: true })
    warnings = pgbouncer ? await warningsBehindPgbouncer(pool) : []
  } catch (error) {
    await pool.end()
    const failure = asStoreFailure(error)
    if (failure instanceof StoreUnavailable)
      throw new CannotOpenStore(failure.message, { cause: error, transient: true })
    throw error
  }
  isOpen = true
  const creates = gatherCreates(pool)
  const sql = postgresSql(pool)
  let told: string | undefined
  return {
    opened: openedBy(applied, warnings),
    pets: postgresPets(pool, sql, creates),
    ...sharedParts(sql),
    records: postgresRecords(pool, sql),
    ...factsOfStore(sql),
    /** PostgreSQL has no cheap way to detect writes of other connections. */
    version: () => undefined,
    versionAfterSync: () => undefined,
    connections: () => pool.stats,
    commits: () => creates.commits,
    giveUp: () => {},
    async ping() {
      const shards = await pool.ping()
      const fault = shards === undefined ? await pool.read(findCreateFault) : undefined
      if (fault !== undefined && fault !== told)
        report({ level: 'error', message: 'not ready: creates fail', details: { fault } })
      told = fault
      if (fault !== undefined) throw new NoWrites(fault)
      if (pool.hasFoundNoRoom) await pool.write(requireRoom)
      pool.hasFoundNoRoom = false
    },
    close: () => pool.end(),
  }
}

/** Warns if no statement timeout applies: behind PgBouncer none can be sent when connecting, so the role must have one. */
async function warningsBehindPgbouncer(pool: Pool): Promise<string[]> {
  const [row] = await pool.read(
    (sql) => sql<{ limit: string; role: string }[]>`
    SELECT current_setting('statement_timeout') AS limit, quote_ident(current_user) AS role`,
  )
  const { limit, role } = row!
  if (limit !== '0') return []
  return [
    `Behind PgBouncer, the role ${role} of the database needs a time limit of its own: ALTER ROLE ${role} SET statement_timeout = '5s'`,
  ]
}
