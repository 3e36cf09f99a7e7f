// Recent changes in the console: who added, changed and removed which animal, newest first.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { CategoryNames } from '../../src/contract/category-name.ts'
import { describePet } from '../../src/contract/pet-words.ts'
import { aboutPet, type PetData } from '../../src/store/account-store.ts'
import { inWords, signedIn, signedInAs, signedInManager, wordsOf } from '../harness/connections/console-client.ts'
import { describeOnSqlite } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'

const PAGE = '/animals/changes'

/** What the entries say, without their times. */
function entriesIn(body: string): string[] {
  const lists = Array.from(body.matchAll(/<ol class="timeline">(.*?)<\/ol>/gs), ([, list]) => list!)
  return lists.flatMap((list) => list.split('</li>').slice(0, -1)).map(wordsOf)
}

const olderIn = (body: string) => /rel="next" href="([^"]*)"/.exec(body)?.[1]?.replaceAll('&amp;', '&')

describeOnSqlite('Recent changes', (service) => {
  it('name who added, changed and removed what, newest first, and lead to each animal', async () => {
    const { store, account, apiKey } = service()
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'keeper@example.com')]
    const add = async (name: string) => {
      const { location } = await one.fillIn('/animals/new', { name, categoryId: '3' })
      return BigInt(/added=(\d+)/.exec(location ?? '')![1]!)
    }
    const [otto, gone] = [await add('Otto <1>'), await add('Gone')]
    await service().add({ name: 'By key', categoryId: 3 })
    await other.fillIn(`/animals/${otto}`, { name: 'Otto (2)', categoryId: '3', status: 'sold' })
    await other.fillIn(`/animals/${gone}`, { name: 'Gone', categoryId: '3', status: 'sold' })
    const pet = (await store.pets.get(gone))!
    const removed = await store.pets.remove(gone, pet, { ...event(account.id), at: Date.now() })
    assert.equal(removed.outcome, 'removed')

    const { body } = await one.get(PAGE)
    const byKey = (await store.pets.list({ limit: 1 }))[0]!.id
    assert.deepEqual(entriesIn(body), [
      `Removed Gone (${gone}) · ${describePet(pet, new CategoryNames())}; Added: You, TIME You, TIME`,
      `Sold Gone (${gone}) · Status: Available → Sold keeper@example.com, TIME`,
      `Sold Otto <1> (${otto}) · Name: "Otto <1>" → "Otto (2)"; Status: Available → Sold keeper@example.com, TIME`,
      `Added By key (${byKey}) You, with the key ${apiKey.name}, TIME`,
      `Added Otto (2) (${otto}) You, TIME`,
    ])
    const links = [...body.matchAll(/<\/span> <a href="([^"]*)"><bdi>/g)].map(([, address]) => address)
    assert.deepEqual(
      links,
      [gone, gone, otto, byKey, otto].map((id) => `/animals/${id}`),
    )
    assert.match((await one.get('/animals')).body, new RegExp(`href="${PAGE}"`), 'from the animals')
  })

  it('are filtered by the person who made them in the console; a stranger is found no more than one who made none', async () => {
    const { store, account } = service()
    const client = await signedIn(service())
    await signedInAs(service(), 'idle@example.com')
    const idOf = async (email: string) => (await store.accounts.accountByEmail(email))!.id
    const by = async (person: string) => (await client.get(`${PAGE}?person=${encodeURIComponent(person)}`)).body
    const keeper = await by(` ${await idOf('keeper@example.com')} `)
    assert.equal(entriesIn(keeper).length, 2)
    for (const entry of entriesIn(keeper)) assert.match(entry, /keeper@example\.com, TIME$/)
    const options = (body: string) => body.match(/<option.*?<\/option>/g)
    const shown = [
      `<option value="" >Everyone</option>`,
      `<option value="${await idOf('keeper@example.com')}" selected>keeper@example.com</option>`,
      `<option value="${account.id}" >You</option>`,
    ]
    assert.deepEqual(options(keeper)?.toSorted(), shown.toSorted(), 'who has made none is no choice')
    const without = (body: string) => body.replaceAll(/acct_\w+|nobody|<input type="hidden"[^>]*>/g, '')
    assert.equal(without(await by(await idOf('idle@example.com'))), without(await by('nobody')))
    assert.deepEqual(entriesIn(await by('a\0b')), [])
  })

  it('come page by page, each of them once, for everybody and for one person, and back to the newest', async () => {
    const { store, account } = service()
    const client = await signedIn(service())
    await store.pets.createMany(Array.from({ length: 25 }, () => samplePet))
    for (let nth = 0; nth < 25; nth += 1)
      await store.accounts.appendEvent({
        ...event(account.id, 'pet.changed'),
        at: Date.now(),
        ...aboutPet({ ...samplePet, id: 1n }),
        detail: `Change ${nth}`,
      })
    const pagesOf = async (query: string) => {
      const pages: string[] = []
      for (let next: string | undefined = `${PAGE}${query}`; next !== undefined; next = olderIn(pages.at(-1)!))
        pages.push((await client.get(next)).body)
      return pages
    }
    const all = await pagesOf('')
    assert.deepEqual(
      all.map((body) => entriesIn(body).length),
      [20, 20, 15],
    )
    const own = await pagesOf(`?person=${account.id}`)
    const changes = own.flatMap(entriesIn).filter((entry) => entry.includes('Change '))
    assert.equal(new Set(changes).size, 25)
    const newest = /href="([^"]*)">← Newest/.exec(own.at(-1)!)?.[1]
    assert.equal(newest, `${PAGE}?person=${account.id}`)
    assert.match(all.at(-1)!, /These are the oldest/)
  })

  it('have no page at a place that no page has named', async () => {
    const client = await signedIn(service())
    for (const from of [
      '',
      'x',
      '1.2',
      'AQAAAAAAAAAB',
      'AQAAAAAAAAAB.AQAAAAAAAAAB',
      'AQAAAAAAAAAB.AQAAAAAAAAAB.AQAAAAAAAAAB.AQAAAAAAAAAB',
      'AgAAAAAAAAAB.',
      '\0.\0',
    ]) {
      const { status, body } = await client.get(`${PAGE}?from=${encodeURIComponent(from)}`)
      assert.equal(status, 400, from)
      assert.match(body, /This page of the history does not exist\./)
    }
  })
})

describeOnSqlite('The history of an animal', (service) => {
  const FORGED = 'Rex; Status: Available → Sold; "; Status: Available → Sold; x'

  it('shows the former name before the new one, also of names that are written from right to left', async () => {
    const keeper = await signedIn(service())
    const { id } = (await (await service().add({ name: 'א', categoryId: 3 })).json()) as { id: number }
    await keeper.fillIn(`/animals/${id}`, { name: 'ב', categoryId: '3', status: 'available' })
    const names = '<bdi>&quot;א&quot;</bdi><bdi> → </bdi><bdi>&quot;ב&quot;</bdi>'
    for (const page of [PAGE, `/animals/${id}`]) assert.ok((await keeper.get(page)).body.includes(names), page)
  })

  it('takes no name for another field: not as a step, not as who was first, not as who added it', async () => {
    const { store, account } = service()
    const [manager, keeper] = [await signedInManager(service()), await signedInAs(service(), 'keeper@example.com')]
    const forger = await signedInAs(service(), 'forger@example.com')
    const created = await store.pets.create({ name: 'Rex', categoryId: 3n, status: 'available' })
    const id = 'pet' in created ? created.pet.id : 0n
    const page = `/animals/${id}`
    const opened = await manager.hiddenFields('/animals', `${page}/status`)
    await keeper.fillIn(page, { name: 'Rex', categoryId: '3', status: 'pending' })
    await forger.fillIn(page, { name: FORGED, categoryId: '3', status: 'pending' })
    const [newest] = entriesIn((await manager.get(PAGE)).body)
    assert.equal(newest, `Changed Rex (${id}) · Name: "Rex" → ${JSON.stringify(FORGED)} forger@example.com, TIME`)
    const late = await manager.post(`${page}/status`, opened)
    assert.match((await manager.get(late.location!)).body, /<bdi>keeper@example\.com<\/bdi> changed it first/)

    const category = { number: 3n, name: `Cats; Added: 2026-01-01T00:00:00.000Z ${account.id}` }
    await store.categories.save(category, undefined, event('', 'category.added'))
    await manager.submit(`${page}/remove`, '/animals/many')
    const [removal] = entriesIn((await manager.get(PAGE)).body)
    const was = inWords({ name: JSON.stringify(FORGED), status: 'Reserved', categoryId: `"${category.name}"` })
    assert.ok(removal!.endsWith(` · ${was} You, TIME`))
    assert.match((await manager.get(page)).body, /Added <span class="quiet-text">Not recorded</)
  })
})

describeOnSqlite('Recent changes by day', (service) => {
  it('stand under their day, in their order, each with a mark for what it means', async () => {
    const { store, account } = service()
    const client = await signedIn(service())
    const at = Date.parse('2026-11-15T23:59:59Z')
    await store.pets.create(samplePet, undefined, { at, by: account.id })
    await store.pets.createMany([samplePet])
    await store.pets.create(samplePet, undefined, { at: at + 1000, by: account.id })
    const changes: PetData[] = [
      { from: { status: 'available' }, to: { status: 'pending' } },
      { from: { name: 'Status: Sold', status: 'pending' }, to: { name: 'Rex', status: 'available' } },
      { from: { name: 'Rex' }, to: { name: 'Otto; Status: Sold' } },
    ]
    for (const data of changes)
      await store.accounts.appendEvent({
        ...event(account.id, 'pet.changed'),
        at: at + 2000,
        subject: 'Rex (1)',
        data,
      })
    await store.accounts.appendEvent({ ...event(account.id, 'pet.removed'), at: at + 3000, subject: 'Rex (1)' })
    const seen = (await client.get(PAGE)).body.matchAll(/<h2>([^<]*)<|class="mark (\w+)">(\w+)</g)
    assert.deepEqual(
      Array.from(seen, ([, day, kind, words]) => day ?? `${kind} ${words}`),
      [
        '16 November 2026',
        'bad Removed',
        'changed Changed',
        'available Available',
        'pending Reserved',
        'good Added',
        'good Added',
        '15 November 2026',
        'good Added',
      ],
    )
  })
})
