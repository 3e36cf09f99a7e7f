// Two people edit one animal: what each of them changed is kept, nobody takes back a change by accident, nothing typed is lost.
import { eventInWords } from '../../src/console/animals/animal-history.ts'
import assert from 'node:assert/strict'
import { beforeEach, it } from 'node:test'
import { asTexts, otherPet as rex, samplePet } from '../harness/databases/sample-pet.ts'
import { FIELD_NAMES, type FieldName, type NewPet, type Pet } from '../../src/contract/pets.ts'
import {
  type Answered,
  type ConsoleClient,
  hiddenIn,
  signedIn,
  signedInAs,
} from '../harness/connections/console-client.ts'
import { describeOnSqlite, PASSWORD } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'

describeOnSqlite('Two people who edit one animal', (service) => {
  let path: string
  let id: bigint
  let one: ConsoleClient
  /** The form as `one` has opened it, unchanged. */
  let opened: Record<string, string>
  const stored = () => service().store.pets.get(id)
  const changeTo = async (to: Partial<NewPet>) => {
    const { id: _id, ...from } = (await stored())!
    const changed = { ...event('acct_2', 'pet.changed'), subject: `Rex (${id})` }
    assert.equal((await service().store.pets.update(id, from, { ...from, ...to }, changed)).outcome, 'updated')
  }
  const openForm = async (pet: NewPet) => {
    const created = await service().store.pets.create(pet)
    ;({ id } = (created as { pet: Pet }).pet)
    path = `/animals/${id}`
    one = await signedIn(service())
    opened = { ...(await one.hiddenFields(path)), ...asTexts(pet) }
  }
  /** Sends the form of a page that was shown again, with what the page shows and these fields. */
  const answer = (page: Answered, fields: Record<string, string>) =>
    one.post(path, { ...opened, ...hiddenIn(page.body), ...fields })
  beforeEach(() => openForm(rex))

  it('keep both changes: a field that was left alone takes the stored value, and the confirmation names it', async () => {
    const other = await signedInAs(service(), 'seller@example.com')
    await other.fillIn(path, { ...asTexts(rex), status: 'sold' })
    const { location } = await one.post(path, { ...opened, name: 'Mine' })
    assert.equal(location, `${path}?changed=yes&meanwhile=status`)
    assert.deepEqual(await stored(), { id, ...rex, name: 'Mine', status: 'sold' })
    const { body } = await one.get(location)
    assert.match(body, /role="status">\s*<p>Saved\..*while you were editing, and kept:.*Status: <bdi>Sold<\/bdi>/s)
    const [newest] = await service().store.accounts.auditTrail(service().account.id, 1)
    assert.equal(eventInWords(newest!), 'Name: "Rex" → "Mine"', 'the log tells of nothing that one did not do')
  })

  it('are asked only about fields that both changed, with both values, and neither is chosen in advance', async () => {
    const other = await signedInAs(service(), 'other@example.com')
    await other.fillIn(path, { name: 'Theirs', categoryId: '3', status: 'sold' })
    const asked = await one.post(path, { ...opened, name: 'Mine', categoryId: '12' })
    assert.equal(asked.status, 409)
    assert.match(
      asked.body,
      /<bdi>other@example\.com<\/bdi> changed this animal while you were editing it.*\d\d:\d\d UTC/s,
    )
    assert.deepEqual(questionsIn(asked), ['name'])
    assert.match(asked.body, /When you opened the form: <bdi>Rex<.*Keep theirs: <bdi>Theirs<.*value="Mine"/s)
    assert.match(asked.body, /value="12".*value="sold" selected/s, 'the other fields are merged')
    assert.doesNotMatch(asked.body, /checked/)
    assert.deepEqual(await stored(), { id, ...rex, name: 'Theirs', status: 'sold' }, 'nothing was saved')

    const merged = { categoryId: '12', status: 'sold' }
    const unanswered = await answer(asked, { ...merged, name: 'Mine' })
    assert.equal(unanswered.status, 409)
    assert.match(unanswered.body, /Name: choose which to keep<.*id="keep_name"[^>]* autofocus.*value="Mine"/s)
    const saved = await answer(unanswered, { ...merged, name: 'Mine, after all', keep_name: 'yours' })
    assert.equal(saved.location, `${path}?changed=yes`)
    assert.deepEqual(await stored(), { id, ...rex, name: 'Mine, after all', categoryId: 12n, status: 'sold' })
  })

  for (const [what, keep, third, result] of [
    ['the answered field', 'yours', { name: 'Third' }, 'asked'],
    ['the answered field', 'theirs', { name: 'Third' }, { name: 'Third' }],
    ['another field', 'yours', { status: 'sold' }, { name: 'Mine', status: 'sold' }],
    ['the field back', 'yours', { name: 'Rex' }, 'asked'],
    ['nothing', 'theirs', {}, { name: 'Theirs' }],
  ] as const)
    it(`merge three ways again if a third changes ${what} before the answer (${keep})`, async () => {
      await changeTo({ name: 'Theirs' })
      const asked = await one.post(path, { ...opened, name: 'Mine' })
      if (what !== 'nothing') await changeTo(third)
      const again = await answer(asked, { name: 'Mine', categoryId: '4', keep_name: keep })
      if (result !== 'asked')
        return assert.deepEqual(await stored(), { id, ...rex, ...result, categoryId: 4n }, 'with the rest')
      assert.equal(again.status, 409)
      assert.match(
        again.body,
        new RegExp(`opened the form: <bdi>Theirs<.*Keep theirs: <bdi>${(third as NewPet).name}<.*value="Mine"`, 's'),
      )
      assert.deepEqual(await stored(), { id, ...rex, ...third })
    })

  it('merge also what changes between the look at the animal and the write; a removed one is not reported as saved', async ({
    mock,
  }) => {
    const { pets } = service().store
    const update = pets.update.bind(pets)
    const write = mock.method(pets, 'update')
    const before = (nth: number, act: () => Promise<unknown>) =>
      write.mock.mockImplementationOnce(async (...call) => {
        await act()
        return update(...call)
      }, nth)
    before(0, () => update(id, rex, { ...rex, status: 'sold' }, event('acct_2', 'pet.changed')))
    assert.equal((await one.post(path, { ...opened, name: 'Mine' })).location, `${path}?changed=yes&meanwhile=status`)
    assert.deepEqual(await stored(), { id, ...rex, name: 'Mine', status: 'sold' })
    opened = { ...opened, ...(await one.hiddenFields(path)), name: 'Last', status: 'sold' }
    before(2, () => update(id, { ...rex, name: 'Mine', status: 'sold' }, rex, event('acct_2', 'pet.changed')))
    const asked = await one.post(path, opened)
    assert.deepEqual([asked.status, questionsIn(asked)], [409, ['name']])
    before(3, () => pets.remove(id, rex, event('acct_2', 'pet.removed')))
    assert.equal((await answer(asked, { name: 'Last', keep_name: 'yours' })).status, 404)
  })

  it('who changed a field to the same value, or nothing, have nothing to decide: they are told who changed what', async () => {
    const other = await signedInAs(service(), 'same@example.com')
    await other.fillIn(path, { ...asTexts(rex), status: 'sold', categoryId: '4' })
    const { location } = await one.post(path, opened)
    assert.equal(location, `${path}?meanwhile=categoryId%2Cstatus`)
    assert.match((await one.get(location)).body, /There was nothing to save.*Status: <bdi>Sold</s)
    const same = await one.post(path, { ...opened, status: 'sold' })
    assert.match(same.location!, /\?overtaken=\d+&meanwhile=categoryId$/)
    const { body } = await one.get(same.location!)
    assert.match(
      body,
      /Nothing was changed\.<\/strong> <bdi>same@example\.com<\/bdi> changed it first, <time.*Available → Sold/,
    )
    assert.doesNotMatch(body, /Saved\./)
    // The name is saved, the status was: also for a form that is sent twice.
    for (const _ of [1, 2])
      assert.equal(
        (await one.post(path, { ...opened, status: 'sold', name: 'Mine' })).location,
        `${path}?changed=yes&meanwhile=categoryId%2Cstatus`,
      )
  })

  it('who send a form twice, by a double click or the Back button, are told that it is saved, not that others changed it', async () => {
    const twice = await Promise.all([1, 2].map(() => one.post(path, { ...opened, name: 'Mine' })))
    const again = await one.post(path, { ...opened, name: 'Mine' })
    for (const { location } of [...twice, again]) assert.equal(location, `${path}?changed=yes`)
    assert.equal((await service().store.accounts.changesOf(id, 9)).length, 1)
    await changeTo({ name: 'Theirs' })
    const asked = await one.post(path, { ...opened, name: 'Last' })
    for (const _ of [1, 2])
      assert.equal((await answer(asked, { name: 'Last', keep_name: 'yours' })).location, `${path}?changed=yes`)
  })

  it('lose nothing that was typed if it is invalid as well', async () => {
    await changeTo({ name: 'Theirs', status: 'sold' })
    const asked = await one.post(path, { ...opened, name: ' ', categoryId: 'cats' })
    assert.equal(asked.status, 409)
    assert.match(asked.body, /Enter a name.*No category is named/s)
    assert.match(asked.body, /Keep theirs: <bdi>Theirs<.*value=" ".*value="cats".*value="sold" selected/s)
    const wrong = await answer(asked, { name: ' ', categoryId: '4', status: 'sold', keep_name: 'yours' })
    assert.deepEqual([wrong.status, questionsIn(wrong)], [400, []], 'the question was answered')
    assert.match(wrong.body, /Enter a name.*value=" ".*value="4"/s)
    await answer(wrong, { name: 'Mine', categoryId: '4', status: 'sold' })
    assert.deepEqual(await stored(), { id, ...rex, name: 'Mine', categoryId: 4n, status: 'sold' })
  })

  it('lose nothing to a mistake in another field: the page with it merges and names what changed', async () => {
    await changeTo({ status: 'sold' })
    const wrong = await one.post(path, { ...opened, name: '' })
    assert.equal(wrong.status, 400)
    assert.match(
      wrong.body,
      /What changed is in the form below:.*Status: <bdi>Sold<.*Enter a name.*value="sold" selected/s,
    )
    await answer(wrong, { name: 'Mine', status: 'sold' })
    assert.deepEqual(await stored(), { id, ...rex, name: 'Mine', status: 'sold' })
  })

  it('find what was typed, merged, after a session had ended and a sign-in', async () => {
    const { accounts } = service().store
    await accounts.purgeSessions(0, 0, 0)
    await changeTo({ name: 'Theirs', status: 'sold' })
    const { location } = await one.post(path, { ...opened, name: 'Mine', categoryId: '4' })
    const to = await one.signIn(service().account.email, PASSWORD, location!)
    const asked = await one.get(to.location!)
    assert.equal(asked.status, 409)
    assert.match(asked.body, /Keep theirs: <bdi>Theirs<.*value="Mine".*value="4".*value="sold" selected/s)
    await accounts.purgeSessions(0, 0, 0)
    const answered = await answer(asked, { name: 'Mine', categoryId: '4', status: 'sold', keep_name: 'yours' })
    const back = await one.signIn(service().account.email, PASSWORD, answered.location!)
    const again = await one.get(back.location!)
    assert.deepEqual([again.status, questionsIn(again)], [200, []], 'the answer is kept too')
    await answer(again, { name: 'Mine', categoryId: '4', status: 'sold' })
    assert.deepEqual(await stored(), { id, ...rex, name: 'Mine', categoryId: 4n, status: 'sold' })
  })

  it('in two tabs are told that they changed it themselves', async () => {
    await one.fillIn(path, { ...asTexts(rex), name: 'Rexo' })
    const asked = await one.post(path, { ...opened, name: 'Rexa' })
    assert.equal(asked.status, 409)
    assert.match(asked.body, /You changed this animal in another tab, <time.*Keep what is stored: <bdi>Rexo</s)
    assert.doesNotMatch(asked.body, /theirs:/)
  })

  for (const [which, fields] of [
    ['has no such fields', { version: 'x' }],
    ['has none that can be read', { shown: '{"name":' }],
    ['has others', { shown: 'null', theirs: '{"name":7,"toString":"x"}', keep_name: 'yours' }],
  ] as const)
    it(`are asked about every difference by a form from before an upgrade, which ${which}`, async () => {
      const { csrf } = opened
      const typed = { csrf: csrf!, ...asTexts(rex), ...fields }
      await changeTo({ status: 'sold' })
      const asked = await one.post(path, { ...typed, name: 'Mine' })
      assert.deepEqual([asked.status, questionsIn(asked)], [409, ['name', 'status']])
      assert.match(asked.body, /Keep theirs: <bdi>Sold</)
      await answer(asked, { name: 'Mine', keep_name: 'yours', keep_status: 'theirs' })
      assert.deepEqual(await stored(), { id, ...rex, name: 'Mine', status: 'sold' })
      assert.equal((await one.post(path, { ...typed, name: 'Mine', status: 'sold' })).location, path)
    })

  it('who save a name with line breaks, which browsers drop, change it only if they have typed another', async () => {
    await openForm({ ...rex, name: 'Rex\r\nthe\n"First" & <last>' })
    await changeTo({ status: 'sold' })
    await one.post(path, { ...opened, name: 'Rexthe"First" & <last>', categoryId: ' 4 ' })
    assert.deepEqual(await stored(), {
      id,
      ...rex,
      name: 'Rex\r\nthe\n"First" & <last>',
      categoryId: 4n,
      status: 'sold',
    })
  })

  for (const field of FIELD_NAMES)
    it(`keep each other's changes of any field: ${field}`, async () => {
      const mine: NewPet = { ...rex, [field]: samplePet[field] }
      assert.notDeepEqual(mine, rex)
      const others = Object.fromEntries(
        FIELD_NAMES.filter((name) => name !== field).map((name) => [name, samplePet[name]]),
      )
      await changeTo(others)
      await one.post(path, { ...opened, ...asTexts(mine) })
      assert.deepEqual(await stored(), { id, ...samplePet })
      await changeTo(rex)
      delete opened[field]
      await one.post(path, opened)
      assert.deepEqual(await stored(), { id, ...rex }, 'a form of a release without the field leaves it alone')
    })
})

/** The fields that a page asks about. */
function questionsIn({ body }: Answered): FieldName[] {
  return FIELD_NAMES.filter((name) => body.includes(`<input type="radio" id="keep_${name}"`))
}
