// The console's forms over HTTP: what protects them, what they create, and what they tell.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConsoleClient, MEMBER_PAGES, signedIn } from './console-client.ts'
import { countPets, describeService, PASSWORD, startPetstore } from './harness.ts'
import { RawConnection } from '../assurance/harness/raw-http.ts'

describeService('The forms of the console', (service) => {
  const addRex = async () => {
    await service().store.pets.createMany([{ name: 'Rex', categoryId: 1n, status: 'sold' }])
    return (await service().store.pets.list({ limit: 1 }))[0]!.id
  }
  /** As when nobody has used them for hours. */
  const endSessions = () => service().store.accounts.purgeSessions(0, 0, 0)

  describe('a form', () => {
    it('does nothing without the CSRF token of our own page, or with that of somebody else', async () => {
      const client = await signedIn(service())
      const other = await (await signedIn(service())).hiddenFields('/keys', '/keys')
      const lookalike = `${other['csrf']!.slice(1)}é`
      for (const csrf of ['', 'x', other['csrf']!, lookalike]) {
        const { status, body } = await client.post('/keys', { name: 'forged', expires: '', formId: 'x', csrf })
        assert.equal(status, 403)
        assert.match(body, /This form is out of date/)
      }
      assert.doesNotMatch((await client.get('/keys')).body, /forged/)
      for (const path of ['/sign-out', '/sign-in', '/sign-up']) {
        const forged = await client.post(path, {
          email: 'forged@example.com',
          password: PASSWORD,
          csrf: other['csrf']!,
        })
        assert.equal(forged.status, 403, path)
      }
      assert.equal((await client.get('/keys')).status, 200, 'still signed in')
      assert.equal(await service().store.accounts.accountByEmail('forged@example.com'), undefined)
    })

    it('does nothing when another site sent it, whatever it brings', async () => {
      const client = await signedIn(service())
      const fields = await client.hiddenFields('/keys', '/keys')
      for (const site of ['cross-site', 'same-site']) {
        const answer = await client.post('/keys', { ...fields, name: 'forged' }, { 'Sec-Fetch-Site': site })
        assert.equal(answer.status, 403)
      }
    })

    it('is taken from our own page, also where the browser tells so', async () => {
      const client = await signedIn(service())
      for (const site of ['same-origin', 'none']) {
        const fields = await client.hiddenFields('/keys', '/keys')
        assert.equal(
          (await client.post('/keys', { ...fields, name: site, expires: '' }, { 'Sec-Fetch-Site': site })).status,
          200,
          site,
        )
      }
    })

    it('leads to sign-in when the session is over, and from there to a page that is there', async () => {
      for (const [page, action, next] of [
        ['/account', '/account/password', '/account/password'],
        [`/keys/${service().apiKey.id}/revoke`, `/keys/${service().apiKey.id}/revoke`, '/keys'],
      ] as const) {
        const client = await signedIn(service())
        const fields = await client.hiddenFields(page, action)
        await client.submit('/keys', '/sign-out')
        const { status, location } = await client.post(action, fields)
        assert.deepEqual([status, location], [303, `/sign-in?next=${encodeURIComponent(next)}`])
        const again = await signedIn(service())
        assert.notEqual((await again.get(next)).status, 405)
      }
    })

    it('whose session ended is there again after the sign-in, as it was typed, and says that nothing was saved', async () => {
      const id = await addRex()
      const name = `Señor "Whiskers" <${'🐈'.repeat(250)}>`
      const shown = name.replaceAll('"', '&quot;').replace('<', '&lt;').replace('>', '&gt;')
      for (const path of [
        '/animals/new',
        `/animals/${id}?q=rex+the*`,
        '/keys',
        `/keys/${service().apiKey.id}/rename`,
      ]) {
        const client = await signedIn(service())
        const [action = ''] = path.split('?')
        const fields = await client.hiddenFields(path, path)
        const total = await countPets(service())
        await endSessions()
        const { status, location } = await client.post(path, { ...fields, name, categoryId: '12', status: 'sold' })
        assert.equal(status, 303)
        const [, carried = ''] = /typed=([\w-]+)/.exec(decodeURIComponent(location!)) ?? []
        assert.doesNotMatch(Buffer.from(carried, 'base64url').toString(), /csrf|^$/, 'no CSRF token in an address')
        assert.match((await client.get(location!)).body, /nothing was saved yet/)
        const wrong = await client.submit(location!, '/sign-in', {
          email: service().account.email,
          password: 'wrong one',
        })
        assert.equal(wrong.status, 400)
        const to = await client.submit(location!, '/sign-in', { email: service().account.email, password: PASSWORD })
        assert.ok(to.location?.startsWith(path), to.location ?? '')
        const { status: shownWith, body } = await client.get(to.location!)
        assert.equal(shownWith, 200, 'nothing was changed meanwhile')
        assert.match(body, /Nothing was saved yet/)
        assert.ok(body.includes(`name="name" type="text" value="${shown}"`), path)
        assert.equal(await countPets(service()), total)
        // For this page alone, and for this session alone.
        const elsewhere = to.location!.replace(action, action === '/keys' ? '/animals/new' : '/keys')
        for (const other of [await client.get(elsewhere), await (await signedIn(service())).get(to.location!)])
          assert.doesNotMatch(other.body, /Nothing was saved yet|Whiskers/)
      }
    })

    it('too long for an address is given up, so that the sign-in and the page after it still work', async () => {
      const client = await signedIn(service())
      const fields = await client.hiddenFields('/animals/new', '/animals/new')
      await endSessions()
      const addressFor = async (length: number) =>
        (await client.post('/animals/new', { ...fields, name: 'x'.repeat(length), categoryId: '1' })).location!
      assert.match(await addressFor(4000), /typed/)
      for (const length of [5000, 5900]) assert.equal(await addressFor(length), '/sign-in?next=%2Fanimals%2Fnew')
    })

    it('from before a sign-in in another tab is there again as well, where the browser says that it is ours', async () => {
      const client = await signedIn(service())
      const fields = { ...(await client.hiddenFields('/animals/new', '/animals/new')), name: 'Typed', categoryId: '1' }
      client.cookies.clear()
      await client.signIn(service().account.email, PASSWORD)
      const { status, location } = await client.post('/animals/new', fields, { 'Sec-Fetch-Site': 'same-origin' })
      assert.equal(status, 303)
      assert.match((await client.get(location!)).body, /Nothing was saved yet.*value="Typed"/s)
      assert.equal((await client.post('/animals/new', fields, { 'Sec-Fetch-Site': 'cross-site' })).status, 403)
      // Over plain HTTP a browser sends no Sec-Fetch-Site.
      assert.equal((await client.post('/animals/new', fields, { Origin: service().url })).status, 303)
      for (const origin of ['null', 'http://127.0.0.1', 'https://other.example'])
        assert.equal((await client.post('/animals/new', fields, { Origin: origin })).status, 403, origin)
    })

    it('whose cookie is gone as well, as after the browser was closed, is there again after the sign-in', async () => {
      const client = await signedIn(service())
      const fields = { ...(await client.hiddenFields('/animals/new', '/animals/new')), name: 'Typed', categoryId: '1' }
      client.cookies.clear()
      const { location } = await client.post('/animals/new', fields, { 'Sec-Fetch-Site': 'same-origin' })
      const to = await client.submit(location!, '/sign-in', { email: service().account.email, password: PASSWORD })
      assert.match((await client.get(to.location!)).body, /Nothing was saved yet.*value="Typed"/s)
    })

    it('is filled in by no link of somebody else: what another browser typed does not pass the sign-in', async () => {
      const other = await signedIn(service())
      const fields = await other.hiddenFields('/animals/new', '/animals/new')
      await endSessions()
      const { location } = await other.post('/animals/new', { ...fields, name: 'Planted' })
      assert.match(location!, /typed/)
      const visitor = new ConsoleClient(service().url)
      const to = await visitor.submit(location!, '/sign-in', { email: service().account.email, password: PASSWORD })
      assert.equal(to.location, '/animals/new')
    })

    it('with a password is never kept when its session ends, nor one that is too long for an address', async () => {
      for (const [page, action, typed] of [
        ['/account', '/account/password', { current: 'secret one', password: 'secret two' }],
        ['/account/delete', '/account/delete', { current: 'secret one' }],
        ['/animals/new', '/animals/new', { name: 'x'.repeat(10_000) }],
      ] as const) {
        const client = await signedIn(service())
        const fields = await client.hiddenFields(page, action)
        await endSessions()
        const { location } = await client.post(action, { ...fields, ...typed })
        assert.equal(location, `/sign-in?next=${encodeURIComponent(action)}`)
      }
    })

    it('in another format, or too large, is refused on a page', async () => {
      const client = await signedIn(service())
      const json = await client.post('/keys', {}, { 'Content-Type': 'application/json' })
      assert.equal(json.status, 415)
      const text = await client.post('/keys', {}, { 'Content-Type': 'text/plain' })
      assert.equal(text.status, 415)
      const large = await client.post('/keys', { name: 'x'.repeat(20_000) })
      assert.equal(large.status, 413)
      for (const { headers } of [json, text, large]) assert.match(headers.get('content-type') ?? '', /text\/html/)
    })

    it('without anything in it is answered, and not waited for', async () => {
      using connection = new RawConnection(service().url)
      connection.send(
        'POST /keys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n',
      )
      assert.equal((await connection.answer()).status, 303)
    })

    it('sent twice makes one key, and the second time says so', async () => {
      const client = await signedIn(service())
      const fields = { ...(await client.hiddenFields('/keys', '/keys')), name: 'once only', expires: '' }
      const [first, second] = [await client.post('/keys', fields), await client.post('/keys', fields)]
      assert.match(first.body, /pets_test_[0-9A-Za-z]{36}/)
      assert.equal(second.location, '/keys?made=yes')
      const { body } = await client.get('/keys?made=yes')
      assert.equal(body.split('<bdi>once only</bdi>').length, 2)
      assert.match(body, /has already created its key/)
    })

    it('sent twice adds one animal; gone back to and changed, it adds the other', async () => {
      const client = await signedIn(service())
      const fields = {
        ...(await client.hiddenFields('/animals/new', '/animals/new')),
        name: 'Twice',
        categoryId: '9223372036854775807',
        status: 'pending',
      }
      const answers = await Promise.all([client.post('/animals/new', fields), client.post('/animals/new', fields)])
      const [first, second] = answers.map(({ location }) => location)
      assert.match(first!, /^\/animals\?added=\d+$/)
      assert.equal(second, first)
      const changed = await client.post('/animals/new', { ...fields, name: 'Other' })
      assert.match(changed.location ?? '', /^\/animals\?added=\d+$/)
      assert.notEqual(changed.location, first)
      assert.deepEqual(
        { ...(await service().store.pets.get(BigInt(first!.split('=')[1]!))) },
        {
          id: BigInt(first!.split('=')[1]!),
          name: 'Twice',
          categoryId: 9223372036854775807n,
          status: 'pending',
        },
      )
    })

    it('filled in twice with the same adds two animals', async () => {
      const client = await signedIn(service())
      const before = await countPets(service())
      for (const _form of [1, 2])
        await client.submit('/animals/new', '/animals/new', { name: 'Alike', categoryId: '1' })
      assert.equal(await countPets(service()), before + 2)
    })

    it('tells what is wrong beside the field, in plain words, and keeps what was typed', async () => {
      const client = await signedIn(service())
      const chosen = await client.submit('/animals/new', '/animals/new', {
        name: 'Rex',
        categoryId: '',
        status: 'sold',
      })
      assert.match(chosen.body, /value="Rex".*<option value="sold" selected>/s)
      const { status, body } = await client.submit('/animals/new', '/animals/new', {
        name: '  ',
        categoryId: '1.5',
        status: 'lost',
      })
      assert.equal(status, 400)
      const told = [...body.matchAll(/<p class="problem" id="\w+-problem">([^<]*)<\/p>/g)].map(([, text]) =>
        text!.replaceAll('&quot;', '"'),
      )
      assert.deepEqual(told, [
        'Enter a name',
        'Category must be a whole number in digits, such as 3 or -3',
        'Choose one of the listed statuses',
      ])
      assert.match(body, /value="1\.5"/)
      assert.match(
        body,
        /name="categoryId"[^>]*aria-describedby="categoryId-hint categoryId-problem" aria-invalid="true"/,
      )
    })

    it('names the fault that the name and the category have', async () => {
      const client = await signedIn(service())
      const range = 'Category must be from -9223372036854775808 to 9223372036854775807'
      const digits = 'Category must be a whole number in digits, such as 3 or -3'
      const unstorable = 'The name has the character U+0000, which cannot be stored. Remove it'
      for (const [name, categoryId, expected] of [
        ['🐈'.repeat(256), '3', 'The name must have at most 255 characters, got 256'],
        [`${'🐈'.repeat(130)}\0`, '3', unstorable],
        [`${'🐈'.repeat(254)}\0`, '3', unstorable],
        ['Rex', '+3', digits],
        ['Rex', '1e30', digits],
        ['Rex', '٣', digits],
        ['Rex', '9223372036854775808', range],
        ['Rex', ' -9223372036854775809 ', range],
      ] as const) {
        const { status, body } = await client.submit('/animals/new', '/animals/new', { name, categoryId })
        const told = [...body.matchAll(/<p class="problem" id="\w+-problem">([^<]*)<\/p>/g)].map(([, text]) => text)
        assert.deepEqual([status, told], [400, [expected]])
      }
    })

    it('sent twice at sign-up leads to the one account that it made', async () => {
      const client = new ConsoleClient(service().url)
      const fields = {
        ...(await client.hiddenFields('/sign-up', '/sign-up')),
        email: 'double@example.com',
        password: PASSWORD,
      }
      const answers = await Promise.all([client.post('/sign-up', fields), client.post('/sign-up', fields)])
      assert.deepEqual(
        answers.map(({ location }) => location),
        ['/keys', '/keys'],
      )
      assert.equal((await client.get('/keys')).status, 200)
    })
  })

  it('create no account for what is no email address', async () => {
    const client = new ConsoleClient(service().url)
    const fields = { ...(await client.hiddenFields('/sign-up', '/sign-up')), password: PASSWORD }
    for (const email of [
      '',
      'you',
      'you@',
      '@example.com',
      'a b@example.com',
      'a@b@example.com',
      'a\u0000b@example.com',
      `${'x'.repeat(243)}@example.com`,
    ]) {
      const { status, body } = await client.post('/sign-up', { ...fields, email })
      assert.equal(status, 400, email)
      assert.match(body, /must have the form name@host and at most 254 characters/)
    }
    const longest = `${'x'.repeat(242)}@example.com`
    assert.equal((await client.post('/sign-up', { ...fields, email: longest })).status, 303)
  })

  describe('a key', () => {
    it('has a name of 1 to 100 characters, counted as people do, and what was typed is kept', async () => {
      const client = await signedIn(service())
      for (const name of ['', '   ', 'tab\tbed', 'x'.repeat(101), '🐈'.repeat(101)]) {
        const { status, body } = await client.submit('/keys', '/keys', { name, expires: '90' })
        assert.equal(status, 400, name)
        assert.match(body, /1 to 100 printable characters/)
        assert.ok(body.includes(`value="${name}"`), name)
        assert.match(body, /<option value="90" selected>/)
      }
      const longest = await client.submit('/keys', '/keys', { name: '🐈'.repeat(100), expires: '' })
      assert.equal(longest.status, 200)
    })

    it('ends after the chosen days, or not at all, and after no others', async () => {
      const client = await signedIn(service())
      for (const expires of ['7', '30', '90', '365', ''])
        assert.equal((await client.submit('/keys', '/keys', { name: `ends ${expires}`, expires })).status, 200)
      const keys = await service().store.accounts.listKeys(service().account.id)
      const daysOf = (name: string) => {
        const { createdAt, expiresAt } = keys.find((key) => key.name === name)!
        return expiresAt === undefined ? undefined : Math.round(((expiresAt - createdAt) / 86_400_000) * 1000) / 1000
      }
      assert.deepEqual(
        ['7', '30', '90', '365', ''].map((days) => daysOf(`ends ${days}`)),
        [7, 30, 90, 365, undefined],
      )
      for (const expires of ['8', '-1', '36500', 'never']) {
        assert.equal((await client.submit('/keys', '/keys', { name: 'other', expires })).status, 400, expires)
      }
    })

    it('is made for each account, whatever token the forms brought', async () => {
      const other = new ConsoleClient(service().url)
      await other.submit('/sign-up', '/sign-up', { email: 'same-token@example.com', password: PASSWORD })
      for (const client of [await signedIn(service()), other]) {
        assert.match(
          (await client.submit('/keys', '/keys', { name: 'k', expires: '', formId: 'the same' })).body,
          /pets_test_[0-9A-Za-z]{36}/,
        )
      }
    })

    it('is revoked once, by its form, and then listed so', async () => {
      const client = await signedIn(service())
      const made = await client.submit('/keys', '/keys', { name: 'to be revoked', expires: '' })
      const Authorization = `Bearer ${/pets_test_[0-9A-Za-z]{36}/.exec(made.body)![0]}`
      const { id } = (await service().store.accounts.listKeys(service().account.id)).find(
        ({ name }) => name === 'to be revoked',
      )!
      const page = `/keys/${id}/revoke`
      assert.equal((await client.get(page)).status, 200)
      assert.equal((await fetch(`${service().url}/v1/pets`, { headers: { Authorization } })).status, 200)
      assert.equal((await client.submit(page, page)).location, '/keys?revoked=yes')
      assert.equal((await fetch(`${service().url}/v1/pets`, { headers: { Authorization } })).status, 401)
      assert.equal((await client.get(page)).location, '/keys?revoked=yes')
      const card = (await client.get('/keys')).body.split('<li ').find((item) => item.includes(id)) ?? ''
      assert.match(card, /<span class="mark off">Revoked</)
      assert.doesNotMatch(card, /href="\/keys\/\w+\/revoke"/)
    })

    it('is shown once and never again, nor kept by any cache', async () => {
      const client = await signedIn(service())
      const { body, headers } = await client.submit('/keys', '/keys', { name: 'shown <once>', expires: '30' })
      const secret = /pets_test_[0-9A-Za-z]{36}/.exec(body)![0]
      assert.equal(headers.get('cache-control'), 'no-store')
      assert.match(body, /shown &lt;once&gt;/)
      for (const page of MEMBER_PAGES) assert.doesNotMatch((await client.get(page)).body, new RegExp(secret))
      const list = await client.get('/keys')
      assert.match(list.body, new RegExp(`pets_test_…${secret.slice(-4)}`))
    })

    it('warns where it still calls the deprecated operation, and counts its calls', async () => {
      for (let call = 0; call < 3; call += 1) await service().call('/pets/1')
      const { body } = await (await signedIn(service())).get('/keys')
      assert.match(body, /Called <code>getPet<\/code> 3 times in the last 7 days/)
      assert.equal(body.split('Called <code>').length, 2, 'of the keys, that one alone')
      assert.match(body, /removed on 5 December 2030/)
    })

    it('that was revoked is not warned of, whatever it called', async () => {
      const client = await signedIn(service())
      const made = await client.submit('/keys', '/keys', { name: 'calls no more', expires: '' })
      const Authorization = `Bearer ${/pets_test_[0-9A-Za-z]{36}/.exec(made.body)![0]}`
      await fetch(`${service().url}/v1/pets/1`, { headers: { Authorization } })
      const cardIn = (body: string) => body.split('<li ').find((item) => item.includes('<bdi>calls no more<')) ?? ''
      const card = cardIn((await client.get('/keys')).body)
      assert.match(card, /Called <code>getPet<\/code> 1 time /)
      const page = `/keys/${/id="(key_\w+)"/.exec(card)![1]}/revoke`
      await client.submit(page, page)
      const revoked = cardIn((await client.get('/keys')).body)
      assert.match(revoked, />Revoked<.*Calls, 7 days<\/dt><dd class="number">1</s)
      assert.doesNotMatch(revoked, /Called <code>getPet/)
    })

    it('of somebody else can be neither seen nor revoked', async () => {
      const client = await signedIn(service())
      const theirs = `/keys/${service().apiKey.id}/revoke`
      const stranger = new ConsoleClient(service().url)
      await stranger.submit('/sign-up', '/sign-up', { email: 'stranger@example.com', password: PASSWORD })
      for (const none of [theirs, '/keys/none/revoke', '/keys/%00/revoke'])
        assert.equal((await stranger.get(none)).status, 404, none)
      const { csrf } = await stranger.hiddenFields('/keys', '/keys')
      assert.equal((await stranger.post(theirs, { csrf: csrf! })).status, 404)
      assert.equal((await client.get(theirs)).status, 200)
      assert.equal((await service().call('/pets')).status, 200)
    })
  })

  it('deletes an account after its password, and its keys with it', async () => {
    const client = new ConsoleClient(service().url)
    await client.submit('/sign-up', '/sign-up', { email: 'gone@example.com', password: PASSWORD })
    const made = await client.submit('/keys', '/keys', { name: 'k', expires: '' })
    const Authorization = `Bearer ${/pets_test_[0-9A-Za-z]{36}/.exec(made.body)![0]}`
    assert.equal(
      (await client.submit('/account/delete', '/account/delete', { current: 'not my password' })).status,
      400,
    )
    assert.equal((await fetch(`${service().url}/v1/pets`, { headers: { Authorization } })).status, 200)
    const { location } = await client.submit('/account/delete', '/account/delete', { current: PASSWORD })
    assert.equal(location, '/sign-in?removed=yes')
    assert.equal((await fetch(`${service().url}/v1/pets`, { headers: { Authorization } })).status, 401)
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
    (await client.post('/animals/new', { name: 'Typed', categoryId: '1' }, { ...proxied, Origin: origin })).location!
  assert.match(await sentFrom('https://pets.example'), /typed/)
  for (const origin of ['http://pets.example', petstore.url, 'https://other.example'])
    assert.equal(await sentFrom(origin), '/sign-in?next=%2Fanimals%2Fnew', origin)
})
