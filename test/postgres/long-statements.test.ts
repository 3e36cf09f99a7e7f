// Commands that move much: a statement of theirs may take hours, not the seconds of a request.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sqlite } from '../harness/databases/engines.ts'
import { petstore } from '../harness/programs/in-process-command.ts'
import { openPostgres } from '../harness/databases/open-postgres.ts'

for (const words of ['copy', 'seed --count 1'])
  it(`petstore ${words.split(' ')[0]} waits for a statement that takes longer than a request's may`, async () => {
    await using opened = await openPostgres('statement_timeout=1000&connect_timeout=30')
    await using target = await sqlite.newEmptyDatabase()
    const unlock = await opened.lock('LOCK TABLE pets')
    const running = petstore([
      ...words.split(' '),
      ...(words === 'copy' ? ['--from', opened.url, '--to', target.url] : ['--database', opened.url]),
    ])
    await opened.untilBlocked(1)
    await opened.sql`SELECT pg_sleep(1.5)`
    await unlock()
    const { code, stderr } = await running
    assert.equal(code, 0, stderr)
  })
