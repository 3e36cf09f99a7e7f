// A copy between two stores, step by step: what it reports, adds and compares, in batches. test/commands/copy.test.ts has the
// command, both engines and interruptions.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { account, event, petRow } from '../../../test/harness/databases/sample-rows.ts'
import { withStore } from '../../../test/harness/databases/with-store.ts'
import { samplePet } from '../../../test/harness/databases/sample-pet.ts'
import { CopyRefused, copyStore } from './copy-store.ts'
import { BATCH, kindOf, KINDS, type StoredRecord } from '../records.ts'
import type { Store } from '../store.ts'

const PETS = kindOf('pets')
const IMPORTS = kindOf('imports')
const EVENTS = kindOf('audit_events')

function oneImport(hash: string): StoredRecord {
  return { hash, file: 'pets.csv', rows_done: 1n, rows_total: 2n, updated_at: 3n }
}

function pet(id: bigint, name = 'Rex'): StoredRecord {
  return petRow(id, { name })
}

function withStores(work: (source: Store, target: Store) => Promise<void>): Promise<void> {
  return withStore('sqlite::memory:', (source) => withStore('sqlite::memory:', (target) => work(source, target)))
}

/** Copies, and tells what was reported. */
async function steps(source: Store, target: Store): Promise<[step: string, done: number, all: number][]> {
  const reported: [string, number, number][] = []
  await copyStore(source, target, (...step) => reported.push(step))
  return reported
}

async function records({ records: stored }: Store, kind = PETS): Promise<StoredRecord[]> {
  return stored.read(kind, undefined, 10 * BATCH)
}

function everything(store: Store): Promise<StoredRecord[][]> {
  return Promise.all(KINDS.map((kind) => records(store, kind)))
}

describe('A copy', () => {
  it('reports each batch that it has written or compared, and the last one also where it is not full', async () => {
    for (const [count, copied] of [
      [0, []],
      [1, [1]],
      [BATCH, [BATCH]],
      [BATCH + 1, [BATCH, BATCH + 1]],
    ] as const) {
      await withStores(async (source, target) => {
        await source.pets.createMany(Array.from({ length: count }, () => samplePet))
        assert.deepEqual(await steps(source, target), [
          ...copied.map((done) => ['Copying animals', done, count]),
          ...copied.map((done) => ['Checking animals', done, count]),
        ])
        assert.deepEqual(await records(target), await records(source))
      })
    }
  })

  it('that goes on adds what is missing after the records that the target has, and compares them all', async ({
    mock,
  }) => {
    for (const present of [1, BATCH - 1, BATCH, BATCH + 2, BATCH + 3])
      await withStores(async (source, target) => {
        await source.pets.createMany(Array.from({ length: BATCH + 3 }, () => samplePet))
        const all = await records(source)
        await target.setUnfinishedCopy(true)
        await target.records.write(PETS, all.slice(0, present))
        const write = mock.method(target.records, 'write')
        const added = [BATCH, BATCH + 3].filter((done) => done > present)
        assert.deepEqual(await steps(source, target), [
          ...added.map((done) => ['Copying animals', done, BATCH + 3]),
          ['Checking animals', BATCH, BATCH + 3],
          ['Checking animals', BATCH + 3, BATCH + 3],
        ])
        assert.deepEqual(
          write.mock.calls.flatMap(({ arguments: [, written] }) => written),
          all.slice(present),
        )
        assert.deepEqual(await records(target), all)
        assert.equal(await target.isUnfinishedCopy(), false)
      })
  })

  it('that differs from its source is refused, with the number on each side, and stays unfinished', async ({
    mock,
  }) => {
    const cases: [written: StoredRecord[], differ: string][] = [
      [[pet(1n), pet(3n)], '3 at the source, 2 at the target, so some are missing.'],
      [[pet(1n), pet(2n), pet(3n), pet(4n)], '3 at the source, 4 at the target, so some are missing.'],
      [[pet(1n), pet(2n, 'other'), pet(3n)], '3 at the source, 3 at the target, with other contents.'],
      [[pet(1n), pet(3n), pet(4n)], '3 at the source, 3 at the target, with other contents.'],
    ]
    for (const [written, differ] of cases) {
      await withStores(async (source, target) => {
        await source.records.write(PETS, [pet(1n), pet(2n), pet(3n)])
        const write = target.records.write.bind(target.records)
        mock.method(target.records, 'write', () => write(PETS, written))
        await assert.rejects(steps(source, target), (error) => {
          assert.ok(error instanceof CopyRefused)
          assert.ok(error.message.startsWith(`animals differ: ${differ} Is a service`), error.message)
          return true
        })
        assert.equal(await target.isUnfinishedCopy(), true)
      })
    }
  })

  it('that cannot be made is refused, and leaves its target as it was', async ({ mock }) => {
    const cases: [prepare: (source: Store, target: Store) => unknown, why: RegExp][] = [
      [(source) => source.setUnfinishedCopy(true), /^The source is itself an unfinished copy/],
      [
        (_, target) => target.records.write(PETS, [pet(9n)]),
        /^The target has data already \(animals: 1\); nothing was changed/,
      ],
      [(_, target) => target.records.write(IMPORTS, [oneImport('a')]), /^The target has data already \(imports: 1\)/],
      [
        (_, { accounts }) => accounts.createAccount(account('b'), event('b')),
        /^The target has data already \(accounts: 1\)/,
      ],
      // All that is left of accounts that were removed.
      [(_, { accounts }) => accounts.appendEvent(event('b')), /^The target has data already \(audit events: 1\)/],
      [
        (source) => mock.method(source.records, 'unknown', async () => ['table toys']),
        /^The source has tables or columns that this program does not know: table toys/,
      ],
      [
        (_, target) => mock.method(target.records, 'unknown', async () => ['table toys']),
        /^The target has tables or columns that this program does not know: table toys/,
      ],
      [
        async (source, target) => {
          await source.recordEnvironment('production')
          await target.recordEnvironment('staging')
        },
        /^The source belongs to production, the target to staging; nothing was changed\./,
      ],
    ]
    for (const [prepare, why] of cases) {
      await withStores(async (source, target) => {
        await source.records.write(PETS, [pet(1n)])
        await prepare(source, target)
        const state = async () => [
          await everything(target),
          await target.environment(),
          await target.isUnfinishedCopy(),
        ]
        const before = await state()
        await assert.rejects(steps(source, target), (error) => error instanceof CopyRefused && why.test(error.message))
        assert.deepEqual(await state(), before)
      })
    }
  })

  it('belongs to the environment of its source, where its own was a default too, and one that nobody has chosen stays a default', async () => {
    for (const isDefault of [false, true])
      await withStores(async (source, target) => {
        await source.recordEnvironment('production', { isDefault })
        if (!isDefault) await target.recordEnvironment('staging', { isDefault: true })
        await copyStore(source, target, () => {})
        assert.deepEqual([await target.environment(), await target.isDefaultEnvironment()], ['production', isDefault])
      })
  })

  it('is marked as unfinished before anything is written, and as finished when nothing is left to do', async ({
    mock,
  }) => {
    await withStores(async (source, target) => {
      await source.records.write(PETS, [pet(1n), pet(2n)])
      await source.accounts.createAccount(account('a'), event('a'))
      await source.records.raiseLastId(PETS, 9n)
      const stateOf = async (store: Store) => [await everything(store), await store.records.lastId(PETS)]
      const expected = [
        [true, await stateOf(target)],
        [false, await stateOf(source)],
      ]
      const marked: unknown[] = []
      const mark = target.setUnfinishedCopy.bind(target)
      mock.method(target, 'setUnfinishedCopy', async (unfinished: boolean) => {
        marked.push([unfinished, await stateOf(target)])
        await mark(unfinished)
      })
      await copyStore(source, target, () => {})
      assert.deepEqual(marked, expected)
    })
  })

  it('finds an event of the audit trail that differs, though as many are there, and stays unfinished', async () => {
    await withStores(async (source, target) => {
      for (const id of ['a', 'b']) await source.accounts.appendEvent(event(id))
      const [first, second] = (await records(source, EVENTS)) as [StoredRecord, StoredRecord]
      await target.setUnfinishedCopy(true)
      await target.records.write(EVENTS, [{ ...first, subject: 'someone else' }, second])
      const why = /^audit events differ: 2 at the source, 2 at the target, with other contents\./
      await assert.rejects(steps(source, target), (error) => error instanceof CopyRefused && why.test(error.message))
      assert.equal(await target.isUnfinishedCopy(), true)
    })
  })

  it('of a store that belongs to no environment yet leaves its target without one too', async () => {
    await withStores(async (source, target) => {
      assert.deepEqual(
        [...(await copyStore(source, target, () => {}))],
        KINDS.map((kind) => [kind, 0]),
      )
      assert.equal(await target.environment(), undefined)
    })
  })
})
