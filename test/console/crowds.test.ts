// Many people at the sign-in form at once, people who leave, and a proxy in front of all of them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { HASHES_WAITING } from '../../src/accounts/passwords.ts'
import { SIGN_IN_BY_ACCOUNT_AND_ADDRESS } from '../../src/accounts/throttle.ts'
import { ClientLeft } from '../../src/http/connections/client-left.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { RawConnection } from '../harness/connections/raw-http.ts'
import { until } from '../harness/until.ts'
import { ConsoleClient, signedIn } from '../harness/connections/console-client.ts'
import { makeCostlyAccount, PASSWORD, type Petstore, startPetstore } from '../harness/harness.ts'

const BEHIND_PROXY = { PETSTORE_TRUST_PROXY: '127.0.0.1' }

/** More than the queue holds, each with an address of its own, so that none of them is throttled. */
const CROWD = Array.from({ length: HASHES_WAITING + 30 }, (_, index) => `10.0.${index}.1`)

const faults = ({ logged }: Petstore) => logged.filter(({ level }) => level === 'error')

async function signInForm(petstore: Petstore) {
  const client = new ConsoleClient(petstore.url)
  const fields = await client.hiddenFields('/sign-in')
  const signIn = (address: string, email: string, password: string) =>
    client.post('/sign-in', { ...fields, email, password }, { 'X-Forwarded-For': address })
  return { client, fields, signIn }
}

/** Sends a form on a connection that the test can reset. */
function sendForm(
  { url }: Petstore,
  { cookie }: ConsoleClient,
  path: string,
  typed: object,
  more: string[] = [],
): Socket {
  const body = new URLSearchParams({ ...typed }).toString()
  const { socket } = new RawConnection(url)
  const type = 'Content-Type: application/x-www-form-urlencoded'
  const head = ['Host: localhost', `Cookie: ${cookie}`, type, `Content-Length: ${body.length}`, ...more]
  socket.write([`POST ${path} HTTP/1.1`, ...head, '', body].join('\r\n'))
  return socket
}

const isSent = (socket: Socket) => socket.bytesWritten > 0 && socket.writableLength === 0

/** The security log's refused sign-ins. */
const refusalsOf = async ({ store }: Petstore, id: string) =>
  (await store.accounts.auditTrail(id, 100)).filter(({ action }) => action === 'session.refused')

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
    const typed = { ...fields, email, password: 'wrong horse battery' }
    const leavers = CROWD.slice(0, 20).map((address) =>
      sendForm(petstore, client, '/sign-in', typed, [`X-Forwarded-For: ${address}`]),
    )
    await until(() => leavers.every(isSent))
    // The first hash has begun when the first answer comes; then all others leave.
    await new Promise((resolve) => leavers[0]!.once('data', resolve))
    for (const socket of leavers) socket.resetAndDestroy()
    assert.equal((await signIn('192.0.2.1', email, PASSWORD)).status, 303)
    const refused = (await refusalsOf(petstore, id)).length
    assert.ok(refused < leavers.length * 0.8, `${refused} passwords of ${leavers.length} clients that left were hashed`)
    assert.deepEqual(faults(petstore), [])
  })
})

describe('A client that leaves a form with a password', () => {
  it('is no longer waited for: at sign-in, at sign-up and where the password is changed', async ({ mock }) => {
    await using petstore = await startPetstore()
    const { accounts } = petstore
    const client = await signedIn(petstore)
    const { csrf = '' } = await client.hiddenFields('/keys/new', '/keys')
    const typed = { csrf, email: 'new@example.com', current: PASSWORD, password: PASSWORD }
    for (const [path, method] of [
      ['/sign-in', 'signIn'],
      ['/sign-up', 'create'],
      ['/account/password', 'changePassword'],
    ] as const) {
      const called = Promise.withResolvers<unknown>()
      const hashing = mock.method(accounts, method, async (...parameters: unknown[]) => {
        const signal = parameters
          .flatMap((each) => [each, Object(each).signal])
          .find((each) => each instanceof AbortSignal)
        called.resolve(signal)
        if (signal !== undefined) await once(signal, 'abort')
        throw new ClientLeft()
      })
      const socket = sendForm(petstore, client, path, typed)
      const signal = await called.promise
      assert.ok(signal instanceof AbortSignal && !signal.aborted, path)
      socket.resetAndDestroy()
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
  it('is no fault of the service, and its wrong password is in the security log', async () => {
    await using petstore = await startPetstore()
    const { client, fields } = await signInForm(petstore)
    const { email, id } = await makeCostlyAccount(petstore, 'costly@example.com')
    const typed = { ...fields, email, password: 'wrong horse battery' }
    for (const waitMs of [0, 0, 0, 2, 5, 10, 15, 20]) {
      const socket = sendForm(petstore, client, '/sign-in', typed)
      await until(() => isSent(socket))
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      socket.resetAndDestroy()
    }
    await until(async () => (await refusalsOf(petstore, id)).length > 0)
    assert.equal((await client.signIn(email, PASSWORD)).status, 303)
    assert.deepEqual(faults(petstore), [])
  })
})

describe('A proxy in front', () => {
  for (const [env, expected] of [
    [{ PETSTORE_TRUST_PROXY: '192.0.2.200' }, 1],
    [{}, 1],
    [BEHIND_PROXY, 0],
  ] as const)
    it(`that is not trusted is warned of, once, and a trusted one is not: ${JSON.stringify(env)}`, async () => {
      await using petstore = await startPetstore({ env })
      const visit = (headers: Record<string, string>) => new ConsoleClient(petstore.url).get('/sign-in', headers)
      const warnings = () => petstore.logged.filter(({ level }) => level === 'warn')
      await visit({})
      assert.deepEqual(warnings(), [])
      for (const address of ['192.0.2.1', '192.0.2.2']) await visit({ 'X-Forwarded-For': address })
      assert.equal(warnings().length, expected)
      for (const { msg, address } of warnings()) {
        assert.match(String(msg), /^X-Forwarded-For is ignored.*PETSTORE_TRUST_PROXY/)
        assert.equal(address, '127.0.0.1')
      }
    })
})
