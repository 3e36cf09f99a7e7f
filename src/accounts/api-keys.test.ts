// The format of an API key, and the checksum that reveals a typo.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import type { ApiKey } from '../store/account-store.ts'
import { environmentOf, generateKey, hashKey, isWellFormedKey, stateOf } from './api-keys.ts'

describe('An API key', () => {
  it('tells its environment, has 30 random and 6 checking characters, and is never the same', () => {
    const keys = Array.from({ length: 200 }, () => generateKey('production'))
    assert.equal(new Set(keys).size, keys.length)
    for (const key of keys) {
      assert.match(key, /^pets_live_[0-9A-Za-z]{36}$/)
      assert.ok(isWellFormedKey(key))
      assert.equal(environmentOf(key), 'production')
    }
    assert.match(generateKey('staging'), /^pets_test_/)
  })

  it('shows any one wrong, missing, doubled or swapped character', () => {
    const key = generateKey('staging')
    const at = fc.integer({ min: 0, max: key.length - 1 })
    fc.assert(
      fc.property(at, fc.string({ minLength: 1, maxLength: 1 }), (position, character) => {
        const wrong = key.slice(0, position) + character + key.slice(position + 1)
        assert.equal(isWellFormedKey(wrong), wrong === key)
        assert.ok(!isWellFormedKey(key.slice(0, position) + key.slice(position + 1)))
        assert.ok(!isWellFormedKey(key.slice(0, position) + key[position] + key.slice(position)))
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
    const key: ApiKey = {
      id: 'key_1',
      accountId: 'acct_1',
      name: 'k',
      environment: 'staging',
      lastFour: '1234',
      createdAt: 0,
      expiresAt: 1000,
      revokedAt: undefined,
      lastUsedAt: undefined,
    }
    assert.deepEqual(
      [999, 1000, 1001].map((now) => stateOf(key, now)),
      ['active', 'expired', 'expired'],
    )
    assert.equal(stateOf({ ...key, revokedAt: 500 }, 2000), 'revoked')
    assert.equal(stateOf({ ...key, expiresAt: undefined }, Number.MAX_SAFE_INTEGER), 'active')
  })
})
