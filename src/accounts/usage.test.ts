// What is counted in memory, and how it reaches the store.
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { type ApiKey, type AuditEvent, FAILED_REQUESTS_KEPT } from '../store/store.ts'
import { openStore } from '../store/open-store.ts'
import { Usage } from './usage.ts'

const HOUR_MS = 3_600_000
const START = 500_000 * HOUR_MS
const DAY_MS = 24 * HOUR_MS

const store = await openStore({ engine: 'sqlite', path: ':memory:' })
const clock = { now: START }
const account = { id: 'acct_1', email: 'you@example.com', passwordHash: '', createdAt: 0 }
const event: AuditEvent = { at: 0, accountId: account.id, action: 'account.created', via: 'console', subject: '' }
await store.accounts.createAccount(account, event)

let keysMade = 0
async function newKey(): Promise<ApiKey> {
  keysMade += 1
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined, lastUsedAt: undefined }
  const key = { id: `key_${keysMade}`, accountId: account.id, name: 'k', lastFour: '1234', ...times }
  await store.accounts.createKey({ ...key, hash: Buffer.from(key.id) }, { ...event, action: 'key.created' })
  return key
}

async function countsOf({ id }: ApiKey) {
  const counts = await store.accounts.usageSince(account.id, 0)
  return counts.filter(({ keyId }) => keyId === id).map(({ hour, operation, status, calls }) => [hour - START, operation, status, calls])
}

describe('the use of a key', () => {
  after(() => store.close())

  it('is counted by hour, operation and status, over several writes', async () => {
    const [usage, key] = [new Usage(store.accounts, () => clock.now), await newKey()]
    for (const at of [0, HOUR_MS - 1, HOUR_MS]) {
      clock.now = START + at
      usage.count(key, 'listPets', 200)
      usage.count(key, 'getPet', 404)
    }
    await usage.flush()
    usage.count(key, 'listPets', 200)
    await usage.flush()
    const expected = [[0, 'getPet', 404, 2], [0, 'listPets', 200, 2], [HOUR_MS, 'getPet', 404, 1], [HOUR_MS, 'listPets', 200, 2]]
    assert.deepEqual(new Set(await countsOf(key)), new Set(expected))
  })

  it('leaves the time of the last call with the key', async () => {
    const [usage, key] = [new Usage(store.accounts, () => clock.now), await newKey()]
    for (const at of [0, 5000]) {
      clock.now = START + at
      usage.count(key, 'listPets', 200)
    }
    await usage.flush()
    assert.equal((await store.accounts.keyById(key.id))?.lastUsedAt, START + 5000)
  })

  it('is written when the service stops', async () => {
    const [usage, key] = [new Usage(store.accounts, () => START), await newKey()]
    usage.count(key, 'listPets', 200)
    await usage.stop()
    assert.deepEqual(await countsOf(key), [[0, 'listPets', 200, 1]])
  })

  it('is forgotten after 90 days and not before', async () => {
    const [usage, key] = [new Usage(store.accounts, () => clock.now), await newKey()]
    for (const days of [0, 1]) {
      clock.now = START + days * DAY_MS
      usage.count(key, 'listPets', 200)
    }
    await usage.flush()
    clock.now = START + 90 * DAY_MS
    await usage.purge()
    assert.equal((await countsOf(key)).length, 2)
    clock.now += HOUR_MS
    await usage.purge()
    assert.deepEqual(await countsOf(key), [[DAY_MS, 'listPets', 200, 1]])
  })

  it('keeps in memory only the first failures of a flood', async () => {
    const [usage, key] = [new Usage(store.accounts, () => START), await newKey()]
    const failed = { at: START, accountId: account.id, keyId: key.id, operation: 'getPet', status: 404, code: 'pet_not_found', message: 'None.' }
    usage.count(key, 'getPet', 404)
    for (let index = 0; index < FAILED_REQUESTS_KEPT * 2; index += 1) usage.remember({ ...failed, requestId: `r${index}` })
    await usage.flush()
    const kept = await store.accounts.failedRequests(account.id, FAILED_REQUESTS_KEPT * 2)
    const first = Array.from({ length: FAILED_REQUESTS_KEPT }, (_, index) => `r${index}`)
    assert.deepEqual(kept.map(({ requestId }) => requestId).toSorted(), first.toSorted())
  })
})
