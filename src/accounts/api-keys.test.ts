// The format of an API key with the checksum that reveals a typo, and the keyring's cache: valid keys for a short time, in bounded number.
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { account, apiKey, event } from '../../test/harness/databases/sample-rows.ts'
import { openStore } from '../store/opening/open-store.ts'
import { kindOf } from '../store/records.ts'
import { generateKey, hashKey, isWellFormedKey, Keyring, randomText, stateOf } from './api-keys.ts'

describe('An API key', () => {
  it('tells its environment, has 30 random and 6 checking characters, and is never the same', () => {
    const keys = Array.from({ length: 200 }, () => generateKey('production'))
    assert.equal(new Set(keys).size, keys.length)
    for (const key of keys) {
      assert.match(key, /^pets_live_[0-9A-Za-z]{36}$/)
      assert.ok(isWellFormedKey(key))
    }
    assert.match(generateKey('staging'), /^pets_test_/)
  })

  it('shows any one wrong, missing, doubled or swapped character', () => {
    const key = generateKey('staging')
    const at = fc.integer({ min: 0, max: key.length - 1 })
    fc.assert(
      fc.property(at, fc.string({ minLength: 1, maxLength: 1 }), (place, character) => {
        const wrong = key.slice(0, place) + character + key.slice(place + 1)
        assert.equal(isWellFormedKey(wrong), wrong === key)
        assert.ok(!isWellFormedKey(key.slice(0, place) + key.slice(place + 1)))
        assert.ok(!isWellFormedKey(key.slice(0, place) + key[place] + key.slice(place)))
      }),
    )
    fc.assert(fc.property(fc.string(), (text) => !isWellFormedKey(text)))
    assert.ok(!isWellFormedKey(`${key}\n`))
  })

  it('is of the other environment only with another checksum', () => {
    assert.ok(!isWellFormedKey(generateKey('staging').replace('_test_', '_live_')))
  })

  it('is stored as its SHA-256', () => {
    assert.equal(hashKey('abc').toString('hex'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })

  it('is active up to its expiry and not at it, and once revoked it is revoked', () => {
    const key = { ...apiKey('key_1', 'acct_1'), expiresAt: 1000 }
    assert.deepEqual(
      [999, 1000, 1001].map((now) => stateOf(key, now)),
      ['active', 'expired', 'expired'],
    )
    assert.equal(stateOf({ ...key, revokedAt: 500 }, 2000), 'revoked')
    assert.equal(stateOf({ ...key, expiresAt: undefined }, Number.MAX_SAFE_INTEGER), 'active')
  })
})

const store = await openStore({ engine: 'sqlite', path: ':memory:' })

const newKeyring = (monotonic: () => number) => new Keyring(store, 'staging', () => 1000, monotonic)

describe('the keyring', () => {
  after(() => store.close())

  it('asks for a key again within five seconds, however often it is used: another instance may have revoked it', async () => {
    let now = 0
    const keyring = newKeyring(() => now)
    const [secret = ''] = await makeKeys(1)
    await keyring.find(secret)
    const recalled = []
    for (; now <= 5000; now += 100) recalled.push(keyring.recall(secret))
    assert.ok(recalled[0] !== undefined && recalled.includes(undefined))
  })

  it('counts the time from the beginning of the look-up, which may have seen the key before it was revoked', async ({
    mock,
  }) => {
    let now = 0
    const keyring = newKeyring(() => now)
    const [secret = ''] = await makeKeys(1)
    const lookUp = store.accounts.keyByHash.bind(store.accounts)
    mock.method(store.accounts, 'keyByHash', async (keyHash: Buffer) => {
      const found = await lookUp(keyHash)
      now += 4500
      return found
    })
    await keyring.find(secret)
    now = 5000
    assert.equal(keyring.recall(secret), undefined)
  })

  it('does not remember a key whose look-up began before a revocation: it may be the one that was revoked', async () => {
    const keyring = newKeyring(() => 0)
    const [secret = ''] = await makeKeys(1)
    const found = keyring.find(secret)
    keyring.forgetAll()
    await found
    assert.equal(keyring.recall(secret), undefined)
  })

  it('looks a key up once for all requests that ask for it meanwhile: after an outage hundreds have waited', async ({
    mock,
  }) => {
    let now = 0
    const keyring = newKeyring(() => now)
    const [secret = '', other = ''] = await makeKeys(2)
    const { mock: lookUps } = mock.method(store.accounts, 'keyByHash')
    const found = await Promise.all([secret, secret, other, secret].map((asked) => keyring.find(asked)))
    assert.equal(lookUps.callCount(), 2)
    assert.equal(found[0], found[3])
    assert.notEqual(found[0], found[2])
    void keyring.find(secret)
    keyring.forgetAll()
    void keyring.find(secret)
    now = 5000
    await keyring.find(secret)
    assert.equal(lookUps.callCount(), 5, 'none is shared that began before a revocation, or long ago')
  })

  it('does not share a look-up that failed with later requests', async ({ mock }) => {
    const keyring = newKeyring(() => 0)
    const [secret = ''] = await makeKeys(1)
    const { mock: lookUps } = mock.method(store.accounts, 'keyByHash')
    lookUps.mockImplementationOnce(() => Promise.reject(new Error('the database is away')))
    await assert.rejects(Promise.all([keyring.find(secret), keyring.find(secret)]), /away/)
    assert.ok('id' in (await keyring.find(secret)))
  })

  it('remembers at most 10,000 keys', async () => {
    const keyring = newKeyring(() => 0)
    const secrets = await makeKeys(10_001)
    for (const secret of secrets) await keyring.find(secret)
    const remembered = secrets.filter((secret) => keyring.recall(secret) !== undefined)
    assert.ok(remembered.length > 0 && remembered.length <= 10_000, `it remembers ${remembered.length}`)
  })
})

/** Writes keys of one account at once. */
async function makeKeys(howMany: number): Promise<string[]> {
  const owner = account(`acct_${randomText(16)}`)
  await store.accounts.createAccount(owner, event(owner.id))
  const secrets = Array.from({ length: howMany }, () => generateKey('staging'))
  const fixed = { account_id: owner.id, name: 'k', environment: 'staging', created_at: 0n }
  const rows = secrets.map((secret) => ({
    ...fixed,
    id: `key_${randomText(16)}`,
    hash: hashKey(secret),
    last_four: secret.slice(-4),
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
  }))
  await store.records.write(kindOf('api_keys'), rows)
  return secrets
}
