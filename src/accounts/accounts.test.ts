// The limits of accounts and their keys, and a client that leaves while its password waits to be hashed.
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { FieldProblem, Problem } from '../contract/errors.ts'
import type { Account } from '../store/account-store.ts'
import { openStore } from '../store/opening/open-store.ts'
import { emailProblem, isTooLongToSignIn } from './account-problems.ts'
import { Accounts, type MadeKey } from './accounts.ts'

const PASSWORD = 'correct horse battery'
const store = await openStore({ engine: 'sqlite', path: ':memory:' })
let revocations = 0
const onRevoked = async () => void (revocations += 1)
let now = 1000
const accounts = new Accounts({ store, environment: 'staging', clock: () => now, onRevoked })

async function newAccount(email: string, password = PASSWORD): Promise<Account> {
  const account = await accounts.create(email, password, 'console')
  assert.ok(!(account instanceof Problem), JSON.stringify(account))
  return account
}

async function newKey(account: Account, expiresAt?: number): Promise<MadeKey> {
  const made = await accounts.createKey(account, 'laptop', expiresAt, 'console')
  assert.ok(!(made instanceof FieldProblem))
  return made
}

const actionsOf = async ({ id }: Account) => (await store.accounts.auditTrail(id, 10)).map(({ action }) => action)

describe('accounts', () => {
  after(() => store.close())

  it('have an email address of up to 254 characters and a password of up to 1024, and sign in with them', async () => {
    const [email, password] = [`you@${'x'.repeat(250)}`, '🐎'.repeat(1024)]
    const account = await newAccount(email, password)
    assert.equal(isTooLongToSignIn(email, password), false)
    assert.equal((await accounts.signIn(email, password))?.id, account.id)
    assert.ok((await accounts.create(`${email}x`, PASSWORD, 'console')) instanceof Problem)
    assert.ok(isTooLongToSignIn(`${email}x`, password))
    // Longer as Unicode composes it.
    assert.equal(isTooLongToSignIn(`${'\u0958'.repeat(200)}@x`, password), false)
    assert.ok(isTooLongToSignIn(email, `${password}x`))
  })

  it('have an address of the form name@host, and a message quotes the beginning of any other', async () => {
    const wrong = [
      '',
      '@',
      'you@',
      '@host',
      'you',
      'you@host@host',
      'y u@host',
      'you@h st',
      'you@host\0',
      '\ud800@host',
      // Would look like you@host.
      'you\u200b@host',
      '\u202eyou@host',
      ...['\u2800', '\uFFF9', '\u{1D159}', '\u{13441}', '\u{16FE4}'].map((blank) => `you@host${blank}`),
    ]
    for (const email of wrong) {
      // In the words of a command, which asks before it creates the account, and in those of a form.
      const { message } = emailProblem(email)!
      assert.ok(message.includes(`got ${JSON.stringify(email)}.`), message)
      const shown = await accounts.create(email, PASSWORD, 'console')
      assert.ok(shown instanceof Problem)
      assert.equal(shown.message, 'Enter your email address, like maria@shop.com.')
    }
    assert.ok(emailProblem('x'.repeat(1000))!.message.endsWith(`got "${'x'.repeat(60)}".`))
  })

  it('have a name of up to 60 characters that passes for no address, for nobody who has left, and for no word of the console', async () => {
    const account = await newAccount('named@example.com')
    const problemOf = async (typed: string) => (await accounts.setName(account, typed, 'console'))?.message
    for (const fine of ['x', '🐎'.repeat(60), 'Zoë', 'Yousef', 'Ben (left-handed)', '李', 'علی‌رضا'])
      assert.equal(await problemOf(fine), undefined, fine)
    for (const [name, problem] of [
      ['', /^Enter a name/],
      [' \u200b\u2800', /^Enter a name/],
      ['x'.repeat(61), /at most 60 characters, got 61/],
      ['\u0301'.repeat(16_000), /at most 60 characters/],
      ['a\tb', /nobody can see/],
      ['Ben\u202e', /nobody can see/],
      ['\ud800', /nobody can see/],
      ['boss@example.com', /not an email address/],
      ['boss\uff20example.com', /not an email address/],
      ...[
        'You',
        ' ｙOＵ\u200b',
        'Ben (left)',
        'Ben ( LEFT )',
        'Ben （left）',
        'A  deleted account',
        'On the command line',
      ].map((each) => [each, /would be misunderstood/] as const),
    ] as const)
      assert.match((await problemOf(name)) ?? '', problem, name)
  })

  it('name a key with up to 100 printable characters, counted as people do', async () => {
    const account = await newAccount('names@example.com')
    const create = (name: string) => accounts.createKey(account, name, undefined, 'console')
    for (const name of ['x', 'x'.repeat(100), '🐎'.repeat(100)])
      assert.ok(!((await create(name)) instanceof FieldProblem), name)
    for (const name of ['', ' ', '\u2800', 'x'.repeat(101), '🐎'.repeat(101), 'a\tb', '\ud800'])
      assert.ok((await create(name)) instanceof FieldProblem, name)
  })

  it('keep a key that is renamed to its own name, or to none, as it was, without an event', async () => {
    const account = await newAccount('same@example.com')
    const made = await newKey(account)
    assert.equal(await accounts.renameKey(made.key, 'laptop', 'console'), undefined)
    assert.ok((await accounts.renameKey(made.key, ' ', 'console')) instanceof FieldProblem)
    assert.deepEqual(await actionsOf(account), ['key.created', 'account.created'])
    assert.equal((await store.accounts.keyById(made.key.id))?.name, 'laptop')
  })

  it('date each change with its own time, also a key and its end', async () => {
    const account = await newAccount('dated@example.com')
    now = 2000
    assert.ok((await accounts.createKey(account, 'laptop', 2000, 'console')) instanceof FieldProblem, 'it has expired')
    const made = await newKey(account, 2001)
    now = 3000
    await accounts.revokeKey(made.key, 'console')
    const key = await store.accounts.keyById(made.key.id)
    assert.deepEqual([account.createdAt, key?.createdAt, key?.revokedAt], [1000, 2000, 3000])
    assert.deepEqual(
      (await store.accounts.auditTrail(account.id, 10)).map(({ at }) => at),
      [3000, 2000, 1000],
    )
  })

  it('are neither created, changed nor signed in for a client that has left', async () => {
    const account = await newAccount('stays@example.com')
    const left = new Error('the client left')
    const gone = AbortSignal.abort(left)
    await assert.rejects(accounts.create('leaves@example.com', PASSWORD, 'console', { signal: gone }), left)
    assert.equal(await store.accounts.accountByEmail('leaves@example.com'), undefined)
    await assert.rejects(accounts.signIn(account.email, PASSWORD, gone), left)
    await assert.rejects(accounts.changePassword(account, 'another long password', 'console', gone), left)
    assert.equal((await store.accounts.accountById(account.id))?.passwordHash, account.passwordHash)
  })
})
