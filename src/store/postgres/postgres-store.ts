// The engine for several instances: any number of processes on one PostgreSQL.
import { databasePlace } from '../../config.ts'
import { factsOfStore } from '../facts.ts'
import { type Migration, openedBy } from '../migrations.ts'
import { CannotOpenStore, NoDatabase, type Store, StoreUnavailable } from '../store.ts'
import { PostgresAccounts } from './accounts.ts'
import { parseConnection } from './connection-settings.ts'
import { PostgresFacts } from './facts.ts'
import { asStoreFailure } from './failures.ts'
import { migrate } from './migrate.ts'
import { PostgresPets } from './pets.ts'
import { Pool } from './pool.ts'
import { PostgresRecords } from './records.ts'
import { SETTLED_MS, settleCounts } from './tally.ts'

/** How long migrating may take, or waiting for another instance that migrates. */
const START_WITHIN_MS = 600_000

/**
 * Connects to the database of this address and migrates it, or fills an empty one unless told not to. Throws
 * `CannotOpenStore` with a message for the operator.
 */
export async function openPostgresStore(url: string, create = true): Promise<Store> {
  const pool = new Pool(parseConnection(url))
  let applied: Migration[] | undefined
  try {
    applied = await pool.writeWithin(START_WITHIN_MS, (sql) => migrate(sql, create))
    if (applied === undefined) throw new NoDatabase(databasePlace({ engine: 'postgres', url }))
  } catch (error) {
    await pool.end()
    const failure = asStoreFailure(error)
    if (failure instanceof StoreUnavailable) throw new CannotOpenStore(failure.message, { cause: error })
    throw error
  }
  const settling = setInterval(() => void settle(pool), SETTLED_MS).unref()
  return {
    opened: openedBy(applied),
    pets: new PostgresPets(pool),
    accounts: new PostgresAccounts(pool),
    records: new PostgresRecords(pool),
    ...factsOfStore(new PostgresFacts(pool)),
    /** PostgreSQL can't tell cheaply whether another connection has written. */
    version: () => undefined,
    connections: () => pool.stats,
    async ping() {
      await pool.read((sql) => sql`SELECT 1`)
    },
    async close() {
      clearInterval(settling)
      await pool.end()
    },
  }
}

/** Runs in the background; if it fails, it is done a minute later. */
async function settle(pool: Pool): Promise<void> {
  try {
    while (await pool.write(settleCounts));
  } catch {
    // While the database is unavailable, every request reports it.
  }
}
