// The engine for several instances, which share one PostgreSQL database.
import { describeDatabase } from '../database-address.ts'
import { type Facts, factsOfStore } from '../environment.ts'
import { type Migration, openedBy } from '../migrations.ts'
import { CannotOpenStore, NoDatabase, type OpenOptions, type Report, type Store, StoreUnavailable } from '../store.ts'
import { postgresAccounts } from './accounts.ts'
import { postgresCategories } from './categories.ts'
import type { Database } from './connection.ts'
import { parseConnection } from './connection-settings.ts'
import { SETTLED_MS, settleCounts } from './counts-and-words.ts'
import { touchShards } from './distribution.ts'
import { asStoreFailure } from './failures.ts'
import { migrate } from './migrate.ts'
import { postgresPartitions } from './partitions.ts'
import { Creates, postgresImports, postgresPets } from './pets.ts'
import { postgresPeople } from './people.ts'
import { Pool } from './pool.ts'
import { postgresRecords } from './records.ts'
import { findMissingRights } from './rights.ts'

/** How long migrating may take, or waiting for another instance that migrates. */
const START_WITHIN_MS = 600_000

/**
 * Connects to the database at this address and migrates it; creates the tables of an empty one unless `create` is false.
 * Throws `CannotOpenStore` with a message for the operator.
 */
export async function openPostgresStore(
  url: string,
  { create = true, processes = 1, serving, report = () => {} }: OpenOptions = {},
): Promise<Store> {
  const parsed = parseConnection(url)
  const settings = { ...parsed, poolSize: Math.max(1, Math.floor(parsed.poolSize / processes)) }
  let isOpen = false
  // Until the store is open, its failures reach the caller as exceptions, not as reports.
  const pool = new Pool(settings, (event) => isOpen && report(event))
  let applied: Migration[] | undefined
  let warnings: string[]
  const partitions = postgresPartitions(pool, settings.pgbouncer)
  try {
    // A command may need less, such as to read.
    const missing = serving && (await pool.read(findMissingRights))
    const lacks = missing && `PostgreSQL: ${missing.found}. ${missing.fix}`
    if (lacks && !missing.isMinor) throw new CannotOpenStore(lacks, { transient: true })
    applied = await pool.writeWithin(START_WITHIN_MS, (sql) => migrate(sql, { create, pgbouncer: settings.pgbouncer }))
    if (applied === undefined) throw new NoDatabase(describeDatabase({ engine: 'postgres', url }))
    await partitions.read()
    warnings = settings.pgbouncer ? await warningsBehindPgbouncer(pool) : []
    if (lacks) warnings.push(lacks)
  } catch (error) {
    await pool.end()
    const failure = asStoreFailure(error)
    if (failure instanceof StoreUnavailable)
      throw new CannotOpenStore(failure.message, { cause: error, transient: true })
    throw error
  }
  isOpen = true
  // After a failure the next minute reads the partitions; until then pages are read as before.
  const everyMinute = () => void Promise.allSettled([settle(pool, report), partitions.read()])
  const settling = setInterval(everyMinute, SETTLED_MS).unref()
  const creates = new Creates(pool)
  return {
    opened: openedBy(applied, warnings),
    pets: postgresPets(pool, creates, () => partitions.known),
    accounts: { ...postgresAccounts(pool), ...postgresPeople(pool) },
    categories: postgresCategories(pool),
    imports: postgresImports(pool),
    records: postgresRecords(pool),
    partitions,
    ...factsOfStore(postgresFacts(pool)),
    /** PostgreSQL has no cheap way to detect writes of other connections. */
    version: () => undefined,
    versionToRead: () => undefined,
    connections: () => pool.stats,
    commits: () => creates.commits,
    giveUp: () => {},
    async ping() {
      await pool.ping()
      if (partitions.shards) await pool.read(touchShards)
    },
    async close() {
      clearInterval(settling)
      await pool.end()
    },
  }
}

function postgresFacts(pool: Pool): Facts {
  async function read(sql: Database, name: string): Promise<string | undefined> {
    const [fact] = await sql<{ value: string }[]>`SELECT value FROM store_facts WHERE name = ${name}`
    return fact?.value
  }

  return {
    get: (name) => pool.read((sql) => read(sql, name)),
    change: (name, present, value) =>
      pool.writeRepeatable(async (sql) => {
        if (value === undefined) await sql`DELETE FROM store_facts WHERE name = ${name} AND value = ${present ?? null}`
        else if (present === undefined)
          await sql`INSERT INTO store_facts (name, value) VALUES (${name}, ${value}) ON CONFLICT DO NOTHING`
        else await sql`UPDATE store_facts SET value = ${value} WHERE name = ${name} AND value = ${present}`
        return read(sql, name)
      }),
  }
}

/** Settles the counts in the background; after a failure the next run, a minute later, does it. */
async function settle(pool: Pool, report: Report): Promise<void> {
  try {
    while (await pool.write(settleCounts));
  } catch (error) {
    report({
      level: 'error',
      message: 'counts by status could not be settled; this is retried in a minute',
      details: { error },
    })
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
