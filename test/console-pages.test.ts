// The console's pages over HTTP: their headers, what they show and to whom.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { ERRORS } from '../src/contract/errors.ts'
import { StoreUnavailable } from '../src/store/store.ts'
import { until } from '../assurance/harness/until.ts'
import { ConsoleClient, MEMBER_PAGES, signedIn } from './console-client.ts'
import { ENGINES } from '../assurance/harness/engines.ts'
import { describeService, PASSWORD, startPetstore } from './harness.ts'

const SQLITE = ENGINES[0]!
const OPEN_PAGES = ['/', '/sign-in', '/sign-up', '/docs', '/docs/errors', '/docs/deprecations']

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
const REFERENCE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; font-src 'self' data:; connect-src 'self'"
const PAGE_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
}

const FILE_TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

describeService('The pages of the console', (service) => {
  describe('every page', () => {
    it('carries the headers that keep it to itself, and a Request-Id', async () => {
      const client = await signedIn(service())
      for (const page of [...OPEN_PAGES, ...MEMBER_PAGES, '/nothing-here', '/keys/none/revoke']) {
        const { headers } = await client.get(page)
        const policy = headers.get('content-security-policy') ?? ''
        assert.equal(policy, page === '/docs' ? REFERENCE_POLICY : POLICY, page)
        for (const [name, value] of Object.entries(PAGE_HEADERS))
          assert.equal(headers.get(name), value, `${name} of ${page}`)
        assert.equal(headers.get('cache-control'), 'no-store', page)
        assert.ok(headers.get('request-id'), page)
      }
    })

    it('and every redirect, file and download has the headers that keep it to itself', async () => {
      const client = await signedIn(service())
      for (const path of ['/sign-in', '/assets/console.css', '/assets/nothing.css', '/animals.csv']) {
        const { headers } = await client.get(path)
        assert.equal(headers.get('content-security-policy'), POLICY, path)
        for (const [name, value] of Object.entries(PAGE_HEADERS))
          assert.equal(headers.get(name), value, `${name} of ${path}`)
      }
    })

    it('with a form is kept by no cache, also for a first visit, and one without is always asked for anew', async () => {
      for (const page of OPEN_PAGES) {
        const { headers } = await new ConsoleClient(service().url).get(page)
        const expected = ['/sign-in', '/sign-up'].includes(page) ? 'no-store' : 'private, no-cache'
        assert.equal(headers.get('cache-control'), expected, page)
      }
    })

    it('shows nothing of whoever opened it before: each visitor has their own name on it, or none', async () => {
      const client = await signedIn(service())
      for (const page of ['/', '/docs', '/docs/errors', '/docs/deprecations', '/nothing-here']) {
        assert.ok((await client.get(page)).body.includes(service().account.email), page)
        const { body } = await new ConsoleClient(service().url).get(page)
        assert.ok(!body.includes(service().account.email) && !body.includes('name="csrf"'), page)
      }
    })

    it('asks for a sign-in where it shows something of an account', async () => {
      for (const page of MEMBER_PAGES) {
        const { status, location } = await new ConsoleClient(service().url).get(page)
        assert.deepEqual([status, location?.split('?')[0]], [303, '/sign-in'], page)
      }
    })

    it('has a title of its own and marks where it is in the navigation', async () => {
      const [client, visitor] = [await signedIn(service()), new ConsoleClient(service().url)]
      const places: [ConsoleClient, page: string, words: string | undefined][] = [
        [client, '/keys', 'Keys'],
        [client, '/animals', 'Animals'],
        [client, '/animals/new', 'Animals'],
        [client, '/activity', 'Activity'],
        [client, '/account', 'Account'],
        [client, '/account/delete', 'Account'],
        [client, '/docs', 'Reference'],
        [client, '/', undefined],
        [visitor, '/docs/errors', 'Reference'],
        [visitor, '/sign-in', 'Sign in'],
        [visitor, '/sign-up', 'Create account'],
      ]
      const titles = new Set<string>()
      for (const [who, page, words] of places) {
        const { body } = await who.get(page)
        titles.add(/<title>([^<]*) · Petstore staging<\/title>/.exec(body)?.[1] ?? '')
        const [navigation = ''] = /<nav aria-label="Main">.*?<\/nav>/s.exec(body) ?? []
        const marked = [...navigation.matchAll(/aria-current="page">([^<]*)</g)].map(([, text]) => text)
        assert.deepEqual(marked, words === undefined ? [] : [words], page)
      }
      assert.equal(titles.size, places.length)
    })

    it('answers HEAD as GET without a body, and other methods with 405', async () => {
      const head = await fetch(`${service().url}/docs/errors`, { method: 'HEAD' })
      assert.deepEqual([head.status, await head.text()], [200, ''])
      const put = await fetch(`${service().url}/keys`, { method: 'PUT' })
      assert.deepEqual([put.status, put.headers.get('allow')], [405, 'GET, HEAD, OPTIONS, POST'])
    })

    it('that is not there is a page for a browser, and an Error for everyone else and under /v1', async () => {
      const client = new ConsoleClient(service().url)
      const page = await client.get('/nothing')
      assert.equal(page.status, 404)
      assert.match(page.body, /<h1>Page not found<\/h1>.*href="\/">Go to the start page/s)
      const known = await (await signedIn(service())).get('/nothing')
      assert.deepEqual([known.status, known.headers.get('cache-control')], [404, 'no-store'])
      assert.match(known.body, /href="\/keys">Go to your keys/)
      assert.ok(known.body.includes(service().account.email))
      for (const [path, accept] of [
        ['/nothing', '*/*'],
        ['/v1/nothing', 'text/html'],
      ] as const) {
        const response = await fetch(service().url + path, { headers: { Accept: accept } })
        assert.equal(((await response.json()) as { code: string }).code, 'unknown_path')
      }
    })

    it('is logged without its query', async () => {
      await new ConsoleClient(service().url).get('/sign-in?next=/keys')
      const line = service().logged.findLast(({ path }) => path === '/sign-in')
      assert.deepEqual([line?.['method'], line?.['status']], ['GET', 200])
    })
  })

  describe('the reference', () => {
    it('has an anchor for every error code, and one where rel="deprecation" leads', async () => {
      const client = new ConsoleClient(service().url)
      const { body } = await client.get('/docs/errors')
      for (const [code, { fix }] of Object.entries(ERRORS)) {
        assert.ok(body.includes(`id="${code}"`), code)
        assert.ok(body.includes(fix.replaceAll('<', '&lt;').replaceAll('>', '&gt;')), code)
      }
      const link = (await service().call('/pets/1')).headers.get('link') ?? ''
      const [, path = '', anchor = ''] = /<([^#>]*)#([^>]*)>; rel="deprecation"/.exec(link) ?? []
      const page = await client.get(path)
      assert.equal(page.status, 200)
      assert.ok(page.body.includes(`id="${anchor}"`))
      assert.match(page.body, /5 December 2030/)
    })

    it('loads only files of its own, each kept by the browser until it changes', async () => {
      const client = new ConsoleClient(service().url)
      const { body } = await client.get('/docs')
      const files = [...body.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, file]) => file!)
      assert.equal(files.length, 6)
      for (const file of files) {
        const current = await client.get(file)
        assert.equal(current.headers.get('cache-control'), 'public, max-age=31536000, immutable', file)
        const old = await client.get(file.replace(/v=.*/, 'v=old'))
        assert.deepEqual([old.status, old.headers.get('cache-control')], [200, 'no-cache'])
        const [extension = ''] = /(?<=\.)\w+(?=\?)/.exec(file) ?? []
        assert.equal(current.headers.get('content-type'), FILE_TYPES[extension], file)
      }
      assert.doesNotMatch(body, /(?:src|href)="(?:https?:)?\/\//)
      for (const name of ['console.ts', 'constructor', '..%2fassets.ts'])
        assert.equal((await client.get(`/assets/${name}`)).status, 404, name)
    })

    it('sends its files compressed to who takes that, and as they are to who does not', async () => {
      const client = new ConsoleClient(service().url)
      const [plain, packed] = [
        await client.get('/assets/console.css', { 'Accept-Encoding': 'identity' }),
        await client.get('/assets/console.css', { 'Accept-Encoding': 'br, gzip' }),
      ]
      assert.deepEqual([plain.headers.get('content-encoding'), packed.headers.get('content-encoding')], [null, 'gzip'])
      for (const { headers, body } of [plain, packed]) {
        assert.equal(headers.get('vary'), 'Accept-Encoding')
        assert.equal(headers.get('content-type'), 'text/css; charset=utf-8')
        assert.equal(body, readFileSync(new URL('../src/console/assets/console.css', import.meta.url), 'utf8'))
      }
    })
  })

  it('explains a failed request with its Request-Id, code, message and fix', async () => {
    const failed = await service().add({ name: '<script>alert(1)</script>' })
    const { body } = await (await signedIn(service())).get('/activity')
    assert.match(body, new RegExp(failed.headers.get('request-id')!))
    assert.match(body, /href="\/docs\/errors#invalid_pet"/)
    assert.match(body, /categoryId is missing/)
    assert.match(body, new RegExp(ERRORS.invalid_pet.fix))
    assert.doesNotMatch(body, /<script>alert/)
  })

  it('shows names with markup, right-to-left text and emoji as text', async () => {
    const names = ['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', 'שלום', '🐈‍⬛ & co']
    for (const name of names) assert.equal((await service().add({ name, categoryId: 1 })).status, 201)
    const { body } = await (await signedIn(service())).get('/animals')
    assert.match(body, /<bdi>&lt;script&gt;alert\(1\)&lt;\/script&gt;<\/bdi>/)
    assert.match(body, /<bdi>&quot;&gt;&lt;img src=x onerror=alert\(1\)&gt;<\/bdi>/)
    assert.match(body, /<bdi>שלום<\/bdi>/)
    assert.match(body, /<bdi>🐈‍⬛ &amp; co<\/bdi>/)
  })
})

describe('A deployment', () => {
  it('with sign-up closed creates no account, and says what to do', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_SIGNUP: 'closed' } })
    const client = new ConsoleClient(petstore.url)
    const page = await client.get('/sign-up')
    assert.equal(page.status, 403)
    assert.match(page.body, /Ask whoever runs this store for an account\./)
    assert.doesNotMatch((await client.get('/')).body, /class="button primary" href="\/sign-up"/)
    const { csrf } = await client.hiddenFields('/sign-in', '/sign-in')
    const tried = await client.post('/sign-up', { csrf: csrf!, email: 'a@example.com', password: PASSWORD })
    assert.equal(tried.status, 403)
    assert.equal(await petstore.store.accounts.accountByEmail('a@example.com'), undefined)
  })

  it('names no database, and suggests no command that would reach another one than its own', async () => {
    await using file = await SQLITE.newDatabase()
    const own = file.url.slice('sqlite:'.length)
    for (const config of [{}, { given: new Map() }]) {
      const env = { PETSTORE_SIGNUP: 'closed' }
      await using petstore = await startPetstore({ database: file.url, env, config })
      const visitor = new ConsoleClient(petstore.url)
      const pages = [await (await signedIn(petstore)).get('/animals')]
      for (const path of ['/', '/sign-in', '/sign-up', '/none']) pages.push(await visitor.get(path))
      for (const { body } of pages) assert.doesNotMatch(body, /petstore (account|key|serve|migrate|import)\b/)
      for (const { body } of pages) assert.ok(!body.includes(own), 'the path of the database')
      assert.match(pages[0]!.body, /No animals yet/)
      // With the default database the command needs no name.
      assert.equal(pages[0]!.body.includes('petstore seed --count 100'), 'given' in config)
    }
  })

  it('behind https, by a trusted proxy or its own address, hands out a __Host- cookie', async () => {
    const settings: [Record<string, string>, Record<string, string>][] = [
      [{ PETSTORE_TRUST_PROXY: '127.0.0.1' }, { 'X-Forwarded-Proto': 'https' }],
      [{ PETSTORE_STAGING_BASE_URL: 'https://staging.pets.example/v1' }, {}],
    ]
    for (const [env, headers] of settings) {
      await using petstore = await startPetstore({ env })
      const { headers: answered } = await new ConsoleClient(petstore.url).get('/sign-in', headers)
      assert.match(
        answered.get('set-cookie') ?? '',
        /^__Host-petstore=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
      )
    }
    await using petstore = await startPetstore()
    const untrusted = await new ConsoleClient(petstore.url).get('/sign-in', { 'X-Forwarded-Proto': 'https' })
    assert.match(untrusted.headers.get('set-cookie') ?? '', /^petstore=/)
  })

  it('behind https signs in and out with that cookie, and takes none that a page on plain http could have set', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '127.0.0.1' } })
    const https = { 'X-Forwarded-Proto': 'https' }
    const client = new ConsoleClient(petstore.url)
    const csrfIn = ({ body }: { body: string }) => ({ csrf: /name="csrf" value="([^"]*)"/.exec(body)![1]! })
    const form = csrfIn(await client.get('/sign-in', https))
    await client.post('/sign-in', { ...form, email: petstore.account.email, password: PASSWORD }, https)
    const page = await client.get('/keys', https)
    assert.equal(page.status, 200)
    const plain = await fetch(`${petstore.url}/keys`, {
      headers: { ...https, Cookie: `petstore=${client.cookies.get('__Host-petstore')!}` },
      redirect: 'manual',
    })
    assert.equal(plain.status, 303)
    const left = await client.post('/sign-out', csrfIn(page), https)
    assert.match(left.headers.get('set-cookie') ?? '', /^__Host-petstore=; Path=\/; .*Secure; Max-Age=0$/)
  })

  it('whose database cannot be written to says so on a page, with the request id', async () => {
    await using database = await SQLITE.newDatabase()
    await using petstore = await startPetstore({ engine: SQLITE, database: database.url })
    const client = new ConsoleClient(petstore.url)
    const fields = await client.hiddenFields('/sign-in', '/sign-in')
    using other = new DatabaseSync(database.url.replace(/^sqlite:/, ''))
    other.exec('BEGIN IMMEDIATE')
    const { status, headers, body } = await client.post('/sign-in', {
      ...fields,
      email: petstore.account.email,
      password: PASSWORD,
    })
    assert.deepEqual([status, headers.get('retry-after')], [503, '2'])
    assert.match(body, /The database is unavailable<\/h1>\s*<p>Go back and try again in a few seconds\.<\/p>/)
    assert.ok(body.includes(headers.get('request-id')!))
  })

  it('whose database cannot be written to for a while loses no count of calls and no failed request', async () => {
    await using database = await SQLITE.newDatabase()
    await using petstore = await startPetstore({ engine: SQLITE, database: database.url })
    const client = await signedIn(petstore)
    const [first, second] = [await petstore.call('/pets/1'), await petstore.call('/pets/2')]
    using other = new DatabaseSync(database.url.replace(/^sqlite:/, ''))
    other.exec('BEGIN IMMEDIATE')
    const page = await client.get('/keys')
    assert.deepEqual([page.status, page.headers.get('cache-control')], [503, 'no-store'])
    assert.ok(page.body.includes(petstore.account.email), 'the page knows who is signed in')
    assert.match(page.body, /<p>Nothing was changed\./)
    const third = await petstore.call('/pets/3')
    other.exec('ROLLBACK')
    assert.match((await client.get('/keys')).body, /Called <code>getPet<\/code> 3 times/)
    const { body } = await client.get('/activity')
    for (const { headers } of [first, second, third]) assert.ok(body.includes(headers.get('request-id')!))
  })

  it('whose database cannot be written to still answers what needs no write, and what was left to do ends no process', async () => {
    await using database = await SQLITE.newDatabase()
    await using petstore = await startPetstore({ engine: SQLITE, database: database.url })
    const client = new ConsoleClient(petstore.url)
    const fields = await client.hiddenFields('/sign-in', '/sign-in')
    using other = new DatabaseSync(database.url.replace(/^sqlite:/, ''))
    other.exec('BEGIN IMMEDIATE')
    const refused = await client.post('/sign-in', {
      ...fields,
      email: petstore.account.email,
      password: 'wrong horse battery',
    })
    assert.equal(refused.status, 400)
    await until(() =>
      petstore.logged.some(
        ({ msg, requestId }) =>
          requestId === refused.headers.get('request-id') && /the work after the response failed/.test(String(msg)),
      ),
    )
  })

  it('whose database is unavailable still answers 404 for unknown pages, and logs the outage once', async ({
    mock,
  }) => {
    await using petstore = await startPetstore()
    const client = await signedIn(petstore)
    mock.method(petstore.store.accounts, 'sessionByHash', () =>
      Promise.reject(new StoreUnavailable('The database is away.')),
    )
    for (const path of ['/nothing', '/assets/nothing.css']) {
      const { status, body } = await client.get(path)
      assert.equal(status, 404, path)
      assert.match(body, /<h1>Page not found<\/h1>/)
    }
    for (const path of ['/keys', '/animals', '/account']) assert.equal((await client.get(path)).status, 503, path)
    const [line, ...more] = petstore.logged.filter(({ msg }) => msg === 'the database is unavailable')
    assert.deepEqual([line?.['level'], line?.['reason'], more], ['error', 'The database is away.', []])
    assert.ok(!('error' in line!), 'no stack')
  })

  it('whose database is away shows the pages for anyone also to who is signed in, and ends no session by that', async ({
    mock,
  }) => {
    await using petstore = await startPetstore()
    const client = await signedIn(petstore)
    const away = mock.method(petstore.store.accounts, 'sessionByHash', () =>
      Promise.reject(new StoreUnavailable('The database is away.')),
    )
    for (const path of OPEN_PAGES) {
      const { status, headers } = await client.get(path)
      assert.deepEqual([status, headers.get('set-cookie'), headers.get('cache-control')], [200, null, 'no-store'], path)
    }
    away.mock.restore()
    assert.equal((await client.get('/keys')).status, 200)
  })

  it('whose database was away before a form was handled says that nothing was changed', async ({ mock }) => {
    await using petstore = await startPetstore()
    const client = await signedIn(petstore)
    const { csrf = '' } = await client.hiddenFields('/keys', '/keys')
    mock.method(petstore.store.accounts, 'sessionByHash', () =>
      Promise.reject(new StoreUnavailable('The database is away.')),
    )
    for (const path of [
      '/keys',
      '/animals/new',
      '/account/password',
      '/account/delete',
      '/sign-up',
      '/sign-in',
      '/sign-out',
    ]) {
      const { status, body } = await client.post(path, { csrf, email: 'new@example.com', password: PASSWORD })
      assert.equal(status, 503, path)
      assert.match(body, /<p>Nothing was changed\. Go back and try again in a few seconds\.<\/p>/, path)
    }
  })

  it('for anyone that fails for another reason than an unavailable database says so', async () => {
    await using database = await SQLITE.newDatabase()
    await using petstore = await startPetstore({ engine: SQLITE, database: database.url })
    const client = await signedIn(petstore)
    using other = new DatabaseSync(database.url.replace(/^sqlite:/, ''))
    other.exec('ALTER TABLE sessions RENAME TO lost')
    const { status, body } = await client.get('/')
    assert.equal(status, 500)
    assert.match(body, /<h1>Something went wrong<\/h1>/)
  })

  it('whose database is lost after it has saved a form says that this may be so; sent again, the form creates nothing twice', async ({
    mock,
  }) => {
    await using petstore = await startPetstore()
    const { accounts } = petstore.store
    const client = await signedIn(petstore)
    const fields = { ...(await client.hiddenFields('/keys', '/keys')), name: 'k', expires: '' }
    const create = accounts.createKey.bind(accounts)
    mock.method(accounts, 'createKey').mock.mockImplementationOnce(async (...call) => {
      await create(...call)
      throw new StoreUnavailable('The answer is lost.')
    })
    const lost = await client.post('/keys', fields)
    assert.equal(lost.status, 503)
    assert.match(lost.body, /The form may have been saved all the same/)
    assert.doesNotMatch(lost.body, /Nothing was changed/)
    assert.equal((await client.post('/keys', fields)).location, '/keys?made=yes')
  })

  it('whose database is lost after it has changed a password says with which one to sign in', async ({ mock }) => {
    await using petstore = await startPetstore()
    const { accounts } = petstore.store
    const client = await signedIn(petstore)
    const fields = { ...(await client.hiddenFields('/account', '/account/password')), current: PASSWORD }
    const typed = { ...fields, password: 'a new horse battery' }
    const change = accounts.setPassword.bind(accounts)
    mock.method(accounts, 'setPassword').mock.mockImplementationOnce(async (...call) => {
      await change(...call)
      throw new StoreUnavailable('The answer is lost.')
    })
    const lost = await client.post('/account/password', typed)
    assert.equal(lost.status, 503)
    assert.match(lost.body, /The password may have been changed .* If you are asked to sign in, use the new password\./)
    assert.match((await client.post('/account/password', typed)).location ?? '', /^\/sign-in\?/)
    assert.equal((await client.signIn(petstore.account.email, PASSWORD)).status, 400)
    assert.equal((await client.signIn(petstore.account.email, typed.password)).status, 303)
  })

  it('whose database is lost after it has deleted an account says what a request to sign in means', async ({
    mock,
  }) => {
    await using petstore = await startPetstore()
    const { accounts } = petstore.store
    const client = await signedIn(petstore)
    const fields = { ...(await client.hiddenFields('/account/delete', '/account/delete')), current: PASSWORD }
    const remove = accounts.removeAccount.bind(accounts)
    mock.method(accounts, 'removeAccount').mock.mockImplementationOnce(async (...call) => {
      await remove(...call)
      throw new StoreUnavailable('The answer is lost.')
    })
    const lost = await client.post('/account/delete', fields)
    assert.equal(lost.status, 503)
    assert.match(lost.body, /The account may have been deleted .* If you are asked to sign in, it was deleted\./)
    assert.match((await client.post('/account/delete', fields)).location ?? '', /^\/sign-in\?/)
  })

  it('whose database is lost after it has ended a session asks to sign out again, and then is signed out', async ({
    mock,
  }) => {
    await using petstore = await startPetstore()
    const { accounts } = petstore.store
    const client = await signedIn(petstore)
    const fields = await client.hiddenFields('/keys', '/sign-out')
    const end = accounts.endSession.bind(accounts)
    mock.method(accounts, 'endSession').mock.mockImplementationOnce(async (...call) => {
      await end(...call)
      throw new StoreUnavailable('The answer is lost.')
    })
    const lost = await client.post('/sign-out', fields)
    assert.equal(lost.status, 503)
    assert.match(lost.body, /<p>Go back and try again in a few seconds\.<\/p>/)
    assert.equal((await client.post('/sign-out', fields)).location, '/sign-in?signed-out=yes')
  })

  it('breaks off a download that the database stops, so that it does not pass for whole, and logs it', async ({
    mock,
  }) => {
    await using petstore = await startPetstore()
    await petstore.store.pets.createMany(
      Array.from({ length: 1500 }, () => ({ name: 'Rex', categoryId: 1n, status: 'sold' })),
    )
    const client = await signedIn(petstore)
    const list = mock.method(petstore.store.pets, 'list')
    list.mock.mockImplementationOnce(() => Promise.reject(new StoreUnavailable('The database is away.')), 1)
    await assert.rejects(client.get('/animals.csv'))
    const broken = petstore.logged.find(({ msg }) => msg === 'a download broke off')
    assert.equal(broken?.['level'], 'error')
    assert.ok(broken?.['requestId'])
  })

  it('with a fault of its own says so without its details, which are in the log', async () => {
    await using petstore = await startPetstore()
    const { id, email } = petstore.account
    await petstore.store.accounts.setPassword(id, 'not a hash', {
      at: 0,
      accountId: id,
      action: 'account.password_changed',
      via: 'console',
      subject: email,
    })
    const { status, headers, body } = await new ConsoleClient(petstore.url).signIn(email, PASSWORD)
    const requestId = headers.get('request-id')!
    assert.equal(status, 500)
    assert.ok(body.includes(requestId))
    assert.doesNotMatch(body, /stored password hash/)
    assert.match(
      JSON.stringify(petstore.logged.filter((line) => line['requestId'] === requestId)),
      /stored password hash/,
    )
  })

  it('says unmistakably that it is staging, and nothing of the kind in production', async () => {
    await using staging = await startPetstore({ env: { PETSTORE_ENVIRONMENT: 'staging' } })
    assert.match((await new ConsoleClient(staging.url).get('/')).body, /class="band"><strong>Staging<\/strong>/)
    await using production = await startPetstore({
      env: { PETSTORE_ENVIRONMENT: 'production', PETSTORE_BASE_URL: 'https://pets.example/v1' },
    })
    const { body } = await new ConsoleClient(production.url).get('/')
    assert.doesNotMatch(body, /class="band"|staging/i)
    assert.match(body, /It starts with <code>pets_live_…<\/code>/)
    assert.match(body, /https:\/\/pets\.example\/v1/)
  })

  it('allows the reference to call the addresses that it lists, and no others', async () => {
    const env = {
      PETSTORE_BASE_URL: 'https://pets.example/v1',
      PETSTORE_STAGING_BASE_URL: 'https://staging.example/v1',
    }
    await using petstore = await startPetstore({ env })
    const { headers } = await new ConsoleClient(petstore.url).get('/docs')
    assert.match(
      headers.get('content-security-policy') ?? '',
      /connect-src 'self' https:\/\/pets\.example https:\/\/staging\.example(?:;|$)/,
    )
  })
})
