// The console over HTTP: cookies, forms and their proofs, sessions, throttles, and what a page may be told.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { SESSION_IDLE_MS, SESSION_MAX_MS } from '../src/accounts/sessions.ts'
import { SIGN_IN_BY_ACCOUNT, SIGN_UP_BY_ADDRESS } from '../src/accounts/throttle.ts'
import { ERRORS } from '../src/contract/errors.ts'
import { ConsoleClient } from './console-client.ts'
import { ENGINES, type TestDatabase } from './engines.ts'
import { PASSWORD, type Petstore, startPetstore } from './harness.ts'

const MEMBER_PAGES = ['/keys', '/animals', '/animals/new', '/activity', '/account', '/account/delete']
const OPEN_PAGES = ['/', '/sign-in', '/sign-up', '/docs', '/docs/errors', '/docs/deprecations']

for (const engine of ENGINES) {
  describe(`the console on ${engine.name}`, () => {
    const clock = { now: Date.now() }
    let petstore: Petstore

    before(async () => {
      petstore = await startPetstore({ engine, clock: () => clock.now })
    })
    after(() => petstore[Symbol.asyncDispose]())

    /** Somebody who is signed in. */
    async function member(): Promise<ConsoleClient> {
      const client = new ConsoleClient(petstore.url)
      const { status, location } = await client.signIn(petstore.account.email, PASSWORD)
      assert.deepEqual([status, location], [303, '/keys'])
      return client
    }

    describe('signing in', () => {
      it('creates an account, signs in with it, and hands out a cookie that scripts and other sites cannot use', async () => {
        const visitor = new ConsoleClient(petstore.url)
        const answer = await visitor.submit('/sign-up', '/sign-up', { email: 'new@example.com', password: PASSWORD })
        assert.deepEqual([answer.status, answer.location], [303, '/keys'])
        assert.match(answer.headers.get('set-cookie') ?? '', /^petstore=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
        assert.equal((await visitor.get('/keys')).status, 200)
      })

      it('changes the token at sign-in, so that one planted before is worth nothing', async () => {
        const client = new ConsoleClient(petstore.url)
        await client.get('/sign-in')
        const planted = client.cookies.get('petstore')
        await client.signIn(petstore.account.email, PASSWORD)
        assert.notEqual(client.cookies.get('petstore'), planted)
        const thief = new ConsoleClient(petstore.url)
        thief.cookies.set('petstore', planted!)
        assert.equal((await thief.get('/keys')).status, 303)
      })

      it('answers a wrong password and an unknown account alike, and keeps what was typed', async () => {
        const client = new ConsoleClient(petstore.url)
        const wrong = await client.signIn(petstore.account.email, 'wrong horse battery')
        const unknown = await client.signIn('nobody@example.com', 'wrong horse battery')
        const plain = ({ body }: { body: string }) => body.replaceAll(/value="[^"]*"/g, '')
        assert.deepEqual([wrong.status, plain(wrong)], [unknown.status, plain(unknown)])
        assert.match(wrong.body, new RegExp(`value="${petstore.account.email}"`))
        assert.doesNotMatch(wrong.body, /wrong horse/)
        assert.match(wrong.body, /The email address or the password is not right/)
      })

      it('takes as long to refuse an unknown account as a wrong password', async () => {
        const client = new ConsoleClient(petstore.url)
        const fields = await client.hiddenFields('/sign-in', '/sign-in')
        const median = async (email: string) => {
          const times: number[] = []
          for (let tries = 0; tries < 5; tries += 1) {
            const started = performance.now()
            await client.post('/sign-in', { ...fields, email, password: 'wrong horse battery' })
            times.push(performance.now() - started)
          }
          return times.toSorted((a, b) => a - b)[2]!
        }
        const [known, unknown] = [await median(petstore.account.email), await median('no-one@example.com')]
        // A look-up alone takes a hundredth of the hash: the bounds are wide, the difference would be wider.
        assert.ok(unknown / known > 0.4 && unknown / known < 2.5, `${known} ms, ${unknown} ms`)
        clock.now += SIGN_IN_BY_ACCOUNT.withinMs
      })

      it('leads back to the page that was asked for, and never off the site', async () => {
        const client = new ConsoleClient(petstore.url)
        const { location } = await client.get('/animals?status=sold')
        assert.equal(location, '/sign-in?next=%2Fanimals%3Fstatus%3Dsold')
        const answer = await client.submit(location, '/sign-in', { email: petstore.account.email, password: PASSWORD })
        assert.equal(answer.location, '/animals?status=sold')
        for (const next of ['//evil.example', 'https://evil.example', '/\\evil.example', '/keys/../../x y', 'javascript:alert(1)']) {
          const other = new ConsoleClient(petstore.url)
          const led = await other.submit('/sign-in', '/sign-in', { email: petstore.account.email, password: PASSWORD, next })
          assert.equal(led.location, '/keys', next)
        }
      })

      it('ends the session at sign-out, for that token for good', async () => {
        const client = await member()
        const token = client.cookies.get('petstore')!
        const { location } = await client.submit('/keys', '/sign-out')
        assert.equal(location, '/sign-in?signed-out=yes')
        assert.equal(client.cookies.has('petstore'), false)
        client.cookies.set('petstore', token)
        assert.equal((await client.get('/keys')).status, 303)
      })

      it('tells the account its sign-ins, good and refused, in its trail', async () => {
        const client = await member()
        await new ConsoleClient(petstore.url).signIn(petstore.account.email, 'wrong horse battery')
        await until(async () => /Sign-in refused/.test((await client.get('/account')).body))
        assert.match((await client.get('/account')).body, /Signed in/)
      })
    })

    describe('a session', () => {
      it('ends when nothing was done for its idle time, and goes on while something is', async () => {
        const start = clock.now
        const client = await member()
        for (let step = 0; step < 3; step += 1) {
          clock.now += SESSION_IDLE_MS - 1000
          assert.equal((await client.get('/keys')).status, 200)
        }
        clock.now += SESSION_IDLE_MS
        const { status, location } = await client.get('/keys')
        assert.deepEqual([status, location], [303, '/sign-in?next=%2Fkeys'])
        assert.match((await client.get(location!)).body, /your session has ended/)
        clock.now = start
      })

      it('ends after its longest time, however busy', async () => {
        const start = clock.now
        const client = await member()
        while (clock.now - start < SESSION_MAX_MS - SESSION_IDLE_MS / 2) {
          assert.equal((await client.get('/account')).status, 200)
          clock.now += SESSION_IDLE_MS / 2
        }
        clock.now = start + SESSION_MAX_MS
        assert.equal((await client.get('/account')).status, 303)
        clock.now = start
      })

      it('ends everywhere else when the password is changed, and goes on here with a new token', async () => {
        const [here, elsewhere] = [await member(), await member()]
        const old = here.cookies.get('petstore')
        const changed = await here.submit('/account', '/account/password', { current: PASSWORD, password: PASSWORD })
        assert.equal(changed.location, '/account?changed=yes')
        assert.notEqual(here.cookies.get('petstore'), old)
        assert.equal((await here.get('/account')).status, 200)
        assert.equal((await elsewhere.get('/account')).status, 303)
      })

      it('never works as an API key, nor an API key as a session', async () => {
        const client = await member()
        const token = client.cookies.get('petstore')!
        const asKey = await fetch(`${petstore.url}/v1/pets`, { headers: { Authorization: `Bearer ${token}` } })
        const asCookie = await fetch(`${petstore.url}/v1/pets`, { headers: { Cookie: `petstore=${token}` } })
        assert.deepEqual([asKey.status, asCookie.status], [401, 401])
        const { key, url } = petstore
        for (const headers of [{ Authorization: `Bearer ${key}` }, { Cookie: `petstore=${key}` }] as Record<string, string>[]) {
          assert.equal((await fetch(`${url}/keys`, { headers, redirect: 'manual' })).status, 303)
        }
      })
    })

    describe('a form', () => {
      it('does nothing without the proof of our own page, or with that of somebody else', async () => {
        const client = await member()
        const other = await (await member()).hiddenFields('/keys', '/keys')
        for (const proof of ['', 'x', other['proof']!]) {
          const { status, body } = await client.post('/keys', { name: 'forged', expires: '', once: 'x', proof })
          assert.equal(status, 403)
          assert.match(body, /This form is out of date/)
        }
        assert.doesNotMatch((await client.get('/keys')).body, /forged/)
      })

      it('does nothing when another site sent it, whatever it brings', async () => {
        const client = await member()
        const fields = await client.hiddenFields('/keys', '/keys')
        for (const site of ['cross-site', 'same-site']) {
          const answer = await client.post('/keys', { ...fields, name: 'forged' }, { 'Sec-Fetch-Site': site })
          assert.equal(answer.status, 403)
        }
      })

      it('leads to sign-in when the session is over, and back to its page', async () => {
        const client = await member()
        const fields = await client.hiddenFields('/animals/new', '/animals/new')
        await client.submit('/keys', '/sign-out')
        const { status, location } = await client.post('/animals/new', { ...fields, name: 'Late', categoryId: '1' })
        assert.deepEqual([status, location], [303, '/sign-in?next=%2Fanimals%2Fnew'])
      })

      it('in another format, or too large, is refused on a page', async () => {
        const client = await member()
        const json = await client.post('/keys', {}, { 'Content-Type': 'application/json' })
        assert.equal(json.status, 403)
        const text = await client.post('/keys', {}, { 'Content-Type': 'text/plain' })
        assert.equal(text.status, 415)
        const large = await client.post('/keys', { name: 'x'.repeat(20_000) })
        assert.equal(large.status, 413)
        for (const { headers } of [json, text, large]) assert.match(headers.get('content-type') ?? '', /text\/html/)
      })

      it('sent twice makes one key, and the second time says so', async () => {
        const client = await member()
        const fields = { ...(await client.hiddenFields('/keys', '/keys')), name: 'once only', expires: '' }
        const [first, second] = [await client.post('/keys', fields), await client.post('/keys', fields)]
        assert.match(first.body, /pets_test_[0-9A-Za-z]{36}/)
        assert.equal(second.location, '/keys?made=yes')
        const { body } = await client.get('/keys?made=yes')
        assert.equal(body.split('<bdi>once only</bdi>').length, 2)
        assert.match(body, /has made its key already/)
      })

      it('sent twice adds one animal; gone back to and changed, it adds the other', async () => {
        const client = await member()
        const fields = { ...(await client.hiddenFields('/animals/new', '/animals/new')), name: 'Twice', categoryId: '9223372036854775807', status: 'pending' }
        const answers = await Promise.all([client.post('/animals/new', fields), client.post('/animals/new', fields)])
        const [first, second] = answers.map(({ location }) => location)
        assert.match(first!, /^\/animals\?added=\d+$/)
        assert.equal(second, first)
        const changed = await client.post('/animals/new', { ...fields, name: 'Other' })
        assert.notEqual(changed.location, first)
        assert.deepEqual({ ...(await petstore.store.pets.get(BigInt(first!.split('=')[1]!))) }, {
          id: BigInt(first!.split('=')[1]!),
          name: 'Twice',
          categoryId: 9223372036854775807n,
          status: 'pending',
        })
      })

      it('tells what is wrong beside the field, in the words of the API, and keeps what was typed', async () => {
        const client = await member()
        const { status, body } = await client.submit('/animals/new', '/animals/new', { name: '  ', categoryId: '1.5', status: 'lost' })
        assert.equal(status, 400)
        const api = (await (await petstore.add({ name: '  ', categoryId: 1.5, status: 'lost' })).json()) as { message: string }
        const told = [...body.matchAll(/<p class="problem" id="\w+-problem">([^<]*)<\/p>/g)].map(([, text]) => text!.replaceAll('&quot;', '"'))
        assert.equal(told.length, 3)
        assert.equal(told.join(' ').replace('got "1.5"', 'got 1.5'), api.message)
        assert.match(body, /value="1\.5"/)
      })

      it('sent twice at sign-up leads to the one account that it made', async () => {
        const client = new ConsoleClient(petstore.url)
        const fields = { ...(await client.hiddenFields('/sign-up', '/sign-up')), email: 'double@example.com', password: PASSWORD }
        const answers = await Promise.all([client.post('/sign-up', fields), client.post('/sign-up', fields)])
        assert.deepEqual(answers.map(({ location }) => location), ['/keys', '/keys'])
        assert.equal((await client.get('/keys')).status, 200)
      })
    })

    describe('a key', () => {
      it('is shown once and never again, nor kept by any cache', async () => {
        const client = await member()
        const { body, headers } = await client.submit('/keys', '/keys', { name: 'shown <once>', expires: '30' })
        const secret = /pets_test_[0-9A-Za-z]{36}/.exec(body)![0]
        assert.equal(headers.get('cache-control'), 'no-store')
        assert.match(body, /shown &lt;once&gt;/)
        for (const page of MEMBER_PAGES) assert.doesNotMatch((await client.get(page)).body, new RegExp(secret))
        const list = await client.get('/keys')
        assert.match(list.body, new RegExp(`pets_test_…${secret.slice(-4)}`))
      })

      it('warns where it still calls the deprecated operation, and counts its calls', async () => {
        for (let call = 0; call < 3; call += 1) await petstore.call('/pets/1')
        const { body } = await (await member()).get('/keys')
        assert.match(body, /Called <code>getPet<\/code> 3 times in the last 7 days/)
        assert.match(body, /removed on 5 December 2030/)
      })

      it('of somebody else can be neither seen nor revoked', async () => {
        const client = await member()
        const theirs = `/keys/${petstore.apiKey.id}/revoke`
        const stranger = new ConsoleClient(petstore.url)
        await stranger.submit('/sign-up', '/sign-up', { email: 'stranger@example.com', password: PASSWORD })
        assert.equal((await stranger.get(theirs)).status, 404)
        const { proof } = await stranger.hiddenFields('/keys', '/keys')
        assert.equal((await stranger.post(theirs, { proof: proof! })).status, 404)
        assert.equal((await client.get(theirs)).status, 200)
        assert.equal((await petstore.call('/pets')).status, 200)
      })
    })

    it('explains a failed request with its Request-Id, code, message and cure', async () => {
      const failed = await petstore.add({ name: '<script>alert(1)</script>' })
      const { body } = await (await member()).get('/activity')
      assert.match(body, new RegExp(failed.headers.get('request-id')!))
      assert.match(body, /href="\/docs\/errors#invalid_pet"/)
      assert.match(body, /categoryId is missing/)
      assert.match(body, new RegExp(ERRORS.invalid_pet.cure))
      assert.doesNotMatch(body, /<script>alert/)
    })

    it('deletes an account after its password, and its keys with it', async () => {
      const client = new ConsoleClient(petstore.url)
      await client.submit('/sign-up', '/sign-up', { email: 'gone@example.com', password: PASSWORD })
      const made = await client.submit('/keys', '/keys', { name: 'k', expires: '' })
      const Authorization = `Bearer ${/pets_test_[0-9A-Za-z]{36}/.exec(made.body)![0]}`
      assert.equal((await client.submit('/account/delete', '/account/delete', { current: 'not my password' })).status, 400)
      assert.equal((await fetch(`${petstore.url}/v1/pets`, { headers: { Authorization } })).status, 200)
      const { location } = await client.submit('/account/delete', '/account/delete', { current: PASSWORD })
      assert.equal(location, '/sign-in?removed=yes')
      assert.equal((await fetch(`${petstore.url}/v1/pets`, { headers: { Authorization } })).status, 401)
      assert.equal((await client.get('/keys')).status, 303)
    })

    it('shows names with markup, right-to-left text and emoji as text', async () => {
      const names = ['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', 'שלום', '🐈‍⬛ & co']
      for (const name of names) assert.equal((await petstore.add({ name, categoryId: 1 })).status, 201)
      const { body } = await (await member()).get('/animals')
      assert.match(body, /<bdi>&lt;script&gt;alert\(1\)&lt;\/script&gt;<\/bdi>/)
      assert.match(body, /<bdi>&quot;&gt;&lt;img src=x onerror=alert\(1\)&gt;<\/bdi>/)
      assert.match(body, /<bdi>שלום<\/bdi>/)
      assert.match(body, /<bdi>🐈‍⬛ &amp; co<\/bdi>/)
    })

    describe('every page', () => {
      it('carries the headers that keep it to itself, and a Request-Id', async () => {
        const client = await member()
        for (const page of [...OPEN_PAGES, ...MEMBER_PAGES, '/nothing-here', '/keys/none/revoke']) {
          const { headers } = await client.get(page)
          const policy = headers.get('content-security-policy') ?? ''
          assert.match(policy, /default-src 'none'; script-src 'self';.*frame-ancestors 'none'/, page)
          assert.equal(policy.includes('unsafe-inline'), page === '/docs', page)
          assert.doesNotMatch(policy, /unsafe-eval/)
          assert.equal(headers.get('x-content-type-options'), 'nosniff', page)
          assert.equal(headers.get('referrer-policy'), 'same-origin', page)
          assert.equal(headers.get('cache-control'), page === '/nothing-here' ? 'private, no-cache' : 'no-store', page)
          assert.ok(headers.get('request-id'), page)
        }
      })

      it('asks for a sign-in where it shows something of an account', async () => {
        for (const page of MEMBER_PAGES) {
          const { status, location } = await new ConsoleClient(petstore.url).get(page)
          assert.deepEqual([status, location?.split('?')[0]], [303, '/sign-in'], page)
        }
      })

      it('answers HEAD as GET without a body, and other methods with 405', async () => {
        const head = await fetch(`${petstore.url}/docs/errors`, { method: 'HEAD' })
        assert.deepEqual([head.status, await head.text()], [200, ''])
        const put = await fetch(`${petstore.url}/keys`, { method: 'PUT' })
        assert.deepEqual([put.status, put.headers.get('allow')], [405, 'GET, HEAD, OPTIONS, POST'])
      })

      it('that is not there is a page for a browser, and an Error for everyone else and under /v1', async () => {
        const client = new ConsoleClient(petstore.url)
        const page = await client.get('/nothing')
        assert.equal(page.status, 404)
        assert.match(page.body, /There is nothing at this address/)
        for (const [path, accept] of [['/nothing', '*/*'], ['/v1/nothing', 'text/html']] as const) {
          const response = await fetch(petstore.url + path, { headers: { Accept: accept } })
          assert.equal(((await response.json()) as { code: string }).code, 'unknown_path')
        }
      })

      it('is logged without its query', async () => {
        await new ConsoleClient(petstore.url).get('/sign-in?next=/keys')
        const line = petstore.logged.findLast(({ path }) => path === '/sign-in')
        assert.deepEqual([line?.['method'], line?.['status']], ['GET', 200])
      })
    })

    describe('the reference', () => {
      it('has an anchor for every error code, and one where rel="deprecation" leads', async () => {
        const client = new ConsoleClient(petstore.url)
        const { body } = await client.get('/docs/errors')
        for (const [code, { cure }] of Object.entries(ERRORS)) {
          assert.ok(body.includes(`id="${code}"`), code)
          assert.ok(body.includes(cure.replaceAll('<', '&lt;').replaceAll('>', '&gt;')), code)
        }
        const link = (await petstore.call('/pets/1')).headers.get('link') ?? ''
        const [, path = '', anchor = ''] = /<([^#>]*)#([^>]*)>; rel="deprecation"/.exec(link) ?? []
        const page = await client.get(path)
        assert.equal(page.status, 200)
        assert.ok(page.body.includes(`id="${anchor}"`))
        assert.match(page.body, /5 December 2030/)
      })

      it('loads only files of its own, each kept by the browser until it changes', async () => {
        const client = new ConsoleClient(petstore.url)
        const { body } = await client.get('/docs')
        const files = [...body.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, file]) => file!)
        assert.equal(files.length, 6)
        for (const file of files) {
          const current = await client.get(file)
          assert.equal(current.headers.get('cache-control'), 'public, max-age=31536000, immutable', file)
          const old = await client.get(file.replace(/v=.*/, 'v=old'))
          assert.deepEqual([old.status, old.headers.get('cache-control')], [200, 'no-cache'])
        }
        assert.doesNotMatch(body, /(?:src|href)="(?:https?:)?\/\//)
        assert.equal((await client.get('/assets/console.ts')).status, 404)
      })
    })
  })

  describe(`several instances on one ${engine.name} database`, () => {
    let database: TestDatabase
    before(async () => {
      database = await engine.newDatabase()
    })
    after(() => database[Symbol.asyncDispose]())

    it('know the same sessions, and end them together', async () => {
      await using first = await startPetstore({ database: database.url })
      await using second = await startPetstore({ database: database.url })
      const client = new ConsoleClient(first.url)
      await client.signIn(first.account.email, PASSWORD)
      const atSecond = new ConsoleClient(second.url)
      atSecond.cookies.set('petstore', client.cookies.get('petstore')!)
      assert.equal((await atSecond.get('/keys')).status, 200)
      await atSecond.submit('/keys', '/sign-out')
      assert.equal((await client.get('/keys')).status, 303)
    })
  })
}

describe('tries', () => {
  it('to sign in are throttled by account, the same for one that is not there, and let through later', async () => {
    const clock = { now: Date.now() }
    await using petstore = await startPetstore({ clock: () => clock.now })
    const client = new ConsoleClient(petstore.url)
    for (const email of [petstore.account.email, 'nobody@example.com']) {
      for (let tries = 0; tries < SIGN_IN_BY_ACCOUNT.tries; tries += 1) {
        assert.equal((await client.signIn(email, 'wrong horse battery')).status, 400)
      }
      const { status, headers } = await client.signIn(email.toUpperCase(), PASSWORD)
      assert.deepEqual([status, headers.get('retry-after')], [429, String(SIGN_IN_BY_ACCOUNT.withinMs / 1000)], email)
    }
    clock.now += SIGN_IN_BY_ACCOUNT.withinMs
    assert.equal((await client.signIn(petstore.account.email, PASSWORD)).status, 303)
  })

  it('to create accounts are throttled by address', async () => {
    await using petstore = await startPetstore()
    const client = new ConsoleClient(petstore.url)
    const fields = { ...(await client.hiddenFields('/sign-up', '/sign-up')), email: 'x@example.com', password: 'short' }
    for (let tries = 0; tries < SIGN_UP_BY_ADDRESS.tries; tries += 1) assert.equal((await client.post('/sign-up', fields)).status, 400)
    assert.equal((await client.post('/sign-up', fields)).status, 429)
  })
})

describe('a deployment', () => {
  it('with sign-up closed creates no account, and says what to do', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_SIGNUP: 'closed' } })
    const client = new ConsoleClient(petstore.url)
    const page = await client.get('/sign-up')
    assert.equal(page.status, 403)
    assert.match(page.body, /petstore account create/)
    const { proof } = await client.hiddenFields('/sign-in', '/sign-in')
    const tried = await client.post('/sign-up', { proof: proof!, email: 'a@example.com', password: PASSWORD })
    assert.equal(tried.status, 403)
    assert.equal(await petstore.store.accounts.accountByEmail('a@example.com'), undefined)
  })

  it('behind https, by a trusted proxy or its own address, hands out a __Host- cookie', async () => {
    const settings: [Record<string, string>, Record<string, string>][] = [
      [{ PETSTORE_TRUST_PROXY: '127.0.0.1' }, { 'X-Forwarded-Proto': 'https' }],
      [{ PETSTORE_STAGING_BASE_URL: 'https://staging.pets.example/v1' }, {}],
    ]
    for (const [env, headers] of settings) {
      await using petstore = await startPetstore({ env })
      const { headers: answered } = await new ConsoleClient(petstore.url).get('/sign-in', headers)
      assert.match(answered.get('set-cookie') ?? '', /^__Host-petstore=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
    }
    await using petstore = await startPetstore()
    const untrusted = await new ConsoleClient(petstore.url).get('/sign-in', { 'X-Forwarded-Proto': 'https' })
    assert.match(untrusted.headers.get('set-cookie') ?? '', /^petstore=/)
  })

  it('says unmistakably that it is staging, and nothing of the kind in production', async () => {
    await using staging = await startPetstore({ env: { PETSTORE_ENVIRONMENT: 'staging' } })
    assert.match((await new ConsoleClient(staging.url).get('/')).body, /class="band"><strong>Staging<\/strong>/)
    await using production = await startPetstore({ env: { PETSTORE_ENVIRONMENT: 'production', PETSTORE_BASE_URL: 'https://pets.example/v1' } })
    const { body } = await new ConsoleClient(production.url).get('/')
    assert.doesNotMatch(body, /class="band"/)
    assert.match(body, /https:\/\/pets\.example\/v1/)
  })

  it('allows the reference to call the addresses that it lists, and no others', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_BASE_URL: 'https://pets.example/v1' } })
    const { headers } = await new ConsoleClient(petstore.url).get('/docs')
    assert.match(headers.get('content-security-policy') ?? '', /connect-src 'self' https:\/\/pets\.example(?:;|$)/)
  })
})

/** What is done after the answer is done soon after. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if (await holds()) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.fail('it did not come true within two seconds')
}
