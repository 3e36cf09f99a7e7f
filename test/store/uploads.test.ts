// What every engine promises of files that people bring in: they are whole or not there, belong to one account, and do not stay.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Store } from '../../src/store/store.ts'
import { UPLOADS_KEPT } from '../../src/store/uploads.ts'
import { ENGINES, type TestEngine } from '../harness/databases/engines.ts'
import { addAccount, event } from '../harness/databases/sample-rows.ts'
import { withStore } from '../harness/databases/with-store.ts'

const NAME = 'my 🐈 "pets".csv'
/** Not UTF-8, and with zero bytes. */
const PARTS = [Buffer.alloc(65_536, 0xff), Buffer.from([0, 1, 0xfe])]

async function withAccounts(engine: TestEngine, work: (store: Store) => Promise<void>): Promise<void> {
  await using database = await engine.newDatabase()
  await withStore(database.url, async (store) => {
    for (const id of ['acct_1', 'acct_2']) await addAccount(store, id)
    await work(store)
  })
}

async function keep({ uploads }: Store, id: string, account = 'acct_1', at = 10): Promise<void> {
  assert.equal(await uploads.begin({ id, name: NAME }, account, at), true)
  for (const [number, part] of PARTS.entries()) assert.equal(await uploads.append(id, number, part), true)
  assert.equal(await uploads.complete(id, 65_539, 'ab12'), true)
}

for (const engine of ENGINES) {
  describe(`Uploads in the store on ${engine.name}`, { concurrency: false }, () => {
    it('are read as they came, by their account alone, once they have arrived, and until they are too old', () =>
      withAccounts(engine, async (store) => {
        const { uploads } = store
        await uploads.begin({ id: 'cut off', name: NAME }, 'acct_1', 10)
        await uploads.append('cut off', 0, PARTS[1]!)
        assert.equal(await uploads.find('cut off', 'acct_1', 0), undefined)
        await keep(store, 'one')
        assert.deepEqual(
          { ...(await uploads.find('one', 'acct_1', 9)) },
          { id: 'one', name: NAME, size: 65_539, hash: 'ab12', plan: undefined },
        )
        for (const [id, account, since] of [
          ['one', 'acct_2', 9],
          ['one', 'acct_1', 10],
          ['two', 'acct_1', 9],
          ['o\0ne', 'acct_1', 9],
        ] as const)
          assert.equal(await uploads.find(id, account, since), undefined)
        const read = await Promise.all([0, 1, 2].map((number) => uploads.part('one', number)))
        assert.deepEqual(
          read.map((part) => part && Buffer.from(part)),
          [...PARTS, undefined],
        )
      }))

    it('have the plan that was saved last, which another tab does not replace unseen', () =>
      withAccounts(engine, async (store) => {
        const { uploads } = store
        await keep(store, 'one')
        const plan = async () => (await uploads.find('one', 'acct_1', 9))?.plan
        assert.equal(await uploads.savePlan({ id: 'one' }, '{"a":"\\u0000"}'), true)
        assert.equal(await uploads.savePlan({ id: 'one' }, '{}'), false)
        assert.equal(await uploads.savePlan({ id: 'one', plan: '{"a":"\\u0000"}' }, '{"b":1}'), true)
        assert.equal(await plan(), '{"b":1}')
        assert.equal(await uploads.savePlan({ id: 'two' }, '{}'), false)
      }))

    it('go with their account, and take nothing more then', () =>
      withAccounts(engine, async (store) => {
        const { uploads, accounts } = store
        await keep(store, 'one')
        await keep(store, 'other', 'acct_2')
        await accounts.removeAccount('acct_1', event('acct_1'))
        assert.deepEqual([await uploads.find('one', 'acct_1', 0), await uploads.part('one', 0)], [undefined, undefined])
        assert.equal(await uploads.append('one', 2, PARTS[1]!), false)
        assert.equal(await uploads.complete('one', 3, 'ab12'), false)
        assert.equal(await uploads.begin({ id: 'two', name: NAME }, 'acct_1', 10), false)
        assert.notEqual(await uploads.part('other', 1), undefined)
      }))

    it(`are at most ${UPLOADS_KEPT} of an account: a further one takes the place of the oldest`, () =>
      withAccounts(engine, async (store) => {
        const { uploads } = store
        const ids = Array.from({ length: UPLOADS_KEPT + 1 }, (_, index) => `upload ${index}`)
        await keep(store, 'other', 'acct_2', 1)
        for (const [index, id] of ids.entries()) await keep(store, id, 'acct_1', 10 + index)
        const left = await Promise.all(['other', ...ids].map((id) => uploads.part(id, 1)))
        assert.deepEqual(
          left.map((part) => part !== undefined),
          [true, false, ...ids.slice(1).map(() => true)],
        )
      }))

    it('are removed one after the other when they are too old', () =>
      withAccounts(engine, async (store) => {
        const { uploads } = store
        for (const [index, id] of ['a', 'b', 'c', 'd'].entries()) await keep(store, id, 'acct_1', index)
        for (const isOne of [true, true, true, false]) assert.equal(await uploads.purge(3), isOne)
        const left = await Promise.all(['a', 'b', 'c', 'd'].map((id) => uploads.part(id, 0)))
        assert.deepEqual(
          left.map((part) => part !== undefined),
          [false, false, false, true],
        )
      }))
  })
}
