import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { after, describe, it } from 'node:test'
import { openStore } from '../store/opening/open-store.ts'
import { NoWrites } from '../store/store.ts'
import { account as sampleAccount, event } from '../../test/harness/databases/sample-rows.ts'
import {
  CLOCK_SKEW_MS,
  csrfToken,
  isCsrfToken,
  isToken,
  newToken,
  SESSION_IDLE_MS,
  SESSION_MAX_MS,
  Sessions,
} from './sessions.ts'

const store = await openStore({ engine: 'sqlite', path: ':memory:' })
const clock = { now: 1_790_000_000_000 }
const sessions = new Sessions(store, () => clock.now)
const account = sampleAccount('acct_1')
await store.accounts.createAccount(account, event(account.id))

async function newSession(): Promise<string> {
  const token = await sessions.start(account, '192.0.2.1')
  assert.ok(token)
  return token
}

describe('a session', () => {
  after(() => store.close())

  it('is stored as the SHA-256 of its token, so that who reads the database cannot sign in', async () => {
    const token = await newSession()
    assert.ok(await store.accounts.sessionByHash(hash('sha256', token, 'buffer')))
  })

  it('writes its last use at most once a minute', async () => {
    const token = await newSession()
    const started = clock.now
    clock.now += 59_000
    await sessions.find(token)
    assert.equal((await sessions.find(token))?.session.lastSeenAt, started)
    clock.now += 1000
    await sessions.find(token)
    assert.equal((await sessions.find(token))?.session.lastSeenAt, clock.now)
  })

  it('is found while the database accepts no writes; its last use is tried once a minute, and again if the clock was set back', async ({
    mock,
  }) => {
    const [one, other] = [await newSession(), await newSession()]
    clock.now += 60_000
    const write = mock.method(store.accounts, 'touchSession', () => Promise.reject(new NoWrites('read-only')))
    for (const token of [one, other, one]) assert.ok(await sessions.find(token))
    clock.now += 59_000
    assert.ok(await sessions.find(one))
    assert.equal(write.mock.callCount(), 1)
    clock.now += 1000
    assert.ok(await sessions.find(one))
    assert.equal(write.mock.callCount(), 2)
    write.mock.restore()
    const failedAt = clock.now
    for (const setBackMs of [0, 3_600_000]) {
      clock.now = failedAt - setBackMs
      const token = await newSession()
      clock.now += 60_000
      await sessions.find(token)
      assert.equal((await sessions.find(token))?.session.lastSeenAt, clock.now, 'it is written')
    }
  })

  it('is not found if its last use can not be written for another reason', async ({ mock }) => {
    const token = await newSession()
    clock.now += 60_000
    mock.method(store.accounts, 'touchSession', () => Promise.reject(new Error('a fault of the program')))
    await assert.rejects(sessions.find(token), /a fault of the program/)
  })

  it('ends after its idle time without use, and after its longest time, however busy', async () => {
    const start = clock.now
    const [idle, busy] = [await newSession(), await newSession()]
    clock.now = start + SESSION_IDLE_MS - 1
    assert.ok(await sessions.find(busy))
    clock.now += 1
    assert.equal(await sessions.find(idle), undefined)
    for (; clock.now < start + SESSION_MAX_MS - 1; clock.now += SESSION_IDLE_MS / 2)
      assert.ok(await sessions.find(busy))
    clock.now = start + SESSION_MAX_MS - 1
    assert.ok(await sessions.find(busy))
    clock.now += 1
    assert.equal(await sessions.find(busy), undefined)
  })

  it('that began while the clock was ahead is refused when that is set right', async () => {
    const right = clock.now
    for (const [aheadMs, whenSetRight, whenThatTimeComes] of [
      [CLOCK_SKEW_MS, true, true],
      // Kept: this clock may be the one that is wrong, and the session that of another instance.
      [CLOCK_SKEW_MS + 1, false, true],
      [SESSION_MAX_MS, false, true],
      [SESSION_MAX_MS + 1, false, false],
    ] as const) {
      clock.now = right + aheadMs
      const token = await newSession()
      clock.now = right
      assert.equal((await sessions.find(token)) !== undefined, whenSetRight, String(aheadMs))
      await sessions.purge()
      clock.now = right + aheadMs
      assert.equal((await sessions.find(token)) !== undefined, whenThatTimeComes, `${aheadMs}, after a purge`)
    }
    clock.now = right
  })

  it('of a store whose sign-ins last longer without use is neither refused nor purged before that', async () => {
    const lasting = new Sessions(store, () => clock.now, SESSION_MAX_MS)
    const token = await newSession()
    clock.now += SESSION_MAX_MS - 1
    await lasting.purge()
    assert.ok(await lasting.find(token))
    clock.now += 1
    assert.equal(await lasting.find(token), undefined)
  })

  it('past its time is purged, one in use is not', async () => {
    const [idle, used] = [await newSession(), await newSession()]
    clock.now += SESSION_IDLE_MS - 1
    await sessions.find(used)
    clock.now += 2
    await sessions.purge()
    const start = clock.now
    clock.now -= SESSION_IDLE_MS
    assert.equal(await sessions.find(idle), undefined)
    clock.now = start
    assert.ok(await sessions.find(used))
    clock.now += SESSION_MAX_MS
    await sessions.purge()
    clock.now = start
    assert.equal(await sessions.find(used), undefined)
  })
})

it('A session lasts as long as the documents promise', () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8').replaceAll(/\s+/g, ' ')
  const [idle, most] = [SESSION_IDLE_MS, SESSION_MAX_MS].map((ms) => ms / 3_600_000)
  for (const [path, promise] of [
    ['docs/console.md', `ends after ${idle} hours without use, after ${most} hours in any case`],
    ['SECURITY.md', `${idle} hours idle or ${most} hours at most`],
  ] as const)
    assert.ok(read(path).includes(promise), `${path}: ${promise}`)
})

describe('a CSRF token', () => {
  it('is good for the token it was made from, and for no other', () => {
    const [token, other] = [newToken(), newToken()]
    assert.ok(isCsrfToken(token, csrfToken(token)))
    assert.equal(isCsrfToken(other, csrfToken(token)), false)
    for (const wrong of ['', 'x', token, csrfToken(token).slice(1), `${csrfToken(token)}=`])
      assert.equal(isCsrfToken(token, wrong), false)
  })

  it('needs a token of ours', () => {
    assert.ok(isToken(newToken()))
    for (const text of [undefined, '', 'x'.repeat(42), 'x'.repeat(44), `${'x'.repeat(42)};`])
      assert.equal(isToken(text), false)
  })
})
