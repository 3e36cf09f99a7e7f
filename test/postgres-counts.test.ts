// Counts on PostgreSQL stay exact while settled animals move into the kept counts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import connectTo from 'postgres'
import { readConfig } from '../src/config.ts'
import type { NewPet, PetStatus } from '../src/contract/pets.ts'
import { Pool } from '../src/store/postgres/pool.ts'
import { parseConnection } from '../src/store/postgres/connection-settings.ts'
import { settleCounts } from '../src/store/postgres/counts-and-words.ts'
import { openStore } from '../src/store/open-store.ts'
import { kindOf } from '../src/store/records.ts'
import { postgres } from '../assurance/harness/engines.ts'
import { openPostgres } from './open-postgres.ts'
import { event, petRow } from './sample-rows.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

describe('the counts by status on PostgreSQL', () => {
  it('count an animal once, settled or not, also one that is committed late, changed or removed by hand', async () => {
    await using database = await postgres.newDatabase()
    const store = await openStore(readConfig({ database: database.url }, {}).database)
    const { pets } = store
    const pool = new Pool(parseConnection(database.url))
    const sql = connectTo(database.url, { max: 2 })
    const aMinuteLater = () => sql`UPDATE pet_counts_progress SET next_noted_at = next_noted_at - 61000`
    const kept = async () => Number((await sql`SELECT sum(count) AS count FROM pet_counts`)[0]!['count'])
    try {
      await pets.createMany(Array.from({ length: 10 }, () => rex))
      // One with a lower id than others is committed after they are seen.
      const late = Promise.withResolvers<void>()
      const given = Promise.withResolvers<void>()
      const lateOne = sql.begin(async (transaction) => {
        await transaction`INSERT INTO pets (name, category_id, status) VALUES ('late', 1, 'sold')`
        given.resolve()
        await late.promise
      })
      await given.promise
      await pets.create(rex)
      await pool.write(settleCounts)
      await pool.write(settleCounts)
      assert.equal(await kept(), 0, 'an animal that was just added is not settled')
      late.resolve()
      await lateOne

      await aMinuteLater()
      await pool.write(settleCounts)
      assert.equal(await kept(), 12)
      await pets.create({ ...rex, status: 'pending' })
      assert.deepEqual(await pets.countByStatus(), { available: 11, pending: 1, sold: 1 })

      await sql`UPDATE pets SET status = 'pending' WHERE name = 'late'`
      await sql`DELETE FROM pets WHERE id IN (SELECT min(id) FROM pets)`
      await sql`DELETE FROM pets WHERE id IN (SELECT max(id) FROM pets)`
      assert.deepEqual(await pets.countByStatus(), { available: 10, pending: 1, sold: 0 })
    } finally {
      await Promise.all([sql.end(), pool.end(), store.close()])
    }
  })

  it('wait for a transaction that is older than the note, however long it stays open', async () => {
    await using opened = await openPostgres()
    const { store, sql } = opened
    const pool = new Pool(parseConnection(opened.url))
    const kept: number[] = []
    const settle = async () => {
      await setTimeout(50)
      await pool.write((database) => settleCounts(database, 20))
      kept.push((await sql`SELECT sum(count)::int AS count FROM pet_counts`)[0]!['count'] as number)
    }
    const commit = await opened.lock("INSERT INTO pets (name, category_id, status) VALUES ('late', 1, 'sold')")
    await store.pets.create(rex)
    await settle()
    await settle()
    await commit()
    await settle()
    assert.deepEqual(kept, [0, 0, 2])
    assert.deepEqual(await store.pets.countByStatus(), { available: 1, pending: 0, sold: 1 })

    // A transaction that only reads, such as a backup, holds up nothing.
    const end = await opened.lock('SELECT count(*) FROM pets')
    await store.pets.create(rex)
    await settle()
    await settle()
    await end()
    assert.equal(kept.at(-1), 3)

    // Nor does one that writes to another database of the same server.
    await using other = await openPostgres()
    const endOther = await other.lock('SELECT pg_current_xact_id()')
    await store.pets.create(rex)
    await settle()
    await settle()
    await endOther()
    assert.equal(kept.at(-1), 4)
    await pool.end()
  })

  it('leave new animals a minute: a transaction may have taken an id and not written yet', async () => {
    await using opened = await openPostgres()
    const { store, sql } = opened
    const pool = new Pool(parseConnection(opened.url))
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
      for (let times = 0; times < 2; times += 1) await pool.write(settleCounts)
    } finally {
      write.resolve()
      await late
      await pool.end()
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

  it('have animals that a copy writes below the counted ones, as one does that is resumed after a change', async () => {
    await using opened = await openPostgres()
    const { store, sql } = opened
    const pool = new Pool(parseConnection(opened.url))
    const row = (id: bigint, status: PetStatus) => petRow(id, { status })
    const kind = kindOf('pets')
    await store.records.write(kind, [row(1n, 'sold'), row(2n, 'sold'), row(3n, 'pending')])
    for (let minutes = 0; minutes < 2; minutes += 1) {
      await pool.write(settleCounts)
      await sql`UPDATE pet_counts_progress SET next_noted_at = 0`
    }
    assert.deepEqual((await sql`SELECT until_id::int FROM pet_counts_progress`)[0], { until_id: 3 })
    await store.records.remove(kind, [row(2n, 'sold'), row(3n, 'pending')])
    // A minute later no animal is as new as the counts are.
    await pool.write(settleCounts)
    await sql`UPDATE pet_counts_progress SET next_noted_at = 0`
    await store.records.write(kind, [row(2n, 'available'), row(3n, 'available'), row(4n, 'available')])
    assert.deepEqual(await store.pets.countByStatus(), { available: 3, pending: 0, sold: 1 })
    await pool.write(settleCounts)
    await sql`UPDATE pet_counts_progress SET next_noted_at = 0`
    await pool.write(settleCounts)
    await pool.end()
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
    await using opened = await openPostgres()
    const pool = new Pool(parseConnection(opened.url))
    await opened.store.pets.createMany([rex, rex, rex])
    await pool.write(settleCounts)
    await opened.sql`UPDATE pet_counts_progress SET next_noted_at = 0`
    const unlock = await opened.lock('SELECT 1 FROM pet_counts_progress FOR UPDATE')
    assert.equal(await pool.write(settleCounts), false)
    await unlock()
    assert.deepEqual((await opened.sql`SELECT sum(count)::int AS kept FROM pet_counts`)[0], { kept: 0 })
    await pool.write(settleCounts)
    assert.deepEqual((await opened.sql`SELECT sum(count)::int AS kept FROM pet_counts`)[0], { kept: 3 })
    await pool.end()
  })

  it('are exact after each step of many, when there is more to move than one step takes', async () => {
    await using opened = await openPostgres()
    const { store, sql } = opened
    const pool = new Pool(parseConnection(opened.url))
    // Ids a step and more apart, instead of a million animals.
    const ids = [1, 250_000, 250_001, 400_000, 750_001, 1_000_000]
    for (const id of ids)
      await sql`INSERT INTO pets (id, name, category_id, status) VALUES (${id}, 'Rex', 3, 'pending')`
    await pool.write(settleCounts)
    await sql`UPDATE pet_counts_progress SET next_noted_at = 0`
    const kept: number[] = []
    for (let more = true; more;) {
      more = await pool.write(settleCounts)
      kept.push((await sql`SELECT count::int FROM pet_counts WHERE status = 'pending'`)[0]!['count'] as number)
      assert.deepEqual(await store.pets.countByStatus(), { available: 0, pending: ids.length, sold: 0 })
    }
    await pool.end()
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
      for (let times = 0; times < 100; times++) {
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
