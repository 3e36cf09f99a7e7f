// No part of the service ignores a filter: for each of the table, a list holds every animal that matches, and no other.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { Petstore as Client } from '../client/src/petstore.ts'
import { askPostgres } from '../harness/ask-postgres.ts'
import { ENGINES } from '../harness/engines.ts'
import { asTexts, otherPet, samplePet, variants } from '../harness/sample-pet.ts'
import { readConfig } from '../src/config.ts'
import { FILTER_NAMES, type Filters } from '../src/contract/list-query.ts'
import { FIELDS, type NewPet, type Pet } from '../src/contract/pets.ts'
import { openStore } from '../src/store/open-store.ts'
import type { Store } from '../src/store/store.ts'
import { signedIn } from './console-client.ts'
import { describeService, expectError } from './harness.ts'

/** Every combination of the filters, each with either value. */
const COMBINATIONS = FILTER_NAMES.reduce<Filters[]>(
  (all, name) =>
    all.flatMap((filters) => [
      filters,
      { ...filters, [name]: samplePet[name] },
      { ...filters, [name]: otherPet[name] },
    ]),
  [{}],
)

const inWords = (filters: Filters) => new URLSearchParams(asEntries(filters)).toString() || 'no filter'
const asEntries = (filters: Filters) => Object.entries(filters).map(([name, value]) => [name, String(value)])
const matches = (pet: NewPet, filters: Filters) =>
  FILTER_NAMES.every((name) => filters[name] === undefined || pet[name] === filters[name])

/** Animals that match each combination, and some that do not; newest first. */
async function fill({ pets }: Store): Promise<Pet[]> {
  const animals = [samplePet, otherPet, ...variants.map(({ pet }) => pet)]
  await pets.createMany([...animals, ...animals.toReversed(), ...animals])
  return pets.list({ limit: 1000 })
}

describeService('Each filter', (service) => {
  it('lists what matches and nothing else, alone and with others, in the store, the API, the client and the console', async () => {
    const { store, url, key } = service()
    const all = await fill(store)
    const client = new Client({ apiKey: key, baseUrl: `${url}/v1` })
    const person = await signedIn(service())
    for (const filters of COMBINATIONS) {
      const words = inWords(filters)
      const expected = all.filter((pet) => matches(pet, filters))
      const ids = expected.map(({ id }) => String(id))
      assert.ok(expected.length > 0, words)

      assert.deepEqual(await store.pets.list({ ...filters, limit: 1000 }), expected, words)
      const before = expected[0]!.id
      assert.deepEqual(await store.pets.list({ ...filters, limit: 1000, before }), expected.slice(1), words)

      const listed: string[] = []
      const parameters = new URLSearchParams([...asEntries(filters), ['limit', '2']] as [string, string][]).toString()
      for (let path: string | undefined = `/pets?${parameters}`; path !== undefined;) {
        const page = await service().call(path)
        for (const { id } of (await page.json()) as { id: number }[]) listed.push(String(id))
        path = /<\/v1([^>]*)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1]
      }
      assert.deepEqual(listed, ids, words)

      assert.deepEqual(await Array.fromAsync(client.listPets({ ...filters, limit: 2 })), expected, words)

      const shown: string[] = []
      let last = ''
      for (let path: string | undefined = `/animals?${parameters}`; path !== undefined;) {
        last = (await person.get(path)).body
        shown.push(...Array.from(last.matchAll(/<th scope="row"><a href="\/animals\/(\d+)"/g), ([, id = '']) => id))
        path = /rel="next" href="([^"]*)"/.exec(last)?.[1]?.replaceAll('&amp;', '&')
      }
      assert.deepEqual(shown, ids, words)
      const others = asEntries(filters).filter(([name]) => name !== 'status')
      for (const [, tab = ''] of last.matchAll(/class="tab [^"]*" href="([^"]*)"/g)) {
        const kept = new URL(tab.replaceAll('&amp;', '&'), url).searchParams
        for (const [name, value] of others) assert.equal(kept.get(name!), value, `${tab} keeps ${name}`)
      }
    }
  })

  for (const name of FILTER_NAMES) {
    it(`refuses a value that the field cannot have, and two values: ${name}`, async () => {
      assert.match(await expectError(await service().call(`/pets?${name}=`), 'invalid_parameter'), new RegExp(name))
      const twice = `/pets?${name}=${asTexts(samplePet)[name]}&${name}=${asTexts(otherPet)[name]}`
      await expectError(await service().call(twice), 'invalid_parameter')
    })
  }
})

describe('Each filter has an index on its column and the id', () => {
  for (const engine of ENGINES) {
    it(`on ${engine.name}`, async () => {
      await using database = await engine.newDatabase()
      await (await openStore(readConfig({ database: database.url }, {}).database)).close()
      const indexes = await indexesOf(database.url)
      for (const name of FILTER_NAMES) {
        const start = `(${FIELDS[name].column}, id`
        assert.ok(
          indexes.some((index) => index.includes(start)),
          `no index starts with ${start}`,
        )
      }
    })
  }
})

async function indexesOf(url: string): Promise<string[]> {
  if (url.startsWith('sqlite:')) {
    const db = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true })
    const rows = db.prepare("SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'pets'").all()
    db.close()
    return rows.map(({ sql }) => String(sql))
  }
  const rows = await askPostgres(url, "SELECT indexdef AS sql FROM pg_indexes WHERE tablename = 'pets'")
  return rows.map(({ sql }) => String(sql))
}
