// What a running service does by itself: it removes what has expired, at its start and every ten minutes.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { SESSION_IDLE_MS } from '../../src/accounts/sessions.ts'
import { IDEMPOTENCY_KEPT_MS } from '../../src/store/idempotency.ts'
import { UPLOAD_KEPT_MS } from '../../src/store/uploads.ts'
import { kindOf } from '../../src/store/records.ts'
import { setImmediate } from 'node:timers/promises'
import { readConfig } from '../../src/config.ts'
import { LAST_STEP_MS } from '../../src/http/lifecycle.ts'
import { createLog } from '../../src/log.ts'
import { startServer } from '../../src/server.ts'
import { ENGINES, postgres } from '../harness/databases/engines.ts'
import { until } from '../harness/until.ts'
import { startCuttingProxy } from '../harness/databases/cutting-proxy.ts'
import { type Petstore, startPetstore } from '../harness/harness.ts'
import { withStore } from '../harness/databases/with-store.ts'

const NOW = Date.parse('2026-11-15T09:24:00Z')
const USAGE_KEPT_MS = 90 * 86_400_000
const [IDEMPOTENCY, USAGE] = [kindOf('idempotency_records'), kindOf('usage_counts')]
/** More than one statement removes. */
const MANY = 2500

/** Stores records of each table, which expire this many milliseconds from now. */
async function fill({ store, account, apiKey }: Petstore, expireIn: number, count: number): Promise<void> {
  const records = Array.from({ length: count }, (_, index) => ({
    account_id: account.id,
    key: `${expireIn} ${index}`,
    fingerprint: Buffer.alloc(32),
    pet_id: 1n,
    created_at: BigInt(NOW - IDEMPOTENCY_KEPT_MS + expireIn),
  }))
  await store.records.write(IDEMPOTENCY, records)
  const hour = BigInt(NOW - USAGE_KEPT_MS + expireIn)
  await store.records.write(USAGE, [{ key_id: apiKey.id, hour, operation: 'getPet', status: 200n, calls: 1n }])
  const lastSeenAt = NOW - SESSION_IDLE_MS + expireIn
  const tokenHash = tokenHashOf(expireIn)
  const event = { at: NOW, accountId: account.id, action: 'session.started', via: 'console', subject: 'x' } as const
  const session = { accountId: account.id, createdAt: lastSeenAt, lastSeenAt, tokenHash }
  await store.accounts.createSession(session, account.passwordHash, event)
  const id = uploadOf(expireIn)
  await store.uploads.begin({ id, name: 'pets.csv' }, account.id, NOW - UPLOAD_KEPT_MS + expireIn)
  await store.uploads.append(id, 0, Buffer.of(1))
}

function uploadOf(expireIn: number): string {
  return `upload ${expireIn}`
}

function tokenHashOf(expireIn: number): Buffer {
  return Buffer.alloc(32, String(expireIn))
}

async function countLeft({ store }: Pick<Petstore, 'store'>): Promise<number[]> {
  const sessions = await Promise.all([-1, 1].map((each) => store.accounts.sessionByHash(tokenHashOf(each))))
  const uploads = await Promise.all([-1, 1].map((each) => store.uploads.part(uploadOf(each), 0)))
  return [
    await store.records.count(IDEMPOTENCY),
    await store.records.count(USAGE),
    sessions.filter((session) => session !== undefined).length,
    uploads.filter((upload) => upload !== undefined).length,
  ]
}

async function assertOnlyFreshAreLeft(petstore: Pick<Petstore, 'store'>): Promise<void> {
  await until(async () => (await countLeft(petstore)).every((count) => count <= 1), 'what has expired is removed')
  assert.deepEqual(await countLeft(petstore), [1, 1, 1, 1], 'what has not is kept')
}

for (const engine of ENGINES) {
  describe(`A running service on ${engine.name}`, () => {
    it('removes all records that have expired, at its start and every ten minutes', async ({ mock }) => {
      await using database = await engine.newDatabase()
      let now = NOW
      const options = { database: database.url, clock: () => now }
      {
        await using before = await startPetstore(options)
        await fill(before, 1, 1)
        await fill(before, -1, MANY)
      }
      mock.timers.enable({ apis: ['setInterval'] })
      await using petstore = await startPetstore(options)
      await assertOnlyFreshAreLeft(petstore)
      await fill(petstore, -1, MANY)
      mock.timers.tick(600_000)
      await assertOnlyFreshAreLeft(petstore)
      now += 3_600_000
      mock.timers.tick(600_000)
      await until(async () => (await countLeft(petstore)).every((count) => count === 0), 'the others, when they expire')
    })
  })
}

const CHORES_EVERY_MS = 600_000

describe('A running service', () => {
  it('removes what has expired also where its database was away when it started', async () => {
    await using database = await postgres.newDatabase()
    await using proxy = await startCuttingProxy(database.url)
    const clock = () => NOW
    const before = await startPetstore({ database: database.url, clock })
    await before[Symbol.asyncDispose]()
    await withStore(database.url, async (store) => {
      for (const expireIn of [-1, 1]) await fill({ ...before, store }, expireIn, 1)
    })
    proxy.goAway()
    const config = readConfig({}, { PORT: '0', DATABASE_URL: proxy.url })
    const running = await startServer(config, createLog('error', { write() {} }), { clock })
    try {
      assert.equal((await fetch(`${running.url}/readyz`)).status, 503)
      proxy.comeBack()
      await assertOnlyFreshAreLeft(running)
    } finally {
      await running.stop()
    }
  })

  it('survives a purge that fails, logs it, and purges the next time', async ({ mock }) => {
    mock.timers.enable({ apis: ['setInterval'] })
    await using petstore = await startPetstore({ clock: () => NOW })
    await fill(petstore, -1, 1)
    await fill(petstore, 1, 1)
    mock.method(petstore.store.pets, 'purgeIdempotencyRecords', () => Promise.reject(new Error('away')), { times: 1 })
    mock.timers.tick(CHORES_EVERY_MS)
    const failures = () =>
      petstore.logged.filter(({ msg }) => String(msg).startsWith('old records could not be purged'))
    await until(() => failures().length === 1, 'the failure is logged')
    assert.equal((failures()[0]!['error'] as Error).message, 'away')
    mock.timers.tick(CHORES_EVERY_MS)
    await assertOnlyFreshAreLeft(petstore)
  })

  /** Starts a service whose next purge never ends by itself, and which does nothing else of its own accord. */
  async function startPurging(mock: TestContext['mock']) {
    mock.timers.enable({ apis: ['setInterval'] })
    const petstore = await startPetstore({ chores: false })
    const purging = Promise.withResolvers<number>()
    const purge = mock.method(petstore.store.pets, 'purgeIdempotencyRecords', () => purging.promise)
    const close = mock.method(petstore.store, 'close')
    mock.timers.tick(CHORES_EVERY_MS)
    /** Decides which time limits of the stop elapse, all at once: the speed of the machine does not matter. */
    const elapse = (limit: (ms: number) => boolean) =>
      mock.method(globalThis, 'setTimeout', (fire: () => void, ms: number) => {
        if (limit(ms)) void setImmediate().then(fire)
      })
    const errors = () => petstore.logged.filter(({ level }) => level === 'error').map(({ msg }) => msg)
    return { petstore, purging, purge, close, elapse, errors }
  }

  it('closes its database only when a running purge has ended, and purges no more after that', async ({ mock }) => {
    const { petstore, purging, purge, close, elapse, errors } = await startPurging(mock)
    elapse(() => false)
    const stopped = petstore[Symbol.asyncDispose]()
    // Everything else of the stop ends meanwhile: it waits for nothing but its turns.
    for (let turn = 0; turn < 50; turn += 1) await setImmediate()
    assert.equal(close.mock.callCount(), 0)
    purging.resolve(1)
    await stopped
    assert.equal(close.mock.callCount(), 1)
    mock.timers.tick(CHORES_EVERY_MS)
    assert.equal(purge.mock.callCount(), 1)
    assert.deepEqual(errors(), [])
  })

  it('stops and closes its database in time although a purge hangs, and says so', async ({ mock }) => {
    const { petstore, close, elapse, errors } = await startPurging(mock)
    // The steps after that have their own limits.
    elapse((ms) => ms === LAST_STEP_MS && close.mock.callCount() === 0)
    await petstore[Symbol.asyncDispose]()
    assert.equal(close.mock.callCount(), 1)
    assert.deepEqual(errors(), ['old records were still being purged, or names indexed'])
  })
})
