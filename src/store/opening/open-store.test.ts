// What a store tells an observer: the calls to every part, also those that fail.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openStore } from './open-store.ts'

type Part = Record<string, () => Promise<unknown>>

it('Each call to a part of the store is observed under its name, once, whether it succeeds or fails', async () => {
  const begun: string[] = []
  const ended: string[] = []
  const observe = (call: string) => {
    begun.push(call)
    return () => ended.push(call)
  }
  const store = await openStore({ engine: 'sqlite', path: ':memory:' }, { observe })
  assert.equal(await store.pets.get(1n), undefined)
  await store.ping()
  await store.close()
  await assert.rejects(store.pets.get(1n))
  assert.deepEqual(ended, ['pets.get', 'pets.get'])
  const { opened: _opened, ...others } = store
  const parts = Object.entries<unknown>(others).filter(([, part]) => typeof part === 'object') as [string, Part][]
  assert.ok(parts.length > 4)
  const methods = parts.flatMap(([part, called]) =>
    Object.entries(called).map(([name, call]) => ({ name: `${part}.${name}`, call })),
  )
  for (const { name, call } of methods) await assert.rejects(async () => call(), name)
  assert.deepEqual(
    begun.slice(2),
    methods.map(({ name }) => name),
  )
})

it('A call that is not observed is made all the same', async () => {
  const store = await openStore({ engine: 'sqlite', path: ':memory:' }, { observe: () => undefined })
  assert.equal(await store.pets.get(1n), undefined)
  await store.close()
})
