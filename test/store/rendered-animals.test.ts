// A page that a database renders has the bytes of `renderPet`, whatever an animal holds.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { ENGINES, type TestDatabase } from '../../assurance/harness/engines.ts'
import { barePet, samplePet, variants } from '../../assurance/harness/sample-pet.ts'
import { readConfig } from '../../src/config.ts'
import { INT64_MAX, INT64_MIN } from '../../src/contract/int64.ts'
import { idOfRendered, isName, type NewPet, PET_STATUSES, renderPet } from '../../src/contract/pets.ts'
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
      assert.deepEqual(rendered, found.map(renderPet))
      assert.deepEqual(
        rendered.map(idOfRendered),
        found.map(({ id }) => id),
      )
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

    it('has the pages of each filter and position in the same order', async () => {
      const [{ id } = { id: 0n }] = await store.pets.list({ limit: 1 })
      for (const query of [{}, { before: id }, { before: id - 9n }, { before: INT64_MIN }])
        for (const status of [undefined, ...PET_STATUSES])
          for (const limit of [1, 101]) {
            const page = { ...query, status, limit }
            assert.deepEqual(await store.pets.list(page, 'json'), (await store.pets.list(page)).map(renderPet))
          }
    })

    it('has ids up to the greatest', async () => {
      const [record] = await store.records.read(kindOf('pets'), undefined, 1)
      for (const id of [2n ** 53n + 1n, INT64_MAX]) {
        await store.records.write(kindOf('pets'), [{ ...record!, id }])
        assert.deepEqual((await store.pets.list({ limit: 1 }, 'json')).map(idOfRendered), [id])
      }
    })
  })
}
