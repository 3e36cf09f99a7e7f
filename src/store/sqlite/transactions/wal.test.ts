// The write-ahead log of a store that serves requests: its path, its recovery at the start, and its length.
import assert from 'node:assert/strict'
import fs, {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it, type TestContext } from 'node:test'
import { CannotCloseStore, type OpenOptions, type Report, type Store, StoreUnavailable } from '../../store.ts'
import { openSqliteStore } from '../sqlite-store.ts'
import { LOCK_WAIT_MS } from '../failures.ts'
import { openWal, WAL_LIMIT } from './wal.ts'
import { until } from '../../../../test/harness/until.ts'

const REX = { name: 'x'.repeat(255), categoryId: 1n, status: 'available' } as const
const serving = (checkpoints: boolean): OpenOptions => ({
  processes: 2,
  serving: { checkpoints, onBroken: (error) => assert.fail(error) },
})

/** A database whose log grows until it is told to shorten it. */
function openLog(path: string, checkpoints = true, report?: Report) {
  const db = new DatabaseSync(path, { timeout: LOCK_WAIT_MS.statement })
  db.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE filler (bytes BLOB)')
  const wal = openWal(db, checkpoints, report)
  return {
    db,
    wal,
    fill: (bytes: number) => db.exec(`INSERT INTO filler VALUES (zeroblob(${bytes}))`),
    length: () => statSync(`${path}-wal`).size,
    /** Counts the checkpoints from now on. */
    countCheckpoints(mock: TestContext['mock']) {
      const exec = mock.method(db, 'exec')
      const isCheckpoint = (sql: string) => sql.startsWith('PRAGMA wal_checkpoint')
      return () => exec.mock.calls.flatMap(({ arguments: [sql] }) => (isCheckpoint(sql) ? [sql] : []))
    },
    [Symbol.dispose]() {
      wal.close()
      db.close()
    },
  }
}

/** Another connection that reads from the database from now on. */
function startReader(path: string, table = 'filler'): DatabaseSync {
  const reader = new DatabaseSync(path)
  reader.exec(`BEGIN; SELECT count(*) FROM ${table}`)
  return reader
}

/** Sets the clock, which stands still otherwise. */
function stopClock(mock: TestContext['mock']) {
  const clock = { now: performance.now() }
  mock.method(performance, 'now', () => clock.now)
  return clock
}

/** Writes batches of 2000 animals; resolves with the length that the log had at most. */
async function writeBatches(store: Store, path: string, batches: number): Promise<number> {
  let longest = 0
  for (let batch = 0; batch < batches; batch += 1) {
    await store.pets.createMany(Array.from({ length: 2000 }, () => REX))
    longest = Math.max(longest, statSync(`${path}-wal`).size)
  }
  return longest
}

/** Opens a store whose log is synced by this function. */
function withSync(mock: TestContext['mock'], sync: Sync, open: () => Store): Store {
  const method = mock.method(fs, 'fdatasync', sync)
  syncBuiltinESMExports()
  try {
    return open()
  } finally {
    method.mock.restore()
    syncBuiltinESMExports()
  }
}

type Sync = (file: number, done: (error: Error | null) => void) => void

/** The files of a folder that this process has open. */
function openFiles(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${descriptor}`)
      return file.startsWith(folder) ? [file] : []
    } catch {
      // The descriptor with which the list was read.
      return []
    }
  })
}

describe('The write-ahead log', () => {
  let folder: string
  before(() => void (folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))))
  after(() => rmSync(folder, { recursive: true }))

  it('is the one beside the real file where the database is a link', async () => {
    const real = join(folder, 'real')
    mkdirSync(real)
    await openSqliteStore(join(real, 'pets.db')).close()
    const link = join(folder, 'link.db')
    symlinkSync(join(real, 'pets.db'), link)
    const store = openSqliteStore(link, serving(true))
    await store.pets.create(REX)
    assert.ok(statSync(join(real, 'pets.db-wal')).size > 0)
    assert.equal(existsSync(`${link}-wal`), false)
    await store.close()
    assert.deepEqual(readdirSync(real), ['pets.db'], 'closed in order, nothing else is left')
    if (platform() === 'linux') assert.deepEqual(openFiles(real), [])
  })

  it('is copied and emptied before a store serves; beside another process that reads from it, it is written again', async () => {
    const path = join(folder, 'left.db')
    const left = openSqliteStore(path, serving(false))
    await left.pets.create(REX)
    using reader = startReader(path, 'pets')
    await left.pets.create(REX)
    const beside = openSqliteStore(path, { ...serving(true), lockWaitMs: 0 })
    await beside.pets.create(REX)
    assert.equal((await beside.pets.list({ limit: 10 })).length, 3)
    assert.equal(reader.prepare('SELECT count(*) AS pets FROM pets').get()!['pets'], 1, 'the reader is not disturbed')
    reader.exec('ROLLBACK')
    await beside.close()
    const store = openSqliteStore(path, serving(true))
    assert.equal(statSync(`${path}-wal`).size, 0)
    assert.equal((await store.pets.list({ limit: 10 })).length, 3)
    await store.close()
    await left.close()
  })

  it('stays short with two that write, of which one checkpoints, also while that one writes nothing', async () => {
    const path = join(folder, 'two.db')
    const [first, second] = [openSqliteStore(path, serving(true)), openSqliteStore(path, serving(false))]
    const write = (store: Store, batches: number) => writeBatches(store, path, batches)
    // Each part writes 25 MB, which the log would have without a checkpoint.
    const longest = Math.max(...(await Promise.all([write(first, 10), write(second, 10)])), await write(second, 20))
    assert.ok(longest < 20_000_000, `the log had ${longest} bytes`)
    assert.ok(longest > 4_000_000, 'enough was written')
    await Promise.all([first.close(), second.close()])
  })

  it('is not touched by a worker, however long it is: one process of an instance checkpoints', () => {
    using log = openLog(join(folder, 'worker.db'), false)
    log.fill(17_000_000)
    log.wal.shorten()
    assert.equal(log.db.prepare('PRAGMA wal_checkpoint(NOOP)').get()!['checkpointed'], 0)
  })

  it('is not copied again and again while a reader prevents it, only when it has become longer', ({ mock }) => {
    const path = join(folder, 'blocked.db')
    using log = openLog(path)
    using _reader = startReader(path)
    const clock = stopClock(mock)
    const checkpoints = log.countCheckpoints(mock)
    for (const expected of [1, 2]) {
      log.fill(5_000_000)
      for (let time = 0; time < 5; time += 1) {
        clock.now += 1000
        log.wal.shorten()
      }
      assert.equal(checkpoints().length, expected)
    }
  })

  it('is left as it is where a sync has failed, also when the store is closed: the next start recovers it', async ({
    mock,
  }) => {
    const path = join(folder, 'failed.db')
    const broken: unknown[] = []
    const store = withSync(
      mock,
      (_file, done) => done(Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })),
      () => openSqliteStore(path, { serving: { checkpoints: true, onBroken: (error) => broken.push(error) } }),
    )
    await assert.rejects(store.pets.create(REX), StoreUnavailable)
    const length = statSync(`${path}-wal`).size
    await assert.rejects(store.close(), CannotCloseStore)
    assert.deepEqual([statSync(`${path}-wal`).size, broken.length], [length, 1])
    assert.ok(length > 0)
  })

  it('of a command is copied when the store is closed, also where the sync of a COMMIT has failed, which SQLite undoes', async ({
    mock,
  }) => {
    const path = join(folder, 'command.db')
    const store = openSqliteStore(path)
    await store.pets.create(REX)
    const exec = Reflect.get(DatabaseSync.prototype, 'exec')
    const method = mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      if (sql === 'COMMIT') throw Object.assign(new Error('disk I/O error'), { errcode: 1034 })
      exec.call(this, sql)
    })
    await assert.rejects(store.pets.create(REX), StoreUnavailable)
    method.mock.restore()
    await store.close()
    assert.equal(existsSync(`${path}-wal`), false)
    using db = new DatabaseSync(path)
    assert.equal(db.prepare('SELECT count(*) AS pets FROM pets').get()!['pets'], 1)
  })

  it('that waits for its sync is ahead of the version of the store, which reads that see it reach', async ({
    mock,
  }) => {
    const syncs: (() => void)[] = []
    const store = withSync(
      mock,
      (_file, done) => void syncs.push(() => done(null)),
      () => openSqliteStore(join(folder, 'ahead.db'), serving(true)),
    )
    const version = store.version()!
    assert.equal(store.versionAfterSync(), version)
    const created = store.pets.create(REX)
    await until(() => syncs.length > 0)
    assert.deepEqual([store.version(), store.versionAfterSync()], [version, version + 1])
    syncs[0]!()
    await created
    assert.deepEqual([store.version(), store.versionAfterSync()], [version + 1, version + 1])
    await store.close()
  })

  it('is restarted when it is long; only that may wait for others for longer than a moment', () => {
    using log = openLog(join(folder, 'long.db'))
    log.fill(17_000_000)
    log.wal.shorten()
    assert.deepEqual({ ...log.db.prepare('PRAGMA busy_timeout').get() }, { timeout: LOCK_WAIT_MS.statement })
    const length = log.length()
    log.fill(9_000_000)
    assert.equal(log.length(), length, 'it is written again from its beginning')
  })

  it('is restarted when it is long also where a part is copied and others keep it from beginning again', ({ mock }) => {
    const path = join(folder, 'read.db')
    using log = openLog(path)
    const clock = stopClock(mock)
    log.fill(5_000_000)
    using _reader = startReader(path)
    log.fill(4_000_000)
    log.wal.shorten()
    log.fill(9_000_000)
    clock.now += 20
    const checkpoints = log.countCheckpoints(mock)
    log.wal.shorten()
    assert.deepEqual(checkpoints(), ['PRAGMA wal_checkpoint(RESTART)'])
  })

  it('is truncated after a process that has read for long has ended, and both is reported', ({ mock }) => {
    const path = join(folder, 'reader.db')
    const reports: Parameters<Report>[0][] = []
    using log = openLog(path, true, (event) => reports.push(event))
    using reader = startReader(path)
    const clock = stopClock(mock)
    const shortenFor = (seconds: number) => {
      for (const end = clock.now + 1000 * seconds; clock.now < end; clock.now += 100) log.wal.shorten()
    }
    for (let part = 0; part < 3; part += 1) {
      log.fill(WAL_LIMIT / 2)
      shortenFor(1)
    }
    const checkpoints = log.countCheckpoints(mock)
    shortenFor(3)
    assert.equal(checkpoints().length, 3, 'each attempt holds up writes, so they are rare')
    assert.ok(log.length() > WAL_LIMIT)
    reader.exec('ROLLBACK')
    shortenFor(1.2)
    assert.equal(log.length(), 0)
    assert.deepEqual(
      reports.map(({ level }) => level),
      ['warn', 'notice'],
    )
  })

  it('that another process has begun anew gets short with the next write, too', async () => {
    const path = join(folder, 'anew.db')
    const store = openSqliteStore(path, serving(true))
    {
      using other = new DatabaseSync(path)
      other.exec(`PRAGMA wal_autocheckpoint = 0; CREATE TABLE filler (bytes BLOB);
        INSERT INTO filler VALUES (zeroblob(${1.2 * WAL_LIMIT})); PRAGMA wal_checkpoint(RESTART)`)
    }
    assert.ok(statSync(`${path}-wal`).size > WAL_LIMIT)
    await store.pets.create(REX)
    assert.ok(statSync(`${path}-wal`).size <= WAL_LIMIT)
    await store.close()
  })

  it('gets no longer from one checkpoint to the next with one that writes', async () => {
    const path = join(folder, 'one.db')
    const store = openSqliteStore(path, { ...serving(true), processes: 1 })
    const longest = await writeBatches(store, path, 100)
    await store.close()
    // A thousand frames are 4 MB, and the checkpoint begins up to a few batches later.
    assert.ok(longest > 4_000_000 && longest < 10_000_000, `the log had ${longest} bytes`)
    assert.ok(statSync(path).size > 60_000_000, 'enough was written for many checkpoints')
  })
})
