// Group commit: one transaction for what comes together, and each write for itself where one fails.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { Writer } from './writer.ts'

function open() {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE numbers (n INTEGER NOT NULL CHECK (n >= 0)) STRICT')
  const statement = db.prepare('INSERT INTO numbers VALUES (?)')
  const writer = new Writer(db)
  const stored = () => db.prepare('SELECT n FROM numbers ORDER BY n').all().map(({ n }) => n)
  const insert = (n: number, seen: boolean[] = []) =>
    writer.write(() => {
      statement.run(n)
      seen.push(db.isTransaction)
      return n
    })
  return { db, insert, stored }
}

describe('the writer', () => {
  it('answers no write before its commit', async () => {
    const { db, insert, stored } = open()
    await Promise.all(
      [1, 2, 3].map(async (n) => {
        await insert(n)
        assert.equal(db.isTransaction, false)
        assert.deepEqual(stored(), [1, 2, 3])
      }),
    )
  })

  it('shares one transaction among the writes of one turn', async () => {
    const { db, insert } = open()
    let commits = 0
    const exec = db.exec.bind(db)
    db.exec = (sql) => {
      if (sql === 'COMMIT') commits += 1
      exec(sql)
    }
    await Promise.all([1, 2, 3, 4].map((n) => insert(n)))
    assert.equal(commits, 1)
    await insert(5)
    assert.equal(commits, 2)
  })

  it('fails a bad row alone: its neighbours are stored, once each', async () => {
    const { insert, stored } = open()
    const results = await Promise.allSettled([1, 2, -1, 3, -2, 4].map((n) => insert(n)))
    assert.deepEqual(results.map(({ status }) => status), ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
    assert.deepEqual(stored(), [1, 2, 3, 4])
  })

  it('runs each write inside a transaction', async () => {
    const { insert } = open()
    const seen: boolean[] = []
    await Promise.allSettled([1, -1, 2].map((n) => insert(n, seen)))
    assert.ok(seen.length > 0 && seen.every(Boolean))
  })
})
