// The keyring's cache: valid keys for a short time, in bounded number.
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { Account, AuditEvent } from '../store/account-store.ts'
import { openStore } from '../store/open-store.ts'
import { generateKey, hashKey, randomText } from './api-keys.ts'
import { Keyring } from './keyring.ts'

const store = await openStore({ engine: 'sqlite', path: ':memory:' })

const newKeyring = (monotonic: () => number) => new Keyring(store, 'staging', () => 1000, monotonic)

describe('the keyring', () => {
  after(() => store.close())

  it('remembers a good key, until a key is revoked', async () => {
    const keyring = newKeyring(() => 0)
    const [secret = '', other = ''] = await makeKeys(2)
    assert.equal(keyring.recall(secret), undefined)
    const key = await keyring.find(secret)
    await keyring.find(other)
    assert.equal(keyring.recall(secret), key)
    keyring.forgetAll()
    assert.equal(keyring.recall(secret), undefined)
  })

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

  it('remembers at most 10,000 keys', async () => {
    const keyring = newKeyring(() => 0)
    const secrets = await makeKeys(10_001)
    for (const secret of secrets) await keyring.find(secret)
    const remembered = secrets.filter((secret) => keyring.recall(secret) !== undefined)
    assert.ok(remembered.length > 0 && remembered.length <= 10_000, `it remembers ${remembered.length}`)
  })
})

/** Creates keys, a hundred for each account. */
async function makeKeys(howMany: number): Promise<string[]> {
  const secrets = Array.from({ length: howMany }, () => generateKey('staging'))
  for (let start = 0; start < howMany; start += 100) {
    const account: Account = {
      id: `acct_${randomText(16)}`,
      email: `${randomText(16)}@example.com`,
      passwordHash: '',
      createdAt: 0,
    }
    const event: AuditEvent = { at: 0, accountId: account.id, action: 'account.created', via: 'console', subject: '' }
    await store.accounts.createAccount(account, event)
    await Promise.all(
      secrets.slice(start, start + 100).map((secret) => {
        const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined, lastUsedAt: undefined }
        const key = {
          id: `key_${randomText(16)}`,
          accountId: account.id,
          name: 'k',
          environment: 'staging' as const,
          lastFour: secret.slice(-4),
          hash: hashKey(secret),
          ...times,
        }
        return store.accounts.createKey(key, { ...event, action: 'key.created' })
      }),
    )
  }
  return secrets
}
