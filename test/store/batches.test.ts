// What every engine promises of batches: each animal is changed once, whatever stops one, only if it is what was shown, and is taken back
// only if nobody has touched it since.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { NewPet } from '../../src/contract/pets.ts'
import type { Author } from '../../src/store/account-store.ts'
import type { Batch } from '../../src/store/batches/batch.ts'
import type { NewBatch } from '../../src/store/batches/batch-store.ts'
import type { ChangeQuery } from '../../src/store/pet-changes.ts'
import { kindOf } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { account, addAccount, event } from '../harness/databases/sample-rows.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { withStore } from '../harness/databases/with-store.ts'

const KILLED = fileURLToPath(new URL('killed-batch.ts', import.meta.url))
const AUTHOR: Author = { at: 1_790_000_000_000, accountId: 'acct_1', via: 'console' }
const OTHER: Author = { ...AUTHOR, accountId: 'acct_2' }
const rex: NewPet = { ...samplePet, status: 'available' }
const SELL: NewBatch = { form: 'sell', action: 'changed', data: { field: 'status', to: 'sold' } }

async function open(url: string, count: number, work: (store: Store, ids: bigint[]) => Promise<void>): Promise<void> {
  await withStore(url, async (store) => {
    for (const id of ['acct_1', 'acct_2']) await addAccount(store, id)
    const created = await Promise.all(Array.from({ length: count }, () => store.pets.create(rex)))
    await work(
      store,
      created.map((each) => ('pet' in each ? each.pet.id : 0n)),
    )
  })
}

async function begin(store: Store, ids: readonly bigint[], batch = SELL): Promise<Batch> {
  const pets = ids.map((id) => ({ id, former: { id, ...rex } }))
  return (await store.batches.begin(batch, pets, AUTHOR))!
}

async function finish({ batches }: Store, id: bigint, by = AUTHOR): Promise<Batch> {
  while (await batches.advance(id, by));
  return (await batches.find(id))!
}

const statusesOf = async (store: Store, ids: readonly bigint[]) =>
  (await Promise.all(ids.map((id) => store.pets.get(id)))).map((pet) => pet?.status)
const eventsOf = async ({ accounts }: Store, id: bigint) => (await accounts.changesOf(id, 9)).length
const change = (store: Store, id: bigint, from: Partial<NewPet>, to: Partial<NewPet>, by = OTHER) =>
  store.pets.update(id, { ...rex, ...from }, { ...rex, ...to }, by)

for (const engine of ENGINES)
  describe(`A batch on ${engine.name}`, () => {
    it('of a thousand changes each animal once, also after kill -9 in the middle, and by two that go on with it at once', async () => {
      await using database = await engine.newDatabase()
      await open(database.url, 1000, async (store, ids) => {
        const { id } = await begin(store, ids)
        const child = spawn(process.execPath, [KILLED, database.url, String(id), '3'], { stdio: 'inherit' })
        assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL'])
        const { done, changed } = (await store.batches.find(id))!
        assert.ok(done >= 150 && done <= 200 && changed === done, `${done} done`)
        assert.equal((await statusesOf(store, ids)).filter((status) => status === 'sold').length, done)
        await withStore(database.url, async (second) => {
          await Promise.all([finish(store, id), finish(second, id)])
        })
        const batch = (await store.batches.find(id))!
        assert.deepEqual([batch.done, batch.changed, batch.total], [1000, 1000, 1000])
        assert.deepEqual(new Set(await statusesOf(store, ids)), new Set(['sold']))
        const events = await store.records.read(kindOf('audit_events'), undefined, 2000)
        assert.deepEqual(
          events.flatMap((row) => row['pet_id'] ?? []).toSorted((a, b) => Number(a) - Number(b)),
          ids,
        )
        assert.deepEqual(
          new Set((await store.accounts.changesOf(ids[7]!, 9)).map(({ batchId }) => batchId)),
          new Set([id]),
        )
      })
    })

    it('is begun once by one form, and changes only what is as it was shown', async () => {
      await using database = await engine.newDatabase()
      await open(database.url, 4, async (store, ids) => {
        const [, other, gone] = ids as [bigint, bigint, bigint, bigint]
        const [first, again] = await Promise.all([begin(store, ids), begin(store, ids)])
        assert.equal(first.id, again.id)
        await change(store, other, {}, { status: 'pending' })
        await store.pets.remove(gone, rex, OTHER)
        const { done, changed } = await finish(store, first.id)
        assert.deepEqual([done, changed], [4, 2])
        const steps = await store.accounts.statusChanges([...ids, -1n])
        const newest = steps.map(({ petId, data }) => [petId, data?.to?.status ?? data?.from.status])
        assert.deepEqual(newest, [
          [ids[3], 'sold'],
          [ids[0], 'sold'],
          [gone, 'available'],
          [other, 'pending'],
        ])
        assert.deepEqual(await store.batches.leftAlone(first.id, 9), [other, gone])
        assert.deepEqual(await statusesOf(store, ids), ['sold', 'pending', undefined, 'sold'])
      })
    })

    it('is taken back where it is the newest change, also a half of it, which then goes on no more', async () => {
      await using database = await engine.newDatabase()
      await open(database.url, 60, async (store, ids) => {
        const [touched, there, ...others] = ids as [bigint, bigint, ...bigint[]]
        const batch = await begin(store, ids)
        await store.batches.advance(batch.id, AUTHOR)
        await change(store, touched, { status: 'sold' }, { status: 'pending' })
        // There and back: the animal is as the batch has left it, but somebody has touched it.
        await change(store, there, { status: 'sold' }, { name: 'Otto' })
        await change(store, there, { name: 'Otto' }, { status: 'sold' })
        const [undo, again] = await Promise.all([
          store.batches.undo(batch.id, AUTHOR),
          store.batches.undo(batch.id, AUTHOR),
        ])
        assert.equal(undo?.id, again?.id)
        const taken = await finish(store, undo!.id)
        assert.deepEqual([taken.total, taken.done, taken.changed, taken.undoes], [50, 50, 48, batch.id])
        assert.deepEqual(await store.batches.leftAlone(batch.id, 9), [touched, there])
        assert.deepEqual((await finish(store, batch.id)).done, 50)
        assert.deepEqual(await statusesOf(store, [touched, there]), ['pending', 'sold'])
        assert.deepEqual(new Set(await statusesOf(store, others)), new Set(['available']))
        assert.equal(await eventsOf(store, others[0]!), 2)
        assert.equal(await store.batches.undo(undo!.id, AUTHOR), undefined, 'an Undo is not taken back')
      })
    })

    it('stops where its account is closed, is no manager for a removal or for what somebody else has done', async () => {
      await using database = await engine.newDatabase()
      await open(database.url, 3, async (store, ids) => {
        const removal = await begin(store, ids.slice(0, 1), { form: 'remove', action: 'removed', data: {} })
        assert.equal((await finish(store, removal.id)).done, 0)
        const theirs = await begin(store, ids.slice(1, 2), { ...SELL, form: 'theirs' })
        assert.equal((await finish(store, theirs.id, OTHER)).done, 0)
        await store.accounts.setRole(account('acct_1'), 'manager', event('acct_1'))
        assert.equal((await finish(store, removal.id)).changed, 1)
        await store.accounts.setRole({ id: 'acct_2', role: 'member' }, 'manager', event('acct_2'))
        await store.accounts.removeAccount('acct_1', event('acct_1', 'account.removed'))
        const own = await store.batches.begin({ ...SELL, form: 'own' }, [], AUTHOR)
        assert.equal(own, undefined)
        assert.equal((await finish(store, theirs.id)).done, 0)
        assert.deepEqual(await statusesOf(store, ids), [undefined, 'available', 'available'])
      })
    })

    it('of a file is taken back by the removal of those that nobody has touched; then the file may come again', async () => {
      await using database = await engine.newDatabase()
      await open(database.url, 1, async (store, [early]) => {
        const file = { hash: 'ab12', file: 'pets.csv' }
        assert.ok(await store.imports.beginPlanned(file, 'plan', 120, AUTHOR))
        const batch = { id: BigInt((await store.imports.find('ab12'))!.batchId!) }
        const rows = Array.from({ length: 60 }, () => rex)
        const add = (rowsDone: number) =>
          store.imports.addRows({ ...file, rowsDone, rowsTotal: rowsDone }, rows, 1, 'acct_1', batch.id)
        assert.ok(await add(0))
        assert.deepEqual((await store.batches.find(batch.id))!.changed, 60)
        assert.equal((await finish(store, batch.id)).done, 60, 'its rows come from the file')
        const [newest] = await store.pets.list({ limit: 1 })
        await change(store, newest!.id, {}, { status: 'sold' })
        const undo = (await store.batches.undo(batch.id, AUTHOR))!
        assert.equal(await add(60), false, 'an import that is taken back adds no more')
        await store.batches.advance(undo.id, AUTHOR)
        assert.ok(await store.imports.find('ab12'), 'until the last slice')
        const { total, done, changed } = await finish(store, undo.id)
        assert.deepEqual([total, done, changed], [60, 60, 59])
        assert.deepEqual(await store.batches.added(batch.id, 9), [{ ...newest, status: 'sold' }])
        assert.deepEqual(
          (await store.pets.list({ limit: 9 })).map(({ id }) => id),
          [newest!.id, early],
        )
        assert.equal(await store.imports.find('ab12'), undefined)
      })
    })

    it('is one line of the history, however many animals it has, among what was done one by one', async () => {
      await using database = await engine.newDatabase()
      await open(database.url, 70, async (store, ids) => {
        const at = (minute: number, by = AUTHOR) => ({ ...by, at: AUTHOR.at + 60_000 * minute })
        const batch = await begin(store, ids)
        await finish(store, batch.id)
        const none = (await store.batches.begin({ ...SELL, form: 'none' }, [], at(1)))!
        await change(store, ids[3]!, { status: 'sold' }, {}, at(2, OTHER))
        await store.imports.begin({ hash: 'h', file: 'pets.csv', rowsTotal: 70 }, 1, false)
        const file = (await store.batches.begin(
          { form: 'f', action: 'imported', data: { hash: 'h' }, total: 70 },
          [],
          at(3),
        ))!
        const rows = ids.map(() => rex)
        await store.imports.addRows({ hash: 'h', rowsDone: 0, rowsTotal: 70 }, rows, at(3).at, 'acct_1', file.id)
        await store.pets.create(rex, undefined, { at: at(4).at, by: 'acct_2' })
        const undo = (await store.batches.undo(batch.id, at(5, OTHER)))!
        await store.accounts.setRole({ id: 'acct_2', role: 'member' }, 'manager', event('acct_2'))
        await finish(store, undo.id, at(5, OTHER))
        const lines = async (query: Pick<ChangeQuery, 'by'>, limit: number) => {
          const shown: string[] = []
          for (let after: ChangeQuery['after']; ;) {
            const page = await store.pets.changes({ ...query, limit, after })
            shown.push(...page.changes.map(({ action, batch: of }) => (of ? `${of.action} ${of.changed}` : action)))
            if (page.next === undefined) return shown
            after = page.next
          }
        }
        assert.ok(none.id > batch.id)
        const single = Array.from({ length: 70 }, () => 'pet.added')
        const all = ['undone 69', 'pet.added', 'imported 70', 'pet.changed', 'changed 70']
        for (const limit of [2, 50]) assert.deepEqual(await lines({}, limit), [...all, ...single])
        assert.deepEqual(await lines({ by: 'acct_1' }, 2), ['imported 70', 'changed 70'])
        assert.deepEqual(await lines({ by: 'acct_2' }, 2), ['undone 69', 'pet.added', 'pet.changed'])
        assert.deepEqual([...(await store.accounts.authors()).keys()], ['acct_1', 'acct_2'])
        assert.equal(await store.batches.purge(AUTHOR.at), 0)
        assert.equal(await store.batches.purge(AUTHOR.at + 1), 70)
        assert.equal(await store.batches.purge(AUTHOR.at + 1), 0)
        assert.deepEqual((await lines({}, 9)).slice(0, 5), all, 'the line stays')
      })
    })
  })
