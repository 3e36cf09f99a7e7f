// Readiness where the database is slow to answer.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Store } from '../store/store.ts'
import { createReadiness } from './health.ts'

it('A database that has not answered after two seconds counts as unavailable', async ({ mock }) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const ping = Promise.withResolvers<void>()
  const readiness = createReadiness({ ping: () => ping.promise } as Store, () => false)
  const overdue = readiness()
  mock.timers.tick(2000)
  assert.equal(await Promise.race([overdue, setImmediate('no answer')]), 'The database does not answer.')
  const late = readiness()
  mock.timers.tick(1999)
  ping.resolve()
  assert.equal(await late, undefined)
})
