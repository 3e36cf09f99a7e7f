// A page that a database renders has the bytes of `renderPet`, whatever an animal holds.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { ENGINES, type TestDatabase } from '../harness/databases/engines.ts'
import { barePet, samplePet, variants } from '../harness/databases/sample-pet.ts'
import { readConfig } from '../../src/config.ts'
import { INT64_MAX, INT64_MIN } from '../../src/contract/int64.ts'
import {
  idOfRendered,
  isName,
  lastRendered,
  type NewPet,
  type Pet,
  PET_STATUSES,
  type RenderedPets,
  renderPet,
} from '../../src/contract/pets.ts'
import type { ListQuery } from '../../src/contract/list-query.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { kindOf } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

/** Names of one character: every control character, and those that a JSON writer may treat in its own way. */
const CHARACTERS = [
  ...Array.from({ length: 0xa1 }, (_, code) => String.fromCharCode(code)),
  '\u2028',
  '\u2029',
  '\uFEFF',
  '\uFFFD',
  '\uFFFF',
  'ß',
  '🦜',
  '𝕽',
  '\u{10FFFF}',
  '</script>',
  '\\u0000',
  '{"id":1,',
  ',',
].map((character) => `x${character}`)

function renderedAlike(pets: readonly Pet[]): RenderedPets {
  return { json: pets.map(renderPet).join(), count: pets.length }
}

for (const engine of ENGINES) {
  describe(`A page rendered by ${engine.name}`, { concurrency: false }, () => {
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

    async function comparePages(pets: readonly NewPet[]): Promise<void> {
      await store.pets.createMany(pets)
      const found = await store.pets.list({ limit: pets.length })
      const rendered = await store.pets.list({ limit: pets.length }, 'json')
      assert.deepEqual(rendered, renderedAlike(found))
      assert.equal(idOfRendered(rendered.json, lastRendered(rendered.json)), found.at(-1)!.id)
    }

    it('has each field, and leaves out those that are absent', async () => {
      await comparePages([samplePet, barePet, ...variants.map(({ pet }) => pet)])
    })

    it('has each character as it is in other answers', async () => {
      await comparePages(CHARACTERS.filter((name) => isName(name)).map((name) => ({ ...rex, name })))
    })

    it('has any animal as it is in other answers', async () => {
      const pet = fc.record({
        name: fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }).filter((name) => isName(name)),
        categoryId: fc.oneof(
          fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
          fc.constantFrom(INT64_MIN, INT64_MAX, 0n, -1n),
        ),
        status: fc.constantFrom(...PET_STATUSES),
      })
      await fc.assert(fc.asyncProperty(fc.array(pet, { minLength: 1, maxLength: 100 }), comparePages), { numRuns: 15 })
    })

    it('is what its query asks for, alone and beside any others that are asked for at the same time', async () => {
      const [{ id } = { id: 0n }] = await store.pets.list({ limit: 1 })
      const cursor = fc.constantFrom(id, id - 1n, id - 9n, id - 30n, 1n, 0n, INT64_MIN, INT64_MAX)
      const query = fc.record(
        { before: cursor, status: fc.constantFrom(...PET_STATUSES), limit: fc.constantFrom(1, 2, 101) },
        { requiredKeys: ['limit'] },
      )
      // Those that differ in nothing but their cursor share a statement.
      const alike = fc
        .tuple(query, fc.array(cursor, { minLength: 1, maxLength: 20 }))
        .map(([first, cursors]) => cursors.map((each) => ({ ...first, before: each })))
      const beside = async (queries: readonly ListQuery[]) => {
        const alone = await Promise.all(queries.map(async (each) => renderedAlike(await store.pets.list(each))))
        assert.deepEqual(await Promise.all(queries.map((each) => store.pets.list(each, 'json'))), alone)
      }
      const queries = fc.oneof(fc.array(query, { minLength: 1, maxLength: 40 }), alike)
      await fc.assert(fc.asyncProperty(queries, beside), { numRuns: 25 })
    })

    it('has ids up to the greatest', async () => {
      const [record] = await store.records.read(kindOf('pets'), undefined, 1)
      for (const id of [2n ** 53n + 1n, INT64_MAX]) {
        await store.records.write(kindOf('pets'), [{ ...record!, id }])
        assert.equal(idOfRendered((await store.pets.list({ limit: 1 }, 'json')).json, 0), id)
      }
    })
  })
}
