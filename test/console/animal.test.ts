// One animal in the console: people correct it and change its status.
import { ROWS } from '../../src/console/animals/animal-addresses.ts'
import { eventInWords } from '../../src/console/animals/animal-history.ts'
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { encodeCursor } from '../../src/contract/list-query.ts'
import { STATUS_WORDS } from '../../src/contract/pet-words.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import type { Addition } from '../../src/store/pet-columns.ts'
import {
  type ConsoleClient,
  hiddenIn,
  inWords,
  signedIn,
  signedInAs,
  wordsOf,
} from '../harness/connections/console-client.ts'
import { describeOnSqlite, makeAccount, PASSWORD, type Petstore } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

async function addTo({ store }: Petstore, pet: Partial<NewPet> = {}, addition?: Addition): Promise<bigint> {
  const created = await store.pets.create({ ...rex, ...pet }, undefined, addition)
  assert.equal(created.outcome, 'created')
  return created.outcome === 'created' ? created.pet.id : 0n
}

describeOnSqlite('An animal in the console', (service) => {
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

  it('leaves in the audit trail and the changes who changed what, from what to what, and nothing in the security log', async () => {
    const id = await addTo(service())
    const client = await signedIn(service())
    await client.fillIn(`/animals/${id}`, { name: 'Rexo', categoryId: '3', status: 'sold' })
    const [newest] = await service().store.accounts.auditTrail(service().account.id, 1)
    const detail = 'Name: "Rex" → "Rexo"; Status: Available → Sold'
    assert.deepEqual(
      [newest?.action, newest?.via, newest?.subject, eventInWords(newest!)],
      ['pet.changed', 'console', `Rex (${id})`, detail],
    )
    assert.ok(wordsOf((await client.get('/animals/changes')).body).includes(`Rex (${id}) · ${detail}`))
    assert.ok(!(await client.get('/account')).body.includes(`Rex (${id})`))
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
    assert.match(items[1]!, /^Name: &quot;Rex \(1\) \(2\)&quot; → &quot;Max \(7\)&quot; You, .*:\d\d$/)
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
      await service().store.pets.update(id, from!, to!, event(service().account.id))
    }
    for (let nth = 0; nth < 20; nth += 1) await change(nth)
    const all = await client.get(`/animals/${id}`)
    assert.match(all.body, /Category: 3 → 4</)
    assert.doesNotMatch(all.body, /Only the newest/)
    await change(20)
    const { body } = await client.get(`/animals/${id}`)
    const shown = [...body.matchAll(/<li><bdi>Category: (\d+) → /g)].map(([, nth]) => Number(nth))
    assert.deepEqual(
      shown,
      Array.from({ length: 20 }, (_, nth) => 23 - nth),
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

  it('leads back to the list that the visitor came from, by Older or Newer, also after it was saved or refused; Cancel stays on the page', async () => {
    await service().store.pets.createMany(Array.from({ length: 3 * ROWS }, () => ({ ...rex, status: 'pending' })))
    const client = await signedIn(service())
    const follow = async (address: string, link: RegExp) => {
      const [, found = ''] = link.exec((await client.get(address)).body) ?? []
      return found.replaceAll('&amp;', '&')
    }
    const [older, first, animals] = [
      /rel="next" href="([^"]*)"/,
      /<th scope="row"><a href="([^"]*)"/,
      /class="back"><a href="([^"]*)"/,
    ]
    const list = await follow('/animals?status=pending', older)
    const newer = await follow(await follow(list, older), /href="([^"]*)">← Newer</)
    assert.match(newer, /[?&]newer=/)
    assert.equal(await follow(await follow(newer, first), animals), newer)

    const page = await follow(list, first)
    assert.equal(await follow(page, animals), list)
    const back = `href="${list.replaceAll('&', '&amp;')}"`
    const fields = await client.hiddenFields(page, page.replaceAll('&', '&amp;'))
    const wrong = await client.post(page, { ...fields, name: '', categoryId: '3', status: 'sold' })
    assert.ok(wrong.body.includes(`<p class="back"><a ${back}`))
    assert.ok(wrong.body.includes(`href="${page.replaceAll('&', '&amp;')}">Cancel`))
    const unchanged = await client.post(page, { ...fields, name: 'Rex', categoryId: '3', status: 'pending' })
    assert.equal(unchanged.location, page)
    const { location } = await client.post(page, { ...fields, name: 'Rexo', categoryId: '3', status: 'sold' })
    assert.equal(location, `${page}&changed=yes`)
    assert.ok((await client.get(location)).body.includes(`Saved. <a ${back}>Back to the list</a>`))
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

describeOnSqlite('The next step of an animal', (service) => {
  const stepOf = (id: bigint) => `/animals/${id}/status`
  const statusOf = async (id: bigint) => (await service().store.pets.get(id))?.status
  /** Takes the step that the list offers; resolves with the list that follows, and the Undo that it offers. */
  const take = async (client: ConsoleClient, id: bigint, to?: NewPet['status']) => {
    const form = `${stepOf(id)}?status=all`
    const { location } = await client.submit('/animals?status=all', form, to && { step: `${await statusOf(id)}.${to}` })
    return { location, undo: await client.hiddenFields(location!, form) }
  }

  for (const [status, words, to] of [
    ['available', 'Reserve', 'pending'],
    ['pending', 'Sell', 'sold'],
    ['pending', 'Release', 'available'],
    ['sold', 'Back in the shop', 'available'],
  ] as const)
    it(`is a button in its row, and can be undone: ${words}`, async () => {
      const id = await addTo(service(), { name: '<Rex>', status })
      const client = await signedIn(service())
      assert.match(
        (await client.get('/animals?status=all')).body,
        new RegExp(`>${words}<span[^>]*> &lt;Rex&gt;</span></button>`),
      )
      const { location, undo } = await take(client, id, to)
      assert.equal(await statusOf(id), to)
      const { body } = await client.get(location!)
      const confirmed = `<bdi>&lt;Rex&gt;</bdi> \\(${id}\\) is now <strong>${STATUS_WORDS[to]}</strong>`
      assert.match(body, new RegExp(confirmed))
      assert.equal(body.split('class="fresh"').length, 2)
      const undone = await client.post(stepOf(id), undo)
      assert.equal(await statusOf(id), status)
      assert.doesNotMatch((await client.get(undone.location!)).body, />Undo</)
      assert.equal((await client.post(stepOf(id), undo)).location, undone.location, 'sent twice it is done once')
      assert.equal((await service().store.accounts.changesOf(id, 9)).length, 2)
    })

  it('says in the list and on its page by whom an animal is reserved, and since when', async () => {
    const { store, account } = service()
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'reserver@example.com')]
    const categoryId = 55n
    const at = Date.parse('2026-03-05T10:00:00Z')
    const added = await addTo(service(), { categoryId, status: 'pending' }, { at, by: account.id })
    const [taken, ticked, busy] = await Promise.all(
      [1, 2, 3].map(() => addTo(service(), { categoryId }, { at, by: account.id })),
    )
    for (const id of [taken, busy]) await take(other, id!, 'pending')
    const { csrf, formId } = await other.hiddenFields('/animals?category=55', '/animals/many?category=55')
    const shown = /value="(\d+\.[^"]*)" form="many"/g
    const { body } = await other.get('/animals?category=55')
    const tokens = [...body.matchAll(shown)].map(([, token]) => ['shown', token!])
    const fields = [
      ['csrf', csrf!],
      ['formId', formId!],
      ['status', 'pending'],
      ['pick', String(ticked)],
    ]
    await other.postAll('/animals/many', [...fields, ...tokens])
    const rename = async (id: bigint, count: number) => {
      for (let nth = 0; nth < count; nth += 1) {
        const pet = (await store.pets.get(id))!
        await store.pets.update(id, pet, { ...pet, name: `"status":"pending" ${nth}` }, { ...event(account.id), at })
      }
    }
    await Promise.all([rename(added, 3), rename(taken!, 3), rename(busy!, 25)])
    const rows = (await one.get('/animals?category=55')).body.split('<tr')
    const by = (id: bigint) => {
      const row = rows.find((each) => each.includes(`value="${id}"`)) ?? ''
      return wordsOf(/<small>(.*?)<\/small>/s.exec(row)?.[1] ?? '')
    }
    const keeper = 'TIME · reserver@example.com'
    assert.deepEqual([added, taken!, ticked!, busy!].map(by), ['TIME · You', keeper, keeper, ''])
    assert.match(wordsOf((await one.get(`/animals/${taken}`)).body), /Reserved TIME · reserver@example\.com/)
    const release = await other.submit(`/animals/${taken}`, stepOf(taken!), { step: 'pending.available' })
    assert.doesNotMatch(wordsOf((await one.get(release.location!)).body), /Reserved TIME/)
  })

  it('leads back to its row on a page of newer animals that has become the first one, and to one that the search no longer finds', async () => {
    const [oldest] = await Promise.all([addTo(service(), { categoryId: 66n }), addTo(service(), { categoryId: 66n })])
    const client = await signedIn(service())
    for (const [query, shown] of [
      [`category=66&newer=${encodeCursor(oldest - 1n)}`, 2],
      ['category=66&q=rex&status=available', 1],
    ] as const) {
      const fields = await client.hiddenFields('/animals?category=66', `${stepOf(oldest)}?category=66`)
      const { location } = await client.post(`${stepOf(oldest)}?${query}`, fields)
      const answer = await client.get(location!)
      const { body } = answer.location === null ? answer : await client.get(answer.location)
      assert.match(body, new RegExp(`<tr class="fresh">.*/animals/${oldest}[?"].*>Undo<`, 's'))
      assert.equal(body.split('<tr ').length - 1, shown + Number(query.includes('available')))
      const [{ at } = { at: 0 }] = await service().store.accounts.changesOf(oldest, 1)
      await client.post(stepOf(oldest), { ...fields, step: `pending.available.${at}` })
      assert.equal(await statusOf(oldest), 'available')
    }
  })

  it('leads back to where it was taken: the page of the list, or that of the animal', async () => {
    const id = await addTo(service(), { status: 'pending' })
    const client = await signedIn(service())
    const fields = await client.hiddenFields('/animals?status=pending&q=rex', `${stepOf(id)}?status=pending&amp;q=rex`)
    const { location } = await client.post(`${stepOf(id)}?status=pending&q=rex`, fields)
    assert.match(
      location!,
      new RegExp(`^/animals\\?status=pending&q=rex&step=${id}&was=pending&since=\\d+#animal-${id}$`),
    )
    const onPage = await client.submit(`/animals/${id}`, stepOf(id))
    assert.match(onPage.location!, new RegExp(`^/animals/${id}\\?step=${id}&was=sold&since=`))
    assert.match((await client.get(onPage.location!)).body, />Undo</)
  })

  it('is not taken, nor undone, after a colleague has touched the animal: the page says who did what', async () => {
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'colleague@example.com')]
    const told =
      /Nothing was changed\.<\/strong> <bdi>colleague@example\.com<\/bdi> changed it first, <time.*?<\/time>: (.*?)\.<\/p>/
    for (const [change, what, left] of [
      [{ status: 'sold' }, 'Status: Reserved → Sold', 'sold'],
      [{ name: 'Rexo' }, 'Name: &quot;Rex&quot; → &quot;Rexo&quot;', 'pending'],
    ] as const) {
      const id = await addTo(service())
      const { undo } = await take(one, id)
      await other.fillIn(`/animals/${id}`, { name: 'Rex', categoryId: '3', status: 'pending', ...change })
      const stale = await one.post(stepOf(id), undo)
      assert.equal(told.exec((await one.get(stale.location!)).body)?.[1]?.replaceAll(/<[^>]*>/g, ''), what)
      assert.equal(await statusOf(id), left)
    }
    const id = await addTo(service())
    const opened = await one.hiddenFields('/animals', stepOf(id))
    await other.fillIn(`/animals/${id}`, { name: 'Rex', categoryId: '3', status: 'sold' })
    const { location } = await one.post(stepOf(id), opened)
    assert.match((await one.get(location!)).body, told)
    assert.equal(await statusOf(id), 'sold')
    const forged = await one.post(stepOf(id), { ...opened, step: 'sold.constructor' })
    assert.match(forged.location!, /overtaken/)
    assert.equal((await one.post('/animals/999999/status', opened)).status, 404)
  })

  it('whose session had ended is asked for after the sign-in, whoever signs in, and taken only by a press, if the animal is as it was', async () => {
    const colleague = await makeAccount(service(), 'next@till.example')
    /** Presses when the session has ended; resolves with the page after the sign-in. */
    const pressLate = async (path: string, fields: Record<string, string>, email = service().account.email) => {
      const client = await signedIn(service())
      const { csrf = '' } = await client.hiddenFields('/keys', '/sign-out')
      await service().store.accounts.purgeSessions(0, 0, 0)
      const ended = await client.post(path, { ...fields, csrf })
      assert.match((await client.get(ended.location!)).body, /nothing was saved yet/)
      const { location } = await client.signIn(email, PASSWORD, ended.location!)
      return { client, ...(await client.get(location!)) }
    }
    for (const [email, fields, question, button, to] of [
      [service().account.email, { step: 'available.sold' }, 'Sell', 'Sell', 'sold'],
      [colleague.email, { step: 'available.pending' }, 'Reserve', 'Reserve', 'pending'],
      [
        service().account.email,
        { step: 'sold.available.5' },
        'Set back to Available:',
        'Set back to Available',
        undefined,
      ],
    ] as const) {
      const [status] = fields.step.split('.') as [NewPet['status']]
      const id = await addTo(service(), { name: '<Rex>', status })
      const path = `${stepOf(id)}?status=all`
      const asked = await pressLate(path, { ...fields, on: 'list' }, email)
      const said = `<h1>Nothing was done: ${question} <bdi>&lt;Rex&gt;</bdi>\\?</h1>.*Your session had ended.*>${button}</button>`
      assert.match(asked.body, new RegExp(said, 's'))
      assert.equal(await statusOf(id), status)
      const pressed = await asked.client.post(path, hiddenIn(asked.body.split('<main')[1]!))
      assert.equal(await statusOf(id), to ?? 'sold', 'an Undo is for who took the step')
      assert.match(pressed.location!, to ? new RegExp(`^/animals\\?status=all&step=${id}&was=`) : /overtaken/)
    }
    const id = await addTo(service())
    await (await signedInAs(service(), 'quick@till.example')).submit('/animals', stepOf(id))
    const changed = await pressLate(stepOf(id), { step: 'available.sold', on: 'list' })
    assert.match(changed.location!, /overtaken/)
    assert.match(
      (await changed.client.get(changed.location!)).body,
      /Nothing was changed\..*quick@till\.example.*Available → Reserved/s,
    )
    assert.equal((await changed.client.get(stepOf(id))).location, `/animals/${id}`, 'opened by hand it asks nothing')
  })

  it('that is undone by a form which is sent twice at once is reported as undone to both', async () => {
    const { accounts } = service().store
    const client = await signedIn(service())
    const id = await addTo(service())
    const { undo } = await take(client, id)
    const changesOf = accounts.changesOf.bind(accounts)
    let first: string | null | undefined
    // The second one reads the animal before the first one changes it, and the changes after that.
    accounts.changesOf = async (...query) => {
      accounts.changesOf = changesOf
      first = (await client.post(stepOf(id), undo)).location
      return changesOf(...query)
    }
    assert.equal((await client.post(stepOf(id), undo)).location, first)
    assert.equal(await statusOf(id), 'available')
  })

  it("is not undone after a later change of one's own: a rename, or other steps that led to the same status", async () => {
    const client = await signedIn(service())
    for (const later of [[{ name: 'Rexo' }], [{ status: 'sold' }, { status: 'pending' }]]) {
      const id = await addTo(service())
      const { location, undo } = await take(client, id)
      for (const change of later)
        await client.fillIn(`/animals/${id}`, { name: 'Rex', categoryId: '3', status: 'pending', ...change })
      assert.doesNotMatch((await client.get(location!)).body, />Undo</)
      const stale = await client.post(stepOf(id), undo)
      assert.match((await client.get(stale.location!)).body, /Nothing was changed\./)
      assert.equal(await statusOf(id), 'pending')
    }
  })

  it('that a colleague took first, also in the same moment, is not reported as done: the page says who did and when', async () => {
    const emails = [service().account.email, 'faster@example.com']
    const clients = [await signedIn(service()), await signedInAs(service(), emails[1]!)]
    const compete = async (id: bigint, send: () => Promise<(string | null)[]>) => {
      const [at, { body }] = [await send(), await clients[0]!.get(`/animals/${id}`)]
      assert.equal(body.split('Status: Available → Reserved').length, 2, 'taken once')
      const winner = at.findIndex((location) => location!.includes('since='))
      const told = (await clients[1 - winner]!.get(at[1 - winner]!)).body
      const first = `Nothing was changed\\.</strong> <bdi>${emails[winner]}</bdi> changed it first, <time.*: <bdi>Status: Available → Reserved`
      assert.match(told, new RegExp(first))
      assert.doesNotMatch(told, /is now <strong>|>Undo</)
      return { winner, location: at[1 - winner]! }
    }
    const openAll = (id: bigint) => Promise.all(clients.map((client) => client.hiddenFields('/animals', stepOf(id))))
    for (let race = 0; race < 2; race += 1) {
      const id = await addTo(service())
      const forms = await openAll(id)
      const sendAll = clients.map((client, nth) => async () => (await client.post(stepOf(id), forms[nth]!)).location)
      await compete(id, () => Promise.all(sendAll.map((send) => send())))
    }
    // Whatever happens to the animal before and after the second press, those who took the step are named.
    const id = await addTo(service())
    const [mine, theirs] = await openAll(id)
    const { location } = await compete(id, async () => {
      const first = (await clients[1]!.post(stepOf(id), theirs!)).location
      await clients[0]!.fillIn(`/animals/${id}`, { name: 'Rexo', categoryId: '3', status: 'pending' })
      assert.equal(
        (await clients[1]!.post(stepOf(id), theirs!)).location,
        `/animals?step=${id}#animal-${id}`,
        'their own',
      )
      return [(await clients[0]!.post(stepOf(id), mine!)).location, first]
    })
    await service().accounts.remove((await service().store.accounts.accountByEmail(emails[1]!))!, 'console')
    assert.match((await clients[0]!.get(location)).body, /A deleted account changed it first/)
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

describeOnSqlite('Animals that are added one after the other', (service) => {
  const addOne = async (client: ConsoleClient, page: string, fields: Record<string, string>) => {
    const action = page.split('&')[0]!
    const { location } = await client.submit(page, action, { ...fields, next: 'another' })
    return location!
  }
  const listed = (body: string) => [...body.matchAll(/<li><span><strong><bdi>([^<]+)</g)].map(([, name]) => name)

  it('keep category and status, and are listed below the form; each can be undone while nobody has changed it', async () => {
    const client = await signedIn(service())
    let page = '/animals/new'
    page = await addOne(client, page, { name: 'First', categoryId: '7', status: 'pending' })
    const fields = { categoryId: '7', status: 'pending' }
    assert.match(page, /^\/animals\/new\?added=\d+&categoryId=7&status=pending$/)
    for (const name of ['Second', 'Third']) page = await addOne(client, page, { ...fields, name })
    const { body } = await client.get(page)
    assert.match(body, /name="name" type="text" value=""[^>]*autofocus/)
    assert.match(body, /name="categoryId" type="text" value="7"/)
    assert.match(body, /<option value="pending" selected>/)
    assert.match(body, /role="status"><bdi>Third added \(\d+\)<\/bdi>/)
    assert.deepEqual(listed(body), ['Third', 'Second', 'First'])
    const ids = /added=([\d.]+)/.exec(page)![1]!.split('.')
    const query = page.split('?')[1]!
    const undo = (id: string) => `/animals/${id}/undo?${query}`
    const csrf = await client.hiddenFields(page, undo(ids[1]!).replaceAll('&', '&amp;'))
    const undone = await client.post(undo(ids[1]!), csrf)
    assert.match(undone.location!.replace(page, ''), /^&undone=Second&signed=[\w-]{43}$/)
    const afterwards = (await client.get(undone.location!)).body
    assert.match(afterwards, /role="status"><bdi>Second is no longer in the list<\/bdi>/)
    assert.deepEqual(listed(afterwards), ['Third', 'First'])
    assert.equal(await service().store.pets.get(BigInt(ids[1]!)), undefined)
    const [newest] = await service().store.accounts.changesOf(BigInt(ids[1]!), 1)
    const was = inWords({ name: '"Second"', status: 'Reserved', categoryId: '7' })
    assert.equal(eventInWords(newest!), was)
    assert.equal(newest!.data?.added?.by, service().account.id)
    const other = await signedInAs(service(), 'changer@example.com')
    await other.fillIn(`/animals/${ids[0]}`, { name: 'Third', categoryId: '8', status: 'pending' })
    const stale = await client.post(undo(ids[0]!), csrf)
    assert.match(
      (await client.get(stale.location!)).body,
      /Nothing was changed\..*changer@example\.com.* changed it first/s,
    )
    assert.equal((await client.post(undo(ids[1]!), csrf)).status, 404, 'sent twice')
  })

  it('are not undone by colleagues, nor after an hour, nor listed to them; no address makes up what was added', async () => {
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'curious@example.com')]
    const page = await addOne(one, '/animals/new', { name: 'Mine', categoryId: '1' })
    const [, id = ''] = /added=(\d+)/.exec(page)!
    assert.deepEqual(listed((await other.get(page)).body), [])
    const fields = await other.hiddenFields('/animals/new')
    assert.equal((await other.post(`/animals/${id}/undo`, fields)).location, `/animals/${id}`)
    assert.ok(await service().store.pets.get(BigInt(id)))
    const old = await addTo(service(), {}, { at: Date.now() - 3_700_000, by: service().account.id })
    assert.equal(
      (await one.post(`/animals/${old}/undo`, await one.hiddenFields('/animals/new'))).location,
      `/animals/${old}`,
    )
    assert.ok(await service().store.pets.get(old))
    assert.equal((await one.post(`/animals/${id}/undo`, {})).status, 403)
    for (const added of ['x', '..', '1.'.repeat(5000), '9'.repeat(30), '<b>'])
      assert.equal(
        (await one.get(`/animals/new?added=${encodeURIComponent(added)}&status=lost&categoryId=%00`)).status,
        200,
        added.slice(0, 9),
      )
  })
})
