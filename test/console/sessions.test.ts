// Signing in and staying signed in at the console, over HTTP: cookies and sessions.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { SESSION_IDLE_MS } from '../../src/accounts/sessions.ts'
import type { AuditEvent } from '../../src/store/account-store.ts'
import { until } from '../harness/until.ts'
import {
  ConsoleClient,
  hiddenIn,
  MEMBER_PAGES,
  signedIn,
  signedInAs,
  withKey,
} from '../harness/connections/console-client.ts'
import { cpuTime } from '../harness/programs/cpu-time.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { describeOnSqlite, makeCostlyAccount, PASSWORD, startPetstore } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'
import { WORKERS } from '../harness/programs/with-workers.ts'

const clock = { now: Date.now() }

/** Workers have their own clocks, which a test can't set, and take their own time of the processor. */
const ONE_PROCESS = { skip: 'PETSTORE_WORKERS' in WORKERS }

describeOnSqlite(
  'Who is signed in at the console',
  (service) => {
    const visitor = () => new ConsoleClient(service().url)
    const tokenOf = ({ cookies }: ConsoleClient) => cookies.get('petstore')!
    /** The status of a page of an account for a browser with this cookie. */
    const statusWith = async (Cookie: string) => (await visitor().get('/keys', { Cookie })).status

    describe('signing in', () => {
      it('creates an account, signs in with it, and hands out a cookie that scripts and other sites cannot use', async () => {
        const client = visitor()
        const answer = await client.fillIn('/sign-up', { name: 'New', email: 'new@example.com', password: PASSWORD })
        assert.deepEqual([answer.status, answer.location], [303, '/animals'])
        assert.match(answer.headers.get('set-cookie') ?? '', /^petstore=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
        assert.equal((await client.get('/keys')).status, 200)
      })

      it('takes an email address with the spaces that came along when it was pasted, and a password exactly as it was chosen', async () => {
        const password = '  correct horse battery '
        const made = await visitor().fillIn('/sign-up', {
          name: ' Spaces\n',
          email: ' spaces@example.com\n',
          password,
        })
        assert.equal(made.location, '/animals')
        assert.equal((await visitor().signIn('spaces@example.com', password)).location, '/animals')
        assert.equal((await visitor().signIn('spaces@example.com', password.trim())).status, 400)
      })

      it('is not had by signing up with the email address of an account and another password', async () => {
        const { email } = service().account
        const [client, owner] = [visitor(), await signedIn(service())]
        const { status, body } = await client.fillIn('/sign-up', {
          name: 'Thief',
          email,
          password: 'wrong horse battery',
        })
        assert.equal(status, 400)
        assert.ok(body.includes(`There is already an account for ${email}.`))
        assert.equal((await client.get('/keys')).status, 303)
        // It is a try with a wrong password like any other: the owner sees it.
        await until(async () => /Sign-in refused/.test((await owner.get('/account')).body))
      })

      it('leads who is signed in from the forms for it to the animals', async () => {
        const client = await signedIn(service())
        for (const page of ['/sign-in', '/sign-up']) assert.equal((await client.get(page)).location, '/animals')
        const asked = await client.get('/sign-in?next=%2Fanimals%3Fstatus%3Dsold')
        assert.equal(asked.location, '/animals?status=sold', 'or to the page that was asked for')
      })

      it('replaces a cookie that it did not make', async () => {
        for (const planted of ['x', 'x'.repeat(42), 'x'.repeat(1000)]) {
          const { headers } = await visitor().get('/sign-in', { Cookie: `petstore=${planted}` })
          assert.match(headers.get('set-cookie') ?? '', /^petstore=[\w-]{43};/)
        }
      })

      it('sets its cookie once: a page that arrives after a sign-in in another tab must not put the old one back', async () => {
        const client = visitor()
        const { email } = service().account
        const open = ['/', '/sign-in', '/docs', '/nothing']
        const cookieOf = async (page: string) => (await client.get(page)).headers.get('set-cookie')
        await client.get('/sign-in')
        const wrong = await client.signIn(email, 'wrong horse battery')
        assert.deepEqual([wrong.status, wrong.headers.get('set-cookie')], [400, null])
        for (const page of [...open, '/keys']) assert.equal(await cookieOf(page), null, page)
        assert.ok((await client.signIn(email, PASSWORD)).headers.get('set-cookie'))
        for (const page of [...open, ...MEMBER_PAGES]) assert.equal(await cookieOf(page), null, page)
      })

      it('finds the session among several cookies of its name, wherever it stands', async () => {
        const token = `petstore=${tokenOf(await signedIn(service()))}`
        const planted = Array.from({ length: 9 }, (_, index) => `petstore=${String(index).repeat(43)}`)
        for (const place of [0, 1, 9]) {
          const Cookie = planted.toSpliced(place, 0, 'petstore=', token, 'petstore=').join('; ')
          const page = await visitor().get('/keys/new', { Cookie })
          assert.equal(page.status, 200, `at ${place}`)
          const typed = { ...hiddenIn(page.body), name: 'k', expires: '' }
          assert.equal((await visitor().post('/keys', typed, { Cookie })).status, 200, `form at ${place}`)
        }
        assert.equal(await statusWith(planted.join('; ')), 303)
        assert.equal(await statusWith([...planted, `petstore=${'x'.repeat(43)}`, token].join('; ')), 303, 'too many')
      })

      it('changes the token at sign-in, so that one planted before is worth nothing', async () => {
        const client = visitor()
        await client.get('/sign-in')
        const planted = tokenOf(client)
        await client.signIn(service().account.email, PASSWORD)
        assert.notEqual(tokenOf(client), planted)
        assert.equal(await statusWith(`petstore=${planted}`), 303)
      })

      it('answers a wrong password and an unknown account alike, and keeps what was typed', async () => {
        const { email } = service().account
        const wrong = await visitor().signIn(email, 'wrong horse battery')
        const plain = ({ body }: { body: string }) => body.replaceAll(/value="[^"]*"/g, '')
        for (const other of ['nobody@example.com', '', 'no\u0000body@example.com']) {
          const unknown = await visitor().signIn(other, 'wrong horse battery')
          assert.deepEqual([wrong.status, plain(wrong)], [unknown.status, plain(unknown)])
        }
        assert.ok(wrong.body.includes(`value="${email}"`))
        assert.doesNotMatch(wrong.body, /wrong horse/)
        assert.match(wrong.body, /The email address or the password is wrong/)
      })

      it('takes as much CPU time to refuse an unknown account as a wrong password', ONE_PROCESS, async () => {
        const client = visitor()
        const fields = await client.hiddenFields('/sign-in')
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
      it('answers a wrong password before it writes that to the security log', ONE_PROCESS, async ({ mock }) => {
        const { accounts } = service().store
        const answered = Promise.withResolvers<void>()
        const append = accounts.appendEvent.bind(accounts)
        const write = mock.method(accounts, 'appendEvent', async (refused: AuditEvent) => {
          await answered.promise
          await append(refused)
        })
        assert.equal((await visitor().signIn(service().account.email, 'wrong horse battery')).status, 400)
        answered.resolve()
        await until(() => write.mock.callCount() === 1)
      })

      it('leads back to the page that was asked for, and never off the site', async () => {
        const { email } = service().account
        const { location } = await visitor().get('/animals?status=sold')
        assert.equal(location, '/sign-in?next=%2Fanimals%3Fstatus%3Dsold')
        assert.equal((await visitor().signIn(email, PASSWORD, location)).location, '/animals?status=sold')
        const mistaken = await visitor().signIn(email, 'wrong horse battery', location)
        assert.match(mistaken.body, /name="next" value="\/animals\?status=sold"/)
        assert.match(mistaken.body, /Sign in to continue\./)
        // Which pages there are: src/console/every-page/visit.test.ts.
        const led = await visitor().fillIn('/sign-in', { email, password: PASSWORD, next: '//evil.example' })
        assert.equal(led.location, '/account/name?next=%2Fanimals')
        const none = await visitor().get('/sign-in?next=%2Fkeys')
        const [, signUp = ''] = /href="([^"]*)">Create one/.exec(none.body) ?? []
        const made = await visitor().submit(signUp, '/sign-up', {
          name: 'Led',
          email: 'led@example.com',
          password: PASSWORD,
        })
        assert.equal(made.location, '/keys', 'also if an account is created on the way')
      })

      it('asks who has no name for one, then opens the page that was asked for, with what was typed; also later', async () => {
        const { store } = service()
        const email = 'unnamed@example.com'
        const client = await signedInAs(service(), email)
        const asked = async () => {
          const fields = await client.hiddenFields('/animals/new')
          await store.accounts.purgeSessions(0, 0, 0)
          const { location } = await client.post('/animals/new', { ...fields, name: 'Typed', categoryId: '3' })
          const opened = await client.submit(location!, '/sign-in', { email, password: PASSWORD })
          return { page: opened.location!, ...(await client.get(opened.location!)) }
        }
        const first = await asked()
        assert.match(first.page, /^\/account\/name\?next=%2Fanimals%2Fnew/)
        const [, later = ''] = /href="([^"]*)">Later</.exec(first.body) ?? []
        const restored = /Nothing was saved yet.*value="Typed"/s
        assert.match((await client.get(later)).body, restored)
        const again = await asked()
        const saved = await client.post('/account/name', { ...hiddenIn(again.body), name: ' Robin ' })
        assert.match((await client.get(saved.location!)).body, restored)
        assert.equal((await client.get('/keys')).body.includes('<span class="who"><bdi>Robin</bdi>'), true)
        assert.match((await asked()).page, /^\/animals\/new\?typed=/, 'no longer asked')
        const log = (await client.get('/account')).body
        assert.match(log, /Colleagues see you as <strong><bdi>Robin</)
        const said = `Name changed</span> <span class="security-log-subject"><bdi dir="ltr"><bdi>${email}: Name: </bdi>`
        assert.ok(log.includes(said), log)
      })

      it('ends the session of whoever was signed in before in the same browser', async () => {
        const client = await signedIn(service())
        const old = client.cookie
        const { csrf = '' } = await client.hiddenFields('/keys/new', '/keys')
        const typed = { csrf, email: service().account.email, password: PASSWORD }
        assert.equal((await client.post('/sign-in', { ...typed, password: 'wrong horse battery' })).status, 400)
        assert.equal((await client.get('/keys')).status, 200, 'not for a wrong password')
        const again = await client.post('/sign-in', typed)
        assert.deepEqual([again.status, again.headers.get('cache-control')], [303, 'no-store'])
        assert.equal((await client.get('/keys')).status, 200)
        assert.equal(await statusWith(old), 303)
      })

      it('ends the session at sign-out, for that token for good, and not by a link', async () => {
        const client = await signedIn(service())
        const { cookie } = client
        const linked = await client.get('/sign-out')
        assert.deepEqual([linked.status, linked.location], [303, '/'])
        assert.equal((await client.get('/keys')).status, 200)
        const { location } = await client.submit('/keys', '/sign-out')
        assert.equal(location, '/sign-in?signed-out=yes')
        assert.equal(client.cookies.has('petstore'), false)
        assert.equal(await statusWith(cookie), 303)
      })
    })

    it('lists in the security log what was done with an account, newest first, from where, and refused sign-ins too', async () => {
      const email = 'log@example.com'
      const client = await signedInAs(service(), email)
      await client.generateKey('laptop')
      const account = (await service().store.accounts.accountByEmail(email))!
      const [key] = await service().store.accounts.listKeys(account.id)
      await service().accounts.revokeKey(key!, 'command line')
      await client.submit('/account', '/account/password', { current: PASSWORD, password: PASSWORD })
      await client.submit('/keys', '/sign-out')
      await client.signIn(email, PASSWORD)
      await visitor().signIn(email, 'wrong horse battery')
      await until(async () => /Sign-in refused/.test((await client.get('/account')).body))
      const items = (await client.get('/account')).body
        .split('<ol class="security-log">')[1]!
        .matchAll(/class="mark \w+">([^<]*)<.*?subject"><bdi>([^<]*)<.*?, ((?:in|on) the [\w ]+)/gs)
      assert.deepEqual(
        [...items].map(([, words, subject, door]) => `${words}: ${subject!.replace(/ \(.*/, '')}, ${door}`),
        [
          `Sign-in refused: ${email} from 127.0.0.1, in the console`,
          `2 sign-ins: ${email} from 127.0.0.1, in the console`,
          `Signed out: ${email} from 127.0.0.1, in the console`,
          `Password changed: ${email}, in the console`,
          'Key revoked: laptop, on the command line',
          'Key generated: laptop, in the console',
          `Signed in: ${email} from 127.0.0.1, in the console`,
          `Account created: ${email}, on the command line`,
        ],
      )
    })

    it('keeps a key of a thief on the first page of the security log, past any number of wrong passwords and sign-ins', async () => {
      const email = 'robbed@example.com'
      const client = await signedInAs(service(), email)
      await client.generateKey('backdoor')
      const { id } = (await service().store.accounts.accountByEmail(email))!
      const note = (action: 'session.refused' | 'session.started', nth: number) =>
        service().store.accounts.appendEvent({
          ...event(id, action),
          at: clock.now,
          via: 'console',
          subject: `${email} from 192.0.2.${nth}`,
        })
      for (let nth = 1; nth <= 30; nth += 1) {
        await note('session.refused', nth)
        await note('session.started', nth)
      }
      const textOf = (body: string) => body.split('<ol class="security-log">')[1]!.replaceAll(/<[^>]*>|\s+/g, ' ')
      const first = await client.get('/account')
      assert.match(
        textOf(first.body),
        /^[^:]* 30 sign-ins .*192\.0\.2\.30 , the newest .* 30 wrong passwords .* Key generated +backdoor .* Signed in .* Account created /,
      )
      for (const query of ['before=x', 'before=-1', 'before=99999999999999999999'])
        assert.match((await client.get(`/account?${query}`)).body, /30 wrong passwords/, query)
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

      it('lasts as long without use as the setting says', ONE_PROCESS, async () => {
        const time = { now: Date.now() }
        await using short = await startPetstore({ env: { PETSTORE_SESSION_MINUTES: '5' }, clock: () => time.now })
        const client = await signedIn(short)
        time.now += 299_999
        assert.equal((await client.get('/keys')).status, 200)
        time.now += 300_000
        assert.equal((await client.get('/keys')).status, 303)
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
          const { csrf = '' } = await client.hiddenFields('/keys', '/sign-out')
          clock.now = right
          assert.equal((await client.get('/keys')).status, 303)
          assert.equal(
            (await client.post(action, { csrf, name: 'From the future', email, password: PASSWORD })).status,
            303,
          )
          clock.now = right + SESSION_IDLE_MS
          assert.equal(await statusWith(cookie), 303, action)
        }
        clock.now = right
      })

      it('ends everywhere else when the password is changed, and goes on here with a new token', async () => {
        const [here, elsewhere] = [await signedIn(service()), await signedIn(service())]
        const old = tokenOf(here)
        const changed = await here.submit('/account', '/account/password', { current: PASSWORD, password: PASSWORD })
        assert.equal(changed.location, '/account?changed=yes')
        assert.notEqual(tokenOf(here), old)
        assert.match((await here.get(changed.location)).body, /Password changed\. All other sessions have ended\./)
        assert.equal((await elsewhere.get('/account')).status, 303)
      })

      it('is not enough to change the password: that takes the current one', async () => {
        const { account, store } = service()
        const typed = { current: 'not my password', password: 'another horse battery' }
        const tried = await (await signedIn(service())).submit('/account', '/account/password', typed)
        assert.equal(tried.status, 400)
        // The owner sees the wrong password in the security log.
        await until(async () => (await store.accounts.auditTrail(account.id, 1))[0]?.action === 'session.refused')
        assert.equal((await visitor().signIn(account.email, PASSWORD)).status, 303)
      })

      it('never works as an API key, nor an API key as a session', async () => {
        const token = tokenOf(await signedIn(service()))
        const { key, url } = service()
        const asKey = await fetch(`${url}/v1/pets`, withKey(token))
        const asCookie = await fetch(`${url}/v1/pets`, { headers: { Cookie: `petstore=${token}` } })
        assert.deepEqual([asKey.status, asCookie.status], [401, 401])
        assert.equal((await visitor().get('/keys', { Authorization: `Bearer ${key}` })).status, 303)
        assert.equal(await statusWith(`petstore=${key}`), 303)
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
      const client = await signedIn(first)
      const atSecond = new ConsoleClient(second.url)
      atSecond.cookies.set('petstore', client.cookies.get('petstore')!)
      assert.equal((await atSecond.get('/keys')).status, 200)
      await atSecond.submit('/keys', '/sign-out')
      assert.equal((await client.get('/keys')).status, 303)
    })
  }
})
