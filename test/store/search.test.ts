// The search by name, on both engines: the same animals as a look at every name would find, newest first.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import * as fc from 'fast-check'
import { askPostgres } from '../harness/databases/ask-postgres.ts'
import { ENGINES, type TestDatabase } from '../harness/databases/engines.ts'
import { type NewPet, type Pet, PET_STATUSES, type PetStatus } from '../../src/contract/pets.ts'
import { foldForSearch, FOLDING_VERSION, wordsOf } from '../../src/contract/text/search-words.ts'
import { copyStore } from '../../src/store/database/copy-store.ts'
import { kindOf } from '../../src/store/records.ts'
import { NAMES_READ } from '../../src/store/search-pets.ts'
import type { PetSearch, PetStore, Store } from '../../src/store/store.ts'
import { cpuTime } from '../harness/programs/cpu-time.ts'
import { event, petRow } from '../harness/databases/sample-rows.ts'
import { withStore as openedAt } from '../harness/databases/with-store.ts'

const newPet = (name: string, status: PetStatus = 'available'): NewPet => ({ name, categoryId: 1n, status })
const many = (length: number, text = 'Rex') => Array.from({ length }, () => newPet(text))
const names = (pets: readonly Pet[]) => pets.map(({ name }) => name)

async function all(pets: PetStore, text: string, more: Partial<PetSearch> = {}): Promise<Pet[]> {
  const found: Pet[] = []
  for (let before: bigint | undefined, pages = 0; pages === 0 || before !== undefined; pages += 1) {
    const query = { words: wordsOf(text), limit: 20, ...more }
    const page = await pets.search(before === undefined ? query : { ...query, before })
    found.push(...page.pets)
    before = page.next
    assert.ok(pages < 1000, 'the pages come to an end')
  }
  return found
}

/** Runs a statement as another program may, on either engine. */
async function execute({ url }: TestDatabase, statement: string): Promise<Record<string, unknown>[]> {
  if (url.startsWith('postgres')) return [...(await askPostgres(url, statement))]
  using db = new DatabaseSync(url.slice('sqlite:'.length))
  return db.prepare(statement).all()
}

async function rename(pets: PetStore, id: bigint, name: string): Promise<void> {
  const { id: _id, ...old } = (await pets.get(id))!
  assert.deepEqual(await pets.update(id, old, { ...old, name }, event('acct')), { outcome: 'updated' })
}

/** Resolves with the most milliseconds that this process computes in one turn of the event loop while the work runs. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  const turns = { longest: 0, end: false }
  const done = work().finally(() => (turns.end = true))
  while (!turns.end) turns.longest = Math.max(turns.longest, await cpuTime(() => setImmediate()))
  await done
  return turns.longest
}

/** Few letters, so that names are alike: accents, case, ligatures, CJK, pairs of surrogates, marks, controls, spaces, dashes. */
const LETTERS = [...'aAábßΣςﬁ犬한𝒜🐈%_’\uFFFD\u0301\u202E-  ']
const name = fc
  .array(fc.constantFrom(...LETTERS), { minLength: 1, maxLength: 14 })
  .map((letters) => letters.join(''))
  .filter((text) => text.trim() !== '')
const query = name.filter((text) => wordsOf(text).length > 0)
const status = fc.constantFrom(...PET_STATUSES)
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ create: name, status }) },
  { weight: 2, arbitrary: fc.record({ rename: name, which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ remove: fc.nat() }) },
)

for (const engine of ENGINES) {
  describe(`the search by name on ${engine.name}`, { concurrency: false }, () => {
    const withStore = async (work: (store: Store, database: TestDatabase) => Promise<void>) => {
      await using database = await engine.newDatabase()
      await openedAt(database.url, (store) => work(store, database))
    }

    it('finds what a look at every name would find, each animal once, newest first, after any changes', () =>
      withStore(async ({ pets }) => {
        const property = fc.asyncProperty(
          fc.array(step, { minLength: 1, maxLength: 25 }),
          fc.array(fc.tuple(query, fc.option(status, { nil: undefined }), fc.boolean()), {
            minLength: 3,
            maxLength: 8,
          }),
          fc.integer({ min: 1, max: 4 }),
          async (steps, queries, limit) => {
            for (const one of steps) {
              const ids = (await pets.list({ limit: 100 })).map(({ id }) => id)
              const pick = (number: number) => ids[number % ids.length]!
              if ('create' in one) await pets.create(newPet(one.create, one.status))
              else if (ids.length === 0) continue
              else if ('rename' in one) await rename(pets, pick(one.which), one.rename)
              else await pets.remove(pick(one.remove), (await pets.get(pick(one.remove)))!, event('acct'))
            }
            const present = await pets.list({ limit: 100_000 })
            for (const [text, only, isCounted] of queries) {
              const matches = present.filter((pet) =>
                wordsOf(text).every((word) => foldForSearch(pet.name).includes(word)),
              )
              const expected = matches.filter((pet) => only === undefined || pet.status === only)
              assert.deepEqual(await all(pets, text, { limit, isCounted, ...(only && { status: only }) }), expected)
              const { counts } = await pets.search({ words: wordsOf(text), limit, isCounted: true })
              for (const each of PET_STATUSES)
                assert.equal(counts[each], matches.filter((pet) => pet.status === each).length)
            }
          },
        )
        await fc.assert(property, { numRuns: 20 })
      }))

    it('finds an animal by its present name at once, however it was added or renamed, also by another instance', () =>
      withStore(async ({ pets, imports, records }, database) => {
        await pets.create(newPet('Straßenkater'))
        await pets.createMany([newPet("O'Malley"), newPet('Łódź')])
        await imports.begin({ hash: 'h', file: 'pets.csv', rowsTotal: 1 }, 1, false)
        await imports.addRows({ hash: 'h', rowsDone: 0, rowsTotal: 1 }, [newPet('Mary-Ann')], 1)
        await records.write(kindOf('pets'), [petRow(-5n, { name: 'Élodie' })])
        await execute(database, "INSERT INTO pets (id, name, category_id, status) VALUES (99, 'BY HAND', 1, 'sold')")
        await openedAt(database.url, async (other) => {
          const typed = { kater: 'Straßenkater', omalley: "O'Malley", lodz: 'Łódź', maryann: 'Mary-Ann', elo: 'Élodie' }
          for (const [text, found] of Object.entries({ ...typed, 'by hand': 'BY HAND' }))
            assert.deepEqual(names(await all(other.pets, text)), [found], text)
          await rename(other.pets, 1n, 'Größe')
        })
        assert.deepEqual([names(await all(pets, 'grosse')), await all(pets, 'kater')], [['Größe'], []])
        assert.deepEqual(names(await all(pets, '%')), [])
      }))

    it('leads to another page only if that has animals, also from a page that is exactly full', () =>
      withStore(async ({ pets }) => {
        await pets.createMany(['Rex 1', 'Rex 2', 'Rex 3', 'Rey'].map((each) => newPet(each)))
        for (const isCounted of [false, true]) {
          const page = (limit: number) => pets.search({ words: ['rex'], limit, isCounted })
          const [full, cut] = [await page(3), await page(2)]
          assert.deepEqual([names(full.pets), full.next], [['Rex 3', 'Rex 2', 'Rex 1'], undefined])
          assert.deepEqual([cut.next, cut.isFull], [2n, true])
        }
      }))

    it('finds an animal once while its status changes', () =>
      withStore(async ({ pets }) => {
        await pets.createMany([...many(1000), newPet('Tom')])
        for (const turns of [0, 1, 2, 3]) {
          const searching = pets.search({ words: ['tom'], limit: 20, isCounted: true, inShop: true })
          for (let turn = 0; turn < turns; turn += 1) await setImmediate()
          const { id, ...old } = (await pets.get(1001n))!
          const other = old.status === 'available' ? 'pending' : 'available'
          await pets.update(id, old, { ...old, status: other }, event('acct'))
          assert.ok((await searching).pets.length <= 1, `changed after ${turns} turns`)
        }
      }))

    it('reads a bounded number of names for a page, goes on from there, and counts only what it has read to the end', () =>
      withStore(async ({ pets }, database) => {
        // More names than a page reads, or fewer and more bytes.
        const [count, folded] =
          engine.name === 'SQLite' ? [NAMES_READ + 20_000, "'rex'"] : [6_000, "repeat('rex', 2000)"]
        await execute(
          database,
          `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
           INSERT INTO pets (id, name, category_id, status, name_folded)
           SELECT CAST(i AS BIGINT) * 1000003, 'Rex', CASE i WHEN 7 THEN 2 ELSE 1 END,
             CASE WHEN i < 9 THEN 'sold' ELSE 'available' END, CASE i WHEN 5 THEN 'last' ELSE ${folded} END FROM n`,
        )
        const search = (more: Partial<PetSearch>) =>
          pets.search({ words: ['last'], limit: 20, isCounted: true, ...more })
        const first = await search({})
        assert.deepEqual([first.pets, first.isFull, first.counts], [[], false, {}])
        const skipped = Number(first.next! / 1_000_003n)
        assert.ok(skipped > 1000 && skipped < 25_000, String(skipped))
        const second = await search({ before: first.next! })
        assert.deepEqual([second.pets.map(({ id }) => id), second.next], [[5_000_015n], undefined])
        // By the index of a status or a category, the few are read to the end.
        const sold = await search({ status: 'sold' })
        assert.deepEqual([sold.pets.length, sold.next, sold.counts], [1, undefined, { pending: 0, sold: 1 }])
        const rare = await search({ words: ['rex'], categoryId: 2n, inShop: true })
        assert.deepEqual([rare.pets, rare.counts], [[], { available: 0, pending: 0, sold: 1 }])
        assert.equal((await all(pets, 'last', { isCounted: true })).length, 1)
      }))

    it('lets other requests in, however long the names are and however many search, and ends when it is told to', () =>
      withStore(async ({ pets }) => {
        await pets.createMany(many(3000, '\uFDFA'.repeat(255)))
        const search = (signal?: AbortSignal) =>
          pets.search({ words: ['zz', 'لله'], limit: 20, isCounted: true, ...(signal && { signal }) })
        assert.ok((await longestTurn(() => Promise.all([1, 2, 3, 4].map(() => search())))) < 100)
        const stop = new AbortController()
        const searching = search(stop.signal)
        stop.abort(new Error('left'))
        await assert.rejects(searching, /left/)
        assert.equal((await all(pets, 'صلى', { limit: 1500 })).length, 3000)
      }))

    it('finds the same in a copy, and the database tells by which folding', () =>
      withStore(async (source, database) => {
        await source.pets.createMany([newPet('Straße'), newPet('Łódź')])
        await execute(database, "UPDATE pets SET name_folded = 'outdated'")
        await using other = await engine.newDatabase()
        await openedAt(other.url, async (target) => {
          await copyStore(source, target, () => {})
          assert.deepEqual(names(await all(target.pets, 'strasse')), ['Straße'])
        })
        const [fact] = await execute(other, "SELECT value FROM store_facts WHERE name = 'name_folding'")
        assert.equal(fact!['value'], String(FOLDING_VERSION))
      }))
  })
}
