// Which index a page or a history is read from: told by PostgreSQL's own counts and SQLite's plan, since a slow plan gives the
// same animals. The pages of SQLite are in test/every-filter.test.ts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import connectTo from 'postgres'
import { readConfig } from '../src/config.ts'
import type { PetStatus } from '../src/contract/pets.ts'
import { CHANGES_OF_PET } from '../src/store/account-store.ts'
import { openStore } from '../src/store/open-store.ts'
import { kindOf } from '../src/store/records.ts'
import { openDatabase } from '../src/store/sqlite/database.ts'
import { postgres } from '../assurance/harness/engines.ts'

const SOLD = 4000
const ALL = 20_000
const limit = 21

describe('A page of one status on PostgreSQL', () => {
  it('reads no animal of another status, also where its own are all old', async () => {
    await using database = await postgres.newDatabase()
    const store = await openStore(readConfig({}, { DATABASE_URL: database.url }).database)
    const { pets } = store
    const animal = (status: PetStatus) => ({ name: 'Rex', categoryId: 1n, status })
    await pets.createMany(Array.from({ length: ALL }, (_, index) => animal(index < SOLD ? 'sold' : 'available')))
    const sql = connectTo(database.url, { max: 1 })
    await sql`ANALYZE pets`

    const first = await pets.list({ status: 'sold', limit })
    const deep = await pets.list({ status: 'sold', limit, before: BigInt(ALL) })
    assert.deepEqual([first.length, first[0]?.id, deep[0]?.id], [limit, BigInt(SOLD), BigInt(SOLD)])
    const newer = await pets.list({ status: 'sold', limit, after: BigInt(SOLD - limit) })
    assert.deepEqual(newer, first)

    // A connection hands in its counts at its end at the latest.
    await store.close()
    const read = await sql<{ columns: string; entries: number }[]>`
      SELECT substring(indexdef FROM '[(].*') AS columns, idx_tup_read::int AS entries
      FROM pg_indexes JOIN pg_stat_user_indexes ON indexname = indexrelname WHERE tablename = 'pets'`
    await sql.end()
    for (const { columns, entries } of read)
      assert.equal(entries, columns === '(status, id)' ? 3 * limit : 0, `entries of the index on ${columns}`)
    assert.ok(read.some(({ entries }) => entries > 0))
  })
})

describe('The history of an animal on PostgreSQL', () => {
  it('reads no event of another animal', async () => {
    await using database = await postgres.newDatabase()
    const store = await openStore(readConfig({}, { DATABASE_URL: database.url }).database)
    const event = (index: number) => ({
      id: BigInt(index + 1),
      at: 1n,
      account_id: 'acct_1',
      action: index % 2 === 0 ? 'pet.changed' : 'session.started',
      via: 'console',
      subject: `Rex (${index % 1000})`,
      detail: null,
    })
    await store.records.write(
      kindOf('audit_events'),
      Array.from({ length: 5000 }, (_, index) => event(index)),
    )
    const sql = connectTo(database.url, { max: 1 })
    await sql`ANALYZE audit_events`
    assert.equal((await store.accounts.changesOf(998n, 20)).length, 5)
    assert.equal((await store.accounts.changesOf(99n, 20)).length, 0)
    await store.close()
    const read =
      await sql`SELECT sum(idx_tup_read)::int AS entries FROM pg_stat_user_indexes WHERE relname = 'audit_events'`
    await sql.end()
    assert.deepEqual([...read], [{ entries: 5 }])
  })
})

describe('The history of an animal on SQLite', () => {
  it('is found and sorted by an index', () => {
    using db = openDatabase(':memory:').db
    const plan = db
      .prepare(`EXPLAIN QUERY PLAN SELECT * FROM audit_events WHERE ${CHANGES_OF_PET} = ? ORDER BY id DESC LIMIT ?`)
      .all()
      .map(({ detail }) => String(detail))
    assert.match(plan.join(), /^SEARCH audit_events USING INDEX \w+ \(<expr>=\?\)$/)
  })
})
