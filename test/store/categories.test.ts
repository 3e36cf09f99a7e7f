// The names of categories, and the animals of one category: what every engine promises.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readConfig } from '../../src/config.ts'
import { CATEGORIES_A_DAY, CATEGORIES_MOST } from '../../src/contract/limits.ts'
import { INT64_MAX, INT64_MIN } from '../../src/contract/int64.ts'
import { PET_STATUSES, type PetStatus } from '../../src/contract/pets.ts'
import type { AuditEvent } from '../../src/store/account-store.ts'
import type { Category } from '../../src/contract/category-name.ts'
import { COUNTED_MOST } from '../../src/store/pet-counts.ts'
import { copyStore } from '../../src/store/database/copy-store.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { ENGINES, type TestDatabase } from '../harness/databases/engines.ts'
import { askDatabase } from '../harness/databases/database-schema.ts'
import { addAccount, event } from '../harness/databases/sample-rows.ts'
import { withStore } from '../harness/databases/with-store.ts'

const added = (accountId: string): AuditEvent => event(accountId, 'category.added')
const renamed = (accountId: string): AuditEvent => event(accountId, 'category.renamed')
const pets = (count: number, categoryId: bigint, status: PetStatus) =>
  Array.from({ length: count }, () => ({ name: 'Rex', categoryId, status }))

for (const engine of ENGINES) {
  describe(`categories on ${engine.name}`, { concurrency: false }, () => {
    let database: TestDatabase
    let store: Store
    before(async () => {
      database = await engine.newDatabase()
      store = await openStore(readConfig({ database: database.url }, {}).database)
    })
    after(async () => {
      await store.close()
      await database[Symbol.asyncDispose]()
    })

    it('name a number once, with a name that no other has, whatever its case, and record who did', async () => {
      const cats = { number: 3n, name: 'Cats' }
      const { categories } = store
      const add = (category: Category) => categories.save(category, undefined, added('acct_add'))
      assert.equal(await add(cats), undefined)
      assert.deepEqual(await add({ number: 3n, name: 'Dogs' }), cats)
      for (const name of ['CATS', ' cats ', 'Cats']) assert.deepEqual(await add({ number: 4n, name }), cats)
      const same = ['Ärzte', 'a\u0308rzte'].map((name, index) => ({ number: BigInt(index + 10), name }))
      const others = await Promise.all(same.map(add))
      const first = others.indexOf(undefined)
      assert.deepEqual(others[1 - first], same[first])
      assert.equal((await store.accounts.auditTrail('acct_add', 9)).length, 2)
    })

    it('are renamed only as the person saw them, and never to the name of another', async () => {
      const { categories } = store
      const [hens, ducks] = [
        { number: INT64_MAX, name: 'Hens' },
        { number: INT64_MIN, name: 'Ducks' },
      ]
      for (const one of [hens, ducks]) await categories.save(one, undefined, added('acct_1'))
      const rename = (name: string, former: string) => categories.save({ ...hens, name }, former, renamed('acct_2'))
      assert.deepEqual(await rename('DUCKS', 'Hens'), ducks)
      assert.equal(await rename('hens', 'Hens'), undefined)
      const now = { ...hens, name: 'hens' }
      assert.deepEqual(await rename('Geese', 'Hens'), now)
      const { names } = await categories.names()
      assert.deepEqual(
        [INT64_MAX, INT64_MIN, 77n].map((number) => names.get(number)),
        ['hens', 'Ducks', undefined],
      )
      assert.equal((await store.accounts.auditTrail('acct_2', 9)).length, 1)
    })

    it('are added by a member up to a limit in any 24 hours, also by two instances at once, by managers and commands without one', async () => {
      const [at, day] = [event('').at, 86_400_000]
      const member = await addAccount(store, 'acct_eager')
      for (let nth = 1; nth < CATEGORIES_A_DAY; nth += 1)
        await store.accounts.appendEvent({ ...added(member.id), at: at + nth })
      const later = { ...added(member.id), at: at + day }
      await withStore(database.url, async (other) => {
        const add = (nth: number) =>
          [store, other][nth % 2]!.categories.save({ number: BigInt(nth), name: `Eager ${nth}` }, undefined, later)
        const answers = await Promise.all([501, 502, 503, 504].map(add))
        const refused = answers.filter((answer) => answer !== undefined)
        assert.deepEqual(
          refused,
          Array.from({ length: 3 }, () => at + 1 + day),
        )
      })
      const save = (name: string, by = later) => store.categories.save({ number: 510n, name }, undefined, by)
      const named = (await store.categories.names()).names.entries().find(([, name]) => name.startsWith('Eager'))!
      assert.deepEqual(await save(named[1]), { number: named[0], name: named[1] }, 'a form that is sent twice')
      assert.equal(await save('By command', { ...later, accountId: '' }), undefined)
      const again = await store.categories.save({ number: 511n, name: 'Soon' }, undefined, {
        ...later,
        at: at + day + 1,
      })
      assert.equal(again, undefined, 'the first of them is a day old')
      assert.equal(typeof (await store.categories.save({ number: 512n, name: 'Late' }, undefined, later)), 'number')
      await store.accounts.setRole(member, 'manager', event('acct_boss', 'account.role_changed'))
      assert.equal(await store.categories.save({ number: 512n, name: 'Late' }, undefined, later), undefined)
    })

    it('lose their name only while no animal has them; their number goes to no other name, and back to the same one', async () => {
      const { categories } = store
      const [bats, other] = [
        { number: 90n, name: 'Bats' },
        { number: 90n, name: 'Other bats' },
      ]
      const removed = event('acct_remover', 'category.removed')
      const remove = (category: Category) => categories.remove(category, removed)
      await categories.save(bats, undefined, added('acct_1'))
      assert.equal(await remove(other), false, 'renamed meanwhile')
      await store.pets.createMany(pets(1, 90n, 'sold'))
      assert.equal(await remove(bats), false)
      const [animal] = await store.pets.list({ categoryId: 90n, limit: 1 })
      await store.pets.remove(animal!.id, animal!, event('acct_1', 'pet.removed'))
      // At once with the other instances: one of them removes it.
      await withStore(database.url, async (elsewhere) => {
        const done = await Promise.all([remove(bats), elsewhere.categories.remove(bats, removed)])
        assert.deepEqual(done.toSorted(), [false, true])
      })
      assert.equal((await store.accounts.auditTrail('acct_remover', 9)).length, 1)
      assert.equal((await categories.names()).names.has(90n), false)
      assert.deepEqual(await categories.save(other, undefined, added('acct_1')), bats)
      assert.equal(await categories.save({ ...bats, name: 'BATS' }, undefined, added('acct_1')), undefined)
      assert.equal((await categories.names()).words(90n), 'BATS')
    })

    it('are prepared once for all who read them, until one of them changes, also by another instance', async () => {
      const other = await openStore(readConfig({ database: database.url }, {}).database)
      const first = await store.categories.names()
      assert.equal(await store.categories.names(), first)
      const save = (number: bigint, name: string, former?: string) =>
        other.categories.save({ number, name }, former, added('acct_other'))
      await save(70n, 'Newts')
      const now = await store.categories.names()
      assert.deepEqual([first.numberOf('newts'), now.numberOf('newts')], [undefined, 70n])
      await save(70n, 'Toads', 'Newts')
      const last = await store.categories.names()
      assert.deepEqual(
        ['newts', 'toads'].map((name) => last.numberOf(name)),
        [undefined, 70n],
      )
      assert.equal(last.words(70n), 'Toads')
      await other.close()
    })

    it('list their animals, also of one status, page by page in both directions, as the list without filters would', async () => {
      await store.pets.createMany(
        Array.from({ length: 60 }, (_, index) => ({
          name: 'Rex',
          categoryId: index % 4 === 0 ? 500n : 501n,
          status: PET_STATUSES[(index * 7) % 3]!,
        })),
      )
      const all = await store.pets.list({ limit: 60 })
      const outside = (await store.pets.list({ limit: 61 }))[60]
      assert.ok(outside === undefined || outside.categoryId !== 500n)
      for (const status of [undefined, ...PET_STATUSES]) {
        const own = all.filter((pet) => pet.categoryId === 500n && (status === undefined || pet.status === status))
        assert.ok(own.length >= 4)
        for (const limit of [1, 3, 100]) {
          const query = { categoryId: 500n, status, limit }
          assert.deepEqual(await store.pets.list(query), own.slice(0, limit))
          for (const [index, { id }] of own.entries()) {
            assert.deepEqual(await store.pets.list({ ...query, before: id }), own.slice(index + 1, index + 1 + limit))
            assert.deepEqual(
              await store.pets.list({ ...query, after: id }),
              own.slice(Math.max(0, index - limit), index),
            )
          }
        }
      }
    })

    it('count their animals of each status, up to a bound', async () => {
      await store.pets.createMany([...pets(2, 601n, 'sold'), ...pets(COUNTED_MOST + 2, 602n, 'available')])
      assert.deepEqual(await store.pets.countByStatus(601n), { available: 0, pending: 0, sold: 2 })
      assert.deepEqual(await store.pets.countByStatus(602n), { available: COUNTED_MOST + 1, pending: 0, sold: 0 })
    })

    it('are at most as many as pages read, also when several are added at once; one of them can still be renamed', async () => {
      await using other = await engine.newDatabase()
      await withStore(other.url, async (one) => {
        await withStore(other.url, async (two) => {
          const rows = Array.from(
            { length: CATEGORIES_MOST - 40 },
            (_, nth) => `(${nth}, 'Kind ${nth}', 'kind ${nth}')`,
          )
          await askDatabase(other.url, `INSERT INTO categories (number, name, name_folded) VALUES ${rows.join()}`)
          const add = ({ categories }: Store, nth: number) =>
            categories.save({ number: BigInt(-nth), name: `More ${nth}` }, undefined, added('acct_many'))
          const outcomes = await Promise.all(Array.from({ length: 80 }, (_, nth) => add(nth % 2 ? one : two, nth + 1)))
          assert.equal(outcomes.filter((each) => each === undefined).length, 40)
          assert.equal(outcomes.filter((each) => each === 'full').length, 40)
          assert.equal((await one.categories.names()).names.size, CATEGORIES_MOST)
          const first = { number: 0n, name: 'First' }
          assert.equal(await two.categories.save(first, 'Kind 0', renamed('acct_many')), undefined)
          assert.deepEqual(await two.categories.save({ number: 0n, name: 'x' }, undefined, added('acct_many')), first)
        })
      })
    })

    it('go with a copy to any engine', async () => {
      for (const to of ENGINES) {
        await using target = await to.newDatabase()
        await withStore(target.url, async (copy) => {
          await copyStore(store, copy, () => {})
          assert.deepEqual(await copy.categories.names(), await store.categories.names())
        })
      }
    })
  })
}
