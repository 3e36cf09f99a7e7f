// Named categories in the console: people name them, choose by name, and list the animals of one.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CATEGORIES_MOST } from '../../src/contract/limits.ts'
import type { Category } from '../../src/contract/category-name.ts'
import { COUNTED_MOST } from '../../src/store/pet-counts.ts'
import { kindOf } from '../../src/store/records.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { hiddenIn, problemsIn, signedIn, signedInAs, signedInManager } from '../harness/connections/console-client.ts'
import { describeService, PASSWORD, type Petstore, startPetstore } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'

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
    assert.match(body, /role="status">Saved: <bdi>Cats<.*<tr class="fresh">.*Cats<.*>1<.*>1<.*Fish<.*>2<.*>0</s)
    const { action, subject } = (await newestEvent())!
    assert.deepEqual([action, subject], ['category.added', 'Cats (1)'])
    const page = '/categories/1'
    const form = await client.hiddenFields(page)
    const other = await signedInAs(service(), 'namer@example.com')
    assert.equal((await other.fillIn(page, { name: 'Tomcats' })).location, '/categories?saved=1')
    assert.equal((await client.post(page, { ...form, name: 'Cats' })).location, '/categories', 'left alone')
    const overtaken = await client.post(page, { ...form, name: 'Felines' })
    assert.match(
      overtaken.body,
      /<h1>Rename <bdi>Tomcats<.*it is Tomcats \(1\) already \(namer@example\.com, .* UTC\)\. Rename it again.*value="Felines"/s,
    )
    const again = await client.post(page, { ...hiddenIn(overtaken.body), name: 'Felines' })
    assert.equal(again.location, '/categories?saved=1')
    const twice = await client.post(page, { ...hiddenIn(overtaken.body), name: 'Felines' })
    assert.equal(twice.location, '/categories?saved=1', 'the form that was sent twice')
    assert.equal((await newestEvent())!.detail, '"Tomcats" → "Felines"')
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
    const free = await client.hiddenFields(NEW)
    const atOnce = ['Ants', 'Bees'].map((name) => client.post(NEW, { ...free, name, number: '' }))
    for (const { status } of await Promise.all(atOnce)) assert.equal(status, 303, 'each takes a free number')
    for (const missing of ['/categories/99', '/categories/x']) assert.equal((await client.get(missing)).status, 404)
  })

  it('that a colleague gave the same name first are not reported as saved: the form says who did', async () => {
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'first@example.com')]
    const told = /^Nothing was changed: it is (?:Bats|Night bats) \(60\) already \(first@example\.com, \d{4}-.* UTC\)/
    const compete = async (page: string, typed: Record<string, string>) => {
      const [mine, theirs] = [await one.hiddenFields(page), await other.hiddenFields(page)]
      for (const _ of ['first', 'sent twice'])
        assert.equal((await other.post(page, { ...theirs, ...typed })).location, '/categories?saved=60')
      const { status, body } = await one.post(page, { ...mine, ...typed })
      assert.equal(status, 400)
      assert.match(problemsIn(body).join(), told)
    }
    await compete(NEW, { name: 'Bats', number: '60' })
    await compete(NEW, { name: 'Bats', number: '' })
    await compete('/categories/60', { name: 'Night bats' })
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

  it('are chosen by name or number for an animal, and shown by name wherever the animal is; the ones in use are suggested first', async () => {
    const client = await signedIn(service())
    await nameAll(service(), [
      { number: 40n, name: 'Hens & <co>' },
      { number: 41n, name: 'Ducks' },
    ])
    const shown = 'Hens &amp; &lt;co&gt;'
    await addPet('Donald', 41n)
    const suggested = [...(await client.get('/animals/new')).body.matchAll(/<option value="([^"]*)"><\/option>/g)]
    assert.deepEqual(
      suggested.slice(0, 2).map(([, words]) => words),
      ['Ducks', 'Kittens'],
    )
    assert.ok(suggested.some(([, words]) => words === shown))
    const refused = await client.fillIn('/animals/new', { name: 'Berta', categoryId: 'dukcs' })
    assert.match(problemsIn(refused.body).join(), /No category is named "dukcs"\. Did you mean Ducks\?/)
    assert.match(refused.body, /value="dukcs"/)
    const { location } = await client.fillIn('/animals/new', { name: 'Berta', categoryId: 'hens & <CO>' })
    const page = `/animals/${/added=(\d+)/.exec(location!)![1]}`
    for (const path of [location!, page, '/animals?q=Berta'])
      assert.ok((await client.get(path)).body.includes(`<bdi>${shown}</bdi>`), path)
    // Two people choose another category, one by its number.
    const form = { ...(await client.hiddenFields(page)), name: 'Berta', status: 'available' }
    assert.equal((await client.post(page, { ...form, categoryId: 'HENS & <co>' })).location, page, 'left alone')
    const other = await signedInAs(service(), 'chooser@example.com')
    assert.equal(
      (await other.post(page, { ...form, ...(await other.hiddenFields(page)), categoryId: '99' })).status,
      303,
    )
    const asked = await client.post(page, { ...form, categoryId: 'Ducks' })
    assert.equal(asked.status, 409)
    assert.match(asked.body, /When you opened the form: <bdi>Hens &amp; &lt;co&gt;<.*: <bdi>99<.*value="Ducks"/s)
    const answered = { ...form, ...hiddenIn(asked.body), categoryId: 'Ducks', keep_categoryId: 'yours' }
    assert.match((await client.post(page, answered)).location!, /changed=yes/)
    assert.ok((await client.get(page)).body.includes('Category: 99 → </bdi><bdi>&quot;Ducks&quot;<'))
  })

  it('without animals are removed by managers, who can add them again; what changed meanwhile is kept, and they are found by their names', async () => {
    const member = await signedInAs(service(), 'not-a-manager@example.com')
    const manager = await signedInManager(service())
    await nameAll(service(), [
      { number: 80n, name: '<Yaks>' },
      { number: 81n, name: 'Zebus & yaks' },
    ])
    await addPet('Used', 81n)
    const page = '/categories?q=YAKS'
    const { body } = await manager.get(page)
    assert.deepEqual(
      [...body.matchAll(/<th scope="row"><a [^>]*><bdi>([^<]*)</g)].map(([, name]) => name),
      ['&lt;Yaks&gt;', 'Zebus &amp; yaks'],
    )
    assert.equal(body.split('>Remove<').length, 2, 'the one without animals')
    assert.doesNotMatch((await member.get(page)).body, />Remove</)
    const [path, fields] = ['/categories/80/remove', await manager.hiddenFields(page, '/categories/80/remove')]
    for (const _ of ['first', 'sent twice']) {
      const { location } = await manager.post(path, fields)
      assert.match((await manager.get(location!)).body, /role="status">Removed: <bdi>&lt;Yaks&gt;</)
    }
    const { action, subject } = (await newestEvent())!
    assert.deepEqual([action, subject], ['category.removed', '<Yaks> (80)'])
    assert.match(
      problemsIn((await member.fillIn(NEW, { name: 'Goats', number: '80' })).body).join(),
      /^<Yaks> \(80\) was removed: add it again under that name, without a number, or enter another number$/,
    )
    const taken = await member.fillIn('/categories/81', { name: '<YAKS>' })
    assert.match(problemsIn(taken.body).join(), /^<Yaks> \(80\) was removed: add it again/)
    assert.equal((await member.fillIn(NEW, { name: '<yaks>', number: '' })).location, '/categories?saved=80')
    await addPet('Late', 80n)
    const kept = await manager.post(path, { ...fields, shown: '<yaks>' })
    assert.match((await manager.get(kept.location!)).body, /Nothing was removed:<\/strong> <bdi>&lt;yaks&gt;</)
    assert.match((await manager.get('/categories?q=axolotl')).body, /No category matches/)
  })

  it('are created, or the one that was meant is taken, by a button beside an unknown name, for a new animal and for a stored one', async () => {
    const client = await signedIn(service())
    await nameAll(service(), [{ number: 61n, name: 'Swans' }])
    const sent = { name: 'Rex', categoryId: 'Swanz', status: 'available' }
    const refused = await client.fillIn('/animals/new', { ...sent, next: 'another' })
    const fields = hiddenIn(refused.body.split('<main')[1]!)
    assert.match(refused.body, /name="use" value="Swans".*name="create" value="yes"/s)
    const [first] = /<button[^>]*>/.exec(refused.body.split('<main')[1]!)!
    assert.doesNotMatch(first, /name=/, 'the Enter key presses none of them')
    const used = await client.post('/animals/new', { ...fields, ...sent, use: 'Swans' })
    assert.match(used.location!, /^\/animals\/new\?added=\d+&categoryId=61&/)
    const create = { ...(await client.hiddenFields('/animals/new')), ...sent, create: 'yes' }
    const numberOf = async (name: string) => (await service().store.categories.names()).numberOf(name)
    const created = await client.post('/animals/new', create)
    const [, id = ''] = /added=(\d+)/.exec(created.location!)!
    assert.equal((await client.post('/animals/new', create)).location, created.location, 'sent twice')
    assert.equal((await service().store.pets.get(BigInt(id)))?.categoryId, await numberOf('Swanz'))
    const stored = `/animals/${await addPet('Tom', 61n)}`
    const asked = await client.fillIn(stored, { ...sent, categoryId: 'Storks' })
    assert.match(asked.body, /Create the category “<bdi>Storks<\/bdi>”/)
    assert.match(
      (await client.fillIn(stored, { ...sent, categoryId: 'Storks', create: 'yes' })).location!,
      /changed=yes/,
    )
    assert.equal((await newestEvent())!.action, 'pet.changed')
    assert.notEqual(await numberOf('Storks'), undefined)
    for (const categoryId of ['', '9'.repeat(30), 'x'.repeat(101), 'a\0b']) {
      const { status, body } = await client.fillIn('/animals/new', { ...sent, categoryId, create: 'yes' })
      assert.deepEqual([status, problemsIn(body).length], [400, 1])
      assert.doesNotMatch(body, /name="create"/)
    }
  })

  it('restrict the list, its pages, steps, search and download to one of them', async () => {
    const client = await signedIn(service())
    await nameAll(service(), [{ number: 50n, name: 'Geckos' }])
    const ids = await Promise.all(Array.from({ length: 55 }, (_, nth) => addPet(`Gex ${nth}`, 50n)))
    await addPet('Gex the other', 51n)
    const list = '/animals?category=50'
    const { body } = await client.get(list)
    assert.equal(body.match(/<bdi>Gex \d+</g)?.length, 50)
    assert.match(body, /All<\/span> <span class="segment-count">55</)
    assert.match(body, /href="(\/animals\/category\?category=50)"><span[^>]*>Category: <\/span><bdi>Geckos</)
    const chooser = (await client.get('/animals/category?category=50')).body
    assert.match(chooser, /<a href="\/animals\?category=50" aria-current="true"><bdi>Geckos</)
    const elsewhere = (await client.get('/animals/category?status=available&category=51&q=gex')).body
    assert.ok(elsewhere.includes('<a href="/animals?status=available&amp;category=50&amp;q=gex" ><bdi>Geckos'))
    assert.ok(elsewhere.includes('<a href="/animals?status=available&amp;q=gex" >All categories'))
    assert.match(elsewhere, /category=51&amp;q=gex" aria-current="true"><bdi>51</)
    const [, next = ''] = /rel="next" href="([^"]*)"/.exec(body) ?? []
    const older = await client.get(next.replaceAll('&amp;', '&'))
    assert.equal(older.body.match(/<bdi>Gex \d+</g)?.length, 5)
    const step = `/animals/${ids[54]}/status?category=50`
    assert.match((await client.submit(list, step)).location!, /^\/animals\?category=50&step=/)
    assert.match((await client.get('/animals?category=50&status=sold')).body, /No animal matches/)
    const found = (await client.get('/animals?category=50&q=gex')).body
    assert.match(found, /Gex 53</)
    assert.doesNotMatch(found, /Gex the other/)
    const file = await client.get('/animals.csv?category=50&status=available')
    assert.match(file.headers.get('content-disposition')!, /"animals-available-geckos-[\d-]+\.csv"/)
    assert.equal(file.body.trim().split('\n').length, 1 + 54)
    assert.match(file.body, /,50,.*"Geckos",\n/)
    for (const wrong of ['x', '1.5']) assert.equal((await client.get(`/animals?category=${wrong}`)).status, 400)
  })
})

for (const engine of ENGINES)
  describe(`Many categories in the console, on ${engine.name}`, () => {
    it('are listed page by page, are counted up to a bound, all of them can be chosen and renamed, and there is a limit', async () => {
      await using petstore = await startPetstore({ engine })
      const names = Array.from({ length: CATEGORIES_MOST }, (_, nth) => `Kind ${String(nth).padStart(4, '0')}`)
      const rows = names.map((name, nth) => ({
        number: BigInt(nth + 1),
        name,
        name_folded: name.toLowerCase(),
        removed_at: null,
      }))
      await petstore.store.records.write(kindOf('categories'), rows)
      const animal = { name: 'Rex', categoryId: 1n, status: 'sold' } as const
      await petstore.store.pets.createMany(Array.from({ length: COUNTED_MOST + 1 }, () => animal))
      const client = await signedIn(petstore)
      assert.match((await client.get('/categories')).body, /Kind 0000<.*?data-label="Animals">1,000\+<.*1–50 of 1,000/s)
      assert.match((await client.get('/animals?category=1')).body, /Sold<\/span> <span class="segment-count">10,000\+</)
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
      assert.deepEqual(problemsIn(body), ['At most 1000 categories can have a name'])
      assert.equal((await client.fillIn('/categories/1', { name: 'Renamed' })).location, '/categories?saved=1')
    })
  })
