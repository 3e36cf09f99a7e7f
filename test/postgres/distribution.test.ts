// Animals distributed over the nodes of Citus, as far as a PostgreSQL without it shows: npm run drill citus shows the rest.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { petstore } from '../harness/in-process-command.ts'
import { openPostgres, rex } from '../harness/open-postgres.ts'
import { event } from '../harness/sample-rows.ts'

it('petstore distribute is refused by name without Citus, on SQLite, through PgBouncer and without a number of shards', async () => {
  await using opened = await openPostgres()
  const run = async (...words: string[]) => (await petstore(['distribute', ...words])).stderr
  assert.match(
    await run('--shards', '4', '--database', opened.url),
    /petstore: The database has no Citus\. .*CREATE EXTENSION/,
  )
  assert.match(await run('--shards', '4', '--database', 'sqlite:x.db'), /SQLite has no nodes/)
  assert.match(await run('--shards', '4', '--database', `${opened.url}pgbouncer=true`), /PostgreSQL itself/)
  const limit = /--shards must be a whole number from 1 to 256, got (?:nothing|"(?:0|257)")/
  for (const words of [[], ['--shards', '0'], ['--shards', '257']]) assert.match(await run(...words), limit)
  assert.match(await run('--shards', '256', '--database', 'sqlite:x.db'), /SQLite has no nodes/)
  assert.equal((await opened.store.pets.create(rex)).outcome, 'created')
})

it('Animals without triggers, as distributed ones are, are counted and found after they are changed and removed, also by a store that was opened before', async () => {
  await using opened = await openPostgres()
  const { sql } = opened
  const { pets } = opened.store
  await pets.createMany(Array.from({ length: 4 }, () => rex))
  while (await pets.indexWords());
  await sql`UPDATE pet_counts_progress SET until_id = 3`
  await sql`UPDATE pet_counts SET count = 3 WHERE status = 'available'`
  const sold = { ...rex, status: 'sold' } as const
  await pets.update(1n, rex, sold, event('acct'))
  for (const trigger of ['pets_count_delete', 'pets_count_update', 'pets_rename'])
    await sql`DROP TRIGGER ${sql(trigger)} ON pets`
  await pets.update(2n, rex, { ...sold, name: 'Max' }, event('acct'))
  await pets.remove(3n, rex, event('acct'))
  // Above those that the kept counts have.
  await pets.update(4n, rex, sold, event('acct'))
  assert.deepEqual(await pets.countByStatus(), { available: 0, pending: 0, sold: 3 })
  assert.deepEqual(await pets.update(2n, rex, sold, event('acct')), {
    outcome: 'conflict',
    pet: { id: 2n, ...sold, name: 'Max' },
  })
  assert.deepEqual(await pets.remove(3n, rex, event('acct')), { outcome: 'missing' })
  const [{ events } = {}] = await sql`SELECT count(*)::int AS events FROM audit_events`
  assert.equal(events, 4)
  while (await pets.indexWords());
  const found = async (word: string) => (await pets.search({ words: [word], limit: 9 })).pets.map(({ id }) => id)
  assert.deepEqual([await found('max'), await found('rex')], [[2n], [4n, 1n]])
  const words = async () =>
    (await sql`SELECT word, pet_id::int FROM pet_words ORDER BY 2`.values()).map((row) => [...row])
  assert.deepEqual(await words(), [
    ['rex', 1],
    ['max', 2],
    ['rex', 4],
  ])
  await pets.remove(1n, sold, event('acct'))
  await pets.remove(2n, { ...sold, name: 'Max' }, event('acct'))
  assert.deepEqual(await pets.countByStatus(), { available: 0, pending: 0, sold: 1 })
  while (await pets.indexWords());
  assert.deepEqual(await words(), [['rex', 4]])
})
