// Every form of the console, as its pages show it: a new one is tried here without being listed.
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { asTexts, samplePet } from '../harness/databases/sample-pet.ts'
import { KINDS } from '../../src/store/records.ts'
import { linkAddress } from '../../src/console/people/link.ts'
import { ROUTES } from '../../src/console/console.ts'
import type { ConsoleRoute } from '../../src/console/every-page/visit.ts'
import {
  ConsoleClient,
  createKey,
  hiddenIn,
  MEMBER_PAGES,
  OPEN_PAGES,
  signedInManager,
} from '../harness/connections/console-client.ts'
import { describeOnSqlite, INVITED, makeAccount, PASSWORD } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'

/** Asks something only after a sign-in. */
const ASKED = '/animals/{id}/status'

interface Form {
  page: string
  action: string
  hidden: Record<string, string>
  /** The names of the inputs. */
  texts: string[]
  passwords: string[]
}

function formsIn(page: string, body: string): Form[] {
  return Array.from(body.matchAll(/<form [^>]*method="post" action="([^"]*)".*?<\/form>/gs), ([form, action = '']) => {
    const named = (type: string) =>
      Array.from(form.matchAll(new RegExp(`name="(\\w+)" type="(?:${type})"`, 'g')), ([, name = '']) => name)
    return { page, action, hidden: hiddenIn(form), texts: named('text|email'), passwords: named('password') }
  })
}

const routeOf = ({ action }: Form) =>
  ROUTES.find(({ method, path }) => {
    const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
    return method === 'POST' && pattern.test(action.split('?')[0]!)
  })

describeOnSqlite('Every form of the console', (service) => {
  let manager: ConsoleClient
  let stranger: ConsoleClient
  let forms: (Form & { client: ConsoleClient })[]
  before(async () => {
    const { store, accounts, account } = service()
    manager = await signedInManager(service())
    stranger = new ConsoleClient(service().url)
    const { key } = await createKey(service(), 'laptop')
    const created = await store.pets.create({ ...samplePet, status: 'available' })
    assert.ok(created.outcome === 'created')
    await store.categories.save({ number: 3n, name: 'Cats' }, undefined, event(account.id))
    await store.categories.save({ number: 4n, name: 'Without animals' }, undefined, event(account.id))
    await manager.fillIn('/animals/new', { name: 'Added', categoryId: '3' })
    const [added] = await store.pets.list({ limit: 1 })
    const person = await makeAccount(service(), 'person@example.com')
    const link = linkAddress((await accounts.makeLink(account, INVITED))!)
    const token = await manager.hiddenFields('/animals/import')
    const file = await manager.postFile('/animals/import', token, 'name,category\nRex,3\n', 'pets.csv')
    const ticked = { id: added!.id, former: added }
    const sold = { form: 'x', action: 'changed', data: { field: 'status', to: 'sold' } } as const
    const batch = await store.batches.begin(sold, [ticked], { at: Date.now(), accountId: account.id, via: 'console' })
    const isAbout = ({ method, path }: ConsoleRoute) => method === 'GET' && path.includes('{') && path !== ASKED
    const about = ROUTES.filter(isAbout).map(({ path }) => path)
    const addresses = about.map((path) =>
      path
        .replace('/keys/{id}', `/keys/${key.id}`)
        .replace('/people/{id}', `/people/${person.id}`)
        .replace('/animals/import/{file}', file.location!)
        .replace('/animals/batches/{id}', `/animals/batches/${batch!.id}`)
        .replace('{number}', '3')
        .replace('{id}', String(created.pet.id)),
    )
    forms = []
    for (const [client, pages] of [
      [stranger, [...OPEN_PAGES, link]],
      [
        manager,
        [...MEMBER_PAGES, '/people', '/people/new', '/people/keys', `/animals/new?added=${added!.id}`, ...addresses],
      ],
    ] as const)
      for (const page of pages) {
        const { status, body } = await client.get(page)
        assert.equal(status, 200, `${page} shows something`)
        forms.push(...formsIn(page, body).map((form) => ({ ...form, client })))
      }
  })

  it('is on a page: each address that takes one', () => {
    const shown = new Set(forms.map(routeOf))
    const sent = ROUTES.filter(({ method }) => method === 'POST')
    assert.deepEqual(
      sent.flatMap((route) => (shown.has(route) ? [] : [route.path])),
      [],
    )
  })

  it('keeps what was typed over a sign-in, unless it has a password', () => {
    for (const form of forms.filter(
      ({ client, texts, passwords }) => client === manager && texts.length > 0 && passwords.length === 0,
    ))
      assert.ok(routeOf(form)?.keepsTyped, `${form.page}: its route needs { keepsTyped: true }`)
  })

  it('refuses text that no database can store, and text without an end', async () => {
    for (const { client, page, action, hidden, texts, passwords } of forms) {
      const others = { ...hidden, ...validFor(texts, page), ...withEach(passwords, () => PASSWORD) }
      for (const name of texts)
        for (const wrong of ['a\0b', 'x'.repeat(5000)])
          assert.equal((await client.post(action, { ...others, [name]: wrong })).status, 400, `${page}: ${name}`)
    }
  })

  it('saves what was typed, and sent twice, as by a second click, does nothing twice and is answered as the first time', async () => {
    const { records } = service().store
    const counted = () => Promise.all(KINDS.map(async (kind) => [kind.name, await records.count(kind)]))
    for (const { client, page, action, hidden, texts, passwords } of forms) {
      // An invitation replaces the one before (people.test.ts).
      if (client === stranger || texts.length === 0 || passwords.length > 0 || action === '/people/new') continue
      const typed = { ...hidden, ...validFor(texts, page) }
      const none = await counted()
      const first = await client.post(action, typed)
      assert.equal(first.status, action === '/keys' ? 200 : 303, page)
      const once = await counted()
      assert.notDeepEqual(once, none, `${page} saves, and says who did it`)
      // A key is shown only once.
      assert.equal((await client.post(action, typed)).location, first.location ?? '/keys?made=yes', page)
      assert.deepEqual(await counted(), once, `${page}, sent twice`)
    }
  })
})

const withEach = (names: readonly string[], of: (name: string) => string) =>
  Object.fromEntries(names.map((name) => [name, of(name)]))

/** Names may have to be unique. A field of an animal has its example; without a number, a category gets the next one. */
function validFor(texts: readonly string[], page: string): Record<string, string> {
  const known: Record<string, string> = { ...asTexts(samplePet), number: '', name: `Something on ${page}` }
  return withEach(texts, (name) => known[name] ?? 'Some text')
}
