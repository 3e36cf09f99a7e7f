// People in the console: managers see who has an account, change roles, remove accounts, and make links for invitations and passwords.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ENGINES } from '../harness/databases/engines.ts'
import { LINK_DAYS } from '../../src/store/people-store.ts'
import type { Role } from '../../src/store/account-store.ts'
import { LINKS_BY_ADDRESS } from '../../src/accounts/throttle.ts'
import {
  ConsoleClient,
  hiddenIn,
  problemsIn,
  signedInAs,
  signedInManager,
  withKey,
} from '../harness/connections/console-client.ts'
import {
  describeOnSqlite,
  expectError,
  INVITED,
  makeAccount,
  makeKey,
  PASSWORD,
  type Petstore,
  startPetstore,
} from '../harness/harness.ts'

const NEW_PASSWORD = 'another long password'

/** Returns the address in a page that shows a new link. */
function linkIn(body: string): string {
  const [, link] = /value="[^"]*(\/link\?token=[\w-]{43})"/.exec(body) ?? []
  assert.ok(link, body)
  return link
}

const invite = async (manager: ConsoleClient, name = 'Guest', role: Role = 'member') =>
  linkIn((await manager.fillIn('/people/new', { name, role })).body)
const passwordLink = async (manager: ConsoleClient, id: string) =>
  linkIn((await manager.submit(`/people/${id}`, `/people/${id}/link`)).body)
const setRole = (manager: ConsoleClient, id: string, role: Role) => manager.fillIn(`/people/${id}`, { role })

/** Sends the form of a link. */
const use = (client: ConsoleClient, link: string, fields: Record<string, string>) =>
  client.submit(link, '/link', fields)
const join = (client: ConsoleClient, link: string, email: string) =>
  use(client, link, { name: email.split('@')[0]!, email, password: NEW_PASSWORD })

const visitor = ({ url }: Petstore) => new ConsoleClient(url)
const GONE = /<h1>This link does not work<\/h1>\s*<p>.*Ask a manager of this store for another\./

describeOnSqlite('A manager', (service) => {
  it('sees who has an account, since when, last seen and in which role; a member does not see the page in the menu', async () => {
    const manager = await signedInManager(service())
    const member = await signedInAs(service(), 'seen@example.com')
    await makeAccount(service(), 'never@example.com')
    const { body } = await manager.get('/people')
    const row = (email: string) =>
      body
        .split('<tr>')
        .find((part) => part.includes(`${email}</bdi></a>`))
        ?.replaceAll(/(?:<[^>]*>|\s)+/g, ' ')
    assert.match(row('seen@example.com')!, / seen@example\.com Member \d+ \w+ \d{4} \d+ \w+ \d{4}, \d\d:\d\d /)
    assert.match(row('never@example.com')!, / Member .* Never /)
    assert.match(row(service().account.email)!, / Manager .*, \d\d:\d\d /)
    assert.match((await manager.get('/animals')).body, /<a href="\/people" >People<\/a>/)
    assert.doesNotMatch((await member.get('/animals')).body, /href="\/people"/)
  })

  it('sees names with their addresses; everybody else sees names, also that of a closed account, until which it can be had again', async () => {
    const { store, accounts } = service()
    const [manager, member] = [await signedInManager(service()), await signedInAs(service(), 'reader@example.com')]
    const [ben, key] = [await makeAccount(service(), 'ben@example.com'), await makeKey(service())]
    for (const [who, name] of [
      [ben, 'Ben'],
      [key.account, 'Keeper'],
    ] as const)
      assert.equal(await accounts.setName(who, name, 'console'), undefined)
    const client = visitor(service())
    await client.signIn(ben.email, PASSWORD)
    const { location } = await client.fillIn('/animals/new', { name: 'Rex', categoryId: '1' })
    const animal = `/animals/${/added=(\d+)/.exec(location!)![1]}`
    const category = { name: 'Newts', number: '77' }
    await client.fillIn('/categories/new', category)
    const pages = async (who: ConsoleClient) => {
      const shown = [animal, '/animals/changes', `/animals/changes?person=${ben.id}`].map(
        async (page) => (await who.get(page)).body,
      )
      return (await Promise.all(shown)).join('')
    }
    const conflict = async () => (await member.fillIn('/categories/new', category)).body
    const before = (await pages(member)) + (await client.get('/account')).body.split('security-log')[0]
    assert.match(before, /<bdi>Ben<\/bdi>/)
    assert.match(before, new RegExp(`<option value="${ben.id}" selected>Ben</option>`))
    assert.doesNotMatch((await pages(member)) + (await conflict()), /ben@example\.com/)
    assert.match((await manager.get('/people')).body, /<bdi>Ben<\/bdi><\/a>\s*<div[^>]*><bdi>ben@example\.com</)
    assert.match((await manager.get('/people/keys')).body, /data-label="Owner"><bdi>Keeper</)
    assert.match((await manager.get(`/people/${ben.id}/remove`)).body, /Remove <bdi>Ben<.*“<bdi>Ben<\/bdi> \(left\)”/s)
    await manager.fillIn(`/people/${ben.id}/remove`)
    assert.equal(
      await accounts.setName(await makeAccount(service(), 'other-ben@example.com'), 'Ben', 'console'),
      undefined,
    )
    const after = await pages(member)
    assert.match(after, /<bdi>Ben \(left\)<\/bdi>/)
    assert.match(after, new RegExp(`<option value="${ben.id}" selected>Ben \\(left\\)</option>`))
    assert.doesNotMatch(after, /<bdi>Ben<\/bdi>|ben@example/)
    assert.equal((await store.accounts.accountByName('ben'))?.email, 'other-ben@example.com')
  })

  it('sees many people page by page', async () => {
    const manager = await signedInManager(service())
    const emails = Array.from({ length: 25 }, (_, nth) => `many${nth}@example.com`)
    for (const email of emails) await makeAccount(service(), email)
    const first = (await manager.get('/people')).body
    const [, next] = /rel="next" href="([^"]*)"/.exec(first) ?? []
    const second = (await manager.get(next!)).body
    for (const email of emails) assert.ok(first.includes(email) !== second.includes(email), email)
  })

  it('makes and unmakes managers at once for every page, and can’t take the last one away', async () => {
    const { account, store } = service()
    const [manager, member] = [await signedInManager(service()), await signedInAs(service(), 'deputy@example.com')]
    const { id } = (await store.accounts.accountByEmail('deputy@example.com'))!
    const last = await setRole(manager, account.id, 'member')
    assert.equal(last.status, 409)
    assert.match(last.body, /This is the only manager\. Make another person a manager first\./)
    const gone = await manager.fillIn('/account/delete', { current: PASSWORD })
    assert.match(gone.body, /This is the only manager/)
    assert.equal((await member.get('/people')).status, 403)
    assert.equal((await setRole(manager, id, 'manager')).location, `/people/${id}?changed=yes`)
    assert.equal((await member.get('/people')).status, 200)
    assert.equal((await setRole(member, account.id, 'member')).status, 303)
    assert.equal((await manager.get('/people')).status, 403)
    await setRole(member, account.id, 'manager')
    assert.equal((await setRole(manager, id, 'member')).status, 303)
    const [newest] = await store.accounts.auditTrail(account.id, 1)
    assert.deepEqual(
      [newest?.action, newest?.subject, newest?.detail],
      ['account.role_changed', 'deputy@example.com', 'Role: Manager → Member'],
    )
  })

  it('is asked again where a colleague was faster', async () => {
    const manager = await signedInManager(service())
    const person = await makeAccount(service(), 'raced@example.com')
    for (const page of [`/people/${person.id}/remove`, `/people/${person.id}`]) {
      const fields = await manager.hiddenFields(page)
      await service().accounts.setRole(person, 'keyless', 'console')
      const told =
        /Nothing was changed: meanwhile the role became Member without keys \(raced@example\.com, \d{4}-.* UTC\)\./
      // Also a role that was left alone, and the same as the colleague's: nothing is reported as saved.
      for (const role of ['manager', 'member', 'keyless']) {
        const asked = await manager.post(page, { ...fields, role })
        assert.equal(asked.status, 409, page)
        assert.match(asked.body, told)
      }
      await service().accounts.setRole({ ...person, role: 'keyless' }, 'member', 'console')
    }
  })

  it('who saves a role twice is told that it is saved; a role that was left alone is not', async () => {
    const manager = await signedInManager(service())
    const person = await makeAccount(service(), 'twice@example.com')
    const page = `/people/${person.id}`
    const fields = await manager.hiddenFields(page)
    const save = async (role: string) => (await manager.post(page, { ...fields, role })).location
    assert.equal(await save('member'), page)
    const twice = await Promise.all(['keyless', 'keyless'].map(save))
    for (const location of [...twice, await save('keyless')]) assert.equal(location, `${page}?changed=yes`)
    assert.equal(await service().accounts.setRole({ ...person, role: 'keyless' }, 'manager', 'command line'), undefined)
    const { body } = await manager.post(page, { ...fields, role: 'manager' })
    assert.match(body, /the role became Manager \(on the command line, /)
  })

  it('removes an account: its keys, sessions and links end at once, and what it did stays readable', async () => {
    const { store, url } = service()
    const { account, key } = await makeKey(service())
    const manager = await signedInManager(service())
    const gone = visitor(service())
    await gone.signIn(account.email, PASSWORD)
    const created = await store.pets.create({ name: 'Rex', categoryId: 1n, status: 'available' })
    assert.ok('pet' in created)
    const animal = `/animals/${created.pet.id}`
    await gone.fillIn(animal, { name: 'Rexo', categoryId: '1', status: 'available' })
    const link = await passwordLink(manager, account.id)
    assert.equal((await manager.fillIn(`/people/${account.id}/remove`)).location, '/people?removed=yes')
    await expectError(await service().call('/pets', withKey(key)), 'unknown_api_key')
    assert.match((await gone.get('/animals')).location!, /^\/sign-in/)
    assert.match((await new ConsoleClient(url).get(link)).body, GONE)
    assert.match(
      (await manager.get(animal)).body,
      /Rexo&quot;<\/bdi><\/bdi> <span class="quiet-text">A deleted account/,
    )
    assert.match(
      (await manager.get('/account')).body,
      new RegExp(`Account deleted</span> <span[^>]*><bdi>${account.email}`),
    )
    assert.equal((await manager.get(`/people/${account.id}`)).status, 404)
  })

  it('sees the active keys of everybody page by page, and revokes one at once; a second manager is told who was first', async () => {
    const { store, accounts } = service()
    const { account, key } = await makeKey(service())
    const manager = await signedInManager(service())
    const owner = (await store.accounts.accountById(account.id))!
    const [revoked] = await store.accounts.listKeys(owner.id)
    for (let nth = 0; nth < 24; nth += 1) await accounts.createKey(owner, `Key ${nth}.`, undefined, 'console')
    const active = await store.accounts.listKeys()
    const pages: string[] = []
    for (let next: string | undefined = '/people/keys'; next !== undefined;) {
      pages.push((await manager.get(next)).body)
      next = /rel="next" href="([^"]*)"/.exec(pages.at(-1)!)?.[1]
    }
    assert.equal(pages.length, 2)
    for (const { id } of active) assert.equal(pages.join('').split(`<tr id="${id}"`).length, 2, 'each key once')
    assert.ok(!pages.join('').includes(key), 'no secret')
    const rowOf = () => pages.join('').split(`<tr id="${revoked!.id}"`)[1]!.split('</tr>')[0]!
    assert.ok(rowOf().includes(`<td data-label="Owner"><bdi>${owner.email}</bdi>`))
    assert.match(rowOf(), /data-label="Last used">Never</)

    const deputy = await makeAccount(service(), 'revoker@example.com')
    await accounts.setRole(deputy, 'manager', 'console')
    const second = visitor(service())
    await second.signIn(deputy.email, PASSWORD)
    const page = `/people/keys/${revoked!.id}/revoke`
    const asked = (await second.get(page)).body
    assert.ok(asked.includes(`The key belongs to <bdi>${owner.email}</bdi>.`))
    await service().call('/pets', withKey(key))
    const ownPage = `/keys/${revoked!.id}/revoke`
    const third = visitor(service())
    await third.signIn(owner.email, PASSWORD)
    const [fields, own] = [await manager.hiddenFields(page), await third.hiddenFields(ownPage)]
    for (const again of ['once', 'twice'])
      assert.equal((await manager.post(page, fields)).location, '/people/keys?revoked=yes', again)
    await expectError(await service().call('/pets', withKey(key)), 'revoked_api_key')
    const first = service().account.email
    const told = new RegExp(`Nothing was changed: the key was revoked already \\(${first}, \\d{4}-.* UTC\\)\\.`)
    for (const late of [await second.post(page, hiddenIn(asked.split('<main')[1]!)), await third.post(ownPage, own)]) {
      assert.equal(late.status, 409)
      assert.match(late.body, told)
    }
    assert.ok(!(await manager.get('/people/keys')).body.includes(revoked!.id))
    const trail = await store.accounts.auditTrail(service().account.id, 9)
    const [event, ...others] = trail.filter(({ action }) => action === 'key.revoked')
    assert.deepEqual(
      [event?.subject, event?.detail, others.length],
      [`${revoked!.name} (${revoked!.id})`, `a key of ${owner.email}`, 0],
    )
    assert.equal((await store.accounts.keyById(revoked!.id))?.accountId, owner.id)
    for (const each of await store.accounts.listKeys()) await accounts.revokeFor(service().account, each)
    assert.match((await manager.get('/people/keys')).body, /No active key/)
  })

  it('sees links that nobody has used, and withdraws one; a second manager is told who was first', async () => {
    const { store, accounts, account } = service()
    const manager = await signedInManager(service())
    const person = await makeAccount(service(), 'linked@example.com')
    const deputy = await makeAccount(service(), 'withdrawer@example.com')
    await accounts.setRole(deputy, 'manager', 'console')
    const second = visitor(service())
    await second.signIn(deputy.email, PASSWORD)
    const used = await invite(manager)
    await join(visitor(service()), used, 'joined@example.com')
    const links = [await invite(manager), await passwordLink(second, person.id)]
    const { body } = await second.get('/people')
    const [, shown = ''] = body.split('id="links"')
    const rows = shown.split('</table>')[0]!.split('<tr>').slice(2)
    const said = rows.map((row) =>
      row
        .replaceAll(/<form.*?<\/form>/gs, '')
        .replaceAll(/(?:<[^>]*>|\s)+/g, ' ')
        .trim(),
    )
    const until = new RegExp(` \\d+ \\w+ \\d{4}$`)
    assert.deepEqual(said.map((words) => words.replace(until, '')).toSorted(), [
      `Invitation for Guest (Member) ${account.email}`,
      `New password for ${person.email} ${deputy.email}`,
    ])
    for (const link of [...links, used]) assert.ok(!body.includes(link.split('=')[1]!), 'no token')
    const actions = Array.from(shown.matchAll(/action="([^"]*)"/g), ([, action]) => action!)
    const { csrf = '' } = hiddenIn(shown)
    assert.equal((await manager.get(links[0]!)).status, 200)
    for (const action of [...actions, ...actions])
      assert.equal((await second.post(action, { csrf })).location, '/people?withdrawn=yes')
    for (const link of links)
      assert.match(
        (await visitor(service()).get(link)).body,
        /<h1>This link does not work<\/h1>\s*<p>.* was withdrawn, or /,
      )
    const own = await manager.hiddenFields('/people/new')
    const late = await manager.post(actions[0]!, own)
    assert.equal(late.status, 409)
    assert.match(
      late.body,
      /Nothing was changed: the link was withdrawn already \(withdrawer@example\.com, \d{4}-.* UTC\)\./,
    )
    assert.doesNotMatch(late.body, /id="links"/)
    assert.match((await manager.post('/people/links/0', own)).body, /the link was used or has expired\./)
    const trail = (await store.accounts.auditTrail(deputy.id, 9)).filter(({ action }) => action.endsWith('withdrawn'))
    assert.deepEqual(trail.map(({ detail = '' }) => detail).toSorted(), [
      `an invitation, made by ${account.email}`,
      `${person.email}, made by ${deputy.email}`,
    ])
  })

  it('is named in the security log of those to whom something was done', async () => {
    const { store } = service()
    const manager = await signedInManager(service())
    const person = await signedInAs(service(), 'told@example.com')
    const { id } = (await store.accounts.accountByEmail('told@example.com'))!
    await person.generateKey('till')
    const [key] = await store.accounts.listKeys(id)
    await manager.fillIn(`/people/keys/${key!.id}/revoke`)
    await passwordLink(manager, id)
    await manager.fillIn(`/people/${id}`, { role: 'keyless' })
    const log = (await person.get('/account')).body.split('<ol class="security-log">')[1]!
    const by = service().account.email
    const said = [...log.matchAll(/class="mark \w+">([^<]*)<.*?subject"><bdi>([^<]*)</gs)]
    assert.deepEqual(
      said.slice(0, 3).map(([, words, subject]) => `${words}: ${subject}`),
      [
        `Role changed: told@example.com: Role: Member → Member without keys, by ${by}`,
        `Password link made: told@example.com: by ${by}`,
        `Key revoked: till (${key!.id}): by ${by}`,
      ],
    )
  })

  it('who removes an account, saves its role or makes a link for it after a colleague has removed it is told who was first', async () => {
    const { accounts, account } = service()
    const manager = await signedInManager(service())
    const deputy = await makeAccount(service(), 'remover@example.com')
    await accounts.setRole(deputy, 'manager', 'console')
    const second = visitor(service())
    await second.signIn(deputy.email, PASSWORD)
    const { id } = await makeAccount(service(), 'removed-once@example.com')
    const page = `/people/${id}`
    const forms: [string, Record<string, string>][] = [
      [`${page}/remove`, await second.hiddenFields(`${page}/remove`)],
      [page, await second.hiddenFields(page)],
      [`${page}/link`, await second.hiddenFields(page, `${page}/link`)],
    ]
    const fields = await manager.hiddenFields(`${page}/remove`)
    for (const again of ['once', 'twice'])
      assert.equal((await manager.post(`${page}/remove`, fields)).location, '/people?removed=yes', again)
    for (const [action, sent] of forms) {
      const late = await second.post(action, sent)
      assert.equal(late.status, 409, action)
      const first = `the account of removed-once@example.com was removed already (${account.email}, `
      assert.ok(late.body.includes(`Nothing was changed: ${first}`), action)
    }
    assert.equal((await second.get(page)).status, 404)
    for (let race = 0; race < 1; race += 1) {
      const email = `raced-away${race}@example.com`
      const removal = `/people/${(await makeAccount(service(), email)).id}/remove`
      const opened = await Promise.all([manager, manager, second].map((who) => who.hiddenFields(removal)))
      const press = (who: ConsoleClient, nth: number) => who.post(removal, opened[nth]!)
      const answers = await Promise.all([press(manager, 0), press(manager, 1), press(second, 2)])
      const [one, twice, other] = answers.map(({ location }) => location === '/people?removed=yes')
      assert.deepEqual([one, twice], [!other, !other], 'only one has removed it')
      for (const { body } of answers.filter(({ status }) => status !== 303))
        assert.ok(body.includes(`Nothing was changed: the account of ${email} was removed already (`), body)
    }
  })

  it('deletes their own account only with the password', async () => {
    const manager = await signedInManager(service())
    const page = `/people/${service().account.id}/remove`
    assert.equal((await manager.get(page)).location, '/account/delete')
    const { csrf = '' } = await manager.hiddenFields('/people/new')
    assert.equal((await manager.post(page, { csrf, shown: 'manager' })).location, '/account/delete')
  })

  it('takes the right to keys away, which revokes them, and gives it back', async () => {
    const { account, key } = await makeKey(service())
    const manager = await signedInManager(service())
    const member = visitor(service())
    await member.signIn(account.email, PASSWORD)
    const fields = await member.hiddenFields('/keys/new', '/keys')
    await setRole(manager, account.id, 'keyless')
    await expectError(await service().call('/pets', withKey(key)), 'revoked_api_key')
    const { body } = await member.get('/keys')
    assert.match(body, /A manager has taken away your right to keys\./)
    assert.ok(!body.includes('href="/keys/new"'))
    assert.equal((await member.get('/keys/new')).location, '/keys')
    const refused = await member.post('/keys', { ...fields, name: 'x', expires: '' })
    assert.match(refused.body, /A manager has taken away the right to keys from this account\./)
    await setRole(manager, account.id, 'member')
    await member.generateKey('again')
  })
})

describeOnSqlite(
  'An invitation',
  (service) => {
    it('creates one account where sign-up is closed, also when it is used twice at once', async () => {
      const manager = await signedInManager(service())
      const link = await invite(manager)
      const clients = [visitor(service()), visitor(service())]
      for (const client of clients) assert.match((await client.get(link)).body, /<h1>Create account<\/h1>/)
      const answers = await Promise.all(clients.map((client, nth) => join(client, link, `new${nth}@example.com`)))
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([303, 404]))
      const winner = answers.findIndex(({ status }) => status === 303)
      assert.equal((await clients[winner]!.get('/animals')).status, 200)
      assert.match((await visitor(service()).get(link)).body, GONE)
      const account = await service().store.accounts.accountByEmail(`new${winner}@example.com`)
      const [, created] = await service().store.accounts.auditTrail(account!.id, 2)
      assert.equal(created?.detail, `by a link of ${service().account.email}`)
      assert.match((await visitor(service()).get('/sign-up')).body, /Ask a manager of this store for an invitation\./)
    })

    it('is for somebody, whose name it suggests and whose role it gives; a new one for the same name replaces it', async () => {
      const { store, account } = service()
      const manager = await signedInManager(service())
      for (const [typed, problem] of [
        [{ name: ' ', role: 'member' }, 'Enter a name.'],
        [{ name: 'Cara (left)', role: 'member' }, '"Cara (left)" would be misunderstood. Choose another name.'],
        [{ name: 'Cara', role: 'owner' }, 'Choose one of the listed roles'],
      ] as const) {
        const refused = await manager.fillIn('/people/new', typed)
        assert.deepEqual([refused.status, problemsIn(refused.body)], [400, [problem]])
        assert.ok(refused.body.includes(`value="${typed.name}"`))
      }
      const fields = { ...(await manager.hiddenFields('/people/new')), name: 'Cara', role: 'manager' }
      const [old = '', link = ''] = [
        await manager.post('/people/new', fields),
        await manager.post('/people/new', fields),
      ].map(({ body }) => linkIn(body))
      const client = visitor(service())
      assert.match((await client.get(old)).body, GONE)
      assert.match(
        (await client.get(link)).body,
        /You are invited to this store\. Role: Manager\..*name="name" type="text" value="Cara"/s,
      )
      assert.equal(
        (await use(client, link, { name: 'Cara Ley', email: 'cara@example.com', password: NEW_PASSWORD })).status,
        303,
      )
      const cara = (await store.accounts.accountByEmail('cara@example.com'))!
      assert.deepEqual([cara.name, cara.role], ['Cara Ley', 'manager'])
      const taken = await manager.fillIn('/people/new', { name: 'CARA LEY', role: 'member' })
      assert.match(problemsIn(taken.body)[0]!, /^Somebody here is called CARA LEY already:/)
      const [invited] = await store.accounts.auditTrail(account.id, 1)
      assert.deepEqual([invited?.action, invited?.subject], ['account.invited', `Cara, Manager, for ${LINK_DAYS} days`])
    })

    it('keeps to the rules of a sign-up, and is not used up by a refused form', async () => {
      const link = await invite(await signedInManager(service()))
      const client = visitor(service())
      const token = link.split('=')[1]!
      const short = await use(client, link, { email: 'ruled@example.com', password: 'short' })
      assert.equal(short.status, 400)
      assert.equal(hiddenIn(short.body)['token'], token)
      assert.match((await join(client, link, service().account.email)).body, /There is already an account for/)
      assert.equal((await join(client, link, 'ruled@example.com')).location, '/animals')
    })

    it('stops working when its manager is one no more', async () => {
      const { accounts } = service()
      await signedInManager(service())
      const other = await makeAccount(service(), 'former@example.com')
      await accounts.setRole(other, 'manager', 'console')
      const former = visitor(service())
      await former.signIn('former@example.com', PASSWORD)
      const link = await invite(former)
      await accounts.setRole({ ...other, role: 'manager' }, 'member', 'console')
      assert.match((await visitor(service()).get(link)).body, GONE)
    })
  },
  { env: { PETSTORE_SIGNUP: 'closed' } },
)

describeOnSqlite('A link for a new password', (service) => {
  it('sets it once, ends the sessions of that person, and voids their other links', async () => {
    const manager = await signedInManager(service())
    const person = await makeAccount(service(), 'forgot@example.com')
    const old = visitor(service())
    await old.signIn(person.email, PASSWORD)
    const [link, other] = [await passwordLink(manager, person.id), await passwordLink(manager, person.id)]
    const clients = [visitor(service()), visitor(service())]
    const answers = await Promise.all(clients.map((client) => use(client, link, { password: NEW_PASSWORD })))
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([303, 404]))
    assert.match((await old.get('/animals')).location!, /^\/sign-in/)
    for (const used of [link, other]) assert.match((await visitor(service()).get(used)).body, GONE)
    assert.equal((await visitor(service()).signIn(person.email, NEW_PASSWORD)).status, 303)
    const trail = await service().store.accounts.auditTrail(person.id, 5)
    const changed = trail.find(({ action }) => action === 'account.password_changed')
    assert.equal(changed?.detail, `by a link of ${service().account.email}`)
  })

  it('is not for managers themselves, of whom the current password is asked; another manager may make one', async () => {
    const { account, accounts } = service()
    const manager = await signedInManager(service())
    const deputy = await makeAccount(service(), 'second@example.com')
    await accounts.setRole(deputy, 'manager', 'console')
    const linkOf = (id: string) => `/people/${id}/link`
    assert.ok(!(await manager.get(`/people/${account.id}`)).body.includes(linkOf(account.id)))
    const { csrf = '' } = await manager.hiddenFields('/people/new')
    assert.equal((await manager.post(linkOf(account.id), { csrf })).location, '/people')
    const joined = await join(visitor(service()), await invite(manager), account.email.toUpperCase())
    assert.match(joined.body, /There is already an account for/)
    const other = visitor(service())
    await other.signIn(deputy.email, PASSWORD)
    assert.equal((await visitor(service()).get(await passwordLink(other, account.id))).status, 200)
  })

  it('creates no account, whatever its form is given', async () => {
    const manager = await signedInManager(service())
    const person = await makeAccount(service(), 'target@example.com')
    const used = await join(visitor(service()), await passwordLink(manager, person.id), 'sneaky@example.com')
    assert.equal(used.location, '/account/name?next=%2Fanimals')
    assert.equal(await service().store.accounts.accountByEmail('sneaky@example.com'), undefined)
  })
})

for (const engine of ENGINES) {
  describe(`A link on ${engine.name}`, () => {
    it(`works for ${LINK_DAYS} days, and is purged then`, async () => {
      let now = Date.now()
      await using petstore = await startPetstore({ engine, clock: () => now })
      const manager = await signedInManager(petstore)
      const link = await invite(manager)
      const page = visitor(petstore)
      const fields = await page.hiddenFields(link, '/link')
      now += LINK_DAYS * 86_400_000 - 1
      assert.equal((await page.get(link)).status, 200)
      now += 1
      const late = await page.post('/link', { ...fields, email: 'late@example.com', password: NEW_PASSWORD })
      assert.match(late.body, GONE)
      // Making a link purges those that have expired.
      await petstore.accounts.makeLink(petstore.account, INVITED)
      now -= 1
      assert.match((await page.get(link)).body, GONE)
    })
  })
}

it('A link is in no log line, referrer or cache, and wrong ones are throttled', async () => {
  await using petstore = await startPetstore({ env: { PETSTORE_LOG_LEVEL: 'debug' } })
  const manager = await signedInManager(petstore)
  const link = await invite(manager)
  const token = link.split('=')[1]!
  const client = visitor(petstore)
  const wrong = link.slice(0, -1) + (link.endsWith('A') ? 'B' : 'A')
  for (const address of [link, wrong, '/link', `/link/${token}`, `/${token}`]) {
    const { headers, status } = await client.get(address)
    assert.equal(headers.get('cache-control'), 'no-store', address)
    assert.equal(headers.get('referrer-policy'), 'strict-origin', `${status}`)
  }
  await join(client, link, 'logged@example.com')
  assert.ok(petstore.logged.length > 10)
  assert.ok(!JSON.stringify(petstore.logged).includes(token.slice(5, 30)))
  let tries = 0
  for (; tries < LINKS_BY_ADDRESS.tries && (await client.get(wrong)).status === 404; tries += 1);
  assert.equal(tries, LINKS_BY_ADDRESS.tries - 1, 'one was opened above')
  const refused = await client.get(wrong)
  assert.deepEqual([refused.status, refused.headers.get('referrer-policy')], [429, 'strict-origin'])
  assert.equal((await client.get(await invite(manager))).status, 200, 'a link that works is not throttled')
})
