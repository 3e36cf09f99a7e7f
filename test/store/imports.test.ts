// What every engine promises of imports: rows and the record of them are one transaction, and nobody goes on from a wrong place.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { NewPet } from '../../src/contract/pets.ts'
import type { Store } from '../../src/store/store.ts'
import { ENGINES, type TestEngine } from '../harness/databases/engines.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { withStore } from '../harness/databases/with-store.ts'
import { addAccount, event } from '../harness/databases/sample-rows.ts'

const rex: NewPet = { ...samplePet, name: 'Rex', status: 'available' }
const FILE = { hash: 'ab12', file: '/srv/pets.csv', rowsTotal: 3 }

async function withNewStore(engine: TestEngine, work: (store: Store) => Promise<void>): Promise<void> {
  await using database = await engine.newDatabase()
  await withStore(database.url, work)
}

const animals = async ({ pets }: Store) => (await pets.list({ limit: 100 })).length
const without = <T>(found: T) => JSON.parse(JSON.stringify(found)) as T
const found = async ({ imports }: Store) => (await imports.find(FILE.hash))!

for (const engine of ENGINES) {
  describe(`imports in the store on ${engine.name}`, { concurrency: false }, () => {
    it('record each batch with its rows, and add nothing from another place than where they are', () =>
      withNewStore(engine, async (store) => {
        const { imports } = store
        assert.equal(await imports.addRows({ ...FILE, rowsDone: 0 }, [rex], 5), false, 'before it has begun')
        assert.equal(await imports.begin(FILE, 5, false), true)
        assert.deepEqual(without(await found(store)), { ...FILE, rowsDone: 0, updatedAt: 5 })
        assert.equal(await imports.addRows({ ...FILE, rowsDone: 0 }, [rex, rex], 6), true)
        assert.equal(
          await imports.addRows({ ...FILE, rowsDone: 0 }, [rex, rex], 7),
          false,
          'a second process with the same batch',
        )
        assert.equal(await imports.addRows({ ...FILE, rowsDone: 1 }, [rex], 7), false)
        const otherOptions = { ...FILE, rowsDone: 2, rowsTotal: 4 }
        assert.equal(await imports.addRows(otherOptions, [rex], 7), false, 'a process for which other rows are valid')
        assert.deepEqual(
          [await animals(store), without(await found(store))],
          [2, { ...FILE, rowsDone: 2, updatedAt: 6 }],
        )
        assert.deepEqual(
          (await imports.unfinished()).map(({ hash }) => hash),
          [FILE.hash],
        )
        assert.equal(await imports.addRows({ ...FILE, rowsDone: 2 }, [rex], 8), true)
        assert.deepEqual([await animals(store), (await imports.unfinished()).length], [3, 0])
      }))

    it('add no row and record nothing if one row of the batch can not be stored', () =>
      withNewStore(engine, async (store) => {
        await store.imports.begin(FILE, 5, false)
        await assert.rejects(
          store.imports.addRows({ ...FILE, rowsDone: 0 }, [rex, { ...rex, status: 'gone' as 'sold' }], 6),
        )
        assert.deepEqual([await animals(store), (await found(store)).rowsDone], [0, 0])
      }))

    it('of an account name it as who added the animals, and stop when it is removed', () =>
      withNewStore(engine, async (store) => {
        const { id } = await addAccount(store, 'acct_1')
        await store.imports.begin(FILE, 5, false)
        assert.equal(await store.imports.addRows({ ...FILE, rowsDone: 0 }, [rex, rex], 6, id), true)
        const [{ id: petId } = { id: 0n }] = await store.pets.list({ limit: 1 })
        assert.deepEqual({ ...(await store.pets.addition(petId)) }, { at: 6, by: id })
        await store.accounts.removeAccount(id, event(id))
        assert.equal(await store.imports.addRows({ ...FILE, rowsDone: 2 }, [rex], 7, id), false)
        assert.deepEqual([await animals(store), (await found(store)).rowsDone], [2, 2])
      }))

    it('with a plan are one batch: no command goes on with them, and its Undo ends them and frees the file', () =>
      withNewStore(engine, async (store) => {
        const { imports, batches } = store
        const { id } = await addAccount(store, 'acct_1')
        const by = { ...event(id), at: 5 }
        assert.equal(await imports.beginPlanned(FILE, 'plan', 2, { ...by, accountId: 'acct_gone' }), false)
        assert.equal(await imports.beginPlanned(FILE, 'plan', 2, by), true)
        assert.equal(await imports.beginPlanned(FILE, 'another plan', 3, by), false)
        const { batchId, ...begun } = await found(store)
        assert.deepEqual(begun, { ...FILE, rowsDone: 0, rowsTotal: 0, updatedAt: 5, plan: 'plan' })
        const batch = BigInt(batchId!)
        assert.equal(await imports.begin(FILE, 6, false), false)
        assert.equal(await imports.addRows({ ...begun, rowsDone: 0 }, [rex], 6, id, batch), true)
        assert.equal(await imports.addRows({ ...begun, rowsDone: 0 }, [rex], 6, id, batch), false)
        assert.deepEqual([(await found(store)).rowsTotal, (await imports.unfinished()).length], [1, 0])
        const undo = await batches.undo(batch, by)
        assert.equal(await imports.addRows({ ...begun, rowsDone: 1, rowsTotal: 1 }, [rex], 6, id, batch), false)
        await batches.advance(undo!.id, by)
        assert.deepEqual([await animals(store), await imports.find(FILE.hash)], [0, undefined])
        assert.equal(await imports.begin({ ...FILE, rowsTotal: 0 }, 6, false), true)
        await imports.begin(FILE, 7, true)
        assert.deepEqual([(await found(store)).plan, (await found(store)).rowsTotal], [undefined, FILE.rowsTotal])
      }))

    it('that a command has begun anew stay its own when the former one is undone', () =>
      withNewStore(engine, async (store) => {
        const { imports, batches } = store
        const { id } = await addAccount(store, 'acct_1')
        const by = { ...event(id), at: 5 }
        await imports.beginPlanned(FILE, 'plan', 1, by)
        const { batchId, ...begun } = await found(store)
        await imports.addRows(begun, [rex], 6, id, BigInt(batchId!))
        assert.equal(await imports.begin(FILE, 7, true), true)
        assert.equal(await imports.addRows({ ...FILE, rowsDone: 0 }, [rex], 8), true)
        const undo = await batches.undo(BigInt(batchId!), by)
        await batches.advance(undo!.id, by)
        assert.deepEqual([await animals(store), (await found(store)).rowsDone], [1, 1])
      }))

    it('of several files are kept apart, and the unfinished ones listed by when they last went on, oldest first', () =>
      withNewStore(engine, async (store) => {
        const { imports } = store
        const files = ['a', 'b', 'c', 'd'].map((hash) => ({ hash, file: `/srv/${hash}.csv`, rowsTotal: 2 }))
        for (const [index, file] of files.entries()) await imports.begin(file, index, false)
        await imports.addRows({ ...files[3]!, rowsDone: 0 }, [rex, rex], 9)
        await imports.addRows({ ...files[0]!, rowsDone: 0 }, [rex], 8)
        const [a, b, c, d] = files.map((file, index) => ({ ...file, rowsDone: 0, updatedAt: index }))
        const unfinished = async () => (await imports.unfinished()).map(without)
        assert.deepEqual(await unfinished(), [b, c, { ...a, rowsDone: 1, updatedAt: 8 }])
        await imports.begin({ ...b!, hash: 'another content' }, 7, false)
        assert.deepEqual(
          (await unfinished()).map(({ hash }) => hash),
          ['c', 'another content', 'a'],
          'b was begun with another content',
        )
        await imports.addRows({ hash: 'another content', rowsDone: 0, rowsTotal: 2 }, [rex, rex], 9)
        assert.deepEqual(
          await unfinished(),
          [c, { ...a, rowsDone: 1, updatedAt: 8 }],
          'b was imported with another content',
        )
        assert.equal(await imports.addRows({ ...b!, rowsDone: 0 }, [rex], 10), true, 'and can go on')
        assert.deepEqual((await unfinished()).at(-1), { ...b, rowsDone: 1, updatedAt: 10 })
        assert.deepEqual(without(await imports.find('d')), { ...d, rowsDone: 2, updatedAt: 9 })
      }))

    it('begin again only when asked to, and finished or with other rows', () =>
      withNewStore(engine, async (store) => {
        const { imports } = store
        await imports.begin(FILE, 5, false)
        assert.deepEqual(
          [await imports.begin(FILE, 6, false), await imports.begin(FILE, 6, true)],
          [false, false],
          'while unfinished',
        )
        const otherOptions = { ...FILE, rowsTotal: 2 }
        assert.deepEqual(
          [await imports.begin(otherOptions, 6, false), await imports.begin(otherOptions, 6, true)],
          [false, true],
          'while unfinished, and other rows are valid',
        )
        assert.equal(await imports.begin(FILE, 6, true), true)
        await imports.addRows({ ...FILE, rowsDone: 0 }, [rex, rex, rex], 7)
        assert.equal(await imports.begin(FILE, 8, false), false)
        // A newer release may take rows that an earlier one has skipped.
        const moved = { ...FILE, file: '/srv/moved/pets.csv', rowsTotal: 4 }
        assert.equal(await imports.begin(moved, 8, true), true)
        assert.deepEqual(without(await found(store)), { ...moved, rowsDone: 0, updatedAt: 8 })
      }))
  })
}
