// The search by name, on both engines: the same animals as a look at every name would find, whatever the index has reached.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { askPostgres } from '../../assurance/harness/ask-postgres.ts'
import { ENGINES, postgres, type TestDatabase } from '../../assurance/harness/engines.ts'
import { readConfig } from '../../src/config.ts'
import { type NewPet, type Pet, PET_STATUSES, type PetStatus } from '../../src/contract/pets.ts'
import { copyStore } from '../../src/store/database/copy-store.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { searchPets, wordsOf } from '../../src/store/search-pets.ts'
import type { PetSearch, PetStore, Store } from '../../src/store/store.ts'
import { cpuTime } from '../harness/cpu-time.ts'
import { withStore as openedAt } from '../harness/with-store.ts'
import { event } from '../harness/sample-rows.ts'
import * as fc from 'fast-check'
import connectTo from 'postgres'

const newPet = (name: string, status: PetStatus = 'available'): NewPet => ({ name, categoryId: 1n, status })
const open = ({ url }: TestDatabase) => openStore(readConfig({ database: url }, {}).database)

async function all(pets: PetStore, text: string, more: Partial<PetSearch> = {}): Promise<Pet[]> {
  const found: Pet[] = []
  for (let after: PetSearch['after'], pages = 0; pages === 0 || after !== undefined; pages += 1) {
    const page = await pets.search({ words: wordsOf(text), limit: 20, ...more, after })
    assert.ok(page.isWhole)
    found.push(...page.pets)
    after = page.next
    assert.ok(pages < 1000, 'the pages come to an end')
  }
  return found
}

const names = (pets: readonly Pet[]) => pets.map(({ name }) => name)
const many = (length: number, text = 'Rex') => Array.from({ length }, () => newPet(text))

/** With the database of PostgreSQL, as a minute later: the counts have passed all animals, and the chore has returned to them. */
async function index(pets: PetStore, database?: TestDatabase): Promise<void> {
  while (await pets.indexWords());
  if (!database?.url.startsWith('postgres')) return
  await execute(database, 'UPDATE pet_counts_progress SET until_id = (SELECT max(id) FROM pets)')
  await index(pets)
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

async function remove(pets: PetStore, id: bigint): Promise<void> {
  assert.deepEqual(await pets.remove(id, (await pets.get(id))!, event('acct')), { outcome: 'removed' })
}

/** Resolves with the most milliseconds that this process computes in one turn of the event loop while the work runs. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  const turns = { longest: 0, end: false }
  const done = work().finally(() => (turns.end = true))
  while (!turns.end) turns.longest = Math.max(turns.longest, await cpuTime(() => setImmediate()))
  await done
  return turns.longest
}

/** What the search promises, without any index. */
function naive(pets: readonly Pet[], text: string, status?: PetStatus): bigint[] {
  const sought = wordsOf(text)
  return pets
    .filter((pet) => status === undefined || pet.status === status)
    .map(({ id, name }) => ({ id, words: wordsOf(name) }))
    .filter(({ words }) => sought.every((start) => words.some((word) => word.startsWith(start))))
    .map(({ id }) => id)
    .toSorted((one, other) => Number(other - one))
}

/** Few letters, so that words begin alike: accents, case, ligatures, CJK, pairs of surrogates, marks, controls, spaces. */
const LETTERS = [...'aAábßΣςﬁ犬한𝒜🐈\uFFFD\u0301\u202E-  ']
const name = fc
  .array(fc.constantFrom(...LETTERS), { minLength: 1, maxLength: 14 })
  .map((letters) => letters.join(''))
  .filter((text) => text.trim() !== '')
const query = name.filter((text) => wordsOf(text).length > 0)
const status = fc.constantFrom(...PET_STATUSES)
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ create: name, status }) },
  { weight: 2, arbitrary: fc.record({ rename: name, which: fc.nat() }) },
  { weight: 2, arbitrary: fc.constant('index' as const) },
  { weight: 1, arbitrary: fc.record({ remove: fc.nat() }) },
)

for (const engine of ENGINES) {
  describe(`the search by name on ${engine.name}`, { concurrency: false }, () => {
    const withStore = async (work: (store: Store, database: TestDatabase) => Promise<void>) => {
      await using database = await engine.newDatabase()
      await openedAt(database.url, (store) => work(store, database))
    }

    it('finds what a look at every name would find, each animal once, in any order of changes and indexing', () =>
      withStore(async ({ pets }) => {
        const property = fc.asyncProperty(
          fc.array(step, { minLength: 1, maxLength: 25 }),
          fc.array(fc.tuple(query, fc.option(status, { nil: undefined })), { minLength: 3, maxLength: 8 }),
          fc.integer({ min: 1, max: 4 }),
          async (steps, queries, limit) => {
            for (const one of steps) {
              const ids = (await pets.list({ limit: 100 })).map(({ id }) => id)
              const pick = (number: number) => ids[number % ids.length]!
              if (one === 'index') await pets.indexWords()
              else if ('create' in one) await pets.create(newPet(one.create, one.status))
              else if (ids.length === 0) continue
              else if ('rename' in one) await rename(pets, pick(one.which), one.rename)
              else await remove(pets, pick(one.remove))
            }
            const present = await pets.list({ limit: 100_000 })
            for (const [text, only] of queries) {
              const found = await all(pets, text, { limit, ...(only && { status: only }) })
              assert.deepEqual(
                found.map(({ id }) => id),
                naive(present, text, only),
              )
            }
          },
        )
        await fc.assert(property, { numRuns: 20 })
      }))

    it('finds a new animal before the chore has run, and afterwards, by any word, without case and accents', () =>
      withStore(async ({ pets }) => {
        await pets.create(newPet('Schnürli Élodie ﬁn', 'sold'))
        await pets.create(newPet('Rex'))
        for (let runs = 0; runs < 2; runs += 1) {
          for (const text of ['SCHNU', 'elo', 'Élo', 'fin', 'schnurli elodie', 'el sch'])
            assert.deepEqual(names(await all(pets, text)), ['Schnürli Élodie ﬁn'], text)
          assert.deepEqual(await all(pets, 'odie'), [])
          assert.deepEqual(await all(pets, 'elodie rex'), [])
          assert.deepEqual(await all(pets, 'elo', { status: 'available' }), [])
          await index(pets)
        }
      }))

    it('never shows an animal under a name that it has no longer, and finds it by the present one at once', () =>
      withStore(async ({ pets }, database) => {
        await pets.createMany([newPet('Anna'), newPet('Annabel'), newPet('Bert')])
        await index(pets)
        await rename(pets, 1n, 'Zoe Annika')
        assert.deepEqual(names(await all(pets, 'ann')), ['Annabel', 'Zoe Annika'])
        assert.deepEqual(names(await all(pets, 'zo')), ['Zoe Annika'])
        await index(pets)
        assert.deepEqual(names(await all(pets, 'ann')), ['Annabel', 'Zoe Annika'])
        // And back again, with the former words out of the table.
        await rename(pets, 1n, 'Anna')
        await index(pets)
        assert.deepEqual(names(await all(pets, 'ann')), ['Annabel', 'Anna'])
        assert.deepEqual(await all(pets, 'zo'), [])
        assert.equal(await pets.indexWords(), false)
        const indexed = async () =>
          (await execute(database, 'SELECT word FROM pet_words ORDER BY word')).map(({ word }) => word)
        assert.deepEqual(await indexed(), ['anna', 'annabel', 'bert'])
        await remove(pets, 2n)
        await index(pets)
        assert.deepEqual(await indexed(), ['anna', 'bert'], 'of an animal that was removed, nothing is left')
      }))

    it('goes on behind animals that were removed and that the index still has', () =>
      withStore(async ({ pets }) => {
        await pets.createMany(['Rex 1', 'Rex 2', 'Rex 3', 'Rex 4'].map((each) => newPet(each)))
        await index(pets)
        for (const id of [1n, 3n]) await remove(pets, id)
        assert.deepEqual(names(await all(pets, 'rex', { limit: 1 })), ['Rex 4', 'Rex 2'])
      }))

    it('leads to another page only if that has animals, also from a page that is exactly full', () =>
      withStore(async ({ pets }) => {
        await pets.createMany(['Rex 1', 'Rex 2', 'Rex 3', 'Rey'].map((each) => newPet(each)))
        for (let runs = 0; runs < 2; runs += 1) {
          const pageOf = (limit: number) => pets.search({ words: ['rex'], limit })
          const [full, cut] = [await pageOf(3), await pageOf(2)]
          assert.deepEqual([names(full.pets), full.next], [['Rex 3', 'Rex 2', 'Rex 1'], undefined])
          assert.deepEqual(cut.next, { word: '', id: 2n })
          await index(pets)
        }
      }))

    it('examines a bounded number of animals for a page, and goes on from there', () =>
      withStore(async ({ pets }, database) => {
        const last = newPet('Rex the last of a page', 'sold')
        await pets.createMany([...many(499), last, ...many(500), ...many(200), newPet('Rex the last', 'sold')])
        await index(pets, database)
        const search = (after?: PetSearch['after']) => pets.search({ words: ['rex'], limit: 20, status: 'sold', after })
        const first = await search()
        assert.deepEqual(
          [first.pets, first.next, first.isWhole],
          [[{ id: 500n, ...last }], { word: 'rex', id: 500n }, true],
        )
        const second = await search(first.next)
        assert.deepEqual([second.pets, second.next], [[], { word: 'rex', id: 1000n }])
        assert.deepEqual(names((await search(second.next)).pets), ['Rex the last'])
        assert.equal((await all(pets, 'rex', { status: 'available' })).length, 1199)
      }))

    it('counts what matches in each status, also in one category, up to a bound, and says where counting stopped', () =>
      withStore(async ({ pets }, database) => {
        const other = { ...newPet('Rex other'), categoryId: 2n }
        await pets.createMany([...many(700, 'Rex Rexi'), newPet('Rex', 'sold'), newPet('Rover', 'sold'), other])
        const search = (more: Partial<PetSearch> = {}) => pets.search({ words: ['re'], limit: 2, ...more })
        // Of 1,402 words not all are looked at once they are in the index; before, every animal is.
        for (const isIndexed of [false, true]) {
          if (isIndexed) await index(pets, database)
          const { counts, isCounted, order } = await search({ status: 'sold' })
          assert.deepEqual([isCounted, order], isIndexed ? [false, 'word'] : [true, 'newest'])
          const expected = { available: 701, pending: 0, sold: 1 }
          if (!isIndexed) assert.deepEqual(counts, expected)
          else assert.ok(counts.available >= 500 && counts.available <= expected.available, String(counts.available))
          assert.equal((await all(pets, 're', { limit: 999 })).length, 702)
          const inCategory = await search({ categoryId: 2n, words: ['rex', 'other'] })
          assert.deepEqual([inCategory.pets.length, inCategory.counts], [1, { available: 1, pending: 0, sold: 0 }])
        }
      }))

    it('goes on by word where a search was begun so, and starts anew where it has grown past the bound', () =>
      withStore(async ({ pets }, database) => {
        await pets.createMany(many(5))
        await index(pets, database)
        const first = await pets.search({ words: ['rex'], limit: 2 })
        assert.deepEqual(first.next, { word: '', id: 4n })
        const byWord = await pets.search({ words: ['rex'], limit: 2, after: { word: 'rex', id: 2n } })
        assert.deepEqual([byWord.order, byWord.pets.map(({ id }) => id)], ['word', [3n, 4n]])
        await pets.createMany(many(1000))
        await index(pets, database)
        const grown = await pets.search({ words: ['rex'], limit: 2, after: first.next })
        assert.deepEqual([grown.order, grown.isCounted, grown.pets.map(({ id }) => id)], ['word', false, [1n, 2n]])
      }))

    it('says so while it lacks more animals than a search looks through, and finds the newest of them', () =>
      withStore(async ({ pets }, database) => {
        await pets.createMany([newPet('Oldest'), ...many(1500), newPet('Newest')])
        const search = (word: string) => pets.search({ words: [word], limit: 20 })
        assert.deepEqual([(await search('old')).isWhole, names((await search('new')).pets)], [false, ['Newest']])
        await index(pets, database)
        assert.deepEqual([(await search('new')).isWhole, names((await search('old')).pets)], [true, ['Oldest']])
      }))

    it('says so while more animals were renamed than a search looks through, finds the last, and indexes all of them', () =>
      withStore(async ({ pets }, database) => {
        await pets.createMany(many(1100))
        await index(pets, database)
        await execute(database, "UPDATE pets SET name = 'Max'")
        assert.equal((await pets.search({ words: ['max'], limit: 20 })).isWhole, false)
        await rename(pets, 1100n, 'Zoe')
        assert.deepEqual(names((await pets.search({ words: ['zoe'], limit: 20 })).pets), ['Zoe'])
        await rename(pets, 1100n, 'Max')
        await index(pets)
        assert.deepEqual(await execute(database, 'SELECT name FROM pet_renames'), [])
        assert.deepEqual(await execute(database, "SELECT word FROM pet_words WHERE word <> 'max'"), [])
        assert.equal((await all(pets, 'max', { limit: 500 })).length, 1100)
      }))

    it('lets other requests in, however slow the names are to compare and however many search', () =>
      withStore(async ({ pets }, database) => {
        // U+FDFA stands for 18 characters, marks in the wrong order are sorted.
        const slow = ['\uFDFA'.repeat(255), `a${'\u0301\u0316'.repeat(127)}`]
        await pets.createMany(Array.from({ length: 1000 }, (_, number) => newPet(slow[number % 2]!)))
        assert.ok((await longestTurn(() => index(pets, database))) < 200)
        await execute(database, "UPDATE pets SET name = name || '!'")
        const searchAtOnce = () => Promise.all([1, 2, 3, 4].map(() => pets.search({ words: ['a', 'صلى'], limit: 20 })))
        assert.ok((await longestTurn(searchAtOnce)) < 200)
        assert.ok((await longestTurn(() => index(pets))) < 200)
        assert.equal((await all(pets, 'صلى', { limit: 500 })).length, 500)
      }))

    it('is whole after a copy into a database that has had animals with the same ids', () =>
      withStore(async (source) => {
        await source.pets.createMany([newPet('Anna'), newPet('Bert')])
        await index(source.pets)
        await using database = await engine.newDatabase()
        const target = await open(database)
        await target.pets.createMany([newPet('Gone'), newPet('Gone'), newPet('Gone')])
        await index(target.pets, database)
        await execute(database, 'DELETE FROM pets')
        await index(target.pets)
        await copyStore(source, target, () => {})
        for (let runs = 0; runs < 2; runs += 1) {
          assert.deepEqual(names(await all(target.pets, 'be')), ['Bert'])
          assert.deepEqual(await all(target.pets, 'gone'), [])
          await index(target.pets)
        }
        await target.close()
      }))

    it('is indexed by two instances at once without a gap', () =>
      withStore(async (store, database) => {
        await store.pets.createMany(Array.from({ length: 3000 }, (_, number) => newPet(`Rex ${number}`)))
        const other = await open(database)
        await Promise.all([index(store.pets), index(other.pets), rename(other.pets, 7n, 'Renamed')])
        await index(other.pets, database)
        assert.equal((await all(store.pets, 'rex', { limit: 500 })).length, 2999)
        assert.deepEqual(names(await all(store.pets, 'ren')), ['Renamed'])
        await other.close()
      }))
  })
}

describe('the search by name on PostgreSQL', () => {
  it('finds the same in a database that sorts by the rules of a language: in Czech, ch comes after h', async () => {
    await using database = await postgres.newEmptyDatabase()
    const databaseName = new URL(database.url).pathname.slice(1)
    const server = database.url.replace(databaseName, 'postgres')
    await askPostgres(server, `DROP DATABASE ${databaseName}`)
    await askPostgres(server, `CREATE DATABASE ${databaseName} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'cs'`)
    const store = await open(database)
    await store.pets.createMany(['Chata', 'Cyril', 'Hugo', 'Ida'].map((pet) => newPet(pet)))
    await index(store.pets)
    // The newest animals are looked through, also where the index would find them.
    await askPostgres(database.url, 'UPDATE pet_words_progress SET settled_id = until_id')
    for (const [text, found] of Object.entries({ c: ['Chata', 'Cyril'], ch: ['Chata'], h: ['Hugo'], i: ['Ida'] }))
      assert.deepEqual(names(await all(store.pets, text)).toSorted(), found, text)
    await store.close()
  })

  /** Adds animals, the one between them in a transaction that is committed after the chore has passed its id. */
  const withLateAnimal = async (
    [before, behind]: [before: number, behind: number],
    work: (pets: PetStore) => Promise<void>,
  ) => {
    await using database = await postgres.newDatabase()
    const store = await open(database)
    const { pets } = store
    const sql = connectTo(database.url, { max: 1 })
    try {
      await pets.createMany(many(before))
      const given = Promise.withResolvers<void>()
      const commit = Promise.withResolvers<void>()
      const late = sql.begin(async (transaction) => {
        await transaction`INSERT INTO pets (name, category_id, status) VALUES ('Late', 1, 'sold')`
        given.resolve()
        await commit.promise
      })
      await given.promise
      await pets.createMany(many(behind, 'Early'))
      await index(pets)
      commit.resolve()
      await late
      const [progress] = await sql`SELECT until_id::int FROM pet_words_progress`
      assert.deepEqual(progress, { until_id: before + 1 + behind })
      await work(pets)
      await index(pets, database)
      assert.deepEqual(names(await all(pets, 'late')), ['Late'])
      assert.equal((await sql`SELECT 1 FROM pet_words WHERE word = 'late'`).length, 1)
    } finally {
      await Promise.all([sql.end({ timeout: 1 }), store.close()])
    }
  }

  it('finds an animal that was committed after the chore had passed its id, at once and for good', () =>
    // Before it are more than the chore reads at a time when it returns to these ids.
    withLateAnimal([1100, 1], async (pets) =>
      assert.deepEqual(names((await pets.search({ words: ['late'], limit: 20 })).pets), ['Late']),
    ))

  it('says that it may lack animals while one that was committed late is not found, and then finds it for good', () =>
    withLateAnimal([1, 1100], async (pets) => {
      const { pets: found, isWhole } = await pets.search({ words: ['late'], limit: 20 })
      assert.deepEqual([found, isWhole], [[], false])
    }))
})

it('A search finds an animal that the chore indexes while the search looks', async () => {
  const pet: Pet = { id: 1n, ...newPet('Rex') }
  let looks = 0
  // The chore runs after the first look, wherever that was.
  const isIndexed = () => (looks += 1) > 1
  const found = await searchPets(
    {
      unindexed: async () => ({ pets: isIndexed() ? [] : [pet], isWhole: true }),
      words: async () => (isIndexed() ? [{ place: { word: 'rex', id: 1n }, pet }] : []),
      indexBatch: async () => false,
    },
    { words: ['rex'], limit: 20 },
  )
  assert.deepEqual(found.pets, [pet])
})
