// Group commit: one transaction a turn, one bad write fails alone, and a lock is waited for.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import * as fc from 'fast-check'
import { StoreBusy, StoreUnavailable } from '../store.ts'
import { IN_MEMORY } from './database.ts'
import { LOCK_RETRY_MS } from './failures.ts'
import { Writer } from './writer.ts'

function newWriter(path = IN_MEMORY) {
  const db = new DatabaseSync(path, { timeout: 0 })
  db.exec('CREATE TABLE IF NOT EXISTS numbers (n INTEGER PRIMARY KEY CHECK (n >= 0)) STRICT')
  const insert = db.prepare('INSERT INTO numbers VALUES (?)')
  const numbers = () =>
    db
      .prepare('SELECT n FROM numbers ORDER BY n')
      .all()
      .map(({ n }) => Number(n))
  return { db, writer: new Writer(db), add: (n: number) => insert.run(n), numbers }
}

describe('The writer', () => {
  it('shares one transaction among the writes of one turn', async () => {
    const { db, writer, add } = newWriter()
    const open: boolean[] = []
    const writes = Array.from({ length: 5 }, (_, n) =>
      writer.write(() => {
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
    const { writer, add, numbers } = newWriter()
    const waiting = Array.from({ length: 1000 }, (_, n) => writer.write(() => add(n)))
    await assert.rejects(
      writer.write(() => add(1000)),
      StoreBusy,
    )
    await Promise.all(waiting)
    await writer.write(() => add(1001))
    assert.deepEqual(numbers().slice(-2), [999, 1001])
  })

  it('answers none before its commit: what can not be committed is refused', async () => {
    const { db, writer, add, numbers } = newWriter()
    // Looked at by COMMIT alone, as a disk that is full by then would be.
    db.exec('CREATE TABLE orphans (n INTEGER REFERENCES numbers DEFERRABLE INITIALLY DEFERRED) STRICT')
    const orphan = () => db.exec('INSERT INTO orphans VALUES (9)')
    await assert.rejects(writer.write(orphan), /FOREIGN KEY constraint failed/)
    const [failed, added] = await Promise.allSettled([writer.write(orphan), writer.write(() => add(1))])
    assert.deepEqual([failed.status, added.status], ['rejected', 'fulfilled'])
    assert.deepEqual(numbers(), [1])
  })

  it('fails a write that fails, alone, whatever its neighbours do', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }), async (good) => {
        const { writer, add, numbers } = newWriter()
        const results = await Promise.allSettled(good.map((fine, n) => writer.write(() => add(fine ? n : -1))))
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

  it('undoes all of a write that fails half way', async () => {
    const { writer, add, numbers } = newWriter()
    const half = writer.write(() => {
      add(1)
      throw new Error('half way')
    })
    const whole = writer.write(() => add(2))
    await assert.rejects(half, /half way/)
    await whole
    assert.deepEqual(numbers(), [2])
  })

  it('counts a commit of data once, bookkeeping beside it or not, and neither bookkeeping alone nor what failed', async () => {
    const { writer, add } = newWriter()
    await Promise.all([writer.write(() => add(1)), writer.writeBookkeeping(() => add(2)), writer.write(() => add(3))])
    assert.equal(writer.dataCommits, 1)
    await writer.writeBookkeeping(() => add(4))
    await assert.rejects(writer.write(() => add(-1)))
    assert.equal(writer.dataCommits, 1)
  })

  it('writes what was queued before it is closed, and takes nothing after', async () => {
    const { db, writer, add, numbers } = newWriter()
    const queued = writer.write(() => add(1))
    const closing = writer.close()
    await assert.rejects(
      writer.write(() => add(2)),
      StoreUnavailable,
    )
    await Promise.all([queued, closing])
    assert.deepEqual(numbers(), [1])
    await writer.close()
    db.close()
    await assert.rejects(
      writer.write(() => add(3)),
      StoreUnavailable,
    )
  })

  describe('while another process holds the lock', () => {
    it('writes what was queued before it is closed', async () => {
      using file = new LockedFile()
      const { db, writer, add } = newWriter(file.path)
      file.lock()
      const queued = writer.write(() => add(1))
      const closed = writer.close().then(() => db.close())
      await setTimeout(5 * LOCK_RETRY_MS)
      file.unlock()
      await Promise.all([queued, closed])
      assert.deepEqual(newWriter(file.path).numbers(), [1])
    })

    it('waits for it with each of the writes that are retried alone', async () => {
      using file = new LockedFile()
      const { db, writer, add, numbers } = newWriter(file.path)
      let tries = 0
      const failing = writer.write(() => {
        tries += 1
        try {
          db.exec('INSERT OR ROLLBACK INTO numbers VALUES (-1)')
        } finally {
          // The other process is quick: it takes the lock before the first of the writes is tried alone.
          if (tries === 1) file.lock()
        }
      })
      const good = [writer.write(() => add(1)), writer.write(() => add(2))]
      await setTimeout(5 * LOCK_RETRY_MS)
      assert.equal(tries, 1)
      file.unlock()
      await assert.rejects(failing, /CHECK constraint failed/)
      await Promise.all(good)
      assert.deepEqual(numbers(), [1, 2])
    })
  })
})

/** A database file, and another connection that can lock it. */
class LockedFile implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
  readonly path = join(this.#folder, 'numbers.db')
  readonly #other = new DatabaseSync(this.path)

  lock(): void {
    this.#other.exec('BEGIN IMMEDIATE')
  }

  unlock(): void {
    this.#other.exec('ROLLBACK')
  }

  [Symbol.dispose](): void {
    this.#other.close()
    rmSync(this.#folder, { recursive: true })
  }
}
