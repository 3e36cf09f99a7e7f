// A manager removes an animal that was entered by mistake.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { samplePet } from '../assurance/harness/sample-pet.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { signedInAs, signedInManager } from './console-client.ts'
import { describeService, expectError, type Petstore } from './harness.ts'

const rex: NewPet = { ...samplePet, name: 'Rex\n<i>', categoryId: 3n, status: 'available' }

async function add({ store }: Petstore): Promise<bigint> {
  const created = await store.pets.create(rex)
  assert.ok('pet' in created)
  return created.pet.id
}

describeService('An animal that was entered by mistake', (service) => {
  it('is removed by a manager after a page that names it, and is confirmed on the list where they were', async () => {
    const id = await add(service())
    const manager = await signedInManager(service())
    const page = `/animals/${id}/remove?status=available`
    assert.ok((await manager.get(`/animals/${id}?status=available`)).body.includes(`href="${page}"`))
    assert.match(
      (await manager.get(page)).body,
      new RegExp(
        `<h1>Remove <bdi>Rex\n&lt;i&gt;</bdi> \\(${id}\\)\\?</h1>[^]*Name: Rex\n&lt;i&gt;; Status: Available; Category: 3`,
      ),
    )
    const { location } = await manager.fillIn(page)
    assert.equal(location, '/animals?status=available&removed=yes')
    assert.match((await manager.get(location)).body, /role="status">The animal was removed\./)
    await expectError(await service().call(`/pets/${id}`), 'pet_not_found')
    const [event] = await service().store.accounts.auditTrail(service().account.id, 1)
    assert.deepEqual(
      [event?.action, event?.subject, event?.detail],
      ['pet.removed', `Rex\n<i> (${id})`, 'Name: Rex\n<i>; Status: Available; Category: 3'],
    )
    assert.equal((await manager.get(page)).status, 404)
  })

  it('stays if it was changed since the page was opened: the page shows what it is now, and asks again', async () => {
    const id = await add(service())
    const [manager, member] = [await signedInManager(service()), await signedInAs(service(), 'm@example.com')]
    const page = `/animals/${id}/remove`
    const fields = await manager.hiddenFields(page)
    await member.fillIn(`/animals/${id}`, { name: 'Rex', categoryId: '3', status: 'sold' })
    const asked = await manager.post(page, fields)
    assert.equal(asked.status, 409)
    assert.match(asked.body, /role="alert"><strong>Nothing was removed\.[^]*Name: Rex; Status: Sold; Category: 3/)
    assert.ok(await service().store.pets.get(id))
    assert.equal((await manager.fillIn(page)).status, 303)
    assert.equal((await manager.post(page, fields)).status, 404)
  })

  it('can’t be removed by a member, who does not see the button', async () => {
    const id = await add(service())
    const member = await signedInAs(service(), 'other@example.com')
    const { body } = await member.get(`/animals/${id}`)
    assert.ok(!body.includes('/remove'))
    const { csrf = '' } = await member.hiddenFields(`/animals/${id}`)
    assert.equal((await member.post(`/animals/${id}/remove`, { csrf })).status, 403)
    assert.ok(await service().store.pets.get(id))
  })
})
