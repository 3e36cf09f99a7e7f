// What the pool does with a call that fails or gets no answer: retries, time limits, parking. With real servers:
// test/postgres/{pool,recovery,writes}.test.ts.
import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { describe, it, type TestContext } from 'node:test'
import timers from 'node:timers/promises'
import { BROKEN, FakeServer, serverSays, settingsOf, someTurns } from '../../../test/harness/connections/fake-server.ts'
import { until } from '../../../test/harness/until.ts'
import { NoWrites, StoreUnavailable } from '../store.ts'
import { Pool } from './pool.ts'

const ROLLED_BACK = serverSays('ERROR', '40P01')
const REFUSED = serverSays('ERROR', '23505')

/** With this, no time passes between two calls: only a short read that came just before can be joined. */
function stopClock(mock: TestContext['mock']): void {
  mock.method(performance, 'now', () => 0)
}

function newPool(mock: TestContext['mock'], parameters: string) {
  return { server: new FakeServer(mock), pool: new Pool(settingsOf(parameters)) }
}

/** Work that fails with these errors, one after another, and then succeeds; counts how often it was done. */
function failing(...errors: Error[]) {
  const work = async () => {
    const error = errors[work.done++]
    if (error !== undefined) throw error
    return 'done'
  }
  work.done = 0
  return work
}

/** Lets the pool ask about parked connections without pause, instead of every second. */
function watchOften(mock: TestContext['mock']) {
  const pause = timers.setTimeout
  mock.method(timers, 'setTimeout', (_ms: number, value: unknown, options: object) => pause(5, value, options))
  syncBuiltinESMExports()
  return {
    for: pause,
    [Symbol.dispose]() {
      mock.restoreAll()
      syncBuiltinESMExports()
    },
  }
}

/** Waits for ever. */
const hanging = () => new Promise<never>(() => {})

describe('A call to PostgreSQL', () => {
  it('is done again once, if that cannot repeat an effect', async ({ mock }) => {
    const { pool } = newPool(mock, 'pool_size=2')
    const kinds = {
      read: (work: () => Promise<string>) => pool.read(work),
      readShort: (work: () => Promise<string>) => pool.readShort(work),
      write: (work: () => Promise<string>) => pool.write(work),
      writeRepeatable: (work: () => Promise<string>) => pool.writeRepeatable(work),
      writeWithin: (work: () => Promise<string>) => pool.writeWithin(1000, work),
    }
    const again: Record<keyof typeof kinds, Error[]> = {
      read: [BROKEN, ROLLED_BACK],
      readShort: [BROKEN, ROLLED_BACK],
      write: [ROLLED_BACK],
      writeRepeatable: [BROKEN, ROLLED_BACK],
      writeWithin: [],
    }
    for (const [kind, run] of Object.entries(kinds)) {
      for (const error of [BROKEN, ROLLED_BACK, REFUSED, new StoreUnavailable('busy')]) {
        const isDoneAgain = again[kind as keyof typeof kinds].includes(error)
        const once = failing(error)
        const outcome = await run(once).catch((reason: unknown) => reason)
        assert.deepEqual(
          [once.done, outcome === 'done'],
          isDoneAgain ? [2, true] : [1, false],
          `${kind}: ${error.message}`,
        )
        const twice = failing(error, error)
        await assert.rejects(run(twice))
        assert.equal(twice.done, isDoneAgain ? 2 : 1)
      }
    }
  })

  it('that fails for good tells whether the database is unavailable or refuses it', async ({ mock }) => {
    const { pool } = newPool(mock, 'pool_size=1')
    await assert.rejects(pool.read(failing(BROKEN, BROKEN)), StoreUnavailable)
    await assert.rejects(pool.write(failing(REFUSED)), REFUSED)
  })

  it('gives its connection back, unless that broke', async ({ mock }) => {
    const { server, pool } = newPool(mock, 'pool_size=1')
    await pool.read(failing())
    await assert.rejects(pool.write(failing(REFUSED)))
    await pool.write(failing())
    assert.deepEqual([server.attempts, pool.stats.idle, pool.stats.inUse], [1, 1, 0])
    await assert.rejects(pool.write(failing(BROKEN)), StoreUnavailable)
    assert.deepEqual([server.open.length, pool.stats.idle, pool.stats.inUse], [0, 0, 0])
  })

  it('without an answer is given up half a second after the time limit of the server', async ({ mock }) => {
    const { server, pool } = newPool(mock, 'pool_size=3&statement_timeout=2000')
    await Promise.all([pool.read(failing()), pool.read(failing())])
    mock.timers.enable({ apis: ['setTimeout'] })
    const read = pool.read(hanging)
    await someTurns()
    mock.timers.tick(2499)
    await someTurns()
    assert.equal(server.open.length, 2)
    mock.timers.tick(1)
    await assert.rejects(read, StoreUnavailable)
    await someTurns()
    assert.deepEqual(
      [server.open.length, pool.stats.parked, pool.stats.idle],
      [0, 0, 0],
      'its connection and the idle one are closed',
    )
  })

  it('that writes and gets no answer parks its connection; the store is not ready until another write succeeds', async ({
    mock,
  }) => {
    const { server, pool } = newPool(mock, 'pool_size=4&statement_timeout=2000')
    server.rows = [{ readOnly: 'off', pid: 1, startedAt: 'yesterday' }]
    const answer = Promise.withResolvers<string>()
    mock.timers.enable({ apis: ['setTimeout'] })
    const write = pool.write(() => answer.promise)
    await someTurns()
    mock.timers.tick(2500)
    await assert.rejects(write, StoreUnavailable)
    assert.deepEqual([pool.stats.parked, server.open.length], [1, 1])
    await assert.rejects(pool.ping(), new NoWrites('1 writes have no answer from PostgreSQL yet.'))
    await assert.rejects(pool.write(failing(REFUSED)))
    await assert.rejects(pool.ping(), NoWrites, 'one that fails says nothing')
    await pool.write(failing())
    await pool.ping()
    answer.resolve('late')
    await someTurns()
    assert.deepEqual([pool.stats.parked, pool.stats.idle, server.open.length], [0, 2, 2])
  })

  it('that writes and is refused after all leaves the store ready again', async ({ mock }) => {
    const { server, pool } = newPool(mock, 'pool_size=4')
    server.rows = [{ readOnly: 'off', pid: 1, startedAt: 'yesterday' }]
    const answer = Promise.withResolvers<never>()
    await assert.rejects(pool.writeWithin(1, () => answer.promise))
    await assert.rejects(pool.ping(), NoWrites)
    answer.reject(REFUSED)
    await someTurns()
    await pool.ping()
    assert.deepEqual([pool.stats.parked, server.open.length], [0, 2])
  })

  it('to a server that takes no writes closes its connection when the store is asked whether it is ready', async ({
    mock,
  }) => {
    const { server, pool } = newPool(mock, 'pool_size=2')
    server.rows = [{ readOnly: 'on' }]
    await assert.rejects(pool.ping(), /^NoWrites: PostgreSQL is read-only/)
    assert.equal(server.open.length, 0)
    server.rows = [{ readOnly: 'off' }]
    await pool.ping()
    assert.deepEqual([server.open.length, pool.stats.idle], [1, 1])
  })

  for (const pgbouncer of [false, true])
    it(`that hangs with its write keeps its connection only while the server works on it${pgbouncer ? ', as far as PgBouncer shows' : ''}`, async ({
      mock,
    }) => {
      using pause = watchOften(mock)
      const { server, pool } = newPool(mock, `pool_size=4&statement_timeout=100&pgbouncer=${pgbouncer}`)
      const writes = [pool.writeWithin(1, hanging), pool.writeWithin(1, hanging)]
      server.rows = [{ pid: 1, startedAt: 'yesterday' }]
      for (const write of writes) await assert.rejects(write)
      assert.equal(pool.stats.parked, 2)
      await until(() => server.statements > 1, 'the pool has asked')
      assert.deepEqual(
        server.opened.slice(0, 2).map(({ closed }) => closed),
        [false, !pgbouncer],
      )
      server.facts = { ...server.facts, startedAt: 'today' }
      server.rows = [{ pid: 1, startedAt: 'today' }]
      for (const connection of server.open.slice(pgbouncer ? 2 : 1)) connection.destroy()
      await until(() => pool.stats.parked === 0, 'the server was replaced')
      const { statements } = server
      await pause.for(30)
      assert.equal(server.statements, statements, 'it asks no longer')
    })

  it('that hangs with its write keeps its connection if the answer comes while the pool asks about it', async ({
    mock,
  }) => {
    using _pause = watchOften(mock)
    const { server, pool } = newPool(mock, 'pool_size=4')
    const [answer, asked] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()]
    server.answering = asked.promise
    await assert.rejects(pool.writeWithin(1, () => answer.promise))
    await until(() => server.statements === 1, 'the pool asks')
    answer.resolve('late')
    await someTurns()
    asked.resolve()
    await someTurns()
    assert.deepEqual([server.opened[0]!.closed, pool.stats.idle], [false, 2])
  })
})

describe('A short read', () => {
  /** A short read in progress, which others can join, and time that passes when the test says so. */
  async function newShared(mock: TestContext['mock']) {
    stopClock(mock)
    const { server, pool } = newPool(mock, 'pool_size=1&statement_timeout=2000&connect_timeout=60')
    mock.timers.enable({ apis: ['setTimeout'] })
    const first = Promise.withResolvers<string>()
    const reading = pool.readShort(() => first.promise)
    await someTurns()
    const pass = async (ms: number) => {
      mock.timers.tick(ms)
      await someTurns()
    }
    return { server, pool, first, reading, pass }
  }

  it('shares a connection in use, and is sent again on a free one after a quarter of a second', async ({ mock }) => {
    const { server, pool, first, reading, pass } = await newShared(mock)
    const answers = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
    let sent = 0
    const shared = pool.readShort(() => answers[sent++]!.promise)
    await someTurns()
    assert.equal(sent, 1, 'though no connection is free')
    await pass(249)
    first.resolve('first')
    assert.equal(await reading, 'first')
    assert.equal(sent, 1)
    await pass(1)
    assert.equal(sent, 1, 'the connection is still in use')
    answers[0]!.resolve('too late')
    await someTurns()
    assert.equal(sent, 2)
    answers[1]!.resolve('again')
    assert.equal(await shared, 'again')
    assert.equal(server.attempts, 1)
  })

  it('that gets no answer on a shared connection has it closed at the time limit of a call', async ({ mock }) => {
    const { server, pool, first, reading, pass } = await newShared(mock)
    let sent = 0
    const shared = pool.readShort(() => (sent++ === 0 ? hanging() : Promise.resolve('again')))
    await pass(250)
    first.resolve('first')
    await pass(2249)
    assert.equal(await reading, 'first')
    assert.deepEqual([server.open.length, sent], [1, 1])
    await pass(1)
    assert.equal(await shared, 'again')
    assert.deepEqual([server.opened.map(({ closed }) => closed), sent], [[true, false], 2])
  })

  it('that is refused by the server on a shared connection, in time or late, is sent again on the same one', async ({
    mock,
  }) => {
    for (const ms of [0, 250]) {
      const { server, pool, first, reading, pass } = await newShared(mock)
      const answer = Promise.withResolvers<string>()
      const work = failing()
      const shared = pool.readShort(() => (work.done++ === 0 ? answer.promise : work()))
      await pass(ms)
      answer.reject(REFUSED)
      first.resolve('first')
      await someTurns()
      assert.deepEqual([await reading, await shared], ['first', 'done'])
      await pass(2500)
      assert.deepEqual([server.open.length, server.attempts, pool.stats.idle], [1, 1, 1])
      mock.restoreAll()
      mock.timers.reset()
    }
  })

  const unshared: Record<
    string,
    [parameters: string, read: (pool: Pool, work: () => Promise<string>) => Promise<string>]
  > = {
    'behind PgBouncer': ['&pgbouncer=true', (pool, work) => pool.readShort(work)],
    'with another read': ['', (pool, work) => pool.read(work)],
    'with one that is done again': [
      '',
      (pool, work) => {
        const breaks = failing(BROKEN)
        return pool.readShort(() => (breaks.done === 0 ? breaks() : work()))
      },
    ],
  }
  for (const [what, [parameters, read]] of Object.entries(unshared))
    it(`shares none ${what}`, async ({ mock }) => {
      stopClock(mock)
      const { pool } = newPool(mock, `pool_size=1${parameters}`)
      const first = Promise.withResolvers<string>()
      const reading = read(pool, () => first.promise)
      await someTurns()
      const second = failing()
      const waiting = pool.readShort(second)
      await someTurns()
      assert.equal(second.done, 0)
      first.resolve('first')
      assert.deepEqual([await reading, await waiting], ['first', 'done'])
    })
})
