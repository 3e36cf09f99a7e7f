// Usage counts and failed requests: collected in memory, and written to the store.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { ApiKey, FailedRequest } from '../store/account-store.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'
import { openStore } from '../store/opening/open-store.ts'
import { kindOf } from '../store/records.ts'
import { account as sampleAccount, apiKey, event } from '../../test/harness/databases/sample-rows.ts'
import { until } from '../../test/harness/until.ts'
import { FAILED_WAITING, Usage } from './usage.ts'

const HOUR_MS = 3_600_000
const START = 500_000 * HOUR_MS
const DAY_MS = 24 * HOUR_MS

const store = await openStore({ engine: 'sqlite', path: ':memory:' })
const clock = { now: START }
const account = sampleAccount('acct_1')
await store.accounts.createAccount(account, event(account.id))

let keysMade = 0
async function newKey({ accounts } = store): Promise<ApiKey> {
  keysMade += 1
  const key = apiKey(`key_${keysMade}`, account.id)
  await accounts.createKey({ ...key, hash: Buffer.from(key.id) }, event(account.id, 'key.created'))
  return key
}

async function countsOf({ id }: ApiKey, { records } = store) {
  const counts = await records.read(kindOf('usage_counts'), undefined, 1000)
  const own = counts.filter((row) => row['key_id'] === id)
  return own.map(
    ({ hour, operation, status, calls }) =>
      `${Number(hour) - START} ${String(operation)} ${String(status)}: ${String(calls)}`,
  )
}

/** Opens a separate store with these accounts, which is unavailable while another connection holds its lock. */
async function openWith(accountIds: readonly string[]) {
  const parts = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'petstore-usage-'))
  parts.defer(() => rm(folder, { recursive: true }))
  const own = await openStore({ engine: 'sqlite', path: join(folder, 'petstore.db') })
  parts.defer(() => own.close())
  for (const id of accountIds) await own.accounts.createAccount(sampleAccount(id), event(id))
  const ownClock = { now: START }
  const usage = new Usage(own, () => ownClock.now)
  const whileLocked = async (work: () => Promise<void>) => {
    using other = new DatabaseSync(join(folder, 'petstore.db'))
    other.exec('BEGIN IMMEDIATE')
    await work()
    other.exec('ROLLBACK')
  }
  return { store: own, usage, clock: ownClock, whileLocked, [Symbol.asyncDispose]: () => parts.disposeAsync() }
}

describe('the use of a key', () => {
  after(() => store.close())

  it('that cannot be written is kept, and added to what comes meanwhile', async () => {
    await using opened = await openWith([account.id])
    const key = await newKey(opened.store)
    for (const status of [200, 200, 200, 404]) opened.usage.count(key, 'getPet', status)
    const quiet = await newKey(opened.store)
    opened.usage.count(quiet, 'listPets', 200)
    await opened.whileLocked(async () => {
      const failing = assert.rejects(opened.usage.flush(), StoreUnavailable)
      await setImmediate()
      opened.clock.now += 5000
      for (const status of [200, 500]) opened.usage.count(key, 'getPet', status)
      await failing
    })
    await opened.usage.flush()
    assert.deepEqual(await countsOf(quiet, opened.store), ['0 listPets 200: 1'])
    for (const [{ id }, lastUsedAt] of [
      [key, START + 5000],
      [quiet, START],
    ] as const)
      assert.equal((await opened.store.accounts.keyById(id))?.lastUsedAt, lastUsedAt)
    const expected = ['0 getPet 200: 4', '0 getPet 404: 1', '0 getPet 500: 1']
    assert.deepEqual(await countsOf(key, opened.store), expected)
  })

  it('is in the store after a flush, also where another flush was writing it already', async () => {
    const [usage, key] = [new Usage(store, () => START), await newKey()]
    usage.count(key, 'listPets', 200)
    const first = usage.flush()
    await usage.flush()
    assert.deepEqual(await countsOf(key), ['0 listPets 200: 1'])
    await first
  })

  it('that came while a flush was writing is in the store after the next flush, which waits for both', async ({
    mock,
  }) => {
    const [usage, key] = [new Usage(store, () => START), await newKey()]
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const write = store.accounts.recordUsage.bind(store.accounts)
    const held = mock.method(store.accounts, 'recordUsage')
    held.mock.mockImplementationOnce(async (...call) => {
      begun.resolve()
      await released.promise
      await write(...call)
    })
    usage.count(key, 'listPets', 200)
    const first = usage.flush()
    await begun.promise
    usage.count(key, 'getPet', 200)
    const second = usage.flush()
    let waits = true
    void second.then(() => (waits = false))
    for (let turns = 0; turns < 20; turns += 1) await setImmediate()
    assert.ok(waits)
    released.resolve()
    await second
    const expected = ['0 getPet 200: 1', '0 listPets 200: 1']
    assert.deepEqual(await countsOf(key), expected)
    await first
  })

  it('is written every two seconds until the service stops, and a failed write is reported', async ({ mock }) => {
    const [usage, key] = [new Usage(store, () => START), await newKey()]
    const reports: [unknown, string][] = []
    const away = new StoreUnavailable('The database is away.')
    const write = mock.method(store.accounts, 'recordUsage')
    write.mock.mockImplementationOnce(() => Promise.reject(away))
    mock.timers.enable({ apis: ['setInterval'] })
    usage.start((error, message) => reports.push([error, message]))
    usage.count(key, 'listPets', 200)
    mock.timers.tick(2000)
    await until(() => reports.length > 0)
    assert.equal(reports[0]?.[0], away)
    assert.match(reports[0]?.[1] ?? '', /could not be written/)
    mock.timers.tick(2000)
    await until(async () => (await countsOf(key)).length > 0)
    await usage.stop()
    usage.count(key, 'listPets', 200)
    mock.timers.tick(10_000)
    await setImmediate()
    assert.deepEqual([write.mock.callCount(), reports.length], [2, 1])
  })

  it('is forgotten after 90 days and not before', async () => {
    const [usage, key] = [new Usage(store, () => clock.now), await newKey()]
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
    assert.deepEqual(await countsOf(key), [`${DAY_MS} listPets 200: 1`])
  })
})

describe('failed requests', () => {
  const failedOf = (accountId: string, requestId: string, message = 'None.'): FailedRequest => ({
    at: START,
    accountId,
    keyId: 'key',
    requestId,
    operation: 'getPet',
    status: 404,
    code: 'pet_not_found',
    message,
  })
  const many = (accountId: string, howMany: number) =>
    Array.from({ length: howMany }, (_, index) => failedOf(accountId, `r${index}`))
  const keptOf = async ({ accounts }: Store, accountId: string) =>
    (await accounts.failedRequests(accountId, 10_000)).map(({ requestId }) => requestId).toReversed()

  it('of one noisy account do not hide those of others', async () => {
    await using opened = await openWith(['noisy', 'quiet'])
    for (const failed of [...many('noisy', 3 * FAILED_WAITING.ofAccount), failedOf('quiet', 'only one')])
      opened.usage.remember(failed)
    await opened.usage.flush()
    assert.deepEqual(await keptOf(opened.store, 'quiet'), ['only one'])
    const first = Array.from({ length: FAILED_WAITING.ofAccount }, (_, index) => `r${index}`)
    assert.deepEqual(await keptOf(opened.store, 'noisy'), first, 'the first ones of a flood')
  })

  it('that cannot be written are kept and written later, the older ones first', async () => {
    await using opened = await openWith(['a'])
    opened.usage.remember(failedOf('a', 'before'))
    await opened.whileLocked(async () => {
      const failing = assert.rejects(opened.usage.flush(), StoreUnavailable)
      await setImmediate()
      opened.usage.remember(failedOf('a', 'during the write'))
      await failing
      opened.usage.remember(failedOf('a', 'meanwhile'))
    })
    await opened.usage.flush()
    assert.deepEqual(await keptOf(opened.store, 'a'), ['before', 'during the write', 'meanwhile'])
  })

  it('take bounded memory, of each account and of all, however long they cannot be written, and are remembered again after a write', async () => {
    const accountIds = Array.from({ length: 150 }, (_, index) => `acct_${index}`)
    await using opened = await openWith(accountIds)
    await opened.whileLocked(async () => {
      for (let round = 0; round < 2; round += 1) {
        for (const failed of accountIds.flatMap((id) => many(id, FAILED_WAITING.ofAccount)))
          opened.usage.remember(failed)
        if (round === 0) await assert.rejects(opened.usage.flush(), StoreUnavailable)
      }
    })
    await opened.usage.flush()
    const written = await Promise.all(accountIds.map((id) => keptOf(opened.store, id)))
    assert.equal(written.flat().length, FAILED_WAITING.ofAll)
    opened.usage.remember(failedOf('acct_0', 'afterwards'))
    await opened.usage.flush()
    assert.equal((await keptOf(opened.store, 'acct_0')).at(-1), 'afterwards', 'there is room again')
  })

  it('that the database refuses are dropped, and hold up no later ones', async () => {
    await using opened = await openWith(['bad', 'good'])
    // A time that the column refuses; no real request can have it.
    opened.usage.remember({ ...failedOf('bad', 'refused'), at: 0.5 })
    await assert.rejects(opened.usage.flush())
    opened.usage.remember(failedOf('good', 'kept'))
    await opened.usage.flush()
    assert.deepEqual([await keptOf(opened.store, 'bad'), await keptOf(opened.store, 'good')], [[], ['kept']])
  })
})
