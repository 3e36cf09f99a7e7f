// One animal in the console: people correct it and change its status, and nobody overwrites anybody else.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { NewPet } from '../src/contract/pets.ts'
import { signedIn } from './console-client.ts'
import { countPets, describeService, makeKey, type Petstore } from './harness.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

async function addTo({ store }: Petstore, pet: Partial<NewPet> = {}): Promise<bigint> {
  const created = await store.pets.create({ ...rex, ...pet })
  assert.equal(created.outcome, 'created')
  return created.outcome === 'created' ? created.pet.id : 0n
}

describeService('An animal in the console', (service) => {
  it('has a page that can change its name, category and status, and the API shows it at once', async () => {
    const id = await addTo(service())
    const client = await signedIn(service())
    const listed = await (await service().call('/pets?limit=1')).text()
    const counts = await service().store.pets.countByStatus()
    const { location } = await client.submit(`/animals/${id}`, `/animals/${id}`, {
      name: 'Rexo',
      categoryId: '9223372036854775807',
      status: 'sold',
    })
    assert.equal(location, `/animals/${id}?changed=yes`)
    assert.match((await client.get(location)).body, /role="status">Saved\./)
    const changed = `{"id":${id},"name":"Rexo","categoryId":9223372036854775807,"status":"sold"}`
    assert.equal(await (await service().call(`/pets/${id}`)).text(), changed)
    assert.notEqual(await (await service().call('/pets?limit=1')).text(), listed)
    assert.equal(await (await service().call('/pets?limit=1&status=sold')).text(), `[${changed}]`)
    const after = await service().store.pets.countByStatus()
    assert.deepEqual([after.sold, after.available], [counts.sold + 1, counts.available - 1])
  })

  it('leaves in the security log who changed what, from what to what', async () => {
    const id = await addTo(service())
    const client = await signedIn(service())
    await client.submit(`/animals/${id}`, `/animals/${id}`, { name: 'Rexo', categoryId: '3', status: 'sold' })
    const [event] = await service().store.accounts.auditTrail(service().account.id, 1)
    assert.deepEqual(
      [event?.action, event?.via, event?.subject, event?.detail],
      ['pet.changed', 'console', `Rex (${id})`, 'Name: Rex → Rexo; Status: Available → Sold'],
    )
    assert.match(
      (await client.get('/account')).body,
      /Animal changed<\/span> <bdi[^>]*>Rex \(\d+\): Name: Rex → Rexo; Status: Available → Sold/,
    )
  })

  it('that somebody else changed meanwhile is not overwritten: what is stored is shown, and asked', async () => {
    const id = await addTo(service())
    const [one, other] = [await signedIn(service()), await signedIn(service())]
    const mine = {
      ...(await one.hiddenFields(`/animals/${id}`, `/animals/${id}`)),
      name: 'Mine',
      categoryId: '3',
      status: 'available',
    }
    await other.submit(`/animals/${id}`, `/animals/${id}`, { name: 'Rex', categoryId: '3', status: 'pending' })
    const asked = await one.post(`/animals/${id}`, mine)
    assert.equal(asked.status, 409)
    assert.match(asked.body, /Somebody else changed this animal/)
    assert.match(asked.body, /Status: <bdi>Pending</)
    assert.match(asked.body, /value="Mine"/)
    assert.deepEqual(await service().store.pets.get(id), { id, ...rex, status: 'pending' })
    const hidden = Object.fromEntries(
      [...asked.body.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)].map(([, name, value]) => [
        name,
        value,
      ]),
    )
    assert.equal((await one.post(`/animals/${id}`, { ...mine, ...hidden })).location, `/animals/${id}?changed=yes`)
    assert.deepEqual(await service().store.pets.get(id), { id, ...rex, name: 'Mine' })
  })

  it('changed by many at once ends with one change and no lost count', async () => {
    const id = await addTo(service())
    const total = await countPets(service())
    const clients = await Promise.all(Array.from({ length: 4 }, () => signedIn(service())))
    const forms = await Promise.all(clients.map((client) => client.hiddenFields(`/animals/${id}`, `/animals/${id}`)))
    const answers = await Promise.all(
      clients.map((client, index) =>
        client.post(`/animals/${id}`, { ...forms[index]!, name: `Rex ${index}`, categoryId: '3', status: 'sold' }),
      ),
    )
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [303, 409, 409, 409],
    )
    assert.equal(await countPets(service()), total)
  })

  it('keeps what was typed beside what is wrong with it, in the words of who fills it in', async () => {
    const id = await addTo(service())
    const client = await signedIn(service())
    const { status, body } = await client.submit(`/animals/${id}`, `/animals/${id}`, {
      name: ' ',
      categoryId: '1.5',
      status: 'lost',
    })
    assert.equal(status, 400)
    for (const words of [
      'Enter a name',
      'Category must be a whole number, like 3',
      'Choose one of the listed statuses',
    ])
      assert.ok(body.includes(words), words)
    assert.ok(body.includes('value="1.5"'))
    assert.deepEqual(await service().store.pets.get(id), { id, ...rex })
  })

  it('saved as it was writes nothing; a name with line breaks keeps them', async () => {
    const id = await addTo(service(), { name: 'Rex\r\nthe\nFirst' })
    const client = await signedIn(service())
    const before = await service().store.accounts.auditTrail(service().account.id, 1)
    await client.submit(`/animals/${id}`, `/animals/${id}`, {
      name: 'RextheFirst',
      categoryId: '3',
      status: 'available',
    })
    assert.deepEqual(
      (await service().store.accounts.auditTrail(service().account.id, 1))[0]?.action === 'pet.changed',
      before[0]?.action === 'pet.changed',
    )
    await client.submit(`/animals/${id}`, `/animals/${id}`, { name: 'RextheFirst', categoryId: '3', status: 'sold' })
    assert.deepEqual(await service().store.pets.get(id), {
      id,
      name: 'Rex\r\nthe\nFirst',
      categoryId: 3n,
      status: 'sold',
    })
  })

  it('is reached from the list, and by its id; one that is not there is not found', async () => {
    const id = await addTo(service())
    const client = await signedIn(service())
    assert.ok((await client.get('/animals')).body.includes(`href="/animals/${id}"`))
    assert.equal((await client.get(`/animals?id=+${id}+`)).location, `/animals/${id}`)
    for (const path of ['/animals/999999', '/animals/x', '/animals/%00', '/animals/1e0'])
      assert.equal((await client.get(path)).status, 404, path)
  })

  it('offers the categories in use', async () => {
    await addTo(service(), { categoryId: 77n })
    const { body } = await (await signedIn(service())).get('/animals/new')
    assert.match(body, /<datalist id="categoryId-suggestions">.*<option value="77">/s)
  })

  it('leaves the answer to a retried create as it was first given', async () => {
    const headers = { 'Idempotency-Key': 'kept' }
    const first = await (await service().add({ name: 'Kept', categoryId: 3 }, headers)).text()
    const id = /"id":(\d+)/.exec(first)![1]!
    await (
      await signedIn(service())
    ).submit(`/animals/${id}`, `/animals/${id}`, { name: 'Other', categoryId: '4', status: 'sold' })
    assert.equal(await (await service().add({ name: 'Kept', categoryId: 3 }, headers)).text(), first)
  })

  it('is for anyone who is signed in, as adding is', async () => {
    const id = await addTo(service())
    await makeKey(service())
    const anonymous = await fetch(`${service().url}/animals/${id}`, { redirect: 'manual' })
    assert.match(anonymous.headers.get('location') ?? '', /^\/sign-in\?next=/)
  })
})
