// Opening a store to serve requests: what becomes of one that is closed meanwhile or refused, how often a database that is
// away is tried, and which process reports it.
import assert from 'node:assert/strict'
import { chmodSync, readdirSync, statSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { it } from 'node:test'
import timers from 'node:timers/promises'
import { readConfig } from '../../src/config.ts'
import { type OpeningOptions, openForServing } from '../../src/store/opening/open-for-serving.ts'
import { postgres } from '../harness/databases/engines.ts'
import { until } from '../harness/until.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { startCuttingProxy } from '../harness/databases/cutting-proxy.ts'
import { openPostgres } from '../harness/databases/open-postgres.ts'

const WAITING = 'waiting for the database; requests are answered 503'
const AWAY = 'postgres://nobody@127.0.0.1:1/none'

/** Opens the database at this address; the messages that it reports are added to `reports`. */
function open(url: string, reports: string[], options: Partial<OpeningOptions> = {}) {
  return openForServing(readConfig({ database: url }, {}).database, {
    environment: 'staging',
    isChosen: false,
    processes: 1,
    report: ({ message }) => reports.push(message),
    onBroken: assert.ifError,
    ...options,
  })
}

it('A store whose opening succeeds after it was closed is closed then, without a word', async () => {
  await using database = await postgres.newEmptyDatabase()
  await using proxy = await startCuttingProxy(database.url)
  const reports: string[] = []
  proxy.goAway()
  const { store, opened } = await open(proxy.url, reports)
  const held = proxy.holdNextAnswer()
  proxy.comeBack()
  await held.arrived
  await store.close()
  held.release()
  await opened
  await until(async () => proxy.connections().open === 0, 'every connection is closed')
  assert.deepEqual(reports, [WAITING])
})

it('A store that is opened late says why until then, and is from then on as one that is opened at once', async () => {
  await using database = await postgres.newEmptyDatabase()
  await using proxy = await startCuttingProxy(database.url)
  const calls: string[] = []
  proxy.goAway()
  const { store, opened } = await open(proxy.url, [], { observe: (call) => () => calls.push(call) })
  await assert.rejects(store.ping(), /^StoreUnavailable: The database has not been opened yet: .*127\.0\.0\.1/)
  for (const part of ['pets', 'accounts', 'imports', 'uploads', 'records', 'environment', 'setUnfinishedCopy'] as const)
    assert.throws(() => store[part], StoreUnavailable, part)
  assert.deepEqual(store.opened, { created: false, migrations: [], warnings: [] })
  assert.deepEqual(
    [store.version(), store.versionAfterSync(), store.connections(), store.commits()],
    [undefined, undefined, undefined, { commits: 0, writes: 0 }],
  )
  proxy.comeBack()
  await opened
  await Promise.all([store.pets.create(samplePet), store.pets.create(samplePet)])
  assert.deepEqual(
    [store.opened.created, store.connections()?.servers[0]?.role, store.commits()],
    [true, 'primary', { commits: 1, writes: 2 }],
  )
  assert.deepEqual(
    [await store.environment(), await store.isDefaultEnvironment(), await store.isUnfinishedCopy()],
    ['staging', true, false],
  )
  assert.deepEqual([await store.accounts.listKeys(), (await store.imports.unfinished()).length], [[], 0])
  assert.deepEqual(calls.slice(-4), ['pets.create', 'pets.create', 'accounts.listKeys', 'imports.unfinished'])
  await store.recordEnvironment('production', { instead: 'staging' })
  await store.setUnfinishedCopy(true)
  assert.deepEqual([await store.environment(), await store.isUnfinishedCopy()], ['production', true])
  await store.close()
  await until(async () => proxy.connections().open === 0, 'every connection is closed')
})

it('A store that waits for its database says why the last attempt has failed, not the first one', async () => {
  await using database = await postgres.newEmptyDatabase()
  await using proxy = await startCuttingProxy(database.url)
  proxy.goAway()
  const { store, opened } = await open(proxy.url.replace(/[^/]*$/, 'none'), [])
  const reason = () => store.ping().then(String, String)
  assert.doesNotMatch(await reason(), /does not exist/)
  proxy.comeBack()
  await until(async () => /database "none" does not exist/.test(await reason()), 'the new reason is reported')
  await store.close()
  await opened
})

it('A database that goes away while its environment is recorded is waited for, as one that was away before', async () => {
  await using database = await postgres.newEmptyDatabase()
  await using proxy = await startCuttingProxy(database.url)
  const reports: string[] = []
  const held = proxy.holdNextAnswer('staging')
  const opening = open(proxy.url, reports)
  await held.arrived
  proxy.goAway()
  const { store, opened } = await opening
  assert.ok(reports.includes(WAITING), reports.join())
  await assert.rejects(store.ping(), StoreUnavailable)
  proxy.comeBack()
  await opened
  assert.equal(await store.environment(), 'staging')
  await store.close()
  await until(async () => proxy.connections().open === 0, 'every connection is closed')
})

it('A store that is refused, because it belongs to the other environment, is closed again', async () => {
  await using opened = await openPostgres()
  await opened.store.recordEnvironment('production')
  await opened.store.close()
  await assert.rejects(open(opened.url, []), /belongs to production/)
  await until(async () => opened.proxy.connections().open === 0, 'every connection is closed')
})

it('A store that is refused, because it holds a copy that was interrupted, is closed again', async () => {
  await using opened = await openPostgres()
  await opened.store.setUnfinishedCopy(true)
  await opened.store.close()
  await assert.rejects(open(opened.url, []), /holds a copy that was interrupted/)
  await until(async () => opened.proxy.connections().open === 0, 'every connection is closed')
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const url = `sqlite:${join(folder.path, 'pets.db')}`
  const { store } = await open(url, [])
  await store.setUnfinishedCopy(true)
  await store.close()
  await assert.rejects(open(url, []), /holds a copy that was interrupted/)
  assert.deepEqual(readdirSync(folder.path), ['pets.db'], 'SQLite has removed its log when it was closed')
})

it('A database that stays away is tried every ten seconds, first more often, until the store is closed', async ({
  mock,
}) => {
  const pause = timers.setTimeout
  const pauses: number[] = []
  const long = Promise.withResolvers<void>()
  mock.method(timers, 'setTimeout', async (ms: number, value: unknown, options: { signal?: AbortSignal } = {}) => {
    if (options.signal === undefined) return pause(ms, value, options)
    if (pauses.push(ms) < 9) return undefined
    long.resolve()
    return pause(60_000, value, options)
  })
  syncBuiltinESMExports()
  try {
    const { store, opened } = await open(AWAY, [])
    await long.promise
    await store.close()
    await opened
  } finally {
    mock.restoreAll()
    syncBuiltinESMExports()
  }
  assert.deepEqual(pauses, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000])
})

it('A worker leaves what there is to report about opening to the first process', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const path = join(folder.path, 'pets.db')
  const reported = async (url: string, isWorker: boolean) => {
    const reports: string[] = []
    await (await open(url, reports, isWorker ? { isStoreOpen: async () => true } : {})).store.close()
    return reports
  }
  assert.deepEqual(await reported(`sqlite:${path}`, false), [])
  chmodSync(path, 0o644)
  assert.match((await reported(`sqlite:${path}`, false)).join(), /^Other users of this machine can read [^,]*$/)
  assert.deepEqual(await reported(AWAY, false), [WAITING])
  for (const url of [`sqlite:${path}`, AWAY]) assert.deepEqual(await reported(url, true), [])
})

/** Leaves a write-ahead log that is not empty, and a reader that keeps it from being emptied. */
async function readLog(path: string): Promise<DatabaseSync> {
  const { store } = await open(`sqlite:${path}`, [])
  await store.pets.create(samplePet)
  const reader = new DatabaseSync(path)
  reader.exec('BEGIN; SELECT count(*) FROM pets')
  await store.close()
  return reader
}

it('A worker opens its store after the first process, which makes the write-ahead log durable before', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const path = join(folder.path, 'pets.db')
  using _reader = await readLog(path)
  let isOpen = false
  const worker = await open(`sqlite:${path}`, [], { isStoreOpen: async () => isOpen })
  await assert.rejects(worker.store.ping(), /the first process has not opened it yet/)
  isOpen = true
  await worker.opened
  assert.equal((await worker.store.pets.list({ limit: 10 })).length, 1)
  const versions = () => [worker.store.version(), worker.store.versionAfterSync()]
  const before = versions()
  await worker.store.pets.create(samplePet)
  const after = versions()
  assert.ok([...before, ...after].every((version) => typeof version === 'number') && after[0]! > before[0]!)
  assert.equal(after[0], after[1])
  await worker.store.close()
})

it('A store that is given up while it waits for its database is not opened any more', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const path = join(folder.path, 'pets.db')
  const other = await readLog(path)
  other.exec('COMMIT; BEGIN IMMEDIATE')
  const { store, opened } = await open(`sqlite:${path}`, [])
  await assert.rejects(store.ping(), /another process holds its lock/)
  store.giveUp()
  other.exec('COMMIT')
  await opened
  await assert.rejects(store.ping(), StoreUnavailable)
  assert.ok(statSync(`${path}-wal`).size > 0)
  other.close()
})

it('A store that is given up while it is being opened refuses every call', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const url = `sqlite:${join(folder.path, 'pets.db')}`
  await (await open(url, [])).store.close()
  let attempts = 0
  const isStoreOpen = async () => {
    attempts += 1
    if (attempts === 2) store.giveUp()
    return attempts > 1
  }
  const { store, opened } = await open(url, [], { isStoreOpen })
  await opened
  await assert.rejects(store.pets.create(samplePet), /it has failed in another process of this instance/)
})
