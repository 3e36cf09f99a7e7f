// An old password opens nothing once it was changed, however closely a sign-in and the change meet.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Sessions } from '../../src/accounts/sessions.ts'
import { Problem } from '../../src/contract/errors.ts'
import type { Session } from '../../src/store/account-store.ts'
import type { Store } from '../../src/store/store.ts'
import { ConsoleClient } from '../harness/connections/console-client.ts'
import { startCuttingProxy } from '../harness/databases/cutting-proxy.ts'
import { ENGINES, postgres } from '../harness/databases/engines.ts'
import { PASSWORD, startPetstore } from '../harness/harness.ts'
import { openPostgres } from '../harness/databases/open-postgres.ts'
import { account, event } from '../harness/databases/sample-rows.ts'

const NEW_PASSWORD = 'another horse battery'

for (const engine of ENGINES) {
  describe(`A password that is changed, on ${engine.name}`, () => {
    it('while someone signs in with the old one leaves them no session, and is not changed again by them', async () => {
      await using petstore = await startPetstore({ engine })
      const { accounts, store } = petstore
      const sessions = new Sessions(store, Date.now)
      const verified = (await accounts.signIn(petstore.account.email, PASSWORD))!
      assert.ok(!((await accounts.changePassword(petstore.account, NEW_PASSWORD, 'console')) instanceof Problem))
      assert.equal(await sessions.start(verified, '192.0.2.1'), undefined)
      assert.ok((await accounts.changePassword(verified, 'yet another horse battery', 'console')) instanceof Problem)
      assert.ok(await accounts.signIn(petstore.account.email, NEW_PASSWORD))
    })
  })
}

describe('A password that is changed', () => {
  it('between its check and the session leads the visitor back to sign-in', async () => {
    await using database = await postgres.newDatabase()
    await using proxy = await startCuttingProxy(database.url)
    await using petstore = await startPetstore({ database: `${proxy.url}?pool_size=1`, chores: false })
    await using elsewhere = await startPetstore({ database: database.url })
    const client = new ConsoleClient(petstore.url)
    const { email } = petstore.account
    // Prepares the statements on the one connection, so that each look-up is one message and its answer.
    await client.signIn(email, PASSWORD)
    await client.submit('/keys', '/sign-out')
    const fields = await client.hiddenFields('/sign-in', '/sign-in')
    // The form brings a cookie that is no session: its look-up comes first.
    const session = proxy.holdNextAnswer()
    const signIn = client.post('/sign-in', { ...fields, email, password: PASSWORD })
    await session.arrived
    const lookUp = proxy.holdNextAnswer()
    session.release()
    await lookUp.arrived
    await elsewhere.accounts.changePassword(petstore.account, NEW_PASSWORD, 'console')
    lookUp.release()
    const { status, location } = await signIn
    assert.deepEqual([status, location], [303, '/sign-in?next=%2Fanimals'])
    assert.equal((await client.get('/keys')).status, 303)
  })
})

describe('On PostgreSQL, where transactions overlap,', () => {
  const session: Session = { tokenHash: Buffer.alloc(32, 1), accountId: 'acct', createdAt: 1, lastSeenAt: 1 }

  /** Runs `work` into the locks of a transaction of another process, then commits that. */
  async function overlapping<T>(statements: string, work: (accounts: Store['accounts']) => Promise<T>) {
    await using opened = await openPostgres()
    const { accounts } = opened.store
    await accounts.createAccount(account('acct'), event('acct'))
    const commit = await opened.lock(statements)
    const result = work(accounts)
    await Promise.race([result, opened.untilBlocked(1)])
    await commit()
    return { result: await result, session: await accounts.sessionByHash(session.tokenHash) }
  }

  it('a session waits for a password change in progress, and is refused', async () => {
    const change =
      "UPDATE accounts SET password_hash = 'new' WHERE id = 'acct'; DELETE FROM sessions WHERE account_id = 'acct'"
    const started = await overlapping(change, (accounts) =>
      accounts.createSession(session, 'hash', event('acct', 'session.started')),
    )
    assert.deepEqual(started, { result: false, session: undefined })
  })

  it('a password change waits for a session in progress, and ends it', async () => {
    const start = `INSERT INTO sessions SELECT '\\x${'01'.repeat(32)}', id, 1, 1 FROM accounts WHERE id = 'acct' FOR SHARE`
    const changed = await overlapping(start, (accounts) =>
      accounts.setPassword('acct', 'new', event('acct', 'account.password_changed'), 'hash'),
    )
    assert.deepEqual(changed, { result: true, session: undefined })
  })
})
