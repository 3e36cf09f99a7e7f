// Named categories in the console: people name them, choose by name, and list the animals of one.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CATEGORIES_MOST } from '../src/contract/limits.ts'
import { type Category, COUNTED_MOST } from '../src/store/category-store.ts'
import { ENGINES } from '../assurance/harness/engines.ts'
import { hiddenIn, problemsIn, signedIn, signedInAs } from './console-client.ts'
import { describeService, PASSWORD, type Petstore, startPetstore } from './harness.ts'
import { event } from './sample-rows.ts'

const NEW = '/categories/new'

async function nameAll({ store, account }: Petstore, categories: readonly Category[]): Promise<void> {
  for (const category of categories) {
    assert.equal(await store.categories.save(category, undefined, event(account.id, 'category.added')), undefined)
  }
}

describeService('Categories in the console', (service) => {
  const addPet = async (name: string, categoryId: bigint) => {
    const created = await service().store.pets.create({ name, categoryId, status: 'available' })
    return 'pet' in created ? created.pet.id : 0n
  }
  const newestEvent = async () => (await service().store.accounts.auditTrail(service().account.id, 1))[0]

  it('are added with a number or a free one, are listed with their animals, and renamed as the person saw them', async () => {
    const client = await signedIn(service())
    await addPet('Tom', 1n)
    assert.match((await client.get('/categories')).body, /No category has a name yet/)
    assert.equal((await client.fillIn(NEW, { name: ' Fish ', number: '' })).location, '/categories?saved=2')
    assert.equal((await client.fillIn(NEW, { name: 'Cats', number: ' 1 ' })).location, '/categories?saved=1')
    const { body } = await client.get('/categories?saved=1')
    assert.match(body, /role="status">Saved: <bdi>Cats \(1\)<.*Cats<.*>1<.*>1<.*Fish<.*>2<.*>0</s)
    const { action, subject } = (await newestEvent())!
    assert.deepEqual([action, subject], ['category.added', 'Cats (1)'])
    const page = '/categories/1'
    const form = await client.hiddenFields(page)
    const other = await signedInAs(service(), 'namer@example.com')
    assert.equal((await other.fillIn(page, { name: 'Tomcats' })).location, '/categories?saved=1')
    assert.equal((await client.post(page, { ...form, name: 'Cats' })).location, '/categories?saved=1', 'left alone')
    const overtaken = await client.post(page, { ...form, name: 'Felines' })
    assert.match(
      overtaken.body,
      /<h1>Rename <bdi>Tomcats<.*was renamed to the name above while you were editing.*value="Felines"/s,
    )
    const again = await client.post(page, { ...hiddenIn(overtaken.body), name: 'Felines' })
    assert.equal(again.location, '/categories?saved=1')
    const twice = await client.post(page, { ...hiddenIn(overtaken.body), name: 'Felines' })
    assert.equal(twice.location, '/categories?saved=1', 'the form that was sent twice')
    assert.equal((await newestEvent())!.detail, 'Tomcats → Felines')
    // A form that comes back after a sign-in still shows what it was opened with.
    const opened = await client.hiddenFields(page)
    const renamed = event(service().account.id, 'category.renamed')
    await service().store.categories.save({ number: 1n, name: 'Kittens' }, 'Felines', renamed)
    await service().store.accounts.purgeSessions(0, 0, 0)
    const ended = await client.post(page, { ...opened, name: 'Lions' })
    const back = await client.signIn(service().account.email, PASSWORD, ended.location!)
    const restored = await client.get(back.location!)
    const sent = await client.post(page, { ...hiddenIn(restored.body), name: 'Lions' })
    assert.match(sent.body, /<h1>Rename <bdi>Kittens<.*value="Lions"/s)
    for (const missing of ['/categories/99', '/categories/x']) assert.equal((await client.get(missing)).status, 404)
  })

  it('keep what was typed, and say at its field what is wrong with it', async () => {
    const client = await signedIn(service())
    await nameAll(service(), [
      { number: 20n, name: 'Ärzte' },
      { number: 21n, name: 'Owls' },
    ])
    const wrong: [typed: Record<string, string>, problem: RegExp][] = [
      [{ name: ' ', number: '3' }, /^Enter a name$/],
      [{ name: '12', number: '' }, /more than digits/],
      [{ name: 'ärzte', number: '30' }, /^Ärzte \(20\) has this name already$/],
      [{ name: 'Newts', number: '20' }, /^There is Ärzte \(20\) already/],
      [{ name: 'Newts', number: '1.5' }, /^Enter a whole number/],
      [{ name: 'Newts', number: '9223372036854775808' }, /^Enter a whole number/],
    ]
    for (const [typed, problem] of wrong) {
      const { status, body } = await client.fillIn(NEW, typed)
      assert.equal(status, 400)
      assert.match(problemsIn(body).join(), problem)
      for (const text of Object.values(typed)) assert.ok(body.includes(`value="${text}"`), text)
    }
    const { status, body } = await client.fillIn('/categories/21', { name: 'ÄRZTE' })
    assert.deepEqual([status, problemsIn(body)], [400, ['Ärzte (20) has this name already']])
  })

  it('are chosen by name or number for an animal, and shown by name and number wherever the animal is', async () => {
    const client = await signedIn(service())
    await nameAll(service(), [
      { number: 40n, name: 'Hens & <co>' },
      { number: 41n, name: 'Ducks' },
    ])
    const shown = 'Hens &amp; &lt;co&gt; (40)'
    assert.ok((await client.get('/animals/new')).body.includes(`<option value="${shown}">`))
    const refused = await client.fillIn('/animals/new', { name: 'Berta', categoryId: 'dukcs' })
    assert.match(problemsIn(refused.body).join(), /No category is named "dukcs"\. Did you mean Ducks\?/)
    assert.match(refused.body, /value="dukcs"/)
    const { location } = await client.fillIn('/animals/new', { name: 'Berta', categoryId: 'hens & <CO>' })
    const page = `/animals/${/added=(\d+)/.exec(location!)![1]}`
    for (const path of [location!, page, '/animals?q=Berta'])
      assert.ok((await client.get(path)).body.includes(`<bdi>${shown}</bdi>`), path)
    // Two people choose another category, one by its number.
    const form = { ...(await client.hiddenFields(page)), name: 'Berta', status: 'available' }
    assert.equal((await client.post(page, { ...form, categoryId: 'Hens & <co> (40)' })).location, page, 'left alone')
    const other = await signedInAs(service(), 'chooser@example.com')
    assert.equal(
      (await other.post(page, { ...form, ...(await other.hiddenFields(page)), categoryId: '99' })).status,
      303,
    )
    const asked = await client.post(page, { ...form, categoryId: 'Ducks' })
    assert.equal(asked.status, 409)
    assert.match(asked.body, /When you opened the form: <bdi>Hens &amp; &lt;co&gt; \(40\)<.*: <bdi>99<.*value="Ducks"/s)
    const answered = { ...form, ...hiddenIn(asked.body), categoryId: 'Ducks', keep_categoryId: 'yours' }
    assert.match((await client.post(page, answered)).location!, /changed=yes/)
    assert.ok((await client.get(page)).body.includes('Category: 99 → Ducks (41)'))
  })

  it('restrict the list, its pages, steps, search and download to one of them', async () => {
    const client = await signedIn(service())
    await nameAll(service(), [{ number: 50n, name: 'Geckos' }])
    const ids = await Promise.all(Array.from({ length: 25 }, (_, nth) => addPet(`Gex ${nth}`, 50n)))
    await addPet('Gex the other', 51n)
    const list = '/animals?category=50'
    const { body } = await client.get(list)
    assert.equal(body.match(/<bdi>Gex \d+</g)?.length, 20)
    assert.match(body, /All<\/span> <span class="segment-count">25<.*1 to 20 of 25/s)
    assert.match(body, /<option value="50" selected>Geckos \(50\)</)
    const [, next = ''] = /rel="next" href="([^"]*)"/.exec(body) ?? []
    const older = await client.get(next.replaceAll('&amp;', '&'))
    assert.equal(older.body.match(/<bdi>Gex \d+</g)?.length, 5)
    const step = `/animals/${ids[24]}/status?category=50`
    assert.match((await client.submit(list, step)).location!, /^\/animals\?category=50&step=/)
    assert.match((await client.get('/animals?category=50&status=sold')).body, /No animal matches/)
    const found = (await client.get('/animals?category=50&q=gex')).body
    assert.match(found, /Gex 23</)
    assert.doesNotMatch(found, /Gex the other/)
    const file = await client.get('/animals.csv?category=50&status=available')
    assert.match(file.headers.get('content-disposition')!, /"animals-category-50-available\.csv"/)
    assert.equal(file.body.trim().split('\n').length, 1 + 24)
    assert.match(file.body, /,50,available,"Geckos"\n/)
    assert.match((await client.get('/animals?category=51')).body, /<option value="51" selected>51</)
    for (const wrong of ['x', '1.5']) assert.equal((await client.get(`/animals?category=${wrong}`)).status, 400)
  })
})

for (const engine of ENGINES)
  describe(`Many categories in the console, on ${engine.name}`, () => {
    it('are listed page by page, are counted up to a bound, all of them can be chosen, and there is a limit', async () => {
      await using petstore = await startPetstore({ engine })
      const names = Array.from({ length: CATEGORIES_MOST }, (_, nth) => `Kind ${String(nth).padStart(4, '0')}`)
      await nameAll(
        petstore,
        names.map((name, nth) => ({ number: BigInt(nth + 1), name })),
      )
      const animal = { name: 'Rex', categoryId: 1n, status: 'sold' } as const
      await petstore.store.pets.createMany(Array.from({ length: COUNTED_MOST }, () => animal))
      const client = await signedIn(petstore)
      assert.match((await client.get('/categories')).body, /Kind 0000<.*?data-label="Animals">1,000 or more</s)
      assert.match((await client.get('/animals?category=1')).body, /Sold<\/span> <span class="segment-count">1,000\+</)
      const seen: string[] = []
      for (let path: string | undefined = '/categories'; path !== undefined;) {
        const { body } = await client.get(path)
        seen.push(...[...body.matchAll(/<th scope="row"><a [^>]*><bdi>([^<]*)</g)].map(([, name]) => name!))
        path = /rel="next" href="([^"]*)"/.exec(body)?.[1]
      }
      assert.deepEqual(seen, names)
      const form = (await client.get('/animals/new')).body
      assert.equal(form.match(/<option value="Kind /g)?.length, CATEGORIES_MOST)
      const { body } = await client.fillIn(NEW, { name: 'One more', number: '' })
      assert.deepEqual(problemsIn(body), ['At most 1,000 categories can have a name'])
    })
  })
