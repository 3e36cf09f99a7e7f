// What every engine promises of many at once: each finds its own place, and what is removed is what was meant.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readConfig } from '../../src/config.ts'
import { INT64_MAX } from '../../src/contract/int64.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { kindOf, type StoredRecord } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'
import { ENGINES, type TestDatabase } from '../harness/databases/engines.ts'
import { addAccount, addKey } from '../harness/databases/sample-rows.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

for (const engine of ENGINES) {
  describe(`many at once, in the store on ${engine.name}`, { concurrency: false }, () => {
    let database: TestDatabase
    let store: Store

    before(async () => {
      database = await engine.newDatabase()
      store = await openStore(readConfig({ database: database.url }, {}).database)
    })
    after(async () => {
      await store.close()
      await database[Symbol.asyncDispose]()
    })

    it('gives creates of one turn their ids in the order they came, each to its own animal', async () => {
      const newPets = Array.from({ length: 50 }, (_, index): NewPet => ({
        ...rex,
        name: `Rex ${99 - index}`,
        categoryId: INT64_MAX - BigInt(index),
      }))
      const made = await Promise.all(newPets.map((newPet) => store.pets.create(newPet)))
      const listed = (await store.pets.list({ limit: 50 })).toReversed().map((pet) => ({ ...pet }))
      assert.deepEqual(
        listed.map(({ id: _id, ...rest }) => rest),
        newPets,
      )
      assert.deepEqual(
        made.map((created) => ('pet' in created ? created.pet : undefined)),
        listed,
      )
    })

    it('purges idempotency records some at a time, until none is left that is old enough', async () => {
      const record = (index: number) => ({
        account_id: 'a',
        key: `k${index}`,
        fingerprint: Buffer.alloc(32),
        pet_id: 1n,
        created_at: BigInt(index),
      })
      await store.records.write(
        kindOf('idempotency_records'),
        Array.from({ length: 2500 }, (_, index) => record(index)),
      )
      const purged: number[] = []
      do purged.push(await store.pets.purgeIdempotencyRecords(2400))
      while (purged.at(-1)! > 0)
      assert.ok(purged.length > 2 && Math.max(...purged) < 2400, `${purged.join()} at a time`)
      assert.equal(await store.records.count(kindOf('idempotency_records')), 100)
      await store.records.write(kindOf('idempotency_records'), [{ ...record(0), account_id: 'b', key: 'k2400' }])
      assert.equal(
        await store.pets.purgeIdempotencyRecords(2400),
        1,
        'of two accounts with one key, only the old record',
      )
    })

    describe('records', () => {
      const usage = kindOf('usage_counts')
      const row = (hour: bigint, status: bigint): StoredRecord => ({
        key_id: 'key_rows',
        hour,
        operation: 'getPet',
        status,
        calls: 1n,
      })
      const rows = [row(1n, 200n), row(1n, 404n), row(2n, 200n), row(10n, 200n), row(10n, 400n)]

      it('are read page by page in the order of their whole key, each once', async () => {
        await addAccount(store, 'acct_rows')
        await addKey(store, 'key_rows', 'acct_rows', 2)
        await store.records.write(usage, rows.toReversed())
        const read: StoredRecord[] = []
        for (const size of [2, 2, 1, 0]) {
          const page = await store.records.read(usage, read.at(-1), 2)
          assert.equal(page.length, size)
          read.push(...page)
        }
        assert.deepEqual(read, rows)
      })

      it('are written all or none', async () => {
        await assert.rejects(store.records.write(usage, [row(3n, 200n), row(3n, 404n), rows[0]!]))
        assert.equal(await store.records.count(usage), rows.length)
      })

      it('tell the last id given, which is raised and never lowered', async () => {
        await using empty = await engine.newDatabase()
        const other = await openStore(readConfig({ database: empty.url }, {}).database)
        const pets = kindOf('pets')
        assert.equal(await other.records.lastId(pets), 0n)
        await other.records.raiseLastId(pets, 0n)
        const first = await other.pets.create(rex)
        assert.ok('pet' in first)
        assert.deepEqual([first.pet.id, await other.records.lastId(pets)], [1n, 1n])
        await other.records.raiseLastId(pets, 50n)
        await other.records.raiseLastId(pets, 7n)
        assert.equal(await other.records.lastId(pets), 50n)
        const next = await other.pets.create(rex)
        assert.ok('pet' in next)
        assert.equal(next.pet.id, 51n)
        await other.close()
      })

      it('tell that a copy is unfinished until it is finished, however often it is said', async () => {
        for (const unfinished of [true, true, false, false]) {
          await store.setUnfinishedCopy(unfinished)
          assert.equal(await store.isUnfinishedCopy(), unfinished)
        }
      })
    })
  })
}
