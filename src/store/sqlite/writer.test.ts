// Group commit: one transaction a turn, and one bad write fails alone.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { StoreUnavailable } from '../store.ts'
import { Writer } from './writer.ts'

function newWriter() {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE numbers (n INTEGER PRIMARY KEY CHECK (n >= 0)) STRICT')
  const insert = db.prepare('INSERT INTO numbers VALUES (?)')
  const numbers = () => db.prepare('SELECT n FROM numbers ORDER BY n').all().map(({ n }) => Number(n))
  return { db, writer: new Writer(db), add: (n: number) => insert.run(n), numbers }
}

describe('The writer', () => {
  it('shares one transaction among the writes of one turn, and answers none before its commit', async () => {
    const { db, writer, add } = newWriter()
    const open: boolean[] = []
    const seen: boolean[] = []
    const writes = Array.from({ length: 5 }, (_, n) =>
      writer
        .write(() => {
          add(n)
          open.push(db.isTransaction)
          return n
        })
        .then((result) => {
          seen.push(db.isTransaction)
          return result
        }),
    )
    assert.deepEqual(open, [], 'nothing is written before the turn has ended')
    assert.deepEqual(await Promise.all(writes), [0, 1, 2, 3, 4])
    assert.deepEqual(open, [true, true, true, true, true])
    assert.deepEqual(seen, [false, false, false, false, false])
  })

  it('fails a write that fails, alone, whatever its neighbours do', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }), async (good) => {
        const { writer, add, numbers } = newWriter()
        const results = await Promise.allSettled(good.map((fine, n) => writer.write(() => add(fine ? n : -1))))
        assert.deepEqual(results.map(({ status }) => status === 'fulfilled'), good)
        assert.deepEqual(numbers(), good.flatMap((fine, n) => (fine ? [n] : [])))
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

  it('writes what was queued before it is closed, and takes nothing after', async () => {
    const { db, writer, add, numbers } = newWriter()
    const queued = writer.write(() => add(1))
    const closing = writer.close()
    await assert.rejects(writer.write(() => add(2)), StoreUnavailable)
    await Promise.all([queued, closing])
    assert.deepEqual(numbers(), [1])
    db.close()
    await assert.rejects(writer.write(() => add(3)), StoreUnavailable)
  })
})
