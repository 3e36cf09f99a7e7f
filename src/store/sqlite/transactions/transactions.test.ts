// Group commit: writes share a transaction, a bad write fails alone, locks are retried, and nothing is read before its sync.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import * as fc from 'fast-check'
import { until } from '../../../../test/harness/until.ts'
import { holdTimers, someTurns } from '../../../../test/harness/connections/fake-server.ts'
import { IN_MEMORY } from '../../database/database-address.ts'
import { CannotCloseStore, StoreBusy, StoreUnavailable } from '../../store.ts'
import { LOCK_RETRY_MS, LOCK_WAIT_MS } from '../failures.ts'
import type { Wal } from './wal.ts'
import { Transactions, type TransactionOptions } from './transactions.ts'

function newTransactions(path = IN_MEMORY, options: TransactionOptions = {}) {
  const db = new DatabaseSync(path, { timeout: 0 })
  db.exec('CREATE TABLE IF NOT EXISTS numbers (n INTEGER PRIMARY KEY CHECK (n >= 0)) STRICT')
  const insert = db.prepare('INSERT INTO numbers VALUES (?)')
  const select = db.prepare('SELECT n FROM numbers ORDER BY n')
  const transactions = new Transactions(db, options)
  const add = (n: number) => insert.run(n)
  const numbers = () => select.all().map(({ n }) => Number(n))
  return { db, transactions, add, write: (n: number) => transactions.write(() => add(n)), numbers }
}

/** With a log to sync, which the test syncs. */
function newSynced(options: TransactionOptions = {}) {
  const disk = new Disk()
  return { disk, ...newTransactions(IN_MEMORY, { wal: disk, ...options }) }
}

/** With a first write whose sync is in progress. */
async function duringSync(options: TransactionOptions = {}) {
  const parts = newSynced(options)
  const written = parts.write(1)
  // A test that expects it to fail says so later.
  written.catch(() => {})
  return { ...parts, written, sync: await parts.disk.nextSync() }
}

const EIO = Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' })
const FAILED_SYNC = Object.assign(new Error('disk I/O error'), { errcode: 1034 })

describe('`Transactions`', () => {
  it('shares one transaction among the writes of one turn', async () => {
    const { db, transactions, add } = newTransactions()
    const open: boolean[] = []
    const writes = Array.from({ length: 5 }, (_, n) =>
      transactions.write(() => {
        add(n)
        open.push(db.isTransaction)
        return n
      }),
    )
    assert.deepEqual(open, [], 'nothing is written before the turn has ended')
    assert.deepEqual(await Promise.all(writes), [0, 1, 2, 3, 4])
    assert.deepEqual(open, [true, true, true, true, true])
  })

  it('lets a thousand writes wait, refuses more at once, and goes on', async () => {
    const { numbers, write } = newTransactions()
    const waiting = Array.from({ length: 1000 }, (_, n) => write(n))
    await assert.rejects(write(1000), StoreBusy)
    await Promise.all(waiting)
    await write(1001)
    assert.deepEqual(numbers().slice(-2), [999, 1001])
  })

  it('answers none before its commit: what can not be committed is refused', async () => {
    const { db, transactions, numbers, write } = newTransactions()
    // A deferred constraint fails only at COMMIT, like a disk that is full by then.
    db.exec('CREATE TABLE orphans (n INTEGER REFERENCES numbers DEFERRABLE INITIALLY DEFERRED) STRICT')
    const orphan = () => db.exec('INSERT INTO orphans VALUES (9)')
    await assert.rejects(transactions.write(orphan), /FOREIGN KEY constraint failed/)
    const [failed, added] = await Promise.allSettled([transactions.write(orphan), write(1)])
    assert.deepEqual([failed.status, added.status], ['rejected', 'fulfilled'])
    assert.deepEqual(numbers(), [1])
  })

  it('counts a commit that has failed, because it may have taken effect: no cached response may outlive it', async () => {
    for (const wal of [undefined, new Disk()]) {
      const { db, transactions } = newTransactions(IN_MEMORY, { wal })
      db.exec('CREATE TABLE orphans (n INTEGER REFERENCES numbers DEFERRABLE INITIALLY DEFERRED) STRICT')
      await assert.rejects(transactions.write(() => db.exec('INSERT INTO orphans VALUES (9)')))
      assert.deepEqual([transactions.synced.commits, transactions.unsynced.commits], [1, 0])
    }
  })

  it('fails a write that fails, alone, whatever its neighbours do', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }), async (good) => {
        const { transactions, add, numbers } = newTransactions()
        const results = await Promise.allSettled(good.map((fine, n) => transactions.write(() => add(fine ? n : -1))))
        assert.deepEqual(
          results.map(({ status }) => status === 'fulfilled'),
          good,
        )
        assert.deepEqual(
          numbers(),
          good.flatMap((fine, n) => (fine ? [n] : [])),
        )
      }),
    )
  })

  it('is full from the write that finds no room until one finds some', async () => {
    const { db, transactions, write } = newTransactions()
    const { page_count: pages } = db.prepare('PRAGMA page_count').get() as { page_count: number }
    db.exec(`PRAGMA max_page_count = ${pages}`)
    const fill = () => transactions.write(() => db.exec('CREATE TABLE more (n INTEGER) STRICT'))
    await assert.rejects(fill(), { publicReason: 'The disk of the database is full.' })
    assert.ok(transactions.isFull)
    await assert.rejects(write(-1))
    assert.ok(transactions.isFull, 'a write that fails for another reason shows nothing')
    db.exec('PRAGMA max_page_count = 1000')
    await fill()
    assert.ok(!transactions.isFull)
  })

  it('undoes all of a write that fails half way', async () => {
    const { transactions, add, numbers, write } = newTransactions()
    const half = transactions.write(() => {
      add(1)
      throw new Error('half way')
    })
    const whole = write(2)
    await assert.rejects(half, /half way/)
    await whole
    assert.deepEqual(numbers(), [2])
  })

  it('counts a commit and its writes once, and not what failed', async () => {
    const { transactions, write } = newTransactions()
    await Promise.all([write(1), write(2), write(3)])
    assert.deepEqual(transactions.synced, { commits: 1, writes: 3 })
    await assert.rejects(write(-1))
    assert.deepEqual(transactions.synced, { commits: 1, writes: 3 })
  })

  it('writes what was queued before it is closed, and takes nothing after', async () => {
    const { db, transactions, numbers, write } = newTransactions()
    const queued = write(1)
    const closing = transactions.close()
    await assert.rejects(write(2), StoreUnavailable)
    await Promise.all([queued, closing])
    assert.deepEqual(numbers(), [1])
    await transactions.close()
    db.close()
    await assert.rejects(write(3), StoreUnavailable)
  })

  describe('while another process holds the lock', () => {
    it('waits for it before it is closed, for longer than for a disk that hangs', async ({ mock }) => {
      using file = new LockedFile()
      const { transactions, numbers, write } = newTransactions(file.path)
      file.lock()
      const queued = write(1)
      mock.timers.enable({ apis: ['setTimeout'] })
      const closed = transactions.close()
      mock.timers.tick(60_000)
      mock.timers.reset()
      await setTimeout(2 * LOCK_RETRY_MS)
      file.unlock()
      await Promise.all([queued, closed])
      assert.deepEqual(numbers(), [1])
    })

    it('reads when the lock is released', async () => {
      using file = new LockedFile()
      const { transactions, numbers } = newTransactions(file.path)
      file.lock('EXCLUSIVE')
      const reading = transactions.read(numbers)
      await setTimeout(2 * LOCK_RETRY_MS)
      file.unlock()
      assert.deepEqual(await reading, [])
    })

    it('refuses calls as unavailable when their time is over, and only those: writes that came later wait on', async ({
      mock,
    }) => {
      using file = new LockedFile()
      const { transactions, numbers, write } = newTransactions(file.path)
      const goOn = controlTime(mock)
      file.lock('EXCLUSIVE')
      const early = [transactions.read(numbers), write(1)]
      const settled = Promise.allSettled(early)
      await setTimeout(2 * LOCK_RETRY_MS)
      goOn(LOCK_WAIT_MS.call)
      const late = [write(2), write(3)]
      for (const call of early)
        await assert.rejects(call, (error) => error instanceof StoreUnavailable && /holds its lock/.test(error.message))
      await settled
      file.unlock()
      await Promise.all(late)
      assert.deepEqual(await transactions.read(numbers), [2, 3])
    })

    it('writes in the order in which the writes came, however often it has to try', async ({ mock }) => {
      using file = new LockedFile()
      const { db, transactions, add } = newTransactions(file.path)
      const attempts = mock.method(db, 'exec')
      const started = performance.now()
      const order: number[] = []
      const note = (n: number) =>
        transactions.write(() => {
          add(n)
          order.push(n)
        })
      file.lock()
      const first = [note(1), note(2), note(3)]
      await setTimeout(3 * LOCK_RETRY_MS)
      const second = [note(4), note(5)]
      await setTimeout(3 * LOCK_RETRY_MS)
      assert.deepEqual(order, [])
      const pauses = (performance.now() - started) / LOCK_RETRY_MS
      assert.ok(attempts.mock.callCount() <= pauses + 2, 'it pauses between two attempts')
      file.unlock()
      await Promise.all([...first, ...second])
      assert.deepEqual(order, [1, 2, 3, 4, 5])
    })

    it('waits for it with each of the writes that are retried alone', async () => {
      using file = new LockedFile()
      const { db, transactions, numbers, write } = newTransactions(file.path)
      let tries = 0
      const failing = transactions.write(() => {
        tries += 1
        try {
          db.exec('INSERT OR ROLLBACK INTO numbers VALUES (-1)')
        } finally {
          // The other process takes the lock before the first of the writes is retried alone.
          if (tries === 1) file.lock()
        }
      })
      const good = [write(1), write(2)]
      await until(() => tries > 0, 'the writes are tried together')
      await setTimeout(5 * LOCK_RETRY_MS)
      assert.equal(tries, 1)
      file.unlock()
      await assert.rejects(failing, /CHECK constraint failed/)
      await Promise.all(good)
      assert.deepEqual(numbers(), [1, 2])
    })
  })
})

describe('`Transactions` with a log to sync', () => {
  it('answers each write after a sync that began after its commit, one that changed nothing too', async () => {
    const { disk, db, transactions, write } = newSynced()
    const answered: string[] = []
    const note = (name: string) => () => void answered.push(name)
    const first = write(1).then(note('first'))
    const sync = await disk.nextSync()
    assert.equal(db.isTransaction, false, 'the sync begins after the commit')
    const second = write(2).then(note('second'))
    const unchanged = transactions.write(() => 'replayed').then(note('unchanged'))
    await setTimeout(20)
    assert.deepEqual(answered, [])
    sync.resolve()
    await first
    const next = await disk.nextSync()
    assert.deepEqual(answered, ['first'], 'the first sync began before the commit of the others')
    next.resolve()
    await Promise.all([second, unchanged])
    assert.equal(disk.syncs, 2, 'writes that arrive during a sync share the next')
  })

  it('lets a read that sees an unsynced commit wait, and counts the commit when it is synced', async () => {
    const { disk, transactions, numbers, write } = newSynced()
    assert.deepEqual(await transactions.read(numbers), [])
    const written = write(1)
    const sync = await disk.nextSync()
    let found: number[] | undefined
    const reading = transactions.read(numbers).then((all) => (found = all))
    await setTimeout(20)
    assert.deepEqual([found, transactions.synced.commits], [undefined, 0])
    sync.resolve()
    assert.deepEqual(await reading, [1])
    assert.equal(transactions.synced.commits, 1)
    await written
    assert.deepEqual(await transactions.read(numbers), [1], 'and waits for nothing else')
  })

  it('puts a commit off until the clients that were just answered have written again: all share the next sync', async ({
    mock,
  }) => {
    // Time stands still: a process that is suspended for longer than a commit waits would commit at once.
    using _held = holdTimers(mock)
    mock.method(performance, 'now', () => 0)
    const { disk, write } = newSynced()
    const answered = [write(1), write(2), write(3)]
    const first = await disk.nextSync()
    const others = [write(4), write(5)]
    first.resolve()
    await Promise.all(answered)
    const again: Promise<unknown>[] = []
    for (const n of [6, 7, 8]) {
      await someTurns()
      assert.equal(disk.syncs, 1)
      again.push(write(n))
    }
    ;(await disk.nextSync()).resolve()
    await Promise.all([...others, ...again])
    assert.equal(disk.syncs, 2)
  })

  it('waits for clients that do not come back only for a moment, also after a sync that took long', async ({
    mock,
  }) => {
    const goOn = controlTime(mock)
    const { disk, write } = newSynced()
    const answered = [write(1), write(2)]
    const first = await disk.nextSync()
    const last = write(3)
    goOn(60_000)
    first.resolve()
    await Promise.all(answered)
    ;(await disk.nextSync()).resolve()
    await last
  })

  it('says so if it can not be closed because the last sync hangs', async ({ mock }) => {
    const { transactions, written, sync } = await duringSync()
    mock.timers.enable({ apis: ['setTimeout'] })
    const closing = transactions.close()
    mock.timers.tick(60_000)
    mock.timers.reset()
    await assert.rejects(closing, new CannotCloseStore('the disk did not sync the last writes'))
    sync.resolve()
    await written
  })

  it('is closed as soon as the last sync has failed', async () => {
    const { transactions, written, sync } = await duringSync()
    const closing = transactions.close()
    sync.reject(EIO)
    await assert.rejects(written, StoreUnavailable)
    await closing
  })

  it('given up while a sync is under way acknowledges nothing, shortens no log, and reports nothing', async () => {
    const broken: unknown[] = []
    const { disk, transactions, write, written, sync } = await duringSync({ onBroken: (error) => broken.push(error) })
    const queued = write(2)
    transactions.giveUp(new Error('elsewhere'))
    sync.resolve()
    for (const call of [written, queued, write(3), transactions.read(() => 1)])
      await assert.rejects(call, /the disk did not sync: elsewhere/)
    transactions.shortenWal()
    await transactions.close()
    assert.deepEqual([transactions.isBroken, disk.attempts, broken], [true, 0, []])
  })

  it('given up while a sync hangs is closed at once, and stays given up when the sync is overdue and when it ends', async ({
    mock,
  }) => {
    for (const closesFirst of [true, false]) {
      mock.timers.enable({ apis: ['setTimeout'] })
      const { disk, transactions, write } = newSynced({ syncWaitMs: 20 })
      let isOverdue = false
      const written = write(1).finally(() => (isOverdue = true))
      const sync = await disk.nextSync()
      const closing = closesFirst ? transactions.close() : undefined
      transactions.giveUp(new Error('elsewhere'))
      await (closing ?? transactions.close())
      assert.equal(isOverdue, false)
      mock.timers.tick(20)
      await assert.rejects(written, /no answer within 20 ms/)
      mock.timers.reset()
      sync.resolve()
      await someTurns()
      await assert.rejects(
        transactions.read(() => 1),
        /the disk did not sync: elsewhere/,
      )
      assert.ok(transactions.isBroken)
    }
  })

  it('given up before a batch is committed commits nothing, and shortens no log either where it was idle', async () => {
    for (const isIdle of [true, false]) {
      const { disk, transactions, numbers, write } = newSynced()
      const written = isIdle ? [] : [write(1)]
      transactions.giveUp(new Error('elsewhere'))
      transactions.shortenWal()
      for (const call of [...written, write(2)]) await assert.rejects(call, StoreUnavailable)
      await transactions.close()
      assert.deepEqual([numbers(), disk.attempts], [[], 0])
    }
  })

  it('writes and answers everything that was queued during a sync before it is closed, and waits for the last sync', async () => {
    const { disk, transactions, write, numbers, written, sync } = await duringSync()
    const queued = Array.from({ length: 100 }, (_, n) => write(100 + n))
    let isClosed = false
    const closing = transactions.close().then(() => (isClosed = true))
    sync.resolve()
    await written
    const last = await disk.nextSync()
    await setTimeout(20)
    assert.equal(isClosed, false)
    last.resolve()
    await Promise.all([...queued, closing])
    assert.equal(numbers().length, 101)
  })

  it('shortens the log after each batch, and tries again later if that fails', async () => {
    const { disk, transactions, write } = newSynced()
    disk.failure = Object.assign(new Error('database or disk is full'), { errcode: 13 })
    for (const n of [1, 2]) {
      const written = write(n)
      ;(await disk.nextSync()).resolve()
      await written
      await until(() => disk.attempts >= n, 'the log is shortened')
      await setTimeout(20)
      assert.equal(disk.attempts, n)
    }
    assert.equal(transactions.isBroken, false)
  })

  it('shortens the log for other processes only between batches', async () => {
    const { disk, transactions, write } = newSynced()
    transactions.shortenWal()
    assert.equal(disk.attempts, 1)
    const written = write(1)
    const sync = await disk.nextSync()
    transactions.shortenWal()
    assert.equal(disk.attempts, 1)
    sync.resolve()
    await written
  })

  for (const where of ['of the log', 'within a checkpoint'] as const) {
    it(`refuses every call once a sync ${where} has failed, and reports it once`, async () => {
      const broken: unknown[] = []
      const onBroken = (error: unknown) => broken.push(error)
      const { disk, transactions, numbers, written, sync, write } = await duringSync({ onBroken })
      if (where === 'of the log') {
        const waiting = [written, transactions.read(numbers), write(2)]
        sync.reject(EIO)
        for (const call of waiting) await assert.rejects(call, StoreUnavailable)
      } else {
        disk.failure = FAILED_SYNC
        sync.resolve()
        await written
        await until(() => disk.attempts > 0, 'the log is shortened')
      }
      await assert.rejects(write(3), StoreUnavailable)
      await assert.rejects(transactions.read(numbers), StoreUnavailable)
      // A checkpoint could now copy what the disk has lost.
      const { attempts } = disk
      transactions.shortenWal()
      assert.equal(disk.attempts, attempts)
      assert.deepEqual([broken.length, transactions.isBroken, disk.syncs], [1, true, 1])
      await transactions.close()
    })
  }

  it('refuses the whole batch if a sync fails while its writes are retried alone', async () => {
    const { disk, transactions, add, write } = newSynced()
    const failed = () => {
      throw Object.assign(new Error('disk I/O error'), { errcode: 1034 })
    }
    let tries = 0
    const results = await Promise.allSettled([
      write(1),
      transactions.write(() => (tries++ === 0 ? add(-1) : failed())),
      write(2),
    ])
    assert.ok(results.every((result) => result.status === 'rejected' && result.reason instanceof StoreUnavailable))
    assert.deepEqual([transactions.isBroken, disk.syncs], [true, 0])
  })

  it('refuses calls while a sync takes too long, and goes on when it ends', async () => {
    const { transactions, numbers, written, sync, write } = await duringSync({ syncWaitMs: 50 })
    const calls = [written, write(2), transactions.read(numbers)]
    for (const call of calls) await assert.rejects(call, /did not sync: no answer within 50 ms/)
    await assert.rejects(write(3), StoreUnavailable)
    await assert.rejects(transactions.read(numbers), StoreUnavailable)
    sync.resolve()
    await setTimeout(20)
    assert.deepEqual(await transactions.read(numbers), [1])
    assert.deepEqual([transactions.synced.commits, transactions.isBroken], [1, false])
  })

  it('refuses every call for good if a sync that took too long fails in the end', async () => {
    const broken: unknown[] = []
    const onBroken = (error: unknown) => broken.push(error)
    const { transactions, numbers, written, sync } = await duringSync({ syncWaitMs: 20, onBroken })
    await assert.rejects(written, /did not sync: no answer within 20 ms/)
    sync.reject(EIO)
    await setTimeout(20)
    assert.deepEqual([broken.length, transactions.isBroken, transactions.synced.commits], [1, true, 0])
    await assert.rejects(transactions.read(numbers), /EIO/)
    await transactions.close()
  })
})

/** A disk whose syncs end when the test resolves them. */
class Disk implements Wal {
  syncs = 0
  attempts = 0
  /** The error that the next calls of `shorten` throw. */
  failure: Error | undefined
  #begun = Promise.withResolvers<PromiseWithResolvers<void>>()

  sync(): Promise<void> {
    this.syncs += 1
    const sync = Promise.withResolvers<void>()
    this.#begun.resolve(sync)
    return sync.promise
  }

  /** Resolves with the next sync, or with one that has begun and was not returned yet. */
  async nextSync(): Promise<PromiseWithResolvers<void>> {
    const sync = await this.#begun.promise
    this.#begun = Promise.withResolvers()
    return sync
  }

  shorten(): void {
    this.attempts += 1
    if (this.failure !== undefined) throw this.failure
  }

  close(): void {}
}

/** Returns a function that lets this many milliseconds pass at once. */
function controlTime(mock: TestContext['mock']): (ms: number) => void {
  const now = performance.now.bind(performance)
  let ahead = 0
  mock.method(performance, 'now', () => now() + ahead)
  return (ms) => void (ahead += ms)
}

/** A database file, and another connection that can lock it. */
class LockedFile implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
  readonly path = join(this.#folder, 'numbers.db')
  readonly #other = new DatabaseSync(this.path)

  /** In this file, which has no write-ahead log, an exclusive lock keeps readers out too. */
  lock(how: 'IMMEDIATE' | 'EXCLUSIVE' = 'IMMEDIATE'): void {
    this.#other.exec(`BEGIN ${how}`)
  }

  unlock(): void {
    this.#other.exec('ROLLBACK')
  }

  [Symbol.dispose](): void {
    this.#other.close()
    rmSync(this.#folder, { recursive: true })
  }
}
