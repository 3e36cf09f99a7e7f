// The console's pages over HTTP: their headers, what they show and to whom.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { ERRORS } from '../../src/contract/errors.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { until } from '../harness/until.ts'
import {
  ConsoleClient,
  hiddenIn,
  MEMBER_PAGES,
  OPEN_PAGES,
  signedIn,
  signedInAs,
  signedInManager,
} from '../harness/connections/console-client.ts'
import { ENGINES, type TestDatabase } from '../harness/databases/engines.ts'
import { describeOnSqlite, makeAccount, PASSWORD, type Petstore, startPetstore } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'

const SQLITE = ENGINES[0]!

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
const REFERENCE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; font-src 'self' data:; connect-src 'self'"
const PAGE_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'strict-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
}

const FILE_TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

describeOnSqlite('The pages of the console', (service) => {
  describe('every page', () => {
    it('carries the headers that keep it to itself, and a Request-Id, as every redirect, file and download does', async () => {
      const client = await signedIn(service())
      const pages = [...OPEN_PAGES, ...MEMBER_PAGES, '/nothing-here', '/keys/none/revoke']
      for (const path of [...pages, '/assets/console.css', '/assets/nothing.css', '/animals.csv']) {
        const { headers } = await client.get(path)
        const policy = ['/animals', '/animals/new'].includes(path) ? `${POLICY}; connect-src 'self'` : POLICY
        assert.equal(headers.get('content-security-policy'), path === '/docs' ? REFERENCE_POLICY : policy, path)
        for (const [name, value] of Object.entries(PAGE_HEADERS)) assert.equal(headers.get(name), value, path)
        if (pages.includes(path)) assert.equal(headers.get('cache-control'), 'no-store', path)
        assert.ok(headers.get('request-id'), path)
      }
    })

    it('says nothing, and fills in no form, with the words of an address that somebody else may have made', async () => {
      const client = await signedInManager(service())
      const created = await service().store.pets.create(samplePet)
      assert.ok('pet' in created)
      const sources = globSync('../../src/console/**/*.ts', { cwd: import.meta.dirname })
      const read = sources.flatMap((file) => [
        ...readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(/\bquery\.(?:get|has)\('(\w+)'/g),
      ])
      const ofList = ['status', 'category', 'cursor', 'newer', 'from']
      const others = ['undone', 'saved', 'name', 'categoryId']
      const names = new Set([...read.map(([, name]) => name!), ...others, ...ofList])
      // What is searched for stands in the field of the search.
      names.delete('q')
      assert.ok(names.size > 25, [...names].join())
      const query = (from: Iterable<string>) =>
        new URLSearchParams(Array.from(from, (name) => [name, 'Call 0800'])).toString()
      const queries = [query(names), query([...names].filter((name) => !ofList.includes(name)))]
      for (const page of [
        ...MEMBER_PAGES,
        '/people',
        '/people/new',
        '/people/keys',
        '/animals.csv',
        `/animals/${created.pet.id}`,
      ])
        for (const each of queries) {
          const { body } = await client.get(`${page}?${each}`)
          const shown = body.replaceAll(/<input type="hidden"[^>]*>|(?:href|action)="[^"]*"/g, '')
          assert.equal(shown.split('0800').length, 1, `${page}?${each} ${/.{60}0800.{20}/s.exec(shown)?.[0]}`)
        }
    })

    it('with a form is kept by no cache, also for a first visit, and one without is always asked for anew', async () => {
      for (const page of OPEN_PAGES) {
        const { headers } = await new ConsoleClient(service().url).get(page)
        const expected = ['/sign-in', '/sign-up'].includes(page) ? 'no-store' : 'private, no-cache'
        assert.equal(headers.get('cache-control'), expected, page)
      }
    })

    it('shows who is signed in, nothing of whoever opened it before, and leads on from the start page', async () => {
      const [client, visitor] = [await signedIn(service()), new ConsoleClient(service().url)]
      const { email } = service().account
      for (const page of ['/', '/docs', '/docs/errors', '/docs/deprecations', '/nothing-here']) {
        assert.ok((await client.get(page)).body.includes(`<span class="who"><bdi>${email}</bdi>`), page)
        const { body } = await visitor.get(page)
        assert.ok(!body.includes(email) && !body.includes('name="csrf"'), page)
      }
      for (const who of [client, visitor])
        assert.match((await who.get('/')).body, /href="\/animals">Open the animals<.*href="\/keys">Get a key</s)
    })

    it('is reached by links, from the start page on', async () => {
      const pages = [...OPEN_PAGES, ...MEMBER_PAGES, '/people', '/people/new', '/people/keys']
      const reached = new Set(['/'])
      const clients = [await signedInManager(service()), new ConsoleClient(service().url)]
      // The set grows while it is walked.
      for (const page of reached)
        for (const client of clients)
          for (const [, path = ''] of (await client.get(page)).body.matchAll(/ href="([^"?#]*)/g))
            if (pages.includes(path)) reached.add(path)
      assert.deepEqual(
        pages.filter((page) => !reached.has(page)),
        [],
      )
    })

    it('asks for a sign-in where it shows something of an account', async () => {
      for (const page of MEMBER_PAGES) {
        const { status, location } = await new ConsoleClient(service().url).get(page)
        assert.deepEqual([status, location?.split('?')[0]], [303, '/sign-in'], page)
      }
    })

    it('has a title of its own and marks where it is in the navigation', async () => {
      const [client, visitor] = [await signedIn(service()), new ConsoleClient(service().url)]
      const places: Record<string, [ConsoleClient, words?: string]> = {
        '/': [client],
        '/account': [client, 'Account'],
        '/account/delete': [client, 'Account'],
        '/account/name': [client, 'Account'],
        '/activity': [client, 'API activity'],
        '/animals': [client, 'Animals'],
        '/animals/category': [client, 'Animals'],
        '/animals/changes': [client, 'History'],
        '/animals/import': [client, 'Animals'],
        '/animals/new': [client, 'Animals'],
        '/categories': [client, 'Categories'],
        '/categories/new': [client, 'Categories'],
        '/docs': [client, 'Reference'],
        '/docs/deprecations': [client, 'Reference'],
        '/docs/errors': [visitor, 'Reference'],
        '/keys': [client, 'Keys'],
        '/keys/new': [client, 'Keys'],
        '/sign-in': [visitor, 'Sign in'],
        '/sign-up': [visitor, 'Create account'],
      }
      assert.deepEqual(Object.keys(places), [...OPEN_PAGES, ...MEMBER_PAGES].toSorted())
      const titles = new Set<string>()
      for (const [page, [who, words]] of Object.entries(places)) {
        const { body } = await who.get(page)
        titles.add(/<title>([^<]*) · Petstore staging<\/title>/.exec(body)?.[1] ?? '')
        const [navigation = ''] =
          /<nav aria-label="Main">.*?<\/header>|<nav aria-label="Main">.*?<\/section>/s.exec(body) ?? []
        const marked = [...navigation.matchAll(/aria-current="page">([^<]*)</g)].map(([, text]) => text)
        assert.deepEqual(marked, words === undefined ? [] : [words], page)
      }
      assert.equal(titles.size, Object.keys(places).length)
    })

    it('leads to People for managers alone, and to what developers need unless the account has no right to keys', async () => {
      const { accounts, store } = service()
      const client = await signedInAs(service(), 'till@example.com')
      for (const [role, people, developers] of [
        ['member', false, true],
        ['keyless', false, false],
        ['manager', true, true],
      ] as const) {
        const account = (await store.accounts.accountByEmail('till@example.com'))!
        await accounts.setRole(account, role, 'command line')
        const { body } = await client.get('/animals')
        const [navigation = ''] = /<nav aria-label="Main">.*?<\/nav>/s.exec(body) ?? []
        assert.deepEqual(
          [navigation.includes('/people'), navigation.includes('/keys'), navigation.includes('/activity')],
          [people, developers, developers],
          role,
        )
      }
    })

    it('that is not there leads on, to the animals for who is signed in', async () => {
      assert.match((await new ConsoleClient(service().url).get('/nothing')).body, /href="\/">Go to the start page/)
      const known = await (await signedIn(service())).get('/nothing')
      assert.deepEqual([known.status, known.headers.get('cache-control')], [404, 'no-store'])
      assert.match(known.body, /href="\/animals">Go to the animals/)
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
      const file = readFileSync(new URL('../../src/console/assets/console.css', import.meta.url), 'utf8')
      for (const [accepted, encoding] of [
        ['identity', null],
        ['gzip;q=0', null],
        ['br, gzip', 'gzip'],
      ] as const) {
        const { headers, body } = await new ConsoleClient(service().url).get('/assets/console.css', {
          'Accept-Encoding': accepted,
        })
        assert.deepEqual([headers.get('content-encoding'), headers.get('vary')], [encoding, 'Accept-Encoding'])
        assert.equal(Number(headers.get('content-length')) < Buffer.byteLength(file), encoding === 'gzip')
        assert.equal(body, file)
      }
    })
  })

  it('shows names with markup, right-to-left text and emoji as text', async () => {
    const names = ['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', 'שלום', '🐈‍⬛ & co']
    for (const name of names) assert.equal((await service().add({ name, categoryId: 1 })).status, 201)
    const { body } = await (await signedIn(service())).get('/animals')
    for (const shown of [
      '&lt;script&gt;alert(1)&lt;/script&gt;',
      '&quot;&gt;&lt;img src=x onerror=alert(1)&gt;',
      'שלום',
      '🐈‍⬛ &amp; co',
    ])
      assert.ok(body.includes(`<bdi>${shown}</bdi>`), shown)
  })

  for (const [method, page, action, fields] of [
    ['createKey', '/keys/new', '/keys', { name: 'k', expires: '' }],
    ['setPassword', '/account', '/account/password', { current: PASSWORD, password: 'another horse battery' }],
  ] as const) {
    it(`lead to the sign-in where the account was deleted just before ${method}`, async ({ mock }) => {
      const { accounts } = service().store
      const client = await signedInAs(service(), `${method}@example.com`)
      const account = (await accounts.accountByEmail(`${method}@example.com`))!
      const write = accounts[method].bind(accounts) as (...call: unknown[]) => Promise<never>
      mock.method(accounts, method, async (...call: unknown[]) => {
        await service().accounts.remove(account, 'console')
        return write(...call)
      })
      const { status, location } = await client.submit(page, action, fields)
      assert.deepEqual([status, location], [303, `/sign-in?next=${encodeURIComponent(page)}`])
    })
  }
})

describe('A deployment', () => {
  it('with sign-up closed creates no account, leads nowhere to it, and says what to do, also for a forgotten password', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_SIGNUP: 'closed' } })
    const client = new ConsoleClient(petstore.url)
    const page = await client.get('/sign-up')
    assert.equal(page.status, 403)
    assert.match(page.body, /Ask a manager of this store for an invitation\./)
    for (const path of ['/', '/sign-in', '/docs/errors'])
      assert.ok(!(await client.get(path)).body.includes('/sign-up'), path)
    assert.match(
      (await client.get('/sign-in')).body,
      /Forgot your password\? Ask a manager of this store for a link to set a new one\./,
    )
    const { csrf = '' } = await client.hiddenFields('/sign-in')
    const tried = await client.post('/sign-up', { csrf, email: 'a@example.com', password: PASSWORD })
    assert.equal(tried.status, 403)
    assert.equal(await petstore.store.accounts.accountByEmail('a@example.com'), undefined)
  })

  it('names no database, and suggests no command that would reach another one than its own, nor made-up animals in production', async () => {
    const byDefault = { given: new Map(), program: '../bin/petstore' }
    for (const [config, environment, suggestsSeed] of [
      [{}, 'staging', false],
      // With the default database the command needs no name.
      [byDefault, 'staging', true],
      [byDefault, 'production', false],
    ] as const) {
      await using file = await SQLITE.newDatabase()
      const env = { PETSTORE_SIGNUP: 'closed', PETSTORE_ENVIRONMENT: environment }
      await using petstore = await startPetstore({ database: file.url, env, config })
      const visitor = new ConsoleClient(petstore.url)
      const pages = [await (await signedIn(petstore)).get('/animals')]
      for (const path of ['/', '/sign-in', '/sign-up', '/none']) pages.push(await visitor.get(path))
      for (const { body } of pages) {
        assert.doesNotMatch(body, /petstore (account|key|serve|migrate|import)\b/)
        assert.ok(!body.includes(file.url.slice('sqlite:'.length)), 'the path of the database')
      }
      assert.match(pages[0]!.body, /No animals yet/)
      assert.equal(pages[0]!.body.includes('<code>../bin/petstore seed --count 100</code>'), suggestsSeed)
    }
  })

  it('behind https, by a trusted proxy or its own address, hands out a __Host- cookie, and takes none that a page on plain http could have set', async () => {
    const https = { 'X-Forwarded-Proto': 'https' }
    const cookieOf = async (env: Record<string, string>, headers: Record<string, string>) => {
      await using petstore = await startPetstore({ env })
      return (await new ConsoleClient(petstore.url).get('/sign-in', headers)).headers.get('set-cookie') ?? ''
    }
    const secure = /^__Host-petstore=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/
    assert.match(await cookieOf({ PETSTORE_STAGING_BASE_URL: 'https://staging.pets.example/v1' }, {}), secure)
    assert.match(await cookieOf({}, https), /^petstore=/, 'not for what an untrusted proxy says')

    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '127.0.0.1' } })
    const client = new ConsoleClient(petstore.url)
    const opened = await client.get('/sign-in', https)
    assert.match(opened.headers.get('set-cookie') ?? '', secure)
    const typed = { ...hiddenIn(opened.body), email: petstore.account.email, password: PASSWORD }
    await client.post('/sign-in', typed, https)
    const page = await client.get('/keys', https)
    assert.equal(page.status, 200)
    const Cookie = `petstore=${client.cookies.get('__Host-petstore')!}`
    assert.equal((await new ConsoleClient(petstore.url).get('/keys', { ...https, Cookie })).status, 303)
    const left = await client.post('/sign-out', hiddenIn(page.body), https)
    assert.match(left.headers.get('set-cookie') ?? '', /^__Host-petstore=; Path=\/; .*Secure; Max-Age=0$/)
  })

  it('has the name of the store beside the logo, which leads to the animals, and in its title', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_STORE_NAME: 'Paws & <Claws>' } })
    const [client, visitor] = [await signedIn(petstore), new ConsoleClient(petstore.url)]
    const { body } = await client.get('/keys')
    assert.match(body, /<title>Keys · Paws &amp; &lt;Claws&gt; staging</)
    assert.match(body, /class="brand" href="\/animals">.*<bdi>Paws &amp; &lt;Claws&gt;<\/bdi>/s)
    assert.match((await visitor.get('/sign-in')).body, /class="brand" href="\/">/)
  })

  it('in production says nothing of staging, and allows the reference to call the addresses that it lists, and no others', async () => {
    const env = { PETSTORE_BASE_URL: 'https://pets.example/v1', PETSTORE_STAGING_BASE_URL: 'https://test.example/v1' }
    await using petstore = await startPetstore({ env: { PETSTORE_ENVIRONMENT: 'production', ...env } })
    const client = new ConsoleClient(petstore.url)
    const { body } = await client.get('/')
    assert.doesNotMatch(body, /class="band"|staging/i)
    assert.match(body, /Authorization: Bearer pets_live_…/)
    assert.match(body, /https:\/\/pets\.example\/v1/)
    const policy = (await client.get('/docs')).headers.get('content-security-policy') ?? ''
    assert.match(policy, /connect-src 'self' https:\/\/pets\.example https:\/\/test\.example(?:;|$)/)
  })
})

describe('A console whose database cannot be written to', () => {
  let database: TestDatabase
  let petstore: Petstore
  before(async () => {
    database = await SQLITE.newDatabase()
    petstore = await startPetstore({ engine: SQLITE, database: database.url })
  })
  after(async () => {
    await petstore[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })
  /** Another program has the database, and holds its lock until this is disposed of. */
  const lock = () => {
    const other = new DatabaseSync(database.url.replace(/^sqlite:/, ''))
    other.exec('BEGIN IMMEDIATE')
    return other
  }

  it('says so on a page, with the request id, and still answers what needs no write', async () => {
    const client = new ConsoleClient(petstore.url)
    const { email } = petstore.account
    const fields = await client.hiddenFields('/sign-in')
    using _other = lock()
    const { status, headers, body } = await client.post('/sign-in', { ...fields, email, password: PASSWORD })
    assert.deepEqual([status, headers.get('retry-after')], [503, '2'])
    assert.match(body, /The database is unavailable<\/h1>\s*<p>Go back and try again in a few seconds\.<\/p>/)
    assert.ok(body.includes(headers.get('request-id')!))
    const refused = await client.post('/sign-in', { ...fields, email, password: 'wrong horse battery' })
    assert.equal(refused.status, 400)
    const id = refused.headers.get('request-id')
    const isLogged = () =>
      petstore.logged.some(({ msg, requestId }) => requestId === id && msg === 'the work after the response failed')
    await until(isLogged, 'what was left to do ends no process')
  })

  it('loses no count of calls and no failed request', async () => {
    const client = await signedIn(petstore)
    const tried = [await petstore.call('/pets/1'), await petstore.call('/pets/2')]
    {
      using _other = lock()
      const page = await client.get('/keys')
      assert.deepEqual([page.status, page.headers.get('cache-control')], [503, 'no-store'])
      assert.ok(page.body.includes(petstore.account.email), 'the page knows who is signed in')
      assert.match(page.body, /<p>Nothing was changed\./)
      tried.push(await petstore.call('/pets/3'))
    }
    assert.match((await client.get('/keys')).body, /Called <code>getPet<\/code> 3 times/)
    const { body } = await client.get('/activity')
    for (const { headers } of tried) assert.ok(body.includes(headers.get('request-id')!))
  })

  it('and fails for another reason says so', async () => {
    const client = await signedIn(petstore)
    using other = lock()
    other.exec('ALTER TABLE sessions RENAME TO lost; COMMIT')
    const { status, body } = await client.get('/')
    assert.equal(status, 500)
    assert.match(body, /<h1>Something went wrong<\/h1>/)
  })
})

describe('A console whose database is away', () => {
  let petstore: Petstore
  before(async () => {
    petstore = await startPetstore()
  })
  after(() => petstore[Symbol.asyncDispose]())
  const away = () => Promise.reject(new StoreUnavailable('The database is away.'))

  it('still answers 404 for unknown pages, and logs the outage once', async ({ mock }) => {
    const client = await signedIn(petstore)
    mock.method(petstore.store.accounts, 'sessionByHash', away)
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

  it('shows the pages for anyone also to who is signed in, and ends no session by that', async ({ mock }) => {
    const client = await signedIn(petstore)
    const find = mock.method(petstore.store.accounts, 'sessionByHash', away)
    for (const path of OPEN_PAGES) {
      const { status, headers } = await client.get(path)
      assert.deepEqual([status, headers.get('set-cookie'), headers.get('cache-control')], [200, null, 'no-store'], path)
    }
    find.mock.restore()
    assert.equal((await client.get('/keys')).status, 200)
  })

  it('before a form was handled says that nothing was changed', async ({ mock }) => {
    const client = await signedIn(petstore)
    const { csrf = '' } = await client.hiddenFields('/keys/new', '/keys')
    mock.method(petstore.store.accounts, 'sessionByHash', away)
    const members = ['/keys', '/animals/new', '/account/password', '/account/delete']
    for (const path of [...members, '/sign-up', '/sign-in', '/sign-out']) {
      const { status, body } = await client.post(path, { csrf, email: 'new@example.com', password: PASSWORD })
      assert.equal(status, 503, path)
      assert.match(body, /<p>Nothing was changed\. Go back and try again in a few seconds\.<\/p>/, path)
    }
  })

  const newPassword = 'a new horse battery'
  for (const [method, page, action, typed, words, again] of [
    [
      'createKey',
      '/keys/new',
      '/keys',
      { name: 'k', expires: '' },
      /The form may have been saved all the same/,
      '/keys?made=yes',
    ],
    [
      'setPassword',
      '/account',
      '/account/password',
      { current: PASSWORD, password: newPassword },
      /The password may have been changed .* If you are asked to sign in, use the new password\./,
      '/sign-in?next=%2Faccount%2Fpassword',
    ],
    [
      'removeAccount',
      '/account/delete',
      '/account/delete',
      { current: PASSWORD },
      /The account may have been deleted .* If you are asked to sign in, it was deleted\./,
      '/sign-in?next=%2Faccount%2Fdelete',
    ],
    [
      'endSession',
      '/keys',
      '/sign-out',
      {},
      /<p>Go back and try again in a few seconds\.<\/p>/,
      '/sign-in?signed-out=yes',
    ],
  ] as const)
    it(`after it has saved a form says what that means, and sent again, the form does nothing twice: ${action}`, async ({
      mock,
    }) => {
      const { accounts } = petstore.store
      const email = `${method}@example.com`
      const client = await signedInAs(petstore, email)
      const fields = { ...(await client.hiddenFields(page, action)), ...typed }
      const save = accounts[method].bind(accounts) as (...call: unknown[]) => Promise<unknown>
      const loseAnswer = async (...call: unknown[]) => {
        await save(...call)
        throw new StoreUnavailable('The answer is lost.')
      }
      mock.method(accounts, method).mock.mockImplementationOnce(loseAnswer)
      const lost = await client.post(action, fields)
      assert.equal(lost.status, 503)
      assert.match(lost.body, words)
      assert.doesNotMatch(lost.body, /Nothing was changed/)
      assert.equal((await client.post(action, fields)).location, again)
      if (method !== 'setPassword') return
      assert.equal((await client.signIn(email, PASSWORD)).status, 400)
      assert.equal((await client.signIn(email, newPassword)).status, 303)
    })

  it('breaks off a download that the database stops, so that it does not pass for whole, and logs it', async ({
    mock,
  }) => {
    await petstore.store.pets.createMany(
      Array.from({ length: 1500 }, () => ({ name: 'Rex', categoryId: 1n, status: 'sold' })),
    )
    const client = await signedIn(petstore)
    mock.method(petstore.store.pets, 'list').mock.mockImplementationOnce(away, 1)
    await assert.rejects(client.get('/animals.csv'))
    const broken = petstore.logged.find(({ msg }) => msg === 'a download broke off')
    assert.equal(broken?.['level'], 'error')
    assert.ok(broken?.['requestId'])
  })

  it('or with a fault of its own says so without its details, which are in the log', async () => {
    const { id, email } = await makeAccount(petstore, 'broken@example.com')
    await petstore.store.accounts.setPassword(id, 'not a hash', event(id, 'account.password_changed'))
    const { status, headers, body } = await new ConsoleClient(petstore.url).signIn(email, PASSWORD)
    const requestId = headers.get('request-id')!
    assert.equal(status, 500)
    assert.ok(body.includes(requestId))
    assert.doesNotMatch(body, /stored password hash/)
    const lines = petstore.logged.filter((line) => line['requestId'] === requestId)
    assert.match(JSON.stringify(lines), /stored password hash/)
  })
})
