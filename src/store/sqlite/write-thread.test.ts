// When a thread of its own writes.
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openSqliteStore } from './sqlite-store.ts'
import { inWriteThread, syncTime } from './write-thread.ts'

describe('The thread that writes', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'petstore-test-'))
  })
  after(() => rm(folder, { recursive: true }))

  for (const [when, syncMs, inThread] of [
    ['auto', 0.2, false],
    ['auto', 5, true],
    ['on', 0.2, true],
    ['off', 5, false],
  ] as const) {
    it(`is ${inThread ? '' : 'not '}started with "${when}" where a sync takes ${syncMs} ms`, async () => {
      const path = join(folder, `${when}-${syncMs}.db`)
      const store = openSqliteStore(path)
      const chosen = inWriteThread(store, path, when, () => syncMs)
      assert.equal(chosen !== store, inThread)
      const created = await chosen.pets.create({ name: 'Rex', categoryId: 1n, status: 'available' })
      assert.deepEqual(created, {
        outcome: 'created',
        pet: { id: 1n, name: 'Rex', categoryId: 1n, status: 'available' },
      })
      assert.deepEqual(chosen.commits(), { commits: 1, writes: 1 })
      await chosen.close()
    })
  }

  it('is decided by the real disk, and nothing is left there; a disk that cannot be written to needs no thread', async () => {
    const found = await readdir(folder)
    assert.ok(syncTime(folder) > 0)
    assert.deepEqual(await readdir(folder), found)
    assert.equal(syncTime(join(folder, 'missing')), 0)
  })
})
