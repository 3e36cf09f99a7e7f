// Signing in and staying signed in at the console, over HTTP: cookies and sessions.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { CLOCK_SKEW_MS, SESSION_IDLE_MS, SESSION_MAX_MS, Sessions } from '../src/accounts/sessions.ts'
import type { AuditEvent } from '../src/store/account-store.ts'
import { until } from '../assurance/harness/until.ts'
import { ConsoleClient, MEMBER_PAGES, signedIn } from './console-client.ts'
import { cpuTime } from './cpu-time.ts'
import { ENGINES } from '../assurance/harness/engines.ts'
import { describeService, makeCostlyAccount, PASSWORD, startPetstore } from './harness.ts'
import { WORKERS } from './with-workers.ts'

const clock = { now: Date.now() }

/** Workers have their own clocks, which a test can't set, and take their own time of the processor. */
const ONE_PROCESS = { skip: 'PETSTORE_WORKERS' in WORKERS }

describeService(
  'Who is signed in at the console',
  (service) => {
    describe('signing in', () => {
      it('creates an account, signs in with it, and hands out a cookie that scripts and other sites cannot use', async () => {
        const visitor = new ConsoleClient(service().url)
        const answer = await visitor.submit('/sign-up', '/sign-up', { email: 'new@example.com', password: PASSWORD })
        assert.deepEqual([answer.status, answer.location], [303, '/keys'])
        assert.match(answer.headers.get('set-cookie') ?? '', /^petstore=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
        assert.equal((await visitor.get('/keys')).status, 200)
      })

      it('takes an email address with the spaces that came along when it was pasted', async () => {
        const visitor = new ConsoleClient(service().url)
        const made = await visitor.submit('/sign-up', '/sign-up', {
          email: ' pasted@example.com\n',
          password: PASSWORD,
        })
        assert.deepEqual([made.status, made.location], [303, '/keys'])
        assert.equal((await new ConsoleClient(service().url).signIn('pasted@example.com', PASSWORD)).location, '/keys')
      })

      it('takes a password exactly as it was chosen, with the spaces at its ends', async () => {
        const [email, password] = ['spaces@example.com', '  correct horse battery ']
        const visitor = new ConsoleClient(service().url)
        assert.equal((await visitor.submit('/sign-up', '/sign-up', { email, password })).location, '/keys')
        assert.equal((await new ConsoleClient(service().url).signIn(email, password)).location, '/keys')
        assert.equal((await new ConsoleClient(service().url).signIn(email, password.trim())).status, 400)
      })

      it('is not had by signing up with the email address of an account and another password', async () => {
        const { email } = service().account
        const visitor = new ConsoleClient(service().url)
        const { status, body } = await visitor.submit('/sign-up', '/sign-up', {
          email,
          password: 'wrong horse battery',
        })
        assert.equal(status, 400)
        assert.ok(body.includes(`There is already an account for ${email}.`))
        assert.equal((await visitor.get('/keys')).status, 303)
        const owner = new ConsoleClient(service().url)
        assert.equal((await owner.signIn(email, PASSWORD)).status, 303)
        // It is a try with a wrong password like any other: the owner sees it.
        await until(async () => /Sign-in refused/.test((await owner.get('/account')).body))
      })

      it('leads who is signed in from the forms for it to the keys', async () => {
        const client = await signedIn(service())
        for (const page of ['/sign-in', '/sign-up']) assert.equal((await client.get(page)).location, '/keys')
        const asked = await client.get('/sign-in?next=%2Fanimals%3Fstatus%3Dsold')
        assert.equal(asked.location, '/animals?status=sold', 'or to the page that was asked for')
      })

      it('replaces a cookie that it did not make', async () => {
        for (const planted of ['x', 'x'.repeat(42), 'x'.repeat(1000)]) {
          const { headers } = await new ConsoleClient(service().url).get('/sign-in', { Cookie: `petstore=${planted}` })
          assert.match(headers.get('set-cookie') ?? '', /^petstore=[\w-]{43};/)
        }
      })

      it('sets its cookie once: a page that arrives after a sign-in in another tab must not put the old one back', async () => {
        const client = new ConsoleClient(service().url)
        const { email } = service().account
        await client.get('/sign-in')
        const wrong = await client.signIn(email, 'wrong horse battery')
        assert.deepEqual([wrong.status, wrong.headers.get('set-cookie')], [400, null])
        const cookieOf = async (page: string) => (await client.get(page)).headers.get('set-cookie')
        for (const page of ['/', '/sign-in', '/docs', '/keys', '/nothing'])
          assert.equal(await cookieOf(page), null, page)
        assert.ok((await client.signIn(email, PASSWORD)).headers.get('set-cookie'))
        for (const page of ['/', '/sign-in', '/docs', '/nothing', ...MEMBER_PAGES])
          assert.equal(await cookieOf(page), null, page)
      })

      it('finds the session among several cookies of its name, wherever it stands', async () => {
        const client = await signedIn(service())
        const token = client.cookies.get('petstore')!
        const planted = Array.from({ length: 9 }, (_, index) => `petstore=${String(index).repeat(43)}`)
        for (const place of [0, 1, 9]) {
          const Cookie = planted.toSpliced(place, 0, 'petstore=', `petstore=${token}`, 'petstore=').join('; ')
          const page = await new ConsoleClient(service().url).get('/keys', { Cookie })
          assert.equal(page.status, 200, `at ${place}`)
          const csrf = /name="csrf" value="([^"]*)"/.exec(page.body)![1]!
          const made = await new ConsoleClient(service().url).post(
            '/keys',
            { csrf, name: 'k', expires: '', formId: `at ${place}` },
            { Cookie },
          )
          assert.equal(made.status, 200, `form at ${place}`)
        }
        assert.equal((await new ConsoleClient(service().url).get('/keys', { Cookie: planted.join('; ') })).status, 303)
        const tooMany = [...planted, `petstore=${'x'.repeat(43)}`, `petstore=${token}`].join('; ')
        assert.equal((await new ConsoleClient(service().url).get('/keys', { Cookie: tooMany })).status, 303)
      })

      it('changes the token at sign-in, so that one planted before is worth nothing', async () => {
        const client = new ConsoleClient(service().url)
        await client.get('/sign-in')
        const planted = client.cookies.get('petstore')
        await client.signIn(service().account.email, PASSWORD)
        assert.notEqual(client.cookies.get('petstore'), planted)
        const thief = new ConsoleClient(service().url)
        thief.cookies.set('petstore', planted!)
        assert.equal((await thief.get('/keys')).status, 303)
      })

      it('answers a wrong password and an unknown account alike, and keeps what was typed', async () => {
        const client = new ConsoleClient(service().url)
        const wrong = await client.signIn(service().account.email, 'wrong horse battery')
        const plain = ({ body }: { body: string }) => body.replaceAll(/value="[^"]*"/g, '')
        for (const email of ['nobody@example.com', '', 'no\u0000body@example.com']) {
          const unknown = await client.signIn(email, 'wrong horse battery')
          assert.deepEqual([wrong.status, plain(wrong)], [unknown.status, plain(unknown)])
        }
        assert.match(wrong.body, new RegExp(`value="${service().account.email}"`))
        assert.doesNotMatch(wrong.body, /wrong horse/)
        assert.match(wrong.body, /The email address or the password is wrong/)
      })

      it('takes as much CPU time to refuse an unknown account as a wrong password', ONE_PROCESS, async () => {
        const client = new ConsoleClient(service().url)
        const fields = await client.hiddenFields('/sign-in', '/sign-in')
        const time = (email: string) =>
          cpuTime(() => client.post('/sign-in', { ...fields, email, password: 'wrong horse battery' }))
        // The least of each, without what else this process did at the time. A look-up without the hash takes a tenth.
        const { email } = await makeCostlyAccount(service(), 'known@example.com')
        let [known, unknown] = [Infinity, Infinity]
        for (let tries = 0; tries < 5; tries += 1) {
          known = Math.min(known, await time(email))
          unknown = Math.min(unknown, await time('no-one@example.com'))
        }
        assert.ok(unknown > known / 4, `${known} ms, ${unknown} ms`)
      })

      // Otherwise the response time would reveal that the account exists.
      it(
        'answers a wrong password before it writes that to the security log',
        { ...ONE_PROCESS, timeout: 30_000 },
        async ({ mock }) => {
          const { accounts } = service().store
          const answered = Promise.withResolvers<void>()
          const append = accounts.appendEvent.bind(accounts)
          const write = mock.method(accounts, 'appendEvent', async (event: AuditEvent) => {
            await answered.promise
            await append(event)
          })
          const client = new ConsoleClient(service().url)
          assert.equal((await client.signIn(service().account.email, 'wrong horse battery')).status, 400)
          answered.resolve()
          await until(() => write.mock.callCount() === 1)
        },
      )

      it('leads back to the page that was asked for, and never off the site', async () => {
        const client = new ConsoleClient(service().url)
        const { location } = await client.get('/animals?status=sold')
        assert.equal(location, '/sign-in?next=%2Fanimals%3Fstatus%3Dsold')
        const answer = await client.submit(location, '/sign-in', { email: service().account.email, password: PASSWORD })
        assert.equal(answer.location, '/animals?status=sold')
        const careless = new ConsoleClient(service().url)
        const mistaken = await careless.submit(location, '/sign-in', {
          email: service().account.email,
          password: 'wrong horse battery',
        })
        assert.match(mistaken.body, /name="next" value="\/animals\?status=sold"/)
        for (const next of [
          '//evil.example',
          'https://evil.example',
          '/\\evil.example',
          '/keys/../../x y',
          'javascript:alert(1)',
        ]) {
          const other = new ConsoleClient(service().url)
          const led = await other.submit('/sign-in', '/sign-in', {
            email: service().account.email,
            password: PASSWORD,
            next,
          })
          assert.equal(led.location, '/keys', next)
        }
      })

      it('ends the session of whoever was signed in before in the same browser', async () => {
        const client = await signedIn(service())
        const old = client.cookies.get('petstore')!
        const { csrf } = await client.hiddenFields('/keys', '/keys')
        const wrong = { csrf: csrf!, email: service().account.email, password: 'wrong horse battery' }
        assert.equal((await client.post('/sign-in', wrong)).status, 400)
        assert.equal((await client.get('/keys')).status, 200, 'not for a wrong password')
        const again = await client.post('/sign-in', { csrf: csrf!, email: service().account.email, password: PASSWORD })
        assert.deepEqual([again.status, again.headers.get('cache-control')], [303, 'no-store'])
        assert.equal((await client.get('/keys')).status, 200)
        client.cookies.set('petstore', old)
        assert.equal((await client.get('/keys')).status, 303)
      })

      it('ends the session at sign-out, for that token for good', async () => {
        const client = await signedIn(service())
        const token = client.cookies.get('petstore')!
        const { location } = await client.submit('/keys', '/sign-out')
        assert.equal(location, '/sign-in?signed-out=yes')
        assert.equal(client.cookies.has('petstore'), false)
        client.cookies.set('petstore', token)
        assert.equal((await client.get('/keys')).status, 303)
      })

      it('is not ended by a link: only the form of the sign-out ends it', async () => {
        const client = await signedIn(service())
        const { status, location } = await client.get('/sign-out')
        assert.deepEqual([status, location], [303, '/'])
        assert.equal((await client.get('/keys')).status, 200)
      })

      it('lists sign-ins, successful and refused, in the security log of the account', async () => {
        const client = await signedIn(service())
        await new ConsoleClient(service().url).signIn(service().account.email, 'wrong horse battery')
        await until(async () => /Sign-in refused/.test((await client.get('/account')).body))
        const events = (await client.get('/account')).body.split('<ol class="security-log">')[1]!.split('<li>')
        const line = (words: string) => events.find((item) => item.includes(words)) ?? ''
        assert.match(line('Account created'), /on the command line/)
        assert.match(
          line('Signed in'),
          new RegExp(`${service().account.email} from 127\\.0\\.0\\.1.*in the console`, 's'),
        )
        assert.match(line('Sign-in refused'), /from 127\.0\.0\.1.*in the console/s)
      })
    })

    it('lists in the security log what was done with an account, newest first, and where', async () => {
      const { accounts } = service()
      const client = new ConsoleClient(service().url)
      const email = 'log@example.com'
      await client.submit('/sign-up', '/sign-up', { email, password: PASSWORD })
      await client.submit('/keys', '/keys', { name: 'laptop', expires: '' })
      const account = (await service().store.accounts.accountByEmail(email))!
      const [key] = await service().store.accounts.listKeys(account.id)
      await accounts.revokeKey(key!, 'command line')
      await client.submit('/account', '/account/password', { current: PASSWORD, password: PASSWORD })
      await client.submit('/keys', '/sign-out')
      await client.signIn(email, PASSWORD)
      const items = (await client.get('/account')).body
        .split('<ol class="security-log">')[1]!
        .matchAll(/class="mark \w+">([^<]*)<.*?subject"><bdi>([^<]*)<.*?, (in|on) the/gs)
      assert.deepEqual(
        [...items].map(([, words, subject, door]) => `${words}: ${subject!.replace(/ .*/, '')} ${door}`),
        [
          `Signed in: ${email} in`,
          `Signed out: ${email} in`,
          `Signed in: ${email} in`,
          `Password changed: ${email} in`,
          'Key revoked: laptop on',
          'Key generated: laptop in',
          `Signed in: ${email} in`,
          `Account created: ${email} in`,
        ],
      )
    })

    describe('a session', () => {
      it('ends when nothing was done for its idle time, and goes on while something is', ONE_PROCESS, async () => {
        const start = clock.now
        const client = await signedIn(service())
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

      it('ends after its longest time, however busy', ONE_PROCESS, async () => {
        const start = clock.now
        const client = await signedIn(service())
        for (let busy = 0; busy < SESSION_MAX_MS; busy += SESSION_IDLE_MS / 2) {
          clock.now = start + busy
          assert.equal((await client.get('/account')).status, 200)
        }
        clock.now = start + SESSION_MAX_MS - 1
        assert.equal((await client.get('/account')).status, 200)
        clock.now += 1
        assert.equal((await client.get('/account')).status, 303)
        clock.now = start
      })

      it('that began while the clock was ahead is refused when that is set right', ONE_PROCESS, async () => {
        const right = clock.now
        const sessions = new Sessions(service().store, () => clock.now)
        for (const [aheadMs, whenSetRight, whenThatTimeComes] of [
          [CLOCK_SKEW_MS, 200, 200],
          // Kept: this clock may be the one that is wrong, and the session that of another instance.
          [CLOCK_SKEW_MS + 1, 303, 200],
          [SESSION_MAX_MS, 303, 200],
          [SESSION_MAX_MS + 1, 303, 303],
        ] as const) {
          clock.now = right + aheadMs
          const client = await signedIn(service())
          clock.now = right
          assert.equal((await client.get('/keys')).status, whenSetRight, String(aheadMs))
          await sessions.purge()
          clock.now = right + aheadMs
          assert.equal((await client.get('/keys')).status, whenThatTimeComes, `${aheadMs}, after a purge`)
        }
        clock.now = right
      })

      it('from the future stays ended after a sign-out, another sign-in or a sign-up', ONE_PROCESS, async () => {
        const right = clock.now
        for (const [action, email] of [
          ['/sign-out', ''],
          ['/sign-in', service().account.email],
          ['/sign-up', `${randomUUID()}@example.com`],
        ] as const) {
          clock.now = right + SESSION_IDLE_MS
          const client = await signedIn(service())
          const { cookie } = client
          const { csrf } = await client.hiddenFields('/keys', '/sign-out')
          clock.now = right
          assert.equal((await client.get('/keys')).status, 303)
          assert.equal((await client.post(action, { csrf: csrf!, email, password: PASSWORD })).status, 303)
          clock.now = right + SESSION_IDLE_MS
          assert.equal((await new ConsoleClient(service().url).get('/keys', { Cookie: cookie })).status, 303, action)
        }
        clock.now = right
      })

      it('ends everywhere else when the password is changed, and goes on here with a new token', async () => {
        const [here, elsewhere] = [await signedIn(service()), await signedIn(service())]
        const old = here.cookies.get('petstore')
        const changed = await here.submit('/account', '/account/password', { current: PASSWORD, password: PASSWORD })
        assert.equal(changed.location, '/account?changed=yes')
        assert.notEqual(here.cookies.get('petstore'), old)
        assert.match((await here.get(changed.location)).body, /Password changed\. All other sessions have ended\./)
        assert.equal((await elsewhere.get('/account')).status, 303)
      })

      it('is not enough to change the password: that takes the current one', async () => {
        const client = await signedIn(service())
        const tried = await client.submit('/account', '/account/password', {
          current: 'not my password',
          password: 'another horse battery',
        })
        assert.equal(tried.status, 400)
        // The owner sees the wrong password in the security log.
        const { account, store } = service()
        await until(async () => (await store.accounts.auditTrail(account.id, 1))[0]?.action === 'session.refused')
        assert.equal((await new ConsoleClient(service().url).signIn(service().account.email, PASSWORD)).status, 303)
        const weak = await client.submit('/account', '/account/password', { current: PASSWORD, password: 'short' })
        assert.equal(weak.status, 400)
        assert.match(weak.body, /at least 12 characters, got 5/)
      })

      it('never works as an API key, nor an API key as a session', async () => {
        const client = await signedIn(service())
        const token = client.cookies.get('petstore')!
        const asKey = await fetch(`${service().url}/v1/pets`, { headers: { Authorization: `Bearer ${token}` } })
        const asCookie = await fetch(`${service().url}/v1/pets`, { headers: { Cookie: `petstore=${token}` } })
        assert.deepEqual([asKey.status, asCookie.status], [401, 401])
        const { key, url } = service()
        for (const headers of [{ Authorization: `Bearer ${key}` }, { Cookie: `petstore=${key}` }] as Record<
          string,
          string
        >[]) {
          assert.equal((await fetch(`${url}/keys`, { headers, redirect: 'manual' })).status, 303)
        }
      })
    })
  },
  { clock: () => clock.now },
)

describe('Several instances on one database', () => {
  for (const engine of ENGINES) {
    it(`know the same sessions on ${engine.name}, and end them together`, async () => {
      await using database = await engine.newDatabase()
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
  }
})
