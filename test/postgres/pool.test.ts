// Calls to a real PostgreSQL: each wait has an end, some connections are always left to reads, none is lost for good, and short
// reads share one. Which call gets which connection, when, and for how long: src/store/postgres/{pool,pool/connections}.test.ts.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { until } from '../harness/until.ts'
import { parseConnection } from '../../src/store/postgres/pool/connection-settings.ts'
import { Pool } from '../../src/store/postgres/pool.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import {
  openAt,
  openPostgres,
  rex,
  slowCall,
  startCreates,
  unavailable,
  untilWorks,
} from '../harness/databases/open-postgres.ts'

/** Far longer than a test takes, so that nothing else ends a wait. */
const PATIENT = 'connect_timeout=60&statement_timeout=60000'

describe('connections to PostgreSQL', { concurrency: false }, () => {
  it('that log in and then do not answer hold up no call for good', async () => {
    await using opened = await openPostgres('pool_size=2&connect_timeout=1&statement_timeout=500')
    const { store, proxy } = opened
    proxy.holdStatements()
    for (let round = 0; round < 3; round += 1) await assert.rejects(store.ping(), StoreUnavailable)
    await assert.rejects(store.pets.create(rex), StoreUnavailable)
    proxy.passStatements()
    await untilWorks(() => store.ping())
    await untilWorks(() => store.pets.create(rex))
    await until(async () => (await opened.backends()).length <= 2, 'there are no more connections than the pool has')
  })

  it('leave a share to reads while every create waits for a lock', async () => {
    await using opened = await openPostgres(`pool_size=4&${PATIENT}`)
    const { store } = opened
    // Conflicts with writes only.
    const unlock = await opened.lock('LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE')
    const creates = await startCreates(store, 24)
    await opened.untilBlocked(3)
    for (let round = 0; round < 10; round += 1) assert.deepEqual(await store.pets.list({ limit: 21 }), [])
    // A pool that is busy is no reason to take an instance out of service.
    await Promise.all([store.ping(), ...Array.from({ length: 10 }, () => slowCall(opened))])
    await opened.untilBlocked(3)
    await unlock()
    await Promise.all(creates)
  })

  it('whose server is gone without a word do not keep their places, the second time neither', async () => {
    await using opened = await openPostgres('pool_size=3&statement_timeout=2000')
    const { store, proxy } = opened
    for (let time = 0; time < 2; time += 1) {
      const unlock = await opened.lock('LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE')
      const creates = await startCreates(store, 2)
      await opened.untilBlocked(2)
      proxy.silence()
      for (const create of creates) await assert.rejects(create, StoreUnavailable)
      await unlock()
      await untilWorks(() => store.pets.create(rex))
      await until(async () => store.connections()!.parked === 0, 'none is parked')
      await until(() => proxy.connections().open <= 3, 'there are no more connections than the pool has')
    }
  })

  it('are divided among the processes of an instance, and each has one at least', async () => {
    await using opened = await openPostgres()
    const unlock = await opened.lock('LOCK TABLE accounts')
    const calls: Promise<unknown>[] = []
    await using stores = new AsyncDisposableStack()
    let open = opened.proxy.connections().open
    for (const [size, processes, expected] of [
      [8, 4, 2],
      [7, 4, 1],
      [2, 4, 1],
    ] as const) {
      const store = await openAt(`${opened.url}pool_size=${size}&${PATIENT}`, { processes })
      stores.defer(() => store.close())
      calls.push(...Array.from({ length: 3 }, () => slowCall({ store })))
      await until(async () => store.connections()!.inUse === expected, `${expected} of ${size} are used`)
      assert.equal(store.connections()!.waiting, 3 - expected)
      open += expected
      assert.equal(opened.proxy.connections().open, open, 'none is being opened')
    }
    await unlock()
    await Promise.all(calls)
  })

  it('are given back, so that a role with a limit has some for another instance; then both serve', async ({ mock }) => {
    mock.timers.enable({ apis: ['setInterval'] })
    await using opened = await openPostgres(`pool_size=6&${PATIENT}`)
    const role = `limited_${new URL(opened.url).pathname.slice(1)}`
    await opened.sql.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'secret' CONNECTION LIMIT 6;
      GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${role}`)
    const url = opened.url.replace(/\/\/[^@]+@/, `//${role}:secret@`)
    try {
      const first = await openAt(url)
      await using _first = { [Symbol.asyncDispose]: () => first.close() }
      const unlock = await opened.lock('LOCK TABLE accounts')
      const calls = Array.from({ length: 6 }, () => slowCall({ store: first }))
      await opened.untilBlocked(6)
      await unlock()
      await Promise.all(calls)
      await assert.rejects(openAt(url), /too many connections for role/)
      const now = performance.now()
      const late = mock.method(performance, 'now', () => now + 90_000)
      await first.pets.create(rex)
      mock.timers.tick(60_000)
      late.mock.restore()
      let second = first
      await untilWorks(async () => (second = await openAt(url)))
      await using _second = { [Symbol.asyncDispose]: () => second.close() }
      const stores = [first, second]
      await Promise.all(Array.from({ length: 40 }, (_, nth) => stores[nth % 2]!.pets.create(rex)))
      await Promise.all(stores.map((store) => store.ping()))
    } finally {
      await opened.sql.unsafe(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
    }
  })

  it('are closed with the store, one that is being opened too; calls that wait are refused at once and ever after', async () => {
    await using opened = await openPostgres(`pool_size=2&${PATIENT}`)
    const { store, proxy } = opened
    const unlock = await opened.lock('LOCK TABLE accounts')
    const running = assert.rejects(slowCall(opened), unavailable(/./))
    await opened.untilBlocked(1)
    const held = proxy.holdNextAnswer()
    const waiting = Array.from({ length: 5 }, () => assert.rejects(store.ping(), unavailable(/closed/)))
    await held.arrived
    await store.close()
    await Promise.all([running, ...waiting])
    held.release()
    await unlock()
    await assert.rejects(store.ping(), unavailable(/closed/))
    await until(async () => proxy.connections().open === 0, 'every connection is closed')
  })
})

describe('a call to PostgreSQL', { concurrency: false }, () => {
  it('waits until every host of several was tried, and then has the reason of each', async (context) => {
    const { timers } = context.mock
    const silent = createServer((socket) => void sockets.push(socket))
    const sockets: Socket[] = []
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    const { port } = silent.address() as AddressInfo
    const pool = new Pool(parseConnection(`postgres://127.0.0.1:${port},127.0.0.1:${port},127.0.0.1:${port}/none`))
    context.after(async () => {
      timers.reset()
      await pool.end()
      for (const socket of sockets) socket.destroy()
      silent.close()
    })
    timers.enable({ apis: ['setTimeout'] })
    const call = assert.rejects(
      pool.read((sql) => sql`SELECT 1`),
      unavailable(/^Cannot connect to PostgreSQL at (?:[\d.:]+: no answer within 2000 ms(?:; |$)){3}/),
    )
    for (let tried = 1; tried <= 3; tried += 1) {
      // The driver connects in a later turn.
      await setImmediate()
      timers.tick(1)
      while (sockets.length < tried) await setImmediate()
      timers.tick(2000)
    }
    await call
  })

  it('is ended by the server itself when it takes too long, so that no statement goes on without its caller', async () => {
    await using opened = await openPostgres('statement_timeout=300')
    const unlock = await opened.lock('LOCK TABLE accounts')
    await assert.rejects(slowCall(opened), unavailable(/statement timeout/))
    await opened.untilBlocked(0)
    await unlock()
    await slowCall(opened)
  })
})

describe('short reads from PostgreSQL', { concurrency: false }, () => {
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
    const ids = Array.from({ length: 30 }, (_, index) => BigInt(index + 1))
    await store.pets.createMany(ids.map(() => rex))
    const few = atOnce(() => ids.slice(0, 8).map((id) => store.pets.list({ limit: 1, before: id + 1n })))
    assert.deepEqual([store.connections()!.inUse, store.connections()!.waiting], [1, 0])
    assert.deepEqual(
      (await Promise.all(few)).map(([pet]) => pet?.id),
      ids.slice(0, 8),
    )
    const many = atOnce(() => ids.map((id) => store.pets.list({ limit: 1, before: id + 1n })))
    assert.equal(store.connections()!.waiting, 22)
    assert.deepEqual(
      (await Promise.all(many)).map(([pet]) => pet?.id),
      ids,
    )
    assert.deepEqual([store.connections()!.inUse, store.connections()!.idle], [0, 1])
  })

  it('by id are one statement for those of a turn, and each gets its own answer', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=60')
    const { store } = opened
    await store.pets.createMany([rex, { ...rex, name: 'Mia' }])
    const asked = [2n, 9n, 1n, 2n].map((id) => store.pets.get(id))
    await setImmediate()
    assert.deepEqual([store.connections()!.inUse, store.connections()!.waiting], [1, 0])
    const found = await Promise.all([...asked, ...Array.from({ length: 80 }, () => store.pets.get(1n))])
    assert.deepEqual(
      found.slice(0, 4).map((pet) => pet?.name),
      ['Mia', undefined, 'Rex', 'Mia'],
    )
    assert.ok(found.slice(4).every((pet) => pet?.name === 'Rex'))
  })

  it('that fail together with their connection are done all the same', async () => {
    await using opened = await openPostgres('pool_size=1&connect_timeout=60')
    const { store } = opened
    await store.pets.create(rex)
    await store.pets.list({ limit: 1 })
    for (let round = 0; round < 3; round += 1) {
      opened.proxy.cutNextAnswer()
      const lists = Array.from({ length: 8 }, () => store.pets.list({ limit: 1 }))
      const [pet, ...listed] = await Promise.all([store.pets.get(1n), ...lists])
      assert.deepEqual(
        listed.map(([each]) => each),
        lists.map(() => pet),
      )
    }
  })
})
