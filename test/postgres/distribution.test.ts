// Animals distributed over the nodes of Citus, as far as a PostgreSQL without it shows: npm run drill citus shows the rest.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { petstore } from '../harness/programs/in-process-command.ts'
import { openPostgres, rex } from '../harness/databases/open-postgres.ts'

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
