// The durations that a store reports: of every part, and of calls that fail too.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openStore } from './open-store.ts'
import { kindOf } from './records.ts'

it('The duration of each call to a part of the store is reported under its name, once, whether it succeeds or fails', async () => {
  const calls: string[] = []
  const store = await openStore(
    { engine: 'sqlite', path: ':memory:' },
    {
      observe(call, seconds) {
        assert.ok(seconds >= 0 && seconds < 60)
        calls.push(call)
      },
    },
  )
  assert.equal(await store.pets.get(1n), undefined)
  assert.deepEqual(await store.accounts.listKeys(), [])
  assert.deepEqual(await store.imports.unfinished(), [])
  assert.equal(await store.records.count(kindOf('pets')), 0)
  await store.ping()
  await store.close()
  await assert.rejects(store.pets.list({ limit: 1 }))
  assert.deepEqual(calls, ['pets.get', 'accounts.listKeys', 'imports.unfinished', 'records.count', 'pets.list'])
})

it('The duration of a call is reported in seconds', async ({ mock }) => {
  const durations: number[] = []
  const observe = (_call: string, seconds: number) => durations.push(seconds)
  const store = await openStore({ engine: 'sqlite', path: ':memory:' }, { observe })
  let looks = 0
  // The call begins at the first look at the clock, and all others are 2.5 s later.
  mock.method(performance, 'now', () => ((looks += 1) === 1 ? 1000 : 3500))
  await store.pets.get(1n)
  mock.restoreAll()
  assert.deepEqual(durations, [2.5])
  await store.close()
})
