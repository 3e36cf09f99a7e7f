// Accounts with the longest email address and password, and a client that leaves while its password waits to be hashed.
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { FieldProblem } from '../contract/errors.ts'
import type { Account } from '../store/account-store.ts'
import { openStore } from '../store/open-store.ts'
import { Accounts, isTooLongToSignIn } from './accounts.ts'

const PASSWORD = 'correct horse battery'
const store = await openStore({ engine: 'sqlite', path: ':memory:' })
let revocations = 0
const onRevoked = async () => void (revocations += 1)
let now = 1000
const accounts = new Accounts({ store, environment: 'staging', clock: () => now, onRevoked })

async function newAccount(email: string, password = PASSWORD): Promise<Account> {
  const account = await accounts.create(email, password, 'console')
  assert.ok(!(account instanceof FieldProblem), JSON.stringify(account))
  return account
}

describe('accounts', () => {
  after(() => store.close())

  it('have an email address of up to 254 characters and a password of up to 1024, and sign in with them', async () => {
    const [email, password] = [`you@${'x'.repeat(250)}`, '🐎'.repeat(1024)]
    const account = await newAccount(email, password)
    assert.equal(isTooLongToSignIn(email, password), false)
    assert.equal((await accounts.signIn(email, password))?.id, account.id)
    assert.ok((await accounts.create(`${email}x`, PASSWORD, 'console')) instanceof FieldProblem)
    assert.ok(isTooLongToSignIn(`${email}x`, password))
    assert.ok(isTooLongToSignIn(email, `${password}x`))
  })

  it('name the field of a problem, so that the form can show it there', async () => {
    const account = await newAccount('fields@example.com')
    const fieldOf = async (outcome: Promise<unknown>) => {
      const problem = await outcome
      return problem instanceof FieldProblem ? problem.field : undefined
    }
    const create = (email: string, password: string) => fieldOf(accounts.create(email, password, 'console'))
    assert.deepEqual(
      [
        await create('fields', PASSWORD),
        await create('new@example.com', 'short'),
        await create(account.email, PASSWORD),
      ],
      ['email', 'password', 'email'],
    )
    const createKey = (name: string, expiresAt?: number) =>
      fieldOf(accounts.createKey(account, name, expiresAt, 'console'))
    assert.deepEqual([await createKey(' '), await createKey('late', now)], ['name', 'expires'])
    const change = (password: string) => fieldOf(accounts.changePassword(account, password, 'console'))
    assert.equal(await change('short'), 'password')
    assert.equal(await change('another long password'), undefined)
    assert.equal(await change('a third long password'), 'current', 'it was the password before')
  })

  it('keep a key that is renamed to its own name, or to none, as it was, without an event', async () => {
    const account = await newAccount('same@example.com')
    const made = await accounts.createKey(account, 'laptop', undefined, 'console')
    assert.ok(!(made instanceof FieldProblem))
    assert.equal(await accounts.renameKey(made.key, 'laptop', 'console'), undefined)
    assert.ok((await accounts.renameKey(made.key, ' ', 'console')) instanceof FieldProblem)
    assert.deepEqual(
      (await store.accounts.auditTrail(account.id, 10)).map(({ action }) => action),
      ['key.created', 'account.created'],
    )
    assert.equal((await store.accounts.keyById(made.key.id))?.name, 'laptop')
  })

  it('revoke a key once, and say so to who revokes it again', async () => {
    const account = await newAccount('revokes@example.com')
    const made = await accounts.createKey(account, 'laptop', undefined, 'console')
    assert.ok(!(made instanceof FieldProblem))
    revocations = 0
    assert.equal(await accounts.revokeKey(made.key, 'console'), true)
    assert.equal(await accounts.revokeKey(made.key, 'command line'), false)
    assert.equal(revocations, 2, 'no process may remember a key that was revoked elsewhere a moment ago')
    const [last] = await store.accounts.auditTrail(account.id, 1)
    assert.deepEqual([last?.action, last?.via], ['key.revoked', 'console'])
  })

  it('date each change with its own time, also a key and its end', async () => {
    const account = await newAccount('dated@example.com')
    now = 2000
    assert.ok((await accounts.createKey(account, 'laptop', 2000, 'console')) instanceof FieldProblem, 'it has expired')
    const made = await accounts.createKey(account, 'laptop', 2001, 'console')
    assert.ok(!(made instanceof FieldProblem))
    now = 3000
    await accounts.revokeKey(made.key, 'console')
    const key = await store.accounts.keyById(made.key.id)
    assert.deepEqual([account.createdAt, key?.createdAt, key?.revokedAt], [1000, 2000, 3000])
    assert.deepEqual(
      (await store.accounts.auditTrail(account.id, 10)).map(({ at }) => at),
      [3000, 2000, 1000],
    )
  })

  it('are removed once, and their keys forgotten also by who removes them again', async () => {
    const account = await newAccount('removed@example.com')
    revocations = 0
    for (let times = 0; times < 2; times += 1) await accounts.remove(account, 'console')
    assert.equal(revocations, 2, 'no process may remember the keys of an account that was removed elsewhere')
    assert.deepEqual(
      (await store.accounts.auditTrail(account.id, 10)).map(({ action }) => action),
      ['account.removed', 'account.created'],
    )
  })

  it('are neither created, changed nor signed in for a client that has left', async () => {
    const account = await newAccount('stays@example.com')
    const left = new Error('the client left')
    const gone = AbortSignal.abort(left)
    await assert.rejects(accounts.create('leaves@example.com', PASSWORD, 'console', gone), left)
    assert.equal(await store.accounts.accountByEmail('leaves@example.com'), undefined)
    await assert.rejects(accounts.signIn(account.email, PASSWORD, gone), left)
    await assert.rejects(accounts.changePassword(account, 'another long password', 'console', gone), left)
    assert.equal((await store.accounts.accountById(account.id))?.passwordHash, account.passwordHash)
  })
})
