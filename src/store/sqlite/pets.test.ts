// How a page of animals is read from the database file.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { IN_MEMORY } from './database.ts'
import { migrate } from './migrate.ts'
import { SqlitePets } from './pets.ts'
import { Writer } from './writer.ts'

/** Remembers the statements that were prepared. */
class RememberingDatabase extends DatabaseSync {
  readonly prepared: string[] = []

  override prepare(sql: string) {
    this.prepared.push(sql)
    return super.prepare(sql)
  }
}

describe('A page of one status', () => {
  it('is read from an index alone: an index that a new column un-covers is replaced (CONTRIBUTING.md)', () => {
    using db = new RememberingDatabase(IN_MEMORY)
    migrate(db, IN_MEMORY, true)
    void new SqlitePets(db, new Writer(db))
    const pages = db.prepared.filter((sql) => /FROM pets WHERE status = \?/.test(sql))
    assert.ok(pages.length > 0)
    for (const sql of pages) {
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()
      assert.match(plan.map(({ detail }) => detail).join('; '), /^SEARCH pets USING COVERING INDEX [^;]+$/, sql)
    }
  })
})
