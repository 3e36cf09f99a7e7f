// No part of the service ignores a filter: for each of the table, a list holds every animal that matches, and no other.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { Petstore as Client } from '../../client/src/petstore.ts'
import { askPostgres } from '../../assurance/harness/ask-postgres.ts'
import { postgres, sqlite, type TestDatabase, type TestEngine } from '../../assurance/harness/engines.ts'
import { asTexts, otherPet, samplePet, variants } from '../../assurance/harness/sample-pet.ts'
import { readConfig } from '../../src/config.ts'
import { FILTER_NAMES, type Filters } from '../../src/contract/list-query.ts'
import { FIELDS, type NewPet, type Pet } from '../../src/contract/pets.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { PET_COLUMNS } from '../../src/store/pet-columns.ts'
import type { Store } from '../../src/store/store.ts'
import { signedIn } from '../harness/console-client.ts'
import { describeService, expectError } from '../harness/harness.ts'

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
      for (
        let path: string | undefined = `/animals?${filters.status ? '' : 'status=all&'}${parameters}`;
        path !== undefined;
      ) {
        last = (await person.get(path)).body
        shown.push(...Array.from(last.matchAll(/<th scope="row"><a href="\/animals\/(\d+)[?"]/g), ([, id = '']) => id))
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

describe('Each filter has an index', () => {
  it('on SQLite, from which alone a page is read: it covers every column', async () => {
    await using database = await newDatabase(sqlite)
    const db = new DatabaseSync(database.url.slice('sqlite:'.length), { readOnly: true })
    for (const name of FILTER_NAMES) {
      const plan = db
        .prepare(
          `EXPLAIN QUERY PLAN SELECT id, ${PET_COLUMNS.join()} FROM pets
           WHERE ${FIELDS[name].column} = ? AND id < ? ORDER BY id DESC LIMIT 20`,
        )
        .all()
        .map(({ detail }) => detail)
      assert.match(plan.join(), /^SEARCH pets USING COVERING INDEX \w+ \(\w+=\? AND id<\?\)$/, name)
    }
    db.close()
  })

  it('on PostgreSQL, on its column and the id', async () => {
    await using database = await newDatabase(postgres)
    const rows = await askPostgres(database.url, "SELECT indexdef FROM pg_indexes WHERE tablename = 'pets'")
    for (const name of FILTER_NAMES) {
      const columns = `(${FIELDS[name].column}, id)`
      assert.ok(
        rows.some(({ indexdef }) => String(indexdef).endsWith(columns)),
        `no index on ${columns}`,
      )
    }
  })
})

/** A database with the schema of the service. */
async function newDatabase(engine: TestEngine): Promise<TestDatabase> {
  const database = await engine.newDatabase()
  await (await openStore(readConfig({ database: database.url }, {}).database)).close()
  return database
}
