// What a running service does by itself: it removes what has expired, at its start and every ten minutes.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SESSION_IDLE_MS } from '../src/accounts/sessions.ts'
import { IDEMPOTENCY_KEPT_MS } from '../src/store/idempotency.ts'
import { KINDS } from '../src/store/records.ts'
import { ENGINES } from '../harness/engines.ts'
import { until } from '../harness/until.ts'
import { type Petstore, startPetstore } from './harness.ts'

const NOW = Date.parse('2026-11-15T09:24:00Z')
const USAGE_KEPT_MS = 90 * 86_400_000
const [IDEMPOTENCY, USAGE] = ['idempotency_records', 'usage_counts'].map((name) =>
  KINDS.find((kind) => kind.name === name)!,
)
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
  await store.records.write(IDEMPOTENCY!, records)
  const hour = BigInt(NOW - USAGE_KEPT_MS + expireIn)
  await store.records.write(USAGE!, [{ key_id: apiKey.id, hour, operation: 'getPet', status: 200n, calls: 1n }])
  const lastSeenAt = NOW - SESSION_IDLE_MS + expireIn
  const tokenHash = tokenHashOf(expireIn)
  const event = { at: NOW, accountId: account.id, action: 'session.started', via: 'console', subject: 'x' } as const
  const session = { accountId: account.id, createdAt: lastSeenAt, lastSeenAt, tokenHash }
  await store.accounts.createSession(session, account.passwordHash, event)
}

function tokenHashOf(expireIn: number): Buffer {
  return Buffer.alloc(32, String(expireIn))
}

async function assertOnlyFreshAreLeft({ store }: Petstore): Promise<void> {
  const sessions = () => Promise.all([-1, 1].map((each) => store.accounts.sessionByHash(tokenHashOf(each))))
  const left = async () => [
    await store.records.count(IDEMPOTENCY!),
    await store.records.count(USAGE!),
    (await sessions()).filter((session) => session !== undefined).length,
  ]
  await until(async () => (await left()).every((count) => count <= 1), 'what has expired is removed')
  assert.deepEqual(await left(), [1, 1, 1], 'what has not is kept')
}

for (const engine of ENGINES) {
  describe(`A running service on ${engine.name}`, () => {
    it('removes all records that have expired, at its start and every ten minutes', async ({ mock }) => {
      await using database = await engine.newDatabase()
      const options = { database: database.url, clock: () => NOW }
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
    })
  })
}
