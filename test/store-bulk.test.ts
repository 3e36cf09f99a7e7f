// What every engine promises of many at once: each finds its own place, and what is removed is what was meant.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readConfig } from '../src/config.ts'
import { INT64_MAX } from '../src/contract/int64.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { openStore } from '../src/store/open-store.ts'
import { kindOf, type StoredRecord } from '../src/store/records.ts'
import { FAILED_REQUESTS_KEPT } from '../src/store/account-store.ts'
import type { Store } from '../src/store/store.ts'
import { ENGINES, type TestDatabase } from '../assurance/harness/engines.ts'
import { account, apiKey, event } from './sample-rows.ts'

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

    it('adds up counts of the same key, hour, operation and status', async () => {
      const { id } = account('acct_usage')
      await store.accounts.createAccount(account(id), event(id))
      await store.accounts.createKey({ ...apiKey('key_usage', id), hash: Buffer.alloc(32, 1) }, event(id))
      const count = { keyId: 'key_usage', hour: 0, operation: 'getPet', status: 200, calls: 2 }
      await store.accounts.recordUsage([count, { ...count, calls: 3 }, { ...count, status: 404 }], new Map())
      const usage = (await store.accounts.usageSince(id, 0)).map((row) => ({ ...row }))
      const { keyId: _key, ...hourly } = count
      assert.deepEqual(usage, [
        { ...hourly, calls: 5 },
        { ...hourly, status: 404 },
      ])
    })

    it("lets go of an account's oldest failed requests, and of nobody else's", async () => {
      const failed = (at: number, accountId: string) => ({
        at,
        accountId,
        keyId: 'k',
        requestId: 'r',
        operation: 'getPet',
        status: 404,
        code: 'c',
        message: 'm',
      })
      for (const id of ['acct_quiet', 'acct_busy', 'acct_busy_too'])
        await store.accounts.createAccount(account(id), event(id))
      await store.accounts.recordFailures([failed(1, 'acct_quiet')])
      for (let round = 0; round < 2; round += 1) {
        await store.accounts.recordFailures(
          Array.from({ length: FAILED_REQUESTS_KEPT }, (_, at) =>
            ['acct_busy', 'acct_busy_too'].map((id) => failed(at + round * 1000, id)),
          ).flat(),
        )
      }
      for (const id of ['acct_busy', 'acct_busy_too']) {
        const busy = await store.accounts.failedRequests(id, 1000)
        assert.deepEqual(
          [busy.length, busy[0]?.at, busy.at(-1)?.at],
          [FAILED_REQUESTS_KEPT, 1000 + FAILED_REQUESTS_KEPT - 1, 1000],
        )
      }
      assert.equal((await store.accounts.failedRequests('acct_quiet', 1000)).length, 1)
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
        await store.accounts.createAccount(account('acct_rows'), event('acct_rows'))
        await store.accounts.createKey(
          { ...apiKey('key_rows', 'acct_rows'), hash: Buffer.alloc(32, 2) },
          event('acct_rows'),
        )
        await store.records.remove(usage, await store.records.read(usage, undefined, 100))
        await store.records.write(usage, rows.toReversed())
        const read: StoredRecord[] = []
        for (const size of [2, 2, 1, 0]) {
          const page = await store.records.read(usage, read.at(-1), 2)
          assert.equal(page.length, size)
          read.push(...page)
        }
        assert.deepEqual(read, rows)
      })

      it('are removed by their whole key, and no others', async () => {
        assert.deepEqual(
          [await store.records.remove(usage, []), await store.records.remove(usage, [rows[1]!, rows[3]!])],
          [0, 2],
        )
        assert.deepEqual(await store.records.read(usage, undefined, 9), [rows[0], rows[2], rows[4]])
        assert.deepEqual([await store.records.remove(usage, rows), await store.records.remove(usage, rows)], [3, 0])
      })

      it('are written all or none', async () => {
        await assert.rejects(store.records.write(usage, [rows[0]!, rows[1]!, rows[0]!]))
        assert.equal(await store.records.count(usage), 0)
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
