// Guessing at the console is slowed down, over HTTP: by account, by address, and at sign-up.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import {
  PASSWORD_BY_SESSION,
  SIGN_IN_BY_ACCOUNT_AND_ADDRESS,
  SIGN_IN_BY_ADDRESS,
  SIGN_UP_BY_ADDRESS,
} from '../../src/accounts/throttle.ts'
import { type Answered, ConsoleClient, signedIn } from '../harness/connections/console-client.ts'
import { makeAccount, makeCostlyAccount, PASSWORD, type Petstore, startPetstore } from '../harness/harness.ts'
import { sqlite } from '../harness/databases/engines.ts'
import { until } from '../harness/until.ts'

const clock = { now: Date.now() }

/** As many accounts as an address has tries. Their passwords are compared at once; a name without an account takes as long as a real one. */
function namesToGuess(petstore: Petstore): Promise<string[]> {
  const names = Array.from({ length: SIGN_IN_BY_ADDRESS.tries }, (_, index) => `guess${index}@example.com`)
  return Promise.all(names.map(async (name) => (await makeAccount(petstore, name)).email))
}

describe('Tries', () => {
  it('to sign in are throttled by account, the same for one that is not there, and let through later', async () => {
    await using petstore = await startPetstore({ monotonic: () => clock.now })
    const client = new ConsoleClient(petstore.url)
    for (const email of [petstore.account.email, 'nobody@example.com']) {
      for (let tries = 0; tries < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries; tries += 1) {
        assert.equal((await client.signIn(email, 'wrong horse battery')).status, 400)
      }
      const { status, headers } = await client.signIn(email.toUpperCase(), PASSWORD)
      assert.deepEqual(
        [status, headers.get('retry-after')],
        [429, String(SIGN_IN_BY_ACCOUNT_AND_ADDRESS.withinMs / 1000)],
        email,
      )
    }
    clock.now += SIGN_IN_BY_ACCOUNT_AND_ADDRESS.withinMs - 61_000
    assert.match((await client.signIn(petstore.account.email, PASSWORD)).body, /Wait 2 minutes/)
    clock.now += 1000
    assert.match((await client.signIn(petstore.account.email, PASSWORD)).body, /Wait a minute/)
    clock.now += 60_000
    assert.equal((await client.signIn(petstore.account.email, PASSWORD)).status, 303)
  })

  it('to sign in that come all at once are let through as often as those that come one after the other', async () => {
    await using petstore = await startPetstore()
    // Its password takes so long to compare that all tries have come before the first is refused.
    const { email } = await makeCostlyAccount(petstore, 'costly@example.com')
    const client = new ConsoleClient(petstore.url)
    const fields = { ...(await client.hiddenFields('/sign-in', '/sign-in')), email, password: 'wrong horse battery' }
    const most = SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries
    const answers = await Promise.all(Array.from({ length: 2 * most }, () => client.post('/sign-in', fields)))
    assert.deepEqual(
      [400, 429].map((expected) => answers.filter(({ status }) => status === expected).length),
      [most, most],
    )
  })

  it('to sign in that are throttled leave no trace in the security log, which anyone could fill with them', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '127.0.0.1' } })
    const { account, store } = petstore
    const client = new ConsoleClient(petstore.url)
    const fields = { ...(await client.hiddenFields('/sign-in', '/sign-in')), email: account.email, password: 'wrong' }
    const tryFrom = async (address: string) =>
      (await client.post('/sign-in', fields, { 'X-Forwarded-For': address })).status
    const most = SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries
    for (let time = 0; time < most; time += 1) assert.equal(await tryFrom('192.0.2.1'), 400)
    for (let time = 0; time < 5; time += 1) assert.equal(await tryFrom('192.0.2.1'), 429)
    assert.equal(await tryFrom('192.0.2.2'), 400)
    const refused = async () =>
      (await store.accounts.auditTrail(account.id, 100)).filter(({ action }) => action === 'session.refused')
    await until(async () => {
      const events = await refused()
      return events.length > most && events.some(({ subject }) => subject.endsWith('192.0.2.2'))
    }, 'the last try is in the log')
    assert.equal((await refused()).length, most + 1)
  })

  it('to sign in that went wrong are forgotten once one is right', async () => {
    await using petstore = await startPetstore()
    const client = new ConsoleClient(petstore.url)
    const { email } = petstore.account
    const fields = await client.hiddenFields('/sign-in', '/sign-in')
    for (const _round of [1, 2]) {
      for (let tries = 1; tries < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries; tries += 1) {
        assert.equal((await client.post('/sign-in', { ...fields, email, password: 'wrong horse battery' })).status, 400)
      }
      assert.equal((await new ConsoleClient(petstore.url).signIn(email, PASSWORD)).status, 303)
    }
  })

  it('to sign in with ever other names are throttled by address, and nobody at another address is', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '127.0.0.1' } })
    const client = new ConsoleClient(petstore.url)
    const fields = await client.hiddenFields('/sign-in', '/sign-in')
    const tryAs = (email: string, address: string) =>
      client.post('/sign-in', { ...fields, email, password: 'wrong horse battery' }, { 'X-Forwarded-For': address })
    const names = ['nobody@example.com', ...(await namesToGuess(petstore)).slice(1)]
    const tries = names.map((email) => tryAs(email, '192.0.2.1'))
    for (const { status } of await Promise.all(tries)) assert.equal(status, 400)
    assert.equal((await tryAs('guess@example.com', '192.0.2.1')).status, 429)
    assert.equal((await tryAs('guess@example.com', '192.0.2.2')).status, 400)
  })

  it('of a throttled address lock out nobody whom it names', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '127.0.0.1' } })
    const client = new ConsoleClient(petstore.url)
    const fields = await client.hiddenFields('/sign-in', '/sign-in')
    const tryAs = (email: string, password: string, address: string) =>
      client.post('/sign-in', { ...fields, email, password }, { 'X-Forwarded-For': address })
    const { email } = petstore.account
    await Promise.all((await namesToGuess(petstore)).map((name) => tryAs(name, 'wrong horse battery', '192.0.2.1')))
    for (let time = 0; time < 120; time += 1)
      assert.equal((await tryAs(email, 'wrong horse battery', '192.0.2.1')).status, 429)
    assert.equal((await tryAs(email, PASSWORD, '192.0.2.2')).status, 303)
  })

  it('at an account from one address do not lock out its owner at another', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '127.0.0.1' } })
    const client = new ConsoleClient(petstore.url)
    const fields = { ...(await client.hiddenFields('/sign-in', '/sign-in')), email: petstore.account.email }
    const tryFrom = (address: string, password: string) =>
      client.post('/sign-in', { ...fields, password }, { 'X-Forwarded-For': address })
    for (let time = 0; time < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries; time += 1)
      await tryFrom('192.0.2.1', 'wrong horse battery')
    assert.equal((await tryFrom('192.0.2.1', PASSWORD)).status, 429)
    assert.equal((await tryFrom('192.0.2.2', PASSWORD)).status, 303)
  })

  it('with an email address or a password that no account can have are refused at once, and kept nowhere', async () => {
    await using petstore = await startPetstore()
    const client = new ConsoleClient(petstore.url)
    const fields = await client.hiddenFields('/sign-in', '/sign-in')
    const impossible = [
      { email: `${'x'.repeat(8000)}@example.com`, password: PASSWORD },
      { email: petstore.account.email, password: 'x'.repeat(1025) },
    ]
    for (let time = 0; time < SIGN_IN_BY_ADDRESS.tries + 1; time += 1) {
      for (const typed of impossible) assert.equal((await client.post('/sign-in', { ...fields, ...typed })).status, 400)
    }
    assert.equal((await client.signIn(petstore.account.email, PASSWORD)).status, 303)
  })

  it('at sign-in do not keep a signed-in person from changing the password, whose own tries are counted apart, by session', async () => {
    await using petstore = await startPetstore()
    const { email } = petstore.account
    const [owner, elsewhere] = [await signedIn(petstore), await signedIn(petstore)]
    const guesser = new ConsoleClient(petstore.url)
    for (let time = 0; time < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries; time += 1)
      await guesser.signIn(email, 'wrong horse battery')
    assert.equal((await guesser.signIn(email, PASSWORD)).status, 429)
    const change = (client: ConsoleClient, current: string) =>
      client.submit('/account', '/account/password', { current, password: PASSWORD })
    for (let time = 0; time < PASSWORD_BY_SESSION.tries; time += 1)
      assert.equal((await change(owner, 'wrong horse battery')).status, 400)
    assert.equal((await change(owner, PASSWORD)).status, 429)
    assert.equal((await change(elsewhere, PASSWORD)).location, '/account?changed=yes')
  })

  it('to sign in whose password was not compared do not count', async () => {
    await using database = await sqlite.newEmptyDatabase()
    await using petstore = await startPetstore({ database: database.url })
    const client = new ConsoleClient(petstore.url)
    const tryWrong = async () => (await client.signIn(petstore.account.email, 'wrong horse battery')).status
    for (let tries = 1; tries < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries; tries += 1) assert.equal(await tryWrong(), 400)
    using db = new DatabaseSync(database.url.slice('sqlite:'.length), { timeout: 10_000 })
    db.exec('ALTER TABLE accounts RENAME TO away')
    assert.equal(await tryWrong(), 500)
    db.exec('ALTER TABLE away RENAME TO accounts')
    assert.deepEqual([await tryWrong(), await tryWrong()], [400, 429])
  })

  it('that another site can make its visitors’ browsers send count nothing, and wrong links never as passwords', async () => {
    await using petstore = await startPetstore()
    const { email } = petstore.account
    const [client, visitor] = [await signedIn(petstore), new ConsoleClient(petstore.url)]
    const wrong = `/link?token=${'x'.repeat(43)}`
    const typed = { email, password: 'wrong horse battery', current: 'wrong horse battery' }
    const form = await visitor.hiddenFields('/sign-in', '/sign-in')
    const times = Array.from({ length: SIGN_IN_BY_ADDRESS.tries + 1 })
    const statusOf = async (answers: readonly (() => Promise<Answered>)[]) =>
      new Set((await Promise.all(times.flatMap(() => answers.map((ask) => ask())))).map(({ status }) => status))
    const opened = [
      ...['cross-site', 'same-site'].map((site) => () => visitor.get(wrong, { 'Sec-Fetch-Site': site })),
      ...['/link?1', '/link?token='].map((path) => () => visitor.get(path)),
    ]
    assert.deepEqual(await statusOf(opened), new Set([404]))
    const sent = [
      ...['/sign-in', '/sign-up', wrong].map(
        (path) => () => visitor.post(path, { ...typed, ...form }, { 'Sec-Fetch-Site': 'cross-site' }),
      ),
      ...['/sign-in', '/account/password'].map((path) => () => client.post(path, typed)),
    ]
    assert.deepEqual(await statusOf(sent), new Set([403]))
    // Without Sec-Fetch-Site, a wrong link counts as one.
    assert.equal((await visitor.get(wrong)).status, 404)
    assert.deepEqual(await statusOf([() => visitor.get(wrong)]), new Set([404, 429]))
    assert.equal((await visitor.signIn(email, PASSWORD)).status, 303)
    const changed = await client.submit('/account', '/account/password', { current: PASSWORD, password: PASSWORD })
    assert.equal(changed.location, '/account?changed=yes')
    const joined = await new ConsoleClient(petstore.url).fillIn('/sign-up', {
      name: 'New',
      email: 'new@b',
      password: PASSWORD,
    })
    assert.equal(joined.status, 303)
  })

  it('to create accounts are throttled by address; those that create none count as none, and reveal no more than a sign-in may', async () => {
    await using petstore = await startPetstore()
    const signUp = async (email: string, password = PASSWORD) =>
      (
        await new ConsoleClient(petstore.url).submit('/sign-up', '/sign-up', {
          name: email.split('@')[0]!,
          email,
          password,
        })
      ).status
    const { email } = petstore.account
    for (let tries = 0; tries <= SIGN_UP_BY_ADDRESS.tries; tries += 1) {
      assert.deepEqual([await signUp('x@example.com', 'short'), await signUp('x@', PASSWORD)], [400, 400])
      assert.equal(await signUp(email, 'wrong horse battery'), tries < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries ? 400 : 429)
    }
    for (let tries = 0; tries < SIGN_UP_BY_ADDRESS.tries; tries += 1)
      assert.equal(await signUp(`x${tries}@example.com`), 303)
    assert.equal(await signUp('x@example.com'), 429)
  })
})
