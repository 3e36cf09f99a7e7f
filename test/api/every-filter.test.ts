// No part of the service ignores a filter: for each of the table, a list holds every animal that matches, and no other. Which index
// each is read from: test/store/index-reads.test.ts.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Petstore as Client } from '../../client/src/petstore.ts'
import { asTexts, otherPet, samplePet, variants } from '../harness/databases/sample-pet.ts'
import { encodeCursor, FILTER_NAMES, type Filters, type ListQuery } from '../../src/contract/list-query.ts'
import { type NewPet, type Pet, renderPet } from '../../src/contract/pets.ts'
import type { Store } from '../../src/store/store.ts'
import { signedIn } from '../harness/connections/console-client.ts'
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
const asEntries = (filters: object) => Object.entries(filters).map(([name, value]) => [name, String(value)])
const matches = (pet: NewPet, filters: Filters) =>
  FILTER_NAMES.every((name) => filters[name] === undefined || pet[name] === filters[name])

const idsIn = (page: string) =>
  Array.from(page.matchAll(/<th scope="row"><a href="\/animals\/(\d+)[?"]/g), ([, id = '']) => id)

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

      for (const inShop of filters.status === undefined ? [false, true] : [false]) {
        const those = expected.filter((pet) => !inShop || pet.status !== 'sold')
        const lists = [
          [{}, those],
          [{ before: those[0]!.id }, those.slice(1)],
          [{ after: those.at(-1)!.id }, those.slice(0, -1)],
        ] as const
        for (const [place, found] of lists) {
          const query = { ...filters, ...place, inShop, limit: 1000 }
          assert.deepEqual(await store.pets.list(query), found, words)
          if (!inShop && !('after' in place))
            assert.equal((await store.pets.list(query, 'json')).json, found.map(renderPet).join(), words)
        }
      }

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
        shown.push(...idsIn(last))
        path = /rel="next" href="([^"]*)"/.exec(last)?.[1]?.replaceAll('&amp;', '&')
      }
      assert.deepEqual(shown, ids, words)
      const links = /id="by-status"[^]*?<\/nav>/.exec(last)![0].matchAll(/href="([^"]*)"/g)
      const { status: _status, ...others } = filters
      const kept = all.filter((pet) => matches(pet, others)).map(({ id }) => String(id))
      const linked = new Set<string>()
      for (const [, link = ''] of links)
        for (const id of idsIn((await person.get(link.replaceAll('&amp;', '&'))).body)) linked.add(id)
      assert.ok(linked.size > 0 && linked.isSubsetOf(new Set(kept)), `the statuses keep ${words}`)
    }
  })

  it('is not mixed up with another by a cached answer, or one that others wait for', async () => {
    const places: Partial<ListQuery>[] = [{ limit: 2 }, { limit: 3 }, { before: 9n }]
    const expected = new Map<string, string>()
    for (const query of COMBINATIONS.flatMap((filters) =>
      places.map((place) => ({ limit: 20, ...filters, ...place })),
    )) {
      const { before, ...parameters } = query
      const cursor = before === undefined ? [] : [['cursor', encodeCursor(before)]]
      const address = `/pets?${new URLSearchParams([...asEntries(parameters), ...cursor] as [string, string][]).toString()}`
      expected.set(address, `[${(await service().store.pets.list(query, 'json')).json}]`)
    }
    const check = async (address: string) =>
      assert.equal(await (await service().call(address)).text(), expected.get(address), address)
    for (const address of expected.keys()) await check(address)
    for (let times = 0; times < 3; times += 1) await Promise.all([...expected.keys()].toReversed().map(check))
  })

  for (const name of FILTER_NAMES) {
    it(`refuses a value that the field cannot have, and two values: ${name}`, async () => {
      assert.match(await expectError(await service().call(`/pets?${name}=`), 'invalid_parameter'), new RegExp(name))
      const twice = `/pets?${name}=${asTexts(samplePet)[name]}&${name}=${asTexts(otherPet)[name]}`
      await expectError(await service().call(twice), 'invalid_parameter')
    })
  }
})
