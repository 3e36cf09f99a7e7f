// Short reads that share a connection to PostgreSQL: several at once, each with its own answer, none held up for long.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { NewPet } from '../src/contract/pets.ts'
import { until } from '../assurance/harness/until.ts'
import { openPostgres } from './open-postgres.ts'

const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }

describe('short reads from PostgreSQL', { concurrency: false, timeout: 120_000 }, () => {
  it('are sent together when no connection is free, up to a bound, and each gets its own answer', async ({ mock }) => {
    /** Calls begin within the time in which one may join another, also where the system lets this process wait between them. */
    const atOnce = <T>(begin: () => T): T => {
      const now = performance.now()
      const stopped = mock.method(performance, 'now', () => now)
      const begun = begin()
      stopped.mock.restore()
      return begun
    }
    await using opened = await openPostgres('pool_size=1&connect_timeout=60')
    const { store } = opened
    await store.pets.createMany(Array.from({ length: 30 }, () => rex))
    const few = atOnce(() => Array.from({ length: 8 }, (_, index) => store.pets.get(BigInt(index + 1))))
    assert.deepEqual([store.connections()!.inUse, store.connections()!.waiting], [1, 0])
    assert.deepEqual(
      (await Promise.all(few)).map((pet) => pet?.id),
      [1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n],
    )
    const many = atOnce(() =>
      Array.from({ length: 30 }, (_, index) => store.pets.list({ limit: 1, before: BigInt(index + 2) })),
    )
    assert.equal(store.connections()!.waiting, 22)
    assert.deepEqual(
      (await Promise.all(many)).map(([pet]) => pet?.id),
      Array.from({ length: 30 }, (_, index) => BigInt(index + 1)),
    )
    assert.deepEqual([store.connections()!.inUse, store.connections()!.idle], [0, 1])
  })

  it('use every connection of the pool before they share one', async () => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=60')
    const { store } = opened
    const read = (times: number) => Array.from({ length: times }, () => store.pets.list({ limit: 1 }))
    await Promise.all(read(4))
    await until(() => store.connections()!.idle === 2, 'both connections are open')
    const reads = read(3)
    assert.deepEqual([store.connections()!.inUse, store.connections()!.waiting], [2, 0])
    await Promise.all(reads)
  })

  it('are not sent together behind PgBouncer, which may give each statement another session', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=60&pgbouncer=true')
    const { store } = opened
    const reads = Array.from({ length: 4 }, () => store.pets.list({ limit: 1 }))
    assert.deepEqual([store.connections()!.inUse, store.connections()!.waiting], [1, 3])
    await Promise.all(reads)
  })

  it('do not share with other calls', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=60&statement_timeout=60000')
    const { store } = opened
    const unlock = await opened.lock('LOCK TABLE accounts')
    const slow = store.accounts.listAccounts()
    await opened.untilBlocked(1)
    const list = store.pets.list({ limit: 1 })
    assert.equal(store.connections()!.waiting, 1)
    await unlock()
    await Promise.all([slow, list])
  })

  it('are not held up by one whose answer does not come', async () => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=60&statement_timeout=60000')
    const { store, proxy } = opened
    const [{ id }] = (await store.pets.create(rex).then(() => store.pets.list({ limit: 1 }))) as [{ id: bigint }]
    // Both connections are open, and have prepared the statement.
    await Promise.all(Array.from({ length: 4 }, () => store.pets.get(id)))
    const held = proxy.holdNextAnswer()
    const first = store.pets.get(id)
    const others = Array.from({ length: 6 }, () => store.pets.get(id))
    await held.arrived
    for (const pet of await Promise.all(others)) assert.equal(pet?.id, id)
    held.release()
    assert.equal((await first)?.id, id)
  })

  it('free the connection of one that gets no answer, also where an earlier one on it was answered', async ({
    mock,
  }) => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=20&statement_timeout=3000')
    const { store, proxy } = opened
    await store.pets.createMany([rex, rex])
    // The statement is prepared: it takes one round trip from now on.
    await store.pets.get(1n)
    const now = performance.now()
    const stopped = mock.method(performance, 'now', () => now)
    const held = proxy.holdNextAnswer()
    const first = store.pets.get(1n)
    await held.arrived
    const second = store.pets.get(2n)
    assert.deepEqual([store.connections()!.inUse, store.connections()!.waiting], [1, 0])
    stopped.mock.restore()
    held.release()
    proxy.silence()
    assert.equal((await first)?.id, 1n)
    assert.equal((await second)?.id, 2n)
  })

  it('keep the connection of one that is overdue and then refused by the server', async ({ mock }) => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=60&statement_timeout=60000')
    const { store, sql } = opened
    await store.pets.createMany([rex, rex])
    await store.pets.get(1n)
    const [pid] = (await opened.backends()) as [number]
    const cancel = () => sql`SELECT pg_cancel_backend(${pid})`
    const unlock = await opened.lock('LOCK TABLE pets')
    const now = performance.now()
    const stopped = mock.method(performance, 'now', () => now)
    const first = assert.rejects(store.pets.get(1n), /canceling statement/)
    await opened.untilBlocked(1)
    const second = store.pets.get(2n)
    assert.deepEqual([store.connections()!.inUse, store.connections()!.waiting], [1, 0])
    stopped.mock.restore()
    await until(() => store.connections()!.waiting === 1, 'the second read is overdue, and waits for a connection')
    await cancel()
    await first
    await opened.untilBlocked(1)
    await cancel()
    await until(() => store.connections()!.waiting === 0, 'the second read is sent again')
    await unlock()
    assert.equal((await second)?.id, 2n)
    assert.deepEqual(await opened.backends(), [pid])
  })

  it('do not pass a call that waits: a connection that is joined again and again would never be free for it', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=60')
    const { store } = opened
    const first = store.pets.list({ limit: 1 })
    const write = store.pets.createMany([rex])
    const second = store.pets.list({ limit: 1 })
    assert.equal(store.connections()!.waiting, 2)
    await Promise.all([first, write])
    assert.equal((await second).length, 1)
  })

  it('that fail together with their connection are done all the same', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=60')
    const { store } = opened
    await store.pets.create(rex)
    await store.pets.list({ limit: 1 })
    for (let round = 0; round < 3; round += 1) {
      opened.proxy.cutNextAnswer()
      const lists = await Promise.all(Array.from({ length: 8 }, () => store.pets.list({ limit: 1 })))
      assert.deepEqual(
        lists.map((list) => list.length),
        Array.from({ length: 8 }, () => 1),
      )
    }
  })
})
