// One animal in the console: people correct it and change its status.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { NewPet } from '../src/contract/pets.ts'
import { petSubject } from '../src/store/account-store.ts'
import type { Addition } from '../src/store/pet-columns.ts'
import { type ConsoleClient, hiddenIn, signedIn, signedInAs } from './console-client.ts'
import { countPets, describeService, type Petstore } from './harness.ts'
import { event } from './sample-rows.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

async function addTo({ store }: Petstore, pet: Partial<NewPet> = {}, addition?: Addition): Promise<bigint> {
  const created = await store.pets.create({ ...rex, ...pet }, undefined, addition)
  assert.equal(created.outcome, 'created')
  return created.outcome === 'created' ? created.pet.id : 0n
}

describeService('An animal in the console', (service) => {
  it('has a page that can change its name, category and status, and the API shows it at once', async () => {
    const id = await addTo(service())
    const client = await signedIn(service())
    const listed = await (await service().call('/pets?limit=1')).text()
    const counts = await service().store.pets.countByStatus()
    const typed = { name: 'Rexo', categoryId: ' 9223372036854775807 ', status: 'sold' }
    const { location } = await client.fillIn(`/animals/${id}`, typed)
    assert.equal(location, `/animals/${id}?changed=yes`)
    assert.match((await client.get(location)).body, /role="status">\s*<p>Saved\./)
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
    await client.fillIn(`/animals/${id}`, { name: 'Rexo', categoryId: '3', status: 'sold' })
    const [newest] = await service().store.accounts.auditTrail(service().account.id, 1)
    const detail = 'Name: Rex → Rexo; Status: Available → Sold'
    assert.deepEqual(
      [newest?.action, newest?.via, newest?.subject, newest?.detail],
      ['pet.changed', 'console', `Rex (${id})`, detail],
    )
    const line = new RegExp(`Animal changed</span> <span[^>]*><bdi>Rex \\(\\d+\\): ${detail}`)
    assert.match((await client.get('/account')).body, line)
  })

  it('shows who changed what and when, newest first, whatever it was called then', async () => {
    const id = await addTo(service(), { name: 'Rex (1) (2)' })
    const path = `/animals/${id}`
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'keeper@example.com')]
    await one.fillIn(path, { name: 'Max (7)', categoryId: '3', status: 'available' })
    await other.fillIn(path, { name: 'Max (7)', categoryId: '3', status: 'sold' })
    const [, list = ''] = /<ol class="timeline">(.*)<\/ol>/s.exec((await one.get(path)).body) ?? []
    const items = list.split('</li>').map((item) => item.replaceAll(/(?:<[^>]*>|\s)+/g, ' ').trim())
    assert.match(items[0]!, /^Status: Available → Sold keeper@example\.com , .*:\d\d$/)
    assert.match(items[1]!, /^Name: Rex \(1\) \(2\) → Max \(7\) You, .*:\d\d$/)
    assert.match(items[2]!, /^Added Not recorded$/)
    assert.equal(items.length, 4)
    const account = (await service().store.accounts.accountByEmail('keeper@example.com'))!
    await service().accounts.remove(account, 'console')
    assert.match((await one.get(path)).body, /Sold<\/bdi> <span class="quiet-text">A deleted account, /)
  })

  it('says by whom and when it was added, also when the account is gone or the key was revoked', async () => {
    const { store, accounts } = service()
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'adder@example.com')]
    const form = await other.fillIn('/animals/new', { name: 'Max', categoryId: '3' })
    const { secret } = await other.generateKey('Their till')
    const addWith = async (headers?: Record<string, string>) => {
      const answer = await service().add({ name: 'Max', categoryId: 3 }, headers)
      return ((await answer.json()) as { id: number }).id
    }
    const pages = {
      person: `/animals/${/added=(\d+)/.exec(form.location ?? '')![1]}`,
      key: `/animals/${await addWith({ Authorization: `Bearer ${secret}` })}`,
      ownKey: `/animals/${await addWith()}`,
      file: `/animals/${await addTo(service(), {}, { at: 1_790_000_000_000, by: undefined })}`,
      older: `/animals/${await addTo(service())}`,
    }
    const expectWords = async (client: ConsoleClient, page: keyof typeof pages, words: string) => {
      const { body } = await client.get(pages[page])
      const shown = [/<dt>Added<\/dt><dd>(.*?)<\/dd>/s, /<li>Added <span class="quiet-text">(.*?)<\/span><\/li>/s]
      for (const place of shown)
        assert.equal(
          place
            .exec(body)?.[1]
            ?.replaceAll(/<[^>]*>/g, '')
            .replace(/\d.*, \d\d:\d\d$/, 'TIME'),
          words,
        )
    }
    await expectWords(one, 'person', 'adder@example.com, TIME')
    await expectWords(other, 'person', 'You, TIME')
    await expectWords(one, 'key', 'adder@example.com, with the key Their till, TIME')
    await expectWords(one, 'ownKey', 'You, with the key test, TIME')
    await expectWords(one, 'file', 'On the command line, TIME')
    await expectWords(one, 'older', 'Not recorded')
    const adder = (await store.accounts.accountByEmail('adder@example.com'))!
    const [key] = await store.accounts.listKeys(adder.id)
    await accounts.revokeKey(key!, 'console')
    await expectWords(one, 'key', 'adder@example.com, with the key Their till, TIME')
    await accounts.remove(adder, 'console')
    await expectWords(one, 'person', 'A deleted account, TIME')
    await expectWords(one, 'key', 'A key of a deleted account, TIME')
  })

  it('shows the newest 20 changes of many, and says that they are not all', async () => {
    const id = await addTo(service())
    const client = await signedIn(service())
    const change = async (nth: number) => {
      const [from, to] = [nth, nth + 1].map((added) => ({ ...rex, categoryId: rex.categoryId + BigInt(added) }))
      const changed = { ...event(service().account.id, 'pet.changed'), subject: petSubject({ id, ...rex }) }
      await service().store.pets.update(id, from!, to!, { ...changed, detail: `Change ${nth}.` })
    }
    for (let nth = 0; nth < 20; nth += 1) await change(nth)
    const all = await client.get(`/animals/${id}`)
    assert.match(all.body, /Change 0\./)
    assert.doesNotMatch(all.body, /Only the newest/)
    await change(20)
    const { body } = await client.get(`/animals/${id}`)
    const shown = [...body.matchAll(/<li><bdi>Change (\d+)\./g)].map(([, nth]) => Number(nth))
    assert.deepEqual(
      shown,
      Array.from({ length: 20 }, (_, nth) => 20 - nth),
    )
    assert.match(body, /Only the newest 20 changes are shown/)
  })

  it('that is still being added is asked for later, by the same form, so that it is added once', async ({ mock }) => {
    const client = await signedIn(service())
    const fields = { ...(await client.hiddenFields('/animals/new')), name: 'Slow', categoryId: '3' }
    const create = mock.method(service().store.pets, 'create')
    create.mock.mockImplementationOnce(() => Promise.resolve({ outcome: 'in progress' }))
    const { status, body } = await client.post('/animals/new', fields)
    assert.equal(status, 400)
    assert.match(body, /already being processed; send it again.*value="Slow"/s)
    assert.equal(hiddenIn(body)['formId'], (fields as { formId?: string }).formId)
  })

  it('leads back to the list that the visitor came from, by Older or Newer, also after it was saved or refused', async () => {
    await service().store.pets.createMany(Array.from({ length: 45 }, () => ({ ...rex, status: 'pending' })))
    const client = await signedIn(service())
    const follow = async (address: string, link: RegExp) => {
      const [, found = ''] = link.exec((await client.get(address)).body) ?? []
      return found.replaceAll('&amp;', '&')
    }
    const [older, first, cancel] = [
      /rel="next" href="([^"]*)"/,
      /<th scope="row"><a href="([^"]*)"/,
      /href="([^"]*)">Cancel/,
    ]
    const list = await follow('/animals?status=pending', older)
    const newer = await follow(await follow(list, older), /href="([^"]*)">← Newer</)
    assert.match(newer, /[?&]newer=/)
    assert.equal(await follow(await follow(newer, first), cancel), newer)

    const page = await follow(list, first)
    assert.equal(await follow(page, cancel), list)
    const back = `href="${list.replaceAll('&', '&amp;')}"`
    const fields = await client.hiddenFields(page, page.replaceAll('&', '&amp;'))
    const wrong = await client.post(page, { ...fields, name: '', categoryId: '3', status: 'sold' })
    assert.ok(wrong.body.includes(`${back}>Cancel`))
    const unchanged = await client.post(page, { ...fields, name: 'Rex', categoryId: '3', status: 'pending' })
    assert.equal(unchanged.location, page)
    const { location } = await client.post(page, { ...fields, name: 'Rexo', categoryId: '3', status: 'sold' })
    assert.equal(location, `${page}&changed=yes`)
    assert.ok((await client.get(location)).body.includes(`Saved. <a ${back}>Back to the list</a>`))
  })

  it('changed by many at once ends with one change and no lost count', async () => {
    const path = `/animals/${await addTo(service())}`
    const total = await countPets(service())
    const clients = await Promise.all(Array.from({ length: 4 }, () => signedIn(service())))
    const forms = await Promise.all(clients.map((client) => client.hiddenFields(path)))
    const typed = { categoryId: '3', status: 'sold' }
    const answers = await Promise.all(
      clients.map((client, nth) => client.post(path, { ...forms[nth]!, ...typed, name: `Rex ${nth}` })),
    )
    const statuses = answers.map(({ status }) => String(status))
    assert.deepEqual(statuses.toSorted(), ['303', '409', '409', '409'])
    assert.equal(await countPets(service()), total)
  })

  it('saved as it was writes nothing; a name with line breaks keeps them', async () => {
    const name = 'Rex\r\nthe\nFirst'
    const id = await addTo(service(), { name })
    const client = await signedIn(service())
    const save = (status: string) => client.fillIn(`/animals/${id}`, { name: 'RextheFirst', categoryId: '3', status })
    await save('available')
    assert.deepEqual(await service().store.accounts.changesOf(id, 9), [])
    await save('sold')
    assert.deepEqual(await service().store.pets.get(id), { id, name, categoryId: 3n, status: 'sold' })
  })

  it('is reached from the list, and by its id; one that is not there is not found', async () => {
    const id = await addTo(service(), { name: 'Rex\u202E', categoryId: 77n })
    const client = await signedIn(service())
    assert.ok((await client.get('/animals')).body.includes(`href="/animals/${id}"`))
    assert.equal((await client.get(`/animals?q=+${id}+`)).location, `/animals/${id}`)
    assert.match((await client.get(`/animals/${id}`)).body, /<title>Rex\[U\+202E\] · /)
    for (const path of ['/animals/999999', '/animals/x', '/animals/%00', '/animals/1e0'])
      assert.equal((await client.get(path)).status, 404, path)
  })

  it('leaves the answer to a retried create as it was first given', async () => {
    const add = async () => (await service().add({ name: 'Kept', categoryId: 3 }, { 'Idempotency-Key': 'kept' })).text()
    const first = await add()
    const path = `/animals/${/"id":(\d+)/.exec(first)![1]}`
    await (await signedIn(service())).fillIn(path, { name: 'Other', categoryId: '4', status: 'sold' })
    assert.equal(await add(), first)
  })
})

describeService('The next step of an animal', (service) => {
  const stepOf = (id: bigint) => `/animals/${id}/status`
  const statusOf = async (id: bigint) => (await service().store.pets.get(id))?.status
  /** Takes the step that the list offers; resolves with the list that follows, and the Undo that it offers. */
  const take = async (client: ConsoleClient, id: bigint) => {
    const { location } = await client.submit('/animals', stepOf(id))
    return {
      location,
      undo: hiddenIn((await client.get(location!)).body.split('class="notice')[1]!.split('</form>')[0]!),
    }
  }

  for (const [status, words, to] of [
    ['available', 'Reserve', 'pending'],
    ['pending', 'Sell', 'sold'],
    ['sold', 'Make available', 'available'],
  ] as const)
    it(`is a button in its row, and can be undone: ${words}`, async () => {
      const id = await addTo(service(), { name: '<Rex>', status })
      const client = await signedIn(service())
      assert.match((await client.get('/animals')).body, new RegExp(`>${words}<span[^>]*> &lt;Rex&gt;</span></button>`))
      const { location, undo } = await take(client, id)
      assert.equal(await statusOf(id), to)
      const { body } = await client.get(location!)
      const confirmed = `<bdi>&lt;Rex&gt;</bdi> \\(${id}\\) is now <strong>${to[0]!.toUpperCase()}${to.slice(1)}</strong>`
      assert.match(body, new RegExp(confirmed))
      assert.equal(body.split('class="fresh"').length, 2)
      const undone = await client.post(stepOf(id), undo)
      assert.equal(await statusOf(id), status)
      assert.doesNotMatch((await client.get(undone.location!)).body, />Undo</)
      const { undo: none } = { undo: await client.post(stepOf(id), undo) }
      assert.equal(none.location, undone.location, 'sent twice it is done once')
      assert.equal((await service().store.accounts.changesOf(id, 9)).length, 2)
    })

  it('leads back to where it was taken: the page of the list, or that of the animal', async () => {
    const id = await addTo(service(), { status: 'pending' })
    const client = await signedIn(service())
    const fields = await client.hiddenFields('/animals?status=pending&q=rex', `${stepOf(id)}?status=pending&amp;q=rex`)
    const { location } = await client.post(`${stepOf(id)}?status=pending&q=rex`, fields)
    assert.match(location!, new RegExp(`^/animals\\?status=pending&q=rex&step=${id}&was=pending&since=\\d+$`))
    const onPage = await client.submit(`/animals/${id}`, stepOf(id))
    assert.match(onPage.location!, new RegExp(`^/animals/${id}\\?step=${id}&was=sold&since=`))
    assert.match((await client.get(onPage.location!)).body, />Undo</)
  })

  it('is not taken, nor undone, after a colleague has touched the animal: the page says who did what', async () => {
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'colleague@example.com')]
    const told =
      /Nothing was changed\.<\/strong> <bdi>colleague@example\.com<\/bdi> changed it first, .*: <bdi>(.*?)<\/bdi>/
    for (const [change, what, left] of [
      [{ status: 'sold' }, 'Status: Pending → Sold', 'sold'],
      [{ name: 'Rexo' }, 'Name: Rex → Rexo', 'pending'],
    ] as const) {
      const id = await addTo(service())
      const { undo } = await take(one, id)
      await other.fillIn(`/animals/${id}`, { name: 'Rex', categoryId: '3', status: 'pending', ...change })
      const stale = await one.post(stepOf(id), undo)
      assert.equal(told.exec((await one.get(stale.location!)).body)?.[1], what)
      assert.equal(await statusOf(id), left)
    }
    const id = await addTo(service())
    const opened = await one.hiddenFields('/animals', stepOf(id))
    await other.fillIn(`/animals/${id}`, { name: 'Rex', categoryId: '3', status: 'sold' })
    const { location } = await one.post(stepOf(id), opened)
    assert.match((await one.get(location!)).body, told)
    assert.equal(await statusOf(id), 'sold')
    const forged = await one.post(stepOf(id), { ...opened, from: 'sold', to: 'constructor' })
    assert.match(forged.location!, /overtaken/)
    assert.equal((await one.post('/animals/999999/status', opened)).status, 404)
  })

  it('offers to undo an own step that was sent twice, but not the same step of a colleague, also after an own change', async () => {
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'faster@example.com')]
    const id = await addTo(service())
    const opened = await one.hiddenFields('/animals', stepOf(id))
    await other.submit('/animals', stepOf(id))
    await one.fillIn(`/animals/${id}`, { name: 'Rexo', categoryId: '3', status: 'pending' })
    assert.equal((await one.post(stepOf(id), opened)).location, `/animals?step=${id}`)
    const sell = await one.hiddenFields('/animals', stepOf(id))
    const { location } = await one.post(stepOf(id), sell)
    assert.match(location!, /&was=pending&since=/)
    assert.equal((await one.post(stepOf(id), sell)).location, location)
  })

  it('keeps what a colleague changes between the look at the animal and the write', async ({ mock }) => {
    const id = await addTo(service())
    const client = await signedIn(service())
    const { pets } = service().store
    const update = pets.update.bind(pets)
    mock.method(pets, 'update').mock.mockImplementationOnce(async (...call) => {
      await update(id, rex, { ...rex, name: 'Rexo' }, event('acct_2', 'pet.changed'))
      return update(...call)
    })
    await client.submit('/animals', stepOf(id))
    assert.deepEqual(await pets.get(id), { id, ...rex, name: 'Rexo', status: 'pending' })
  })
})
