// Guessing at the console is slowed down, over HTTP: by account, by address, and at sign-up.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  PASSWORD_BY_SESSION,
  SIGN_IN_BY_ACCOUNT_AND_ADDRESS,
  SIGN_IN_BY_ADDRESS,
  SIGN_UP_BY_ADDRESS,
} from '../src/accounts/throttle.ts'
import { ConsoleClient, signedIn } from './console-client.ts'
import { makeCostlyAccount, PASSWORD, startPetstore } from './harness.ts'
import { until } from '../assurance/harness/until.ts'

const clock = { now: Date.now() }

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
    const tries = Array.from({ length: SIGN_IN_BY_ADDRESS.tries }, (_, index) =>
      tryAs(`guess${index}@example.com`, '192.0.2.1'),
    )
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
    const tries = Array.from({ length: SIGN_IN_BY_ADDRESS.tries }, (_, index) =>
      tryAs(`guess${index}@example.com`, 'wrong horse battery', '192.0.2.1'),
    )
    await Promise.all(tries)
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

  it('to create accounts are throttled by address', async () => {
    await using petstore = await startPetstore()
    const client = new ConsoleClient(petstore.url)
    const fields = { ...(await client.hiddenFields('/sign-up', '/sign-up')), email: 'x@example.com', password: 'short' }
    for (let tries = 0; tries < SIGN_UP_BY_ADDRESS.tries; tries += 1)
      assert.equal((await client.post('/sign-up', fields)).status, 400)
    assert.equal((await client.post('/sign-up', fields)).status, 429)
  })
})
