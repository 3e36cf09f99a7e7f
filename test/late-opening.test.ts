// A store that is closed while it is being opened, as by a service that stops while it waits for its database.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { readConfig } from '../src/config.ts'
import { openForServing } from '../src/store/opening-store.ts'
import { postgres } from '../harness/engines.ts'
import { until } from '../harness/until.ts'
import { startCuttingProxy } from './cutting-proxy.ts'

it(
  'A store whose opening succeeds after it was closed is closed then, without a word',
  { timeout: 30_000 },
  async () => {
    await using database = await postgres.newDatabase()
    await using proxy = await startCuttingProxy(database.url)
    const reports: string[] = []
    proxy.goAway()
    const { store, opened } = await openForServing(readConfig({ database: proxy.url }, {}).database, {
      environment: 'staging',
      isChosen: false,
      processes: 1,
      report: ({ message }) => reports.push(message),
      onBroken: assert.ifError,
      isWorker: false,
    })
    const held = proxy.holdNextAnswer()
    proxy.comeBack()
    await held.arrived
    await store.close()
    held.release()
    await opened
    await until(async () => proxy.connections().open === 0, 'every connection is closed')
    assert.deepEqual(reports, ['waiting for the database; requests are answered 503'])
  },
)
