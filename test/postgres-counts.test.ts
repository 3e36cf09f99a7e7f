// Counts on PostgreSQL stay exact while settled animals move into the kept counts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import connectTo from 'postgres'
import { readConfig } from '../src/config.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { Pool } from '../src/store/postgres/pool.ts'
import { parseConnection } from '../src/store/postgres/connection-settings.ts'
import { settleCounts } from '../src/store/postgres/tally.ts'
import { openStore } from '../src/store/open-store.ts'
import { postgres } from './engines.ts'

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
})
