// The console's forms over HTTP: what protects them, what they create, and what they tell.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ConsoleClient,
  createKey,
  hiddenIn,
  MEMBER_PAGES,
  problemsIn,
  signedIn,
  signedInAs,
  withKey,
} from '../harness/connections/console-client.ts'
import { countPets, describeOnSqlite, makeKey, PASSWORD, startPetstore } from '../harness/harness.ts'

const NEW = '/animals/new'

describeOnSqlite('The forms of the console', (service) => {
  const addRex = async () => {
    await service().store.pets.createMany([{ name: 'Rex', categoryId: 1n, status: 'sold' }])
    return (await service().store.pets.list({ limit: 1 }))[0]!.id
  }
  /** As when nobody has used them for hours. */
  const endSessions = () => service().store.accounts.purgeSessions(0, 0, 0)
  /** Signs in where a form has led to, and opens the page that follows. */
  const signInAgain = async (client: ConsoleClient, location: string | null) => {
    const led = await client.signIn(service().account.email, PASSWORD, location!)
    return { ...(await client.get(led.location!)), opened: led.location! }
  }

  describe('a form', () => {
    it('does nothing without the CSRF token of our own page, or with that of somebody else', async () => {
      const client = await signedIn(service())
      const { csrf: foreign = '' } = await (await signedIn(service())).hiddenFields('/keys/new', '/keys')
      for (const csrf of ['', 'x', foreign, `${foreign.slice(1)}é`]) {
        const { status, body } = await client.post('/keys', { name: 'forged', expires: '', formId: 'x', csrf })
        assert.equal(status, 403)
        assert.match(body, /This form is out of date.*You are signed in as.*href="\/animals">Go to the animals/s)
      }
      assert.doesNotMatch((await client.get('/keys')).body, /forged/)
      const typed = { email: 'forged@example.com', password: PASSWORD, csrf: foreign }
      for (const path of ['/sign-out', '/sign-in', '/sign-up'])
        assert.equal((await client.post(path, typed)).status, 403, path)
      assert.equal((await client.get('/keys')).status, 200, 'still signed in')
      assert.equal(await service().store.accounts.accountByEmail('forged@example.com'), undefined)
    })

    it('does nothing when another site sent it, whatever it brings, and is taken where the browser says that it is ours', async () => {
      const client = await signedIn(service())
      for (const [site, status] of Object.entries({
        'cross-site': 403,
        'same-site': 403,
        'same-origin': 200,
        none: 200,
      })) {
        const fields = { ...(await client.hiddenFields('/keys/new', '/keys')), name: site, expires: '' }
        assert.equal((await client.post('/keys', fields, { 'Sec-Fetch-Site': site })).status, status, site)
      }
    })

    it('leads to sign-in when the session is over, and from there to a page that is there', async () => {
      const revoke = `/keys/${service().apiKey.id}/revoke`
      for (const [page, action, next] of [
        ['/account', '/account/password', '/account/password'],
        [revoke, revoke, '/keys'],
      ] as const) {
        const client = await signedIn(service())
        const fields = await client.hiddenFields(page, action)
        await client.submit('/keys', '/sign-out')
        const { status, location } = await client.post(action, fields)
        assert.deepEqual([status, location], [303, `/sign-in?next=${encodeURIComponent(next)}`])
        assert.notEqual((await (await signedIn(service())).get(next)).status, 405)
      }
    })

    it('whose session ended is there again after the sign-in, as it was typed, and says that nothing was saved', async () => {
      const name = `Señor "Whiskers" <${'🐈'.repeat(250)}>`
      const shown = name.replaceAll('"', '&quot;').replace('<', '&lt;').replace('>', '&gt;')
      for (const path of [
        NEW,
        `/animals/${await addRex()}?q=rex+the*`,
        '/keys',
        `/keys/${service().apiKey.id}/rename`,
        '/categories/new',
      ]) {
        const client = await signedIn(service())
        const fields = await client.hiddenFields(path === '/keys' ? '/keys/new' : path, path)
        const total = await countPets(service())
        await endSessions()
        const { status, location } = await client.post(path, { ...fields, name, categoryId: '12', status: 'sold' })
        assert.equal(status, 303)
        const [, carried = ''] = /typed=([\w-]+)/.exec(decodeURIComponent(location!)) ?? []
        assert.doesNotMatch(Buffer.from(carried, 'base64url').toString(), /csrf|^$/, 'no CSRF token in an address')
        assert.match((await client.get(location!)).body, /nothing was saved yet/)
        const mistaken = await client.signIn(service().account.email, 'wrong one', location!)
        assert.equal(mistaken.status, 400)
        assert.match(mistaken.body, /nothing was saved yet/, 'after a wrong password, too')
        const page = await signInAgain(client, location)
        assert.ok(page.opened.startsWith(path), page.opened)
        assert.equal(page.status, 200, 'nothing was changed meanwhile')
        assert.match(page.body, /Nothing was saved yet/)
        assert.ok(page.body.includes(`name="name" type="text" value="${shown}"`), path)
        assert.equal(await countPets(service()), total)
        // For this page alone, and for this session alone.
        const elsewhere = page.opened.replace(path.split('?')[0]!, path === '/keys' ? NEW : '/keys')
        for (const other of [await client.get(elsewhere), await (await signedIn(service())).get(page.opened)])
          assert.doesNotMatch(other.body, /Nothing was saved yet|Whiskers/)
      }
    })

    it('from before a sign-in in another tab, or whose cookie is gone, is there again as well, where the browser says that it is ours', async () => {
      const client = await signedIn(service())
      const { email } = service().account
      const fields = { ...(await client.hiddenFields(NEW)), name: 'Typed', categoryId: '1' }
      const typedAgain = /Nothing was saved yet.*value="Typed"/s
      client.cookies.clear()
      const gone = await client.post(NEW, fields, { 'Sec-Fetch-Site': 'same-origin' })
      assert.match((await signInAgain(client, gone.location)).body, typedAgain)
      client.cookies.clear()
      await client.signIn(email, PASSWORD)
      const { status, location } = await client.post(NEW, fields, { 'Sec-Fetch-Site': 'same-origin' })
      assert.equal(status, 303)
      assert.match((await client.get(location!)).body, typedAgain)
      assert.equal((await client.post(NEW, fields, { 'Sec-Fetch-Site': 'cross-site' })).status, 403)
      // Over plain HTTP a browser sends no Sec-Fetch-Site.
      assert.equal((await client.post(NEW, fields, { Origin: service().url })).status, 303)
      for (const origin of ['null', 'http://127.0.0.1', 'https://other.example'])
        assert.equal((await client.post(NEW, fields, { Origin: origin })).status, 403, origin)
    })

    it('is filled in by no link of somebody else: what another browser typed does not pass the sign-in', async () => {
      const other = await signedIn(service())
      const fields = await other.hiddenFields(NEW)
      await endSessions()
      const { location } = await other.post(NEW, { ...fields, name: 'Planted' })
      assert.match(location!, /typed/)
      assert.equal((await signInAgain(new ConsoleClient(service().url), location)).opened, NEW)
    })

    it('with a password is never kept when its session ends, nor one that is too long for an address', async () => {
      for (const [page, action, typed, isKept] of [
        ['/account', '/account/password', { current: 'secret one', password: 'secret two' }, false],
        ['/account/delete', '/account/delete', { current: 'secret one' }, false],
        [NEW, NEW, { name: 'x'.repeat(4000) }, true],
        [NEW, NEW, { name: 'x'.repeat(5000) }, false],
        [NEW, NEW, { name: 'x'.repeat(10_000) }, false],
      ] as const) {
        const client = await signedIn(service())
        const fields = await client.hiddenFields(page, action)
        await endSessions()
        const { location } = await client.post(action, { ...fields, ...typed })
        if (isKept) assert.match(location!, /typed/)
        else assert.equal(location, `/sign-in?next=${encodeURIComponent(action)}`)
      }
    })

    it('sent twice adds one animal; gone back to and changed, or opened anew, it adds another', async () => {
      const client = await signedIn(service())
      const before = await countPets(service())
      const typed = { name: 'Twice', categoryId: '9223372036854775807', status: 'pending' }
      const fields = { ...(await client.hiddenFields(NEW)), ...typed }
      const [first, second] = await Promise.all([client.post(NEW, fields), client.post(NEW, fields)])
      const [, id = ''] = /^\/animals\?added=(\d+)&signed=/.exec(first.location!) ?? []
      assert.equal(second.location, first.location)
      const changed = await client.post(NEW, { ...fields, name: 'Other' })
      assert.match(changed.location ?? '', /^\/animals\?added=\d+&signed=/)
      await client.fillIn(NEW, typed)
      assert.equal(await countPets(service()), before + 3)
      const stored = { id: BigInt(id), name: 'Twice', categoryId: 9223372036854775807n, status: 'pending' }
      assert.deepEqual({ ...(await service().store.pets.get(BigInt(id))) }, stored)
    })

    it('sent twice at sign-up leads to the one account that it made', async () => {
      const client = new ConsoleClient(service().url)
      const typed = {
        ...(await client.hiddenFields('/sign-up')),
        name: 'Double',
        email: 'double@example.com',
        password: PASSWORD,
      }
      const answers = await Promise.all([client.post('/sign-up', typed), client.post('/sign-up', typed)])
      for (const { location } of answers) assert.equal(location, '/animals')
      assert.equal((await client.get('/keys')).status, 200)
    })

    it('tells what is wrong beside the field, in plain words, and keeps what was typed', async () => {
      const client = await signedIn(service())
      const id = await addRex()
      const wrongAnimal = { name: '  ', categoryId: '1.5', status: 'lost' }
      const animalProblems = [
        'Enter a name',
        'No category is named "1.5". Enter a name of the list, or a whole number such as 3 or -3',
        'Choose one of Available, Reserved, Sold',
      ]
      const keyName = /^The key's name must have at most 100 characters, all of them printable/
      const wrongPassword = 'The password is wrong.'
      for (const [who, page, action, typed, problems, kept] of [
        [client, NEW, NEW, wrongAnimal, animalProblems, ['value="1.5"']],
        [client, NEW, NEW, { name: 'Rex', status: 'sold' }, ['Enter a category'], ['value="Rex"', '"sold" selected']],
        [client, `/animals/${id}`, `/animals/${id}`, wrongAnimal, animalProblems, ['value="  "', 'value="1.5"']],
        [client, '/keys/new', '/keys', { name: 'tab\tbed', expires: '90' }, [keyName], ['"tab\tbed"', '"90" selected']],
        [client, '/keys/new', '/keys', { name: ' ' }, ['Enter a name'], ['value=" "']],
        [client, '/keys/new', '/keys', { name: 'k', expires: '8' }, ['Choose one of the listed times.'], ['value="k"']],
        [client, '/account', '/account/password', { current: 'not it', password: PASSWORD }, [wrongPassword], []],
        [
          client,
          '/account',
          '/account/password',
          { current: 'not it', password: 'too short' },
          [wrongPassword, /at least 12 .* got 9/],
          [],
        ],
        [
          client,
          '/account',
          '/account/password',
          { current: PASSWORD, password: 'short' },
          [/at least 12 .* got 5/],
          [],
        ],
        [client, '/account/delete', '/account/delete', { current: 'not it' }, [wrongPassword], []],
        [
          new ConsoleClient(service().url),
          '/sign-up',
          '/sign-up',
          { email: 'you', password: 'too short' },
          ['Enter a name.', 'Enter your email address, like maria@shop.com.', /at least 12 .* got 9/],
          ['"you"'],
        ],
        [
          new ConsoleClient(service().url),
          '/sign-up',
          '/sign-up',
          { name: 'Ben', email: 'you', password: PASSWORD },
          ['Enter your email address, like maria@shop.com.'],
          ['"Ben"', `"${PASSWORD}"`],
        ],
      ] as const) {
        const { status, headers, body } = await who.submit(page, action, typed)
        assert.deepEqual([status, headers.get('cache-control')], [400, 'no-store'], page)
        assert.ok(!body.includes('too short'), 'a wrong password')
        const told = problemsIn(body)
        assert.equal(told.length, problems.length, page)
        for (const [nth, problem] of problems.entries())
          if (typeof problem === 'string') assert.equal(told[nth], problem)
          else assert.match(told[nth]!, problem)
        for (const text of kept) assert.ok(body.includes(text), `${page}: ${text}`)
        assert.match(body, /aria-describedby="[^"]*\b(\w+)-problem" aria-invalid="true" autofocus/)
        assert.equal(body.split(' autofocus').length, 2, 'the first one has the focus')
        assert.equal(/role="alert"/.test(body), problems.length > 1, 'a summary is for several')
      }
      assert.deepEqual(await service().store.pets.get(id), { id, name: 'Rex', categoryId: 1n, status: 'sold' })
    })
  })

  describe('a key', () => {
    it('ends after the chosen days, or not at all, and after no others', async () => {
      const client = await signedIn(service())
      const chosen = ['7', '30', '90', '365', '']
      for (const days of chosen) await client.generateKey(`ends ${days}`, days)
      const keys = await service().store.accounts.listKeys(service().account.id)
      const daysOf = (name: string) => {
        const { createdAt, expiresAt } = keys.find((key) => key.name === name)!
        return expiresAt === undefined ? undefined : Math.round(((expiresAt - createdAt) / 86_400_000) * 1000) / 1000
      }
      assert.deepEqual(
        chosen.map((days) => daysOf(`ends ${days}`)),
        [7, 30, 90, 365, undefined],
      )
      for (const expires of ['8', '-1', '36500', 'never'])
        assert.equal((await client.submit('/keys/new', '/keys', { name: 'other', expires })).status, 400, expires)
    })

    it('is made for each account, whatever token the forms brought', async () => {
      for (const client of [await signedIn(service()), await signedInAs(service(), 'same-token@example.com')]) {
        const { body } = await client.submit('/keys/new', '/keys', { name: 'k', expires: '', formId: 'the same' })
        assert.match(body, /pets_test_[0-9A-Za-z]{36}/)
      }
    })

    it('that is active is warned of where it still calls the deprecated operation; it is revoked once, by its form, and then listed so', async () => {
      const client = await signedIn(service())
      const { secret } = await client.generateKey('to be revoked')
      for (let call = 0; call < 3; call += 1) await service().call('/pets/1', withKey(secret))
      const listed = (await client.get('/keys')).body
      assert.equal(listed.split('Called <code>').length, 2, 'of the keys, that one alone')
      const cardIn = (body: string) => body.split('<tr ').find((item) => item.includes('<bdi>to be revoked<')) ?? ''
      assert.match(
        cardIn(listed),
        /Called <code>getPet<\/code> 3 times in the last 7 days.*removed on 5 December 2030/s,
      )
      const page = `/keys/${/id="(key_\w+)"/.exec(cardIn(listed))![1]}/revoke`
      assert.equal((await client.get(page)).status, 200)
      assert.equal((await client.fillIn(page)).location, '/keys?revoked=yes')
      assert.equal((await service().call('/pets', withKey(secret))).status, 401)
      assert.equal((await client.get(page)).location, '/keys?revoked=yes')
      assert.equal(cardIn((await client.get('/keys')).body), '')
      const card = cardIn((await client.get('/keys?state=inactive')).body)
      assert.match(card, /data-label="Calls, 7 days">3<.*<span class="mark off">Revoked </s)
      assert.doesNotMatch(card, /href="\/keys\/\w+\/revoke"|Called <code>getPet/)
    })

    it('is shown once and never again, nor kept by any cache', async () => {
      const client = await signedIn(service())
      const { body, headers, secret } = await client.generateKey('shown <once>', '30')
      assert.equal(headers.get('cache-control'), 'no-store')
      assert.match(body, /shown &lt;once&gt;/)
      for (const page of MEMBER_PAGES) assert.doesNotMatch((await client.get(page)).body, new RegExp(secret))
      assert.match((await client.get('/keys')).body, new RegExp(`pets_test_…${secret.slice(-4)}`))
    })

    it('is renamed, and the security log says from what to what', async () => {
      const { account, store } = service()
      const made = await createKey(service(), 'old name')
      const page = `/keys/${made.key.id}/rename`
      const client = await signedIn(service())
      const refused = await client.fillIn(page, { name: ' ' })
      assert.equal(refused.status, 400)
      assert.match(refused.body, /<title>Error: Rename a key.*Enter a name<.*name="name" type="text" value=" "/s)
      const { location } = await client.fillIn(page, { name: 'new name' })
      assert.match((await client.get(location!)).body, /Key renamed.*<bdi>new name<\/bdi>/s)
      const [event] = await store.accounts.auditTrail(account.id, 1)
      assert.deepEqual([event?.action, event?.detail], ['key.renamed', 'Name: "old name" → "new name"'])
      assert.equal((await service().call('/pets', withKey(made.secret))).status, 200)
    })

    it('that was renamed in another tab is not renamed back: a name that was left alone stays, and another one is asked about', async () => {
      const client = await signedIn(service())
      const path = `/keys/${service().apiKey.id}/rename`
      const form = await client.hiddenFields(path)
      await client.fillIn(path, { name: 'theirs' })
      assert.equal((await client.post(path, { ...form, name: form['shown']! })).location, '/keys')
      const nameNow = async () => (await service().store.accounts.keyById(service().apiKey.id))?.name
      assert.equal(await nameNow(), 'theirs')
      const asked = await client.post(path, { ...form, name: 'mine' })
      assert.equal(asked.status, 400)
      assert.match(asked.body, /Rename <bdi>theirs<.*renamed while you were editing.*value="mine"/s)
      assert.equal(await nameNow(), 'theirs')
      await client.post(path, { ...hiddenIn(asked.body), name: 'mine' })
      assert.equal(await nameNow(), 'mine')
      const next = await client.hiddenFields(path)
      const sentAtOnce = await Promise.all(['one', 'two'].map((name) => client.post(path, { ...next, name })))
      assert.equal(sentAtOnce.filter(({ status }) => status === 400).length, 1, 'only one is renamed')
      await client.fillIn(path, { name: 'mine' })
      // A form that comes back after a sign-in still shows what it was opened with.
      await service().store.accounts.purgeSessions(0, 0, 0)
      const ended = await client.post(path, { ...form, name: 'late' })
      const back = await client.signIn(service().account.email, PASSWORD, ended.location!)
      const sent = await client.post(path, { ...hiddenIn((await client.get(back.location!)).body), name: 'late' })
      assert.match(sent.body, /Rename <bdi>mine<.*renamed while you were editing/s)
    })

    it('that is new is shown with a create first, and says when its first request has come', async () => {
      const client = await signedIn(service())
      const { body, headers, secret } = await client.generateKey('waits')
      const policy = headers.get('content-security-policy') ?? ''
      assert.match(policy, /^default-src 'none'; .*connect-src 'self'$/, 'its script may ask for the first request')
      assert.ok(body.indexOf('&quot;categoryId&quot;: 3') < body.lastIndexOf('curl '))
      const address = /data-first-request="([^"]+)"/.exec(body)![1]!
      const waiting = await client.get(address)
      assert.equal(waiting.headers.get('refresh'), '3')
      assert.match(waiting.body, /Waiting for the first request/)
      await service().call('/pets', withKey(secret))
      const arrived = await client.get(address)
      assert.equal(arrived.headers.get('refresh'), null)
      assert.match(arrived.body, /1 request with this key so far: it works/)
    })

    it('of somebody else can be neither seen nor revoked nor renamed', async () => {
      const stranger = await signedIn(service())
      const { apiKey, key } = await makeKey(service())
      const { csrf = '' } = await stranger.hiddenFields('/keys/new', '/keys')
      for (const none of [apiKey.id, 'none', '%00'])
        for (const page of [`/keys/${none}/revoke`, `/keys/${none}/rename`, `/keys/${none}/first-request`]) {
          assert.equal((await stranger.get(page)).status, 404, page)
          if (!page.endsWith('request')) assert.equal((await stranger.post(page, { csrf, name: 'mine' })).status, 404)
        }
      assert.equal((await service().call('/pets', withKey(key))).status, 200)
      assert.equal((await service().store.accounts.keyById(apiKey.id))?.name, 'test')
    })
  })

  it('deletes an account after its password, and its keys with it', async () => {
    const client = await signedInAs(service(), 'gone@example.com')
    const { secret } = await client.generateKey('k')
    await client.fillIn('/account/delete', { current: 'not my password' })
    assert.equal((await service().call('/pets', withKey(secret))).status, 200)
    const { location } = await client.fillIn('/account/delete', { current: PASSWORD })
    assert.equal(location, '/sign-in?removed=yes')
    assert.equal((await service().call('/pets', withKey(secret))).status, 401)
    assert.equal((await client.get('/keys')).status, 303)
    assert.equal(client.cookies.has('petstore'), false)
    assert.match((await client.get(location)).body, /The account and its keys were deleted\./)
  })
})

it('What was typed into a form is kept behind a proxy too, where only Origin shows that the form is ours', async () => {
  await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '127.0.0.1' } })
  const client = new ConsoleClient(petstore.url)
  const proxied = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'pets.example' }
  const sentFrom = async (origin: string) =>
    (await client.post(NEW, { name: 'Typed', categoryId: '1' }, { ...proxied, Origin: origin })).location!
  assert.match(await sentFrom('https://pets.example'), /typed/)
  for (const origin of ['http://pets.example', petstore.url, 'https://other.example'])
    assert.equal(await sentFrom(origin), '/sign-in?next=%2Fanimals%2Fnew', origin)
})
