// Many people at the sign-in form at once, people who leave, and a proxy in front of all of them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { HASHES_WAITING } from '../src/accounts/passwords.ts'
import { SIGN_IN_BY_ACCOUNT_AND_ADDRESS } from '../src/accounts/throttle.ts'
import { ClientLeft } from '../src/console/visit.ts'
import { StoreUnavailable } from '../src/store/store.ts'
import { RawConnection } from '../assurance/harness/raw-http.ts'
import { until } from '../assurance/harness/until.ts'
import { ConsoleClient, signedIn } from './console-client.ts'
import { makeCostlyAccount, PASSWORD, type Petstore, startPetstore } from './harness.ts'

const BEHIND_PROXY = { PETSTORE_TRUST_PROXY: '127.0.0.1' }

/** More than the queue holds, each with an address of its own, so that none of them is throttled. */
const CROWD = Array.from({ length: HASHES_WAITING + 30 }, (_, index) => `10.0.${index}.1`)

const faults = ({ logged }: Petstore) => logged.filter(({ level }) => level === 'error')

async function signInForm(petstore: Petstore) {
  const client = new ConsoleClient(petstore.url)
  const fields = await client.hiddenFields('/sign-in', '/sign-in')
  const signIn = (address: string, email: string, password: string) =>
    client.post('/sign-in', { ...fields, email, password }, { 'X-Forwarded-For': address })
  return { client, fields, signIn }
}

describe('A crowd at the sign-in form', () => {
  it('is answered as far as passwords can be hashed soon, and the rest is asked to come back: 503 with Retry-After, as a page', async () => {
    await using petstore = await startPetstore({ env: BEHIND_PROXY })
    const { signIn } = await signInForm(petstore)
    const answers = await Promise.all(
      CROWD.map((address, index) => signIn(address, `crowd${index}@example.com`, 'wrong horse battery')),
    )
    const refused = answers.filter(({ status }) => status === 503)
    assert.ok(refused.length > 0 && refused.length < CROWD.length, `${refused.length} of ${CROWD.length} were refused`)
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([400, 503]))
    for (const { headers, body } of refused) {
      assert.equal(headers.get('retry-after'), '2')
      assert.match(body, /<h1>Too many people are signing in<\/h1>\s*<p>Nothing was changed\./)
    }
    assert.deepEqual(faults(petstore), [])
    assert.equal((await signIn('192.0.2.1', petstore.account.email, PASSWORD)).status, 303)
  })

  it('that has left is not waited for: its passwords are not hashed', async () => {
    await using petstore = await startPetstore({ env: BEHIND_PROXY })
    const { client, fields, signIn } = await signInForm(petstore)
    const { email, id } = await makeCostlyAccount(petstore, 'costly@example.com')
    const body = new URLSearchParams({ ...fields, email, password: 'wrong horse battery' }).toString()
    const { hostname, port } = new URL(petstore.url)
    const leavers = CROWD.slice(0, 50).map((address) => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      const head = [
        'POST /sign-in HTTP/1.1',
        'Host: localhost',
        `Cookie: petstore=${client.cookies.get('petstore')!}`,
        `X-Forwarded-For: ${address}`,
      ]
      socket.write(
        [...head, 'Content-Type: application/x-www-form-urlencoded', `Content-Length: ${body.length}`, '', body].join(
          '\r\n',
        ),
      )
      return socket
    })
    await until(() => leavers.every((socket) => socket.bytesWritten > body.length))
    // The first hash has begun when the first answer comes; then all others leave.
    await new Promise((resolve) => leavers[0]!.once('data', resolve))
    for (const socket of leavers) socket.resetAndDestroy()
    assert.equal((await signIn('192.0.2.1', email, PASSWORD)).status, 303)
    const refused = (await petstore.store.accounts.auditTrail(id, 100)).filter(
      ({ action }) => action === 'session.refused',
    )
    assert.ok(
      refused.length < leavers.length * 0.8,
      `${refused.length} passwords of ${leavers.length} clients that left were hashed`,
    )
    assert.deepEqual(faults(petstore), [])
  })
})

describe('A client that leaves a form with a password', () => {
  it('is no longer waited for: at sign-in, at sign-up and where the password is changed', async ({ mock }) => {
    await using petstore = await startPetstore()
    const { accounts, url } = petstore
    const client = await signedIn(petstore)
    const { csrf = '' } = await client.hiddenFields('/keys', '/keys')
    const typed = { csrf, email: 'new@example.com', current: PASSWORD, password: PASSWORD }
    const body = new URLSearchParams(typed).toString()
    for (const [path, method] of [
      ['/sign-in', 'signIn'],
      ['/sign-up', 'create'],
      ['/account/password', 'changePassword'],
    ] as const) {
      const called = Promise.withResolvers<unknown>()
      const hashing = mock.method(accounts, method, async (...parameters: unknown[]) => {
        const signal = parameters.at(-1)
        called.resolve(signal)
        if (signal instanceof AbortSignal) await once(signal, 'abort')
        throw new ClientLeft()
      })
      using connection = new RawConnection(url)
      connection.socket.on('error', () => {})
      const head = [
        'Host: localhost',
        `Cookie: petstore=${client.cookies.get('petstore')!}`,
        `Content-Length: ${body.length}`,
      ]
      connection.send(
        [`POST ${path} HTTP/1.1`, 'Content-Type: application/x-www-form-urlencoded', ...head, '', body].join('\r\n'),
      )
      const signal = await called.promise
      assert.ok(signal instanceof AbortSignal && !signal.aborted, path)
      connection.socket.resetAndDestroy()
      await until(() => signal.aborted)
      hashing.mock.restore()
    }
  })
})

describe('A sign-in whose password could not be compared', () => {
  it('is no wrong try: whoever was answered 503 again and again signs in when the database is back', async ({
    mock,
  }) => {
    await using petstore = await startPetstore()
    const client = new ConsoleClient(petstore.url)
    const { email } = petstore.account
    const away = mock.method(petstore.store.accounts, 'accountByEmail', () =>
      Promise.reject(new StoreUnavailable('The database is away.')),
    )
    for (let tries = 0; tries < SIGN_IN_BY_ACCOUNT_AND_ADDRESS.tries; tries += 1)
      assert.equal((await client.signIn(email, PASSWORD)).status, 503)
    away.mock.restore()
    assert.equal((await client.signIn(email, PASSWORD)).status, 303)
  })
})

describe('A client that resets the connection during sign-in', () => {
  for (const env of [{}, BEHIND_PROXY]) {
    it(`is no fault of the service, ${env === BEHIND_PROXY ? 'behind a proxy' : 'with no proxy'}, and its wrong password is in the security log`, async () => {
      await using petstore = await startPetstore({ env })
      const { client, fields } = await signInForm(petstore)
      const { email, id } = await makeCostlyAccount(petstore, 'costly@example.com')
      const body = new URLSearchParams({ ...fields, email, password: 'wrong horse battery' }).toString()
      const { hostname, port } = new URL(petstore.url)
      for (const waitMs of [0, 0, 0, 2, 5, 10, 15, 20]) {
        const socket = connect(Number(port), hostname)
        socket.on('error', () => {})
        const head = [
          'POST /sign-in HTTP/1.1',
          'Host: localhost',
          `Cookie: petstore=${client.cookies.get('petstore')!}`,
        ]
        socket.write(
          [...head, 'Content-Type: application/x-www-form-urlencoded', `Content-Length: ${body.length}`, '', body].join(
            '\r\n',
          ),
        )
        await until(() => socket.bytesWritten > body.length)
        await new Promise((resolve) => setTimeout(resolve, waitMs))
        socket.resetAndDestroy()
      }
      await until(async () =>
        (await petstore.store.accounts.auditTrail(id, 100)).some(({ action }) => action === 'session.refused'),
      )
      assert.equal((await client.signIn(email, PASSWORD)).status, 303)
      assert.deepEqual(faults(petstore), [])
    })
  }
})

describe('A proxy in front', () => {
  const warnings = ({ logged }: Petstore) => logged.filter(({ level }) => level === 'warn')
  const visit = ({ url }: Petstore, headers: Record<string, string>) => new ConsoleClient(url).get('/sign-in', headers)

  it('that is not trusted is warned of, once', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: '192.0.2.200' } })
    await visit(petstore, {})
    assert.deepEqual(warnings(petstore), [])
    for (const address of ['192.0.2.1', '192.0.2.2']) await visit(petstore, { 'X-Forwarded-For': address })
    const [warning, ...more] = warnings(petstore)
    assert.match(String(warning?.['msg']), /PETSTORE_TRUST_PROXY/)
    assert.equal(warning?.['address'], '127.0.0.1')
    assert.deepEqual(more, [])
  })

  it('is warned of where no proxy is trusted at all, and not where this one is', async () => {
    await using careless = await startPetstore()
    await visit(careless, { 'X-Forwarded-For': '192.0.2.1' })
    assert.equal(warnings(careless).length, 1)
    await using careful = await startPetstore({ env: BEHIND_PROXY })
    await visit(careful, { 'X-Forwarded-For': '192.0.2.1' })
    assert.deepEqual(warnings(careful), [])
  })
})
