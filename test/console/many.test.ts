// Many animals of the list at once: what is done to those that are ticked, what is left alone, and what can be undone.
import { eventInWords } from '../../src/console/animals/animal-history.ts'
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type NewPet, type PetStatus } from '../../src/contract/pets.ts'
import {
  type ConsoleClient,
  hiddenIn,
  signedIn,
  signedInAs,
  signedInManager,
} from '../harness/connections/console-client.ts'
import { describeOnSqlite, PASSWORD, startPetstore } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'

const PATH = '/animals/many'
const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

describeOnSqlite('Many animals at once', (service) => {
  const addAll = async (pets: readonly Partial<NewPet>[]) => {
    const created = await Promise.all(pets.map((pet) => service().store.pets.create({ ...rex, ...pet })))
    return created.map((each) => ('pet' in each ? each.pet.id : 0n))
  }
  const stored = async (ids: readonly bigint[], field: 'status' | 'categoryId' = 'status') =>
    (await Promise.all(ids.map((id) => service().store.pets.get(id)))).map((pet) => pet?.[field])
  const historyOf = async (id: bigint) => (await service().store.accounts.changesOf(id, 9)).map(eventInWords)
  /** Opens the list and ticks these animals; the fields are those that a browser would send. */
  const tick = async (client: ConsoleClient, ids: readonly bigint[]) => {
    const { body } = await client.get('/animals?status=all')
    const { csrf, formId } = await client.hiddenFields('/animals?status=all', `${PATH}?status=all`)
    const shown = [...body.matchAll(/name="shown" value="([^"]*)"/g)].map(([, token]) => ['shown', token!])
    return [['csrf', csrf!], ['formId', formId!], ...shown, ...ids.map((id) => ['pick', String(id)])] as string[][]
  }
  const send = (client: ConsoleClient, fields: string[][], ...more: string[][]) =>
    client.postAll(PATH, [...fields, ...more])
  /** Presses the button of the notice of the list after a change. */
  const press = async (client: ConsoleClient, location: string, words = 'Undo') => {
    const notice = (await client.get(location)).body.split('class="notice')[1] ?? ''
    const form = notice.split('<form').find((each) => each.includes(`>${words}</button>`)) ?? ''
    const action = /action="([^"]*)"/.exec(form)?.[1]
    assert.ok(action, `${words} is offered: ${notice}`)
    return client.post(action, hiddenIn(form))
  }
  const told = async (client: ConsoleClient, { location }: { location: string | null }) =>
    (await client.get(location!)).body.split('class="notice')[1] ?? ''

  it('are sold, each by a change of its own, and one Undo gives each its former status back', async () => {
    const ids = await addAll([{}, { status: 'pending' }, { status: 'sold' }, { name: 'Not ticked' }])
    const client = await signedIn(service())
    const fields = await tick(client, ids.slice(0, 3))
    const { location } = await send(client, fields, ['status', 'sold'])
    assert.deepEqual(await stored(ids), ['sold', 'sold', 'sold', 'available'])
    assert.deepEqual(await historyOf(ids[0]!), ['Status: Available → Sold'])
    assert.deepEqual(await historyOf(ids[2]!), [], 'it was sold already')
    assert.match(
      (await client.get(location!)).body,
      /role="status"><div>\s*<p><strong>2 animals<\/strong> changed to <bdi>Sold<\/bdi>\./,
    )
    const nothing = await told(client, await send(client, await tick(client, ids.slice(0, 3)), ['status', 'sold']))
    assert.match(nothing, /Nothing was to be changed: either no animal was ticked, or they have that already\./)
    const undone = await press(client, location!)
    assert.match(
      await told(client, undone),
      /<strong>2 animals<\/strong> changed back\.<\/p>\s*<ul><\/ul><\/div>\s*<\/div>/,
    )
    assert.deepEqual(await stored(ids), ['available', 'pending', 'sold', 'available'])
    assert.equal((await historyOf(ids[1]!)).length, 2)
  })

  it('are changed, changed back and removed by forms that are sent twice at once: no one is told to have been first', async () => {
    const manager = await signedInManager(service())
    const twice = async (once: () => ReturnType<typeof press>) => {
      const answers = await Promise.all([once(), once()])
      assert.equal(answers[0].location, answers[1].location)
      assert.doesNotMatch(await told(manager, answers[0]), /left alone/)
      return answers[0]
    }
    const ids = await addAll([{}, {}])
    const fields = await tick(manager, ids)
    const { location } = await twice(() => send(manager, fields, ['status', 'sold']))
    await twice(() => press(manager, location!))
    const page = await manager.get((await send(manager, await tick(manager, ids), ['remove', 'ask'])).location!)
    const { shown: _last, ...others } = hiddenIn(page.body.split(`action="${PATH}"`)[1]!)
    const tokens = [...page.body.matchAll(/name="shown" value="([^"]*)"/g)].map(([, token]) => ['shown', token!])
    const removed = await twice(() => send(manager, [...Object.entries(others), ...tokens]))
    assert.match(await told(manager, removed), /<strong>2 animals<\/strong> removed\./)
    assert.deepEqual(
      (await Promise.all(ids.map(historyOf))).map(({ length }) => length),
      [3, 3],
    )
  })

  it('of the whole page get another category without a script, and back', async () => {
    const ids = await addAll([{ categoryId: -4n }, { categoryId: 9n }])
    const client = await signedIn(service())
    const { categories } = service().store
    await categories.save({ number: 12n, name: 'Newts' }, undefined, event('acct_1', 'category.added'))
    const { body } = await send(client, await tick(client, []), ['all', 'yes'], ['move', 'ask'])
    assert.match(body, /<option value="12" >Newts<\/option>/)
    const asked = [...body.split('<main')[1]!.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)]
    const { location } = await client.postAll(PATH, [...asked.map((each) => each.slice(1)), ['categoryId', '12']])
    assert.deepEqual(await stored(ids, 'categoryId'), [12n, 12n])
    await press(client, location!)
    assert.deepEqual(await stored(ids, 'categoryId'), [-4n, 9n])
  })

  it('whose session had ended are asked about after the sign-in, and changed by a press, if they are as they were shown', async () => {
    const ids = await addAll([{}, {}, {}])
    const client = await signedIn(service())
    const fields = await tick(client, ids)
    await service().store.accounts.purgeSessions(0, 0, 0)
    const ended = await send(client, fields, ['status', 'sold'])
    const change = event('acct_2', 'pet.changed')
    await service().store.pets.update(ids[1]!, rex, { ...rex, name: 'Rexo' }, change)
    const { location } = await client.signIn(service().account.email, PASSWORD, ended.location!)
    const { body } = await client.get(new URLSearchParams(location!.split('?')[1]).get('next') ?? location!)
    assert.match(body, /<h1>Nothing was done: Sell 2 animals\?<.*1 animal changed since.*>Sell 2 animals<\/button>/s)
    assert.deepEqual(await stored(ids), ['available', 'available', 'available'])
    const named = [...body.split('<main')[1]!.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)]
    await send(
      client,
      named.map(([, name, value]) => [name!, value!]),
    )
    assert.deepEqual(await stored(ids), ['sold', 'available', 'sold'])
    assert.equal((await client.get(PATH)).location, '/animals')
    await service().store.categories.save({ number: 13n, name: 'Owls' }, undefined, event('acct_1', 'category.added'))
    const again = await tick(client, ids)
    await service().store.accounts.purgeSessions(0, 0, 0)
    const moved = await send(client, again, ['categoryId', '13'])
    const back = await client.signIn(service().account.email, PASSWORD, moved.location!)
    assert.match((await client.get(back.location!)).body, /Nothing was done: Move 3 animals to Owls\?</)
  })

  it('that a colleague changed meanwhile are left alone and named, also by the Undo', async () => {
    const ids = await addAll([{ name: 'Ours' }, { name: 'Theirs' }])
    const [one, other] = [await signedIn(service()), await signedInAs(service(), 'busy@example.com')]
    const fields = await tick(one, ids)
    const change = (id: bigint, status: PetStatus) =>
      other.fillIn(`/animals/${id}`, { name: 'Changed', categoryId: '3', status })
    await change(ids[1]!, 'pending')
    const { location } = await send(one, fields, ['status', 'pending'])
    const first =
      /<strong>1 animal<\/strong> left alone.*<bdi>Theirs \(\d+\)<\/bdi>: <bdi.*Available → Reserved<.*busy@example\.com/s
    assert.match((await one.get(location!)).body, first)
    assert.deepEqual(await historyOf(ids[1]!), ['Name: "Theirs" → "Changed"; Status: Available → Reserved'])
    await change(ids[0]!, 'pending')
    const undone = await press(one, location!)
    assert.match(
      (await one.get(undone.location!)).body,
      /<strong>1 animal<\/strong> left alone.*Ours&quot;<\/bdi><bdi> → <\/bdi><bdi>&quot;Changed/s,
    )
    assert.equal((await stored(ids))[0], 'pending')
  })

  it('are removed by managers after a confirmation, unless they were changed since', async () => {
    const ids = await addAll([{}, {}, {}])
    const member = await signedInAs(service(), 'only-member@example.com')
    const ask = ['remove', 'ask']
    for (const remove of ['ask', 'yes'])
      assert.equal((await send(member, await tick(member, ids), ['remove', remove])).status, 403)
    const manager = await signedInManager(service())
    // A redirect, since the Back button fails on a page that answered a form.
    const { location: asked } = await send(manager, await tick(manager, ids.slice(0, 2)), ask)
    assert.equal(asked, `/animals/${ids[1]}.${ids[0]}/remove`)
    const page = await manager.get(asked)
    assert.match(page.body, /<h1>Remove 2 animals\?/)
    assert.deepEqual(await stored(ids), ['available', 'available', 'available'])
    await member.fillIn(`/animals/${ids[1]}`, { name: 'Kept', categoryId: '3', status: 'available' })
    const tokens = [...page.body.matchAll(/name="shown" value="([^"]*)"/g)].map(([, token]) => ['shown', token!])
    const { shown: _last, ...others } = hiddenIn(page.body.split(`action="${PATH}"`)[1]!)
    const { location } = await send(manager, [...Object.entries(others), ...tokens])
    assert.deepEqual(await stored(ids), [undefined, 'available', 'available'])
    assert.match(
      (await manager.get(location!)).body,
      /<strong>1 animal<\/strong> removed.*<strong>1 animal<\/strong> left alone/s,
    )
    assert.match((await manager.get(asked)).body, /<h1>Remove 1 animal\?.*Kept/s, 'gone back to')
    const forged = await send(manager, await tick(manager, []), ['all', 'yes'], ['shown', '/x?.y'], ask)
    assert.match((await manager.get(forged.location!)).body, /<h1>Remove \d+ animals?\?/)
  })

  it('are selected beyond the page, moved by one press, and back by one Undo; a row that is unticked is left out', async () => {
    const ids = await addAll(Array.from({ length: 77 }, (_, nth) => ({ categoryId: 77n, name: `Rex ${nth}` })))
    const client = await signedIn(service())
    const { categories } = service().store
    const kits = { number: 78n, name: 'Kits' }
    await categories.save(kits, undefined, event('acct_1', 'category.added'))
    const list = '/animals?category=77'
    const { body } = await client.get(list)
    assert.match(body, /href="\/animals\?category=77&amp;select=all">Select all 77</)
    const selected = await client.get(`${list}&select=all`)
    assert.match(selected.body, />77 selected</)
    assert.equal(selected.body.split('name="pick"').length, selected.body.split(' checked>').length)
    const fieldsOf = (page: string, without = '') => {
      const named = [...page.matchAll(/name="(shown|pick)" value="([^"]*)"/g)].map(([, name, value]) => [name!, value!])
      const { csrf, formId, set } = hiddenIn(page.split('id="many"')[1]!)
      const ticked = named.filter(([name, value]) => name === 'shown' || value !== without)
      return [['csrf', csrf!], ['formId', formId!], ['set', set!], ...ticked]
    }
    const move = (fields: string[][]) => client.postAll(`${PATH}?category=77`, [...fields, ['categoryId', '78']])
    const newest = ids.at(-1)!
    const fields = fieldsOf(selected.body, String(newest))
    const { location } = await move(fields)
    assert.match(await told(client, { location }), /<strong>76 animals<\/strong> changed to <bdi>Kits<\/bdi>\.<\/p>/)
    assert.equal((await move(fields)).location, location, 'sent twice, although they are others now')
    assert.deepEqual(new Set(await stored(ids.slice(0, -1), 'categoryId')), new Set([78n]))
    assert.deepEqual(await stored([newest], 'categoryId'), [77n])
    await press(client, location!)
    assert.deepEqual(new Set(await stored(ids, 'categoryId')), new Set([77n]))

    const again = fieldsOf((await client.get(`${list}&select=all`)).body)
    // Of another page, so that no row shows it.
    await service().store.pets.update(
      ids[0]!,
      { ...rex, categoryId: 77n, name: 'Rex 0' },
      { ...rex, categoryId: 77n },
      { at: 1, accountId: 'x', via: 'test' },
    )
    const refused = await move(again)
    assert.match(await told(client, refused), /Nothing was changed:<\/strong> somebody has changed these animals/)
    assert.match((await client.get(refused.location!)).body, />77 selected</)
    assert.deepEqual(new Set(await stored(ids, 'categoryId')), new Set([77n]))
    const added = (await addAll([{ categoryId: 77n }]))[0]!
    assert.match(await told(client, await move(again)), /Nothing was changed/)
    assert.match((await client.get(`${list}&q=rex+7&select=all`)).body, />14 selected</, 'a search')
    assert.deepEqual(await stored([added], 'categoryId'), [77n])
    await categories.remove(kits, event('acct_1', 'category.removed'))
    const gone = await move(fieldsOf((await client.get(`${list}&select=all`)).body))
    assert.match(gone.body, /This category is no longer there\. Nothing was moved.*<select id="categoryId"/s)
    assert.doesNotMatch(gone.body.split('<main')[1]!, /type="hidden" name="categoryId"/)
    assert.deepEqual(await stored([added], 'categoryId'), [77n])
  })

  it('can be changed back for a day', async () => {
    const clock = { now: Date.now() }
    await using petstore = await startPetstore({ clock: () => clock.now })
    const created = await petstore.store.pets.create(rex)
    assert.ok('pet' in created)
    const client = await signedIn(petstore)
    const { location } = await send(client, await tick(client, [created.pet.id]), ['status', 'sold'])
    const page = `/animals/batches/${/batch=(\d+)/.exec(location!)![1]}`
    assert.match((await client.get(page)).body, />Undo</)
    clock.now += 86_400_000
    const later = await signedIn(petstore)
    assert.doesNotMatch((await later.get(page)).body, />Undo</)
    assert.doesNotMatch((await later.get('/animals/changes')).body, />Undo</)
    const { csrf = '' } = await later.hiddenFields('/animals/new')
    await later.post(page, { csrf, do: 'Undo' })
    assert.equal((await petstore.store.pets.get(created.pet.id))?.status, 'sold')
  })

  it('are refused without a token, more than a page, with a value that there is not, and forged', async () => {
    const ids = await addAll(Array.from({ length: 30 }, () => ({})))
    const client = await signedIn(service())
    const fields = await tick(client, [])
    assert.equal((await send(client, fields.slice(1), ['all', 'yes'], ['status', 'sold'])).status, 403)
    for (const [name, value] of [
      ['status', 'lost'],
      ['status', 'constructor'],
      ['categoryId', ''],
      ['categoryId', 'x'],
      ['categoryId', '9223372036854775808'],
      ['none', 'of these'],
    ] as const)
      assert.equal((await send(client, fields, ['all', 'yes'], [name, value])).status, 400, value)
    const many = Array.from({ length: 52 }, (_, nth) => ['shown', `${nth}.x`])
    assert.equal((await send(client, [...fields, ...many], ['all', 'yes'], ['status', 'sold'])).status, 400)
    const huge = await send(client, [...fields, ['shown', 'x'.repeat(17_000)]], ['status', 'sold'])
    assert.equal(huge.status, 413)
    const token = fields[0]!
    const forged = [
      'x',
      '',
      '.',
      '1e3.a',
      `${ids[0]}.AAAAAAAAAAAA`,
      '9'.repeat(400),
      '<b>.<b>',
      `${ids[1]}`,
      '7.x',
      '07.y',
    ]
    const shown = forged.map((text) => ['shown', text])
    const { location } = await send(client, [token, ...shown], ['all', 'yes'], ['status', 'sold'])
    assert.equal((await client.get(location!)).status, 200)
    assert.deepEqual(new Set(await stored(ids)), new Set(['available']))
  })

  it('are reported, with an Undo, to whoever has changed them; a manager may take that back, for a day', async () => {
    const [id] = await addAll([{}])
    const [client, other] = [
      await signedInAs(service(), 'keeper@example.com'),
      await signedInAs(service(), 'linked@example.com'),
    ]
    const { location } = await send(client, await tick(client, [id!]), ['status', 'sold'])
    assert.match(await told(client, { location }), /changed to <bdi>Sold<.*>Undo</s)
    assert.equal(await told(other, { location }), '', 'no link makes up a notice')
    const page = `/animals/batches/${/batch=(\d+)/.exec(location!)![1]}`
    assert.doesNotMatch((await other.get(page)).body, />Undo</)
    const { csrf = '' } = await other.hiddenFields('/animals/new')
    await other.post(page, { csrf, do: 'Undo' })
    assert.deepEqual(await stored([id!]), ['sold'], 'not by somebody else')
    assert.equal((await other.post('/animals/batches/99999999', { csrf, do: 'Undo' })).status, 404)
    const manager = await signedInManager(service())
    const { body } = await manager.get(page)
    assert.match(body, /keeper@example\.com<.*Status: Available → Sold/s)
    await manager.submit(page, page)
    assert.deepEqual(await stored([id!]), ['available'])
    assert.match((await client.get(page)).body, /undone by .*changed back/s)
  })

  it('whose Undo a manager has left are changed back by their author; a removal is not gone on with by who is no manager', async () => {
    const ids = await addAll(Array.from({ length: 3 }, () => ({})))
    const client = await signedInAs(service(), 'half@example.com')
    const { location } = await send(client, await tick(client, ids), ['status', 'sold'])
    const id = BigInt(/batch=(\d+)/.exec(location!)![1]!)
    const { batches, accounts } = service().store
    const { accountId } = (await batches.find(id))!
    const by = { at: Date.now(), via: 'console', accountId }
    await batches.undo(id, { ...by, accountId: service().account.id })
    await press(client, `/animals/batches/${id}`, 'Continue')
    assert.deepEqual(new Set(await stored(ids)), new Set(['available']))
    const removal = { form: 'removal', action: 'removed', data: {} } as const
    const pets = await Promise.all(
      ids.map(async (petId) => ({ id: petId, former: await service().store.pets.get(petId) })),
    )
    const begun = await batches.begin(removal, pets, by)
    assert.equal((await accounts.accountById(accountId))!.role, 'member')
    const page = await client.get(`/animals/batches/${begun!.id}`)
    assert.match(page.body, /0 of 3 done/)
    assert.doesNotMatch(page.body, />Continue</)
  })
})
