// Section 5 of the specification: who may call, and what a caller without a good key is told.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ErrorCode, Problem } from '../../src/contract/errors.ts'
import { generateKey } from '../../src/accounts/api-keys.ts'
import type { ApiKey } from '../../src/store/account-store.ts'
import { startCuttingProxy } from '../harness/databases/cutting-proxy.ts'
import { ENGINES, postgres } from '../harness/databases/engines.ts'
import { describeService, expectError, type Petstore, startPetstore } from '../harness/harness.ts'

const OPERATIONS: [method: string, path: string][] = [
  ['GET', '/v1/pets'],
  ['POST', '/v1/pets'],
  ['GET', '/v1/pets/1'],
  ['HEAD', '/v1/pets'],
  ['HEAD', '/v1/pets/1'],
]
const NO_KEY = 'Bearer realm="petstore"'
const BAD_KEY = 'Bearer realm="petstore", error="invalid_token"'

async function newKey({ accounts, account }: Petstore, expiresAt?: number) {
  const made = await accounts.createKey(account, 'another', expiresAt, 'command line')
  assert.ok(!(made instanceof Problem))
  return made
}

describeService('5. Authentication', (service) => {
  const callWith = (authorization: string | undefined, [method, path] = OPERATIONS[0]!) =>
    fetch(service().url + path, {
      method,
      headers: authorization === undefined ? {} : { Authorization: authorization },
    })
  const refused = async (authorization: string | undefined, code: ErrorCode, challenge: string) => {
    const response = await callWith(authorization)
    assert.equal(response.headers.get('www-authenticate'), challenge)
    return expectError(response, code)
  }
  const otherKey = () => generateKey('staging')

  for (const operation of OPERATIONS) {
    it(`asks for a key at ${operation.join(' ')}`, async () => {
      for (const authorization of [undefined, 'Bearer nonsense', `Bearer ${otherKey()}`]) {
        const response = await callWith(authorization, operation)
        assert.equal(response.status, 401)
        assert.ok(response.headers.get('www-authenticate')?.startsWith(NO_KEY))
      }
    })
  }

  it('takes the key in Authorization: Bearer, whatever the case of the scheme', async () => {
    const { key } = service()
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer ']) {
      assert.equal((await callWith(`${scheme} ${key}`)).status, 200, scheme)
    }
  })

  it('tells that no key came', async () => {
    assert.match(
      await refused(undefined, 'missing_api_key', NO_KEY),
      /no Authorization header.*Authorization: Bearer <API_KEY>/,
    )
  })

  for (const authorization of [
    '',
    'Bearer',
    'Bearer ',
    'Basic dXNlcjpwYXNz',
    'pets_test_x',
    'Bearer a b',
    'Bearer, x',
    'Token x',
    'xBearer x',
    'Basic Bearer x',
    'Bearer\tx',
  ]) {
    it(`tells that this is not of the form Bearer <API_KEY>: ${JSON.stringify(authorization)}`, async () => {
      await refused(authorization, 'malformed_authorization', NO_KEY)
    })
  }

  it('does not take a key without its scheme, in the query or in another header', async () => {
    const { key, url } = service()
    await refused(key, 'malformed_authorization', NO_KEY)
    await expectError(await fetch(`${url}/v1/pets?api_key=${key}&access_token=${key}`), 'missing_api_key')
    await expectError(
      await fetch(`${url}/v1/pets`, { headers: { 'X-API-Key': key, Cookie: `key=${key}` } }),
      'missing_api_key',
    )
  })

  it('tells a typo from its characters alone', async () => {
    const { key } = service()
    const swapped = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
    for (const typo of [
      swapped,
      key.slice(0, -1),
      `${key}0`,
      key.toUpperCase(),
      key.replace('_test_', '_tent_'),
      'nonsense',
      '"',
      'ÿ',
      key.slice(0, 20),
    ]) {
      assert.match(await refused(`Bearer ${typo}`, 'malformed_api_key', BAD_KEY), /Copy the whole key again/)
    }
  })

  it('tells a key of the other environment', async () => {
    const message = await refused(`Bearer ${generateKey('production')}`, 'wrong_environment', BAD_KEY)
    assert.match(message, /production takes pets_live_ keys, staging pets_test_ keys/)
  })

  it('tells a key that no account has', async () => {
    await refused(`Bearer ${otherKey()}`, 'unknown_api_key', BAD_KEY)
  })

  it('refuses a revoked key at once, and tells so', async () => {
    const { key, secret } = await newKey(service())
    assert.equal((await callWith(`Bearer ${secret}`)).status, 200)
    await service().accounts.revokeKey(key, 'command line')
    await refused(`Bearer ${secret}`, 'revoked_api_key', BAD_KEY)
  })

  it('refuses the keys of a removed account at once', async () => {
    const { accounts } = service()
    const account = await accounts.create('leaving@example.com', 'correct horse battery', 'command line')
    assert.ok(!(account instanceof Problem))
    const { secret } = await newKey({ ...service(), account })
    assert.equal((await callWith(`Bearer ${secret}`)).status, 200)
    await accounts.remove(account, 'command line')
    await refused(`Bearer ${secret}`, 'unknown_api_key', BAD_KEY)
  })

  it('lets every account see all animals: there is one store', async () => {
    const made = await (await service().add({ name: 'Rex', categoryId: 1 })).text()
    const account = await service().accounts.create('second@example.com', 'correct horse battery', 'command line')
    assert.ok(!(account instanceof Problem))
    const { secret } = await newKey({ ...service(), account })
    const listed = await callWith(`Bearer ${secret}`, ['GET', '/v1/pets?limit=1'])
    assert.equal(await listed.text(), `[${made}]`)
  })

  it('tells nothing of the content without a key: a bad body is still a 401, and nothing is stored', async () => {
    const before = await (await service().call('/pets?limit=1')).text()
    for (const body of ['{', '{"name":"Rex","categoryId":1}', 'x'.repeat(20_000)]) {
      await expectError(
        await fetch(`${service().url}/v1/pets?limit=0`, { method: 'POST', body, headers: { 'Idempotency-Key': '' } }),
        'missing_api_key',
      )
    }
    await expectError(await fetch(`${service().url}/v1/pets?limit=0`), 'missing_api_key')
    assert.equal(await (await service().call('/pets?limit=1')).text(), before)
  })
})

describe('5. A key and time', () => {
  it('is refused from its revocation on, also where a look-up had found it good just before', async () => {
    await using database = await postgres.newDatabase()
    await using proxy = await startCuttingProxy(database.url)
    await using petstore = await startPetstore({ database: proxy.url, chores: false })
    const { key, secret } = await newKey(petstore)
    const call = () => fetch(`${petstore.url}/v1/pets`, { headers: { Authorization: `Bearer ${secret}` } })
    const lookUp = proxy.holdNextAnswer(key.id)
    const early = call()
    await lookUp.arrived
    await petstore.accounts.revokeKey(key, 'console')
    lookUp.release()
    assert.equal((await early).status, 200)
    await expectError(await call(), 'revoked_api_key')
  })

  const ends: [what: string, code: ErrorCode, end: (petstore: Petstore, key: ApiKey) => Promise<unknown>][] = [
    ['its revocation', 'revoked_api_key', ({ accounts }, key) => accounts.revokeKey(key, 'console')],
    ["its account's removal", 'unknown_api_key', ({ accounts, account }) => accounts.remove(account, 'console')],
  ]
  for (const [what, code, end] of ends) {
    it(`is refused from ${what} on, also where a request came while that was being stored`, async () => {
      await using database = await postgres.newDatabase()
      await using proxy = await startCuttingProxy(database.url)
      await using petstore = await startPetstore({ database: proxy.url, chores: false })
      const { key, secret } = await newKey(petstore)
      const call = () => fetch(`${petstore.url}/v1/pets`, { headers: { Authorization: `Bearer ${secret}` } })
      const storing = proxy.holdNextAnswer()
      const ended = end(petstore, key)
      await storing.arrived
      assert.equal((await call()).status, 200)
      storing.release()
      await ended
      await expectError(await call(), code)
    })
  }

  it('ends with its expiry, to the millisecond, also where it was used a moment before', async () => {
    let now = Date.UTC(2027, 0, 1)
    await using petstore = await startPetstore({ clock: () => now })
    assert.ok((await petstore.accounts.createKey(petstore.account, 'too late', now, 'console')) instanceof Problem)
    const { secret } = await newKey(petstore, now + 1000)
    const call = () => fetch(`${petstore.url}/v1/pets`, { headers: { Authorization: `Bearer ${secret}` } })
    now += 999
    assert.equal((await call()).status, 200)
    now += 1
    const response = await call()
    assert.equal(response.headers.get('www-authenticate'), BAD_KEY)
    await expectError(response, 'expired_api_key')
  })

  for (const engine of ENGINES) {
    it(`is refused within 5 seconds where another process revoked it, on ${engine.name}`, async () => {
      let ahead = 0
      await using database = await engine.newDatabase()
      await using here = await startPetstore({ database: database.url, monotonic: () => performance.now() + ahead })
      await using elsewhere = await startPetstore({ database: database.url })
      assert.equal((await here.call('/pets')).status, 200)
      await elsewhere.accounts.revokeKey(here.apiKey, 'console')
      ahead = 5000
      await expectError(await here.call('/pets'), 'revoked_api_key')
    })
  }
})
