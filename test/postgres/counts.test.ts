// What follows the animals on PostgreSQL: counts stay exact while settled animals move into the kept counts, and no former name
// stays in the index of words.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { PET_STATUSES, type PetStatus } from '../../src/contract/pets.ts'
import { parseConnection } from '../../src/store/postgres/pool/connection-settings.ts'
import type { Database } from '../../src/store/postgres/pool/connection.ts'
import { settleCounts } from '../../src/store/postgres/counts.ts'
import { Pool } from '../../src/store/postgres/pool.ts'
import { postgresWords } from '../../src/store/postgres/words.ts'
import { kindOf } from '../../src/store/records.ts'
import { openPostgres, rex } from '../harness/open-postgres.ts'
import { event, petRow } from '../harness/sample-rows.ts'

/** A store, and a pool of a process beside it that settles the counts. */
async function openCounts() {
  await using parts = new AsyncDisposableStack()
  const opened = parts.use(await openPostgres('statement_timeout=60000'))
  const pool = new Pool(parseConnection(opened.url))
  parts.defer(() => pool.end())
  const { sql } = opened
  const kept = async () => (await sql<{ count: number }[]>`SELECT sum(count)::int AS count FROM pet_counts`)[0]!.count
  const disposal = parts.move()
  return {
    ...opened,
    pool,
    /** Settles the counts as `settleCounts` does. */
    settle: (settledMs?: number) => pool.writeTransaction((database) => settleCounts(database, settledMs)),
    aMinuteLater: () => sql`UPDATE pet_counts_progress SET next_noted_at = next_noted_at - 61000`,
    /** How many animals the kept counts have. */
    kept,
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  }
}

describe('the counts by status on PostgreSQL', { concurrency: false }, () => {
  it('have a row for each status, which settled animals are added to', async () => {
    await using opened = await openCounts()
    const rows = await opened.sql<{ status: PetStatus }[]>`SELECT status FROM pet_counts`
    assert.deepEqual(rows.map(({ status }) => status).toSorted(), PET_STATUSES.toSorted())
  })

  it('count an animal once, settled or not, also one that is committed late, changed or removed by hand', async () => {
    await using opened = await openCounts()
    const { store, sql, settle, kept, aMinuteLater } = opened
    const { pets } = store
    await pets.createMany(Array.from({ length: 10 }, () => rex))
    // One with a lower id than others is committed after they are seen.
    const commit = await opened.lock("INSERT INTO pets (name, category_id, status) VALUES ('late', 1, 'sold')")
    await pets.create(rex)
    await settle()
    await settle()
    assert.equal(await kept(), 0, 'an animal that was just added is not settled')
    await commit()

    await aMinuteLater()
    await settle()
    assert.equal(await kept(), 12)
    await pets.create({ ...rex, status: 'pending' })
    assert.deepEqual(await pets.countByStatus(), { available: 11, pending: 1, sold: 1 })

    await sql`UPDATE pets SET status = 'pending' WHERE name = 'late'`
    await sql`DELETE FROM pets WHERE id IN (SELECT min(id) FROM pets)`
    await sql`DELETE FROM pets WHERE id IN (SELECT max(id) FROM pets)`
    assert.deepEqual(await pets.countByStatus(), { available: 10, pending: 1, sold: 0 })
  })

  it('wait for a transaction that is older than the note, however long it stays open', async () => {
    await using opened = await openCounts()
    const { store } = opened
    /** How many animals are kept after this long. */
    const keptLater = async () => {
      await setTimeout(50)
      await opened.settle(20)
      return opened.kept()
    }
    // Takes an id that PostgreSQL logs: with Citus, a create that takes one of the next ids writes on a node only.
    await store.pets.create(rex)
    const commit = await opened.lock("INSERT INTO pets (name, category_id, status) VALUES ('late', 1, 'sold')")
    await store.pets.create(rex)
    assert.deepEqual([await keptLater(), await keptLater()], [0, 0])
    await commit()
    assert.equal(await keptLater(), 3)
    assert.deepEqual(await store.pets.countByStatus(), { available: 2, pending: 0, sold: 1 })

    // A transaction that only reads, such as a backup, holds up nothing, nor does one that writes to another database.
    await using other = await openPostgres()
    const harmless = [() => opened.lock('SELECT count(*) FROM pets'), () => other.lock('SELECT pg_current_xact_id()')]
    for (const [index, begin] of harmless.entries()) {
      const end = await begin()
      await store.pets.create(rex)
      await keptLater()
      assert.equal(await keptLater(), 4 + index)
      await end()
    }
  })

  it('leave new animals a minute: a transaction may have taken an id and not written yet', async () => {
    await using opened = await openCounts()
    const { store, sql } = opened
    // PostgreSQL logs some ids ahead: taking the next one writes nothing.
    await store.pets.create(rex)
    const [taken, write] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const late = sql.begin(async (transaction) => {
      const [row] = await transaction<{ id: string }[]>`SELECT nextval(pg_get_serial_sequence('pets', 'id')) AS id`
      taken.resolve()
      await write.promise
      await transaction`INSERT INTO pets (id, name, category_id, status) VALUES (${row!.id}, 'late', 1, 'sold')`
    })
    try {
      await taken.promise
      await store.pets.create(rex)
      for (let times = 0; times < 2; times += 1) await opened.settle()
    } finally {
      write.resolve()
      await late
    }
    assert.deepEqual(await store.pets.countByStatus(), { available: 2, pending: 0, sold: 1 })
  })

  it('stay exact while one instance moves animals into the kept counts and another asks', async () => {
    await using opened = await openPostgres('statement_timeout=60000')
    const { pets } = opened.store
    await pets.createMany([rex, rex, { ...rex, status: 'sold' }])
    const unlock = await opened.lock(`
      LOCK TABLE pet_counts;
      UPDATE pet_counts SET count = CASE status WHEN 'available' THEN 2 WHEN 'sold' THEN 1 ELSE 0 END;
      UPDATE pet_counts_progress SET until_id = 3`)
    const counted = pets.countByStatus()
    // It has read how far the counts go, but not yet the counts.
    await opened.untilBlocked(1)
    await unlock()
    assert.deepEqual(await counted, { available: 2, pending: 0, sold: 1 })
  })

  it('have animals that a copy writes below the counted ones, as one does into a database that was emptied by hand', async () => {
    await using opened = await openCounts()
    const { store, sql, settle, aMinuteLater } = opened
    const row = (id: bigint, status: PetStatus) => petRow(id, { status })
    const kind = kindOf('pets')
    await store.records.write(kind, [row(1n, 'sold'), row(2n, 'sold'), row(3n, 'pending')])
    for (let minutes = 0; minutes < 2; minutes += 1) {
      await settle()
      await aMinuteLater()
    }
    assert.deepEqual((await sql`SELECT until_id::int FROM pet_counts_progress`)[0], { until_id: 3 })
    await sql`DELETE FROM pets WHERE id > 1`
    // A minute later no animal is as new as the counts are.
    await settle()
    await aMinuteLater()
    await store.records.write(kind, [row(2n, 'available'), row(3n, 'available'), row(4n, 'available')])
    assert.deepEqual(await store.pets.countByStatus(), { available: 3, pending: 0, sold: 1 })
    await settle()
    await aMinuteLater()
    await settle()
    assert.deepEqual(await store.pets.countByStatus(), { available: 3, pending: 0, sold: 1 })
  })

  it('have animals that a copy writes while an instance moves the counts past their ids', async () => {
    await using opened = await openPostgres('statement_timeout=60000')
    const { store } = opened
    const commit = await opened.lock('UPDATE pet_counts_progress SET until_id = 3')
    const written = store.records.write(kindOf('pets'), [petRow(2n, { status: 'sold' })])
    await Promise.race([written, opened.untilBlocked(1)])
    await commit()
    await written
    assert.deepEqual(await store.pets.countByStatus(), { available: 0, pending: 0, sold: 1 })
  })

  it('are moved by one instance at a time: another leaves it to the first, and does not wait for it', async () => {
    await using opened = await openCounts()
    const { settle, kept } = opened
    await opened.store.pets.createMany([rex, rex, rex])
    await settle()
    await opened.aMinuteLater()
    const unlock = await opened.lock('SELECT 1 FROM pet_counts_progress FOR UPDATE')
    assert.equal(await settle(), false)
    await unlock()
    assert.equal(await kept(), 0)
    await settle()
    assert.equal(await kept(), 3)
  })

  it('are exact after each step of many, when there is more to move than one step takes', async () => {
    await using opened = await openCounts()
    const { store, sql, settle } = opened
    // Ids a step and more apart, instead of a million animals.
    const ids = [1, 250_000, 250_001, 400_000, 750_001, 1_000_000]
    for (const id of ids)
      await sql`INSERT INTO pets (id, name, category_id, status) VALUES (${id}, 'Rex', 3, 'pending')`
    await settle()
    await opened.aMinuteLater()
    const kept: number[] = []
    for (let more = true; more;) {
      more = await settle()
      kept.push(await opened.kept())
      assert.deepEqual(await store.pets.countByStatus(), { available: 0, pending: ids.length, sold: 0 })
    }
    assert.deepEqual(kept, [2, 4, 4, 6])
  })

  it('are locked in one order, whatever a change does: opposite changes of status never wait for each other', async () => {
    await using opened = await openPostgres('statement_timeout=60000')
    const { store, sql } = opened
    await store.pets.createMany(
      Array.from({ length: 8 }, (_, index) => ({ ...rex, status: index < 4 ? 'available' : 'sold' })),
    )
    await sql`UPDATE pet_counts_progress SET until_id = 8`
    await sql`UPDATE pet_counts SET count = 4 WHERE status <> 'pending'`
    const change = (id: bigint, from: PetStatus, to: PetStatus) =>
      store.pets.update(id, { ...rex, status: from }, { ...rex, status: to }, event('acct'))

    const unlock = await opened.lock("SELECT 1 FROM pet_counts WHERE status = 'available' FOR UPDATE")
    const changed = change(8n, 'sold', 'available')
    await opened.untilBlocked(1)
    const free = await sql`SELECT 1 FROM pet_counts WHERE status <> 'available' FOR UPDATE SKIP LOCKED`
    assert.equal(free.length, 2, 'while it waits for the first count, it holds others')
    // A change of the name alone waits for no count.
    await store.pets.update(1n, rex, { ...rex, name: 'Max' }, event('acct'))
    await store.pets.update(1n, { ...rex, name: 'Max' }, rex, event('acct'))
    await unlock()
    await changed
    await change(8n, 'available', 'sold')

    const swap = async (id: bigint, from: PetStatus, to: PetStatus) => {
      for (let times = 0; times < 25; times++) {
        assert.equal((await change(id, from, to)).outcome, 'updated')
        assert.equal((await change(id, to, from)).outcome, 'updated')
      }
    }
    await Promise.all([
      ...[1n, 2n, 3n, 4n].map((id) => swap(id, 'available', 'sold')),
      ...[5n, 6n, 7n, 8n].map((id) => swap(id, 'sold', 'available')),
    ])
    assert.deepEqual(await store.pets.countByStatus(), { available: 4, pending: 0, sold: 4 })
    // What a connection did is counted when it ends, at the latest.
    await store.close()
    const [row] = await sql`SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()`
    assert.equal(row!['deadlocks'], 0)
  })
})

it('No former name stays in the index of words on PostgreSQL if an animal is renamed while it is indexed', async () => {
  await using opened = await openCounts()
  const { store, sql, pool } = opened
  await store.pets.create(rex)
  // Of a batch, the statements about renames and about animals are the second and the third.
  let statements = 0
  const renameBetween = (database: Database) => {
    const run = async (text: TemplateStringsArray, ...values: never[]) => {
      statements += 1
      if (statements === 3) await sql`UPDATE pets SET name = 'Max'`
      return database(text, ...values)
    }
    return Object.assign(run, { unsafe: database.unsafe.bind(database) }) as unknown as Database
  }
  const words = postgresWords({
    readShort: pool.readShort.bind(pool),
    read: pool.read.bind(pool),
    writeTransaction: (work: (database: Database) => Promise<boolean>) =>
      pool.writeTransaction((database) => work(renameBetween(database))),
  } as unknown as Pool)
  for (let batch = 0; batch < 3; batch += 1) await words.indexBatch()
  assert.deepEqual([...(await sql`SELECT word FROM pet_words`)], [{ word: 'max' }])
})
