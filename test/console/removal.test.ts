// A manager removes an animal that was entered by mistake.
import { eventInWords } from '../../src/console/animals/animal-history.ts'
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { barePet } from '../harness/databases/sample-pet.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import type { Addition } from '../../src/store/pet-columns.ts'
import { inWords, signedInAs, signedInManager, wordsOf } from '../harness/connections/console-client.ts'
import { describeOnSqlite, expectError, type Petstore } from '../harness/harness.ts'
import { event as sampleEvent } from '../harness/databases/sample-rows.ts'

const MANY = '/animals/many'
const rex: NewPet = { ...barePet, name: 'Rex\n<i>' }
const was = inWords({ name: '"Rex\\n<i>"', status: 'Available', categoryId: '3' })

async function add({ store }: Petstore, addition?: Addition): Promise<bigint> {
  const created = await store.pets.create(rex, undefined, addition)
  assert.ok('pet' in created)
  return created.pet.id
}

describeOnSqlite('An animal that was entered by mistake', (service) => {
  it('is removed by a manager after a page that names it, and is confirmed on the list where they were', async () => {
    const id = await add(service())
    const manager = await signedInManager(service())
    const page = `/animals/${id}/remove?status=available`
    assert.ok((await manager.get(`/animals/${id}?status=available`)).body.includes(`href="${page}"`))
    const asked = (await manager.get(page)).body
    assert.ok(asked.includes('<h1>Remove 1 animal?</h1>'))
    assert.ok(wordsOf(asked).includes(`${was}; Id: ${id}`), asked)
    const { location } = await manager.submit(page, `${MANY}?status=available`)
    assert.ok(location?.startsWith('/animals?status=available&'), location!)
    assert.match((await manager.get(location!)).body, /role="status"><div>\s*<p><strong>1 animal<\/strong> removed\./)
    await expectError(await service().call(`/pets/${id}`), 'pet_not_found')
    const [event] = await service().store.accounts.auditTrail(service().account.id, 1)
    assert.deepEqual([event?.action, event?.subject, eventInWords(event!)], ['pet.removed', `Rex\n<i> (${id})`, was])
    assert.equal((await manager.get(page)).status, 404)
  })

  it('stays if it was changed since the page was opened: the list says by whom, and the page shows what it is now', async () => {
    const id = await add(service())
    const [manager, member] = [await signedInManager(service()), await signedInAs(service(), 'm@example.com')]
    const page = `/animals/${id}/remove`
    const fields = await manager.hiddenFields(page, MANY)
    await member.fillIn(`/animals/${id}`, { name: 'Rex', categoryId: '3', status: 'sold' })
    const send = async () => (await manager.get((await manager.post(MANY, fields)).location!)).body
    assert.match(
      await send(),
      /<strong>1 animal<\/strong> left alone[^]*Available → Sold<\/bdi><\/bdi> · <bdi>m@example\.com/,
    )
    assert.ok(await service().store.pets.get(id))
    const sold = inWords({ name: '"Rex"', status: 'Sold', categoryId: '3' })
    assert.ok(wordsOf((await manager.get(page)).body).includes(sold))
    await manager.submit(page, MANY)
    assert.equal(await service().store.pets.get(id), undefined)
    assert.match(await send(), /<p><\/p>\s*<p><strong>1 animal<\/strong> left alone/, 'the first answer again')
    const boss = await signedInAs(service(), 'boss@example.com')
    const { id: bossId } = (await service().store.accounts.accountByEmail('boss@example.com'))!
    await service().store.accounts.setRole({ id: bossId, role: 'member' }, 'manager', sampleEvent(service().account.id))
    const { csrf } = await boss.hiddenFields('/animals/new')
    const { location } = await boss.post(MANY, { ...fields, csrf: csrf! })
    const told = wordsOf((await boss.get(location!)).body)
    assert.ok(told.includes('left alone') && told.includes(`Removed: ${sold} · tester`), told)
    // Ticked in a list that was opened before.
    const asked = await boss.post(MANY, { ...fields, csrf: csrf!, remove: 'ask' })
    assert.match((await boss.get(asked.location!)).body, /<bdi>tester/)
    assert.equal((await boss.post(MANY, { ...fields, csrf: csrf!, shown: 'x.y' })).status, 303)
  })

  it('keeps its history: its address and the recent changes say what it was, who removed it and who added it', async () => {
    const { store, accounts, apiKey } = service()
    const [manager, member] = [await signedInManager(service()), await signedInAs(service(), 'adder@example.com')]
    const adder = (await store.accounts.accountByEmail('adder@example.com'))!
    const at = Date.parse('2026-11-01T10:00:00Z')
    for (const [addition, added] of [
      [{ at, by: adder.id }, 'adder@example.com, TIME'],
      [{ at, by: apiKey.id }, 'You, with the key test, TIME'],
      [{ at, by: undefined }, 'On the command line, TIME'],
      [undefined, 'Not recorded'],
    ] as const) {
      const page = `/animals/${await add(service(), addition)}`
      const [removal, step] = [
        await manager.hiddenFields(`${page}/remove`, MANY),
        await member.hiddenFields(page, `${page}/status`),
      ]
      await manager.post(MANY, removal)
      const gone = await manager.get(page)
      assert.equal(gone.status, 404)
      assert.ok(wordsOf(gone.body).includes('You removed this animal, TIME.'), gone.body)
      assert.ok(wordsOf(gone.body).includes(`Removed: ${was} You, TIME`), gone.body)
      assert.ok(wordsOf(gone.body).includes(`Added ${added}`), gone.body)
      // Sent twice, and a step that came too late.
      const { location } = await manager.post(MANY, removal)
      assert.match(wordsOf((await manager.get(location!)).body), /1 animal removed\./)
      assert.match((await member.post(`${page}/status`, step)).body, / removed this animal, <time/)
      const [, list = ''] = (await manager.get('/animals/changes')).body.split('<ol class="timeline">')
      const newest = wordsOf(list.split('</li>')[0]!)
      assert.ok(newest.startsWith('Removed Rex'), newest)
      assert.ok(newest.endsWith(` · ${was}${addition ? `; Added: ${added}` : ''} You, TIME`), newest)
      for (const body of [newest, gone.body, (await manager.get('/account')).body])
        assert.doesNotMatch(body, /Z acct_|Z key_/)
    }
    await accounts.remove(adder, 'console')
    assert.match(wordsOf((await manager.get('/animals/changes')).body), /Added: A deleted account, TIME/)
    const log = await store.accounts.auditTrail(service().account.id, 9)
    assert.ok(!log.some((event) => event.action === 'pet.removed' && JSON.stringify(event.data).includes('adder@')))
    for (const never of ['/animals/999999', '/animals/x'])
      assert.match((await manager.get(never)).body, /Page not found/)
  })

  it('can’t be removed by a member, who does not see the button', async () => {
    const id = await add(service())
    const member = await signedInAs(service(), 'other@example.com')
    const { body } = await member.get(`/animals/${id}`)
    assert.ok(!body.includes('/remove'))
    assert.equal((await member.get(`/animals/${id}/remove`)).status, 403)
    assert.ok(await service().store.pets.get(id))
  })
})
