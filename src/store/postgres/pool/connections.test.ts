// Which call gets a connection, and when one is opened, kept or closed. With real servers: test/postgres/pool.test.ts.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import {
  BROKEN,
  FakeServer,
  serverSays,
  settingsOf,
  someTurns,
} from '../../../../test/harness/connections/fake-server.ts'
import { type Report, StoreBusy, StoreUnavailable } from '../../store.ts'
import type { Connection, Kind } from './connection.ts'
import { Connections } from './connections.ts'

const MINUTE_MS = 60_000

/** Connections to a server that is not there, and a clock that the test sets. */
function newConnections(mock: TestContext['mock'], parameters: string, report: Report = () => {}, hosts = 'h') {
  const clock = { now: 1_000_000 }
  mock.method(performance, 'now', () => clock.now)
  const server = new FakeServer(mock)
  const connections = new Connections(settingsOf(parameters, hosts), report)
  /** Asks for a connection, and tells later what became of that. */
  const ask = (kind: Kind, isShared = false) => new Asked(connections, kind, isShared)
  const askMany = async (count: number, kind: Kind) => {
    const all = Array.from({ length: count }, () => ask(kind))
    await someTurns()
    return all
  }
  /** Asks, and returns the connection that it got. */
  const get = async (kind: Kind, isShared = false): Promise<Connection> => {
    const asked = ask(kind, isShared)
    await someTurns()
    return asked.got ?? assert.fail(asked.state)
  }
  /** In use, idle, parked and waiting. */
  const counts = () => {
    const { inUse, idle, parked, waiting } = connections.stats
    return [inUse, idle, parked, waiting].join()
  }
  /** Which of the connections that were ever opened are closed. */
  const closed = () => server.opened.map((connection) => connection.closed)
  return { clock, server, connections, ask, askMany, get, counts, closed }
}

/** A call that has asked for a connection. */
class Asked {
  got: Connection | undefined
  error: Error | undefined

  constructor(connections: Connections, kind: Kind, isShared: boolean) {
    const ask = async () => {
      this.got = await connections.acquire(kind, isShared)
    }
    ask().catch((error: Error) => (this.error = error))
  }

  get state(): 'served' | 'waiting' | 'busy' | 'refused' {
    if (this.got !== undefined) return 'served'
    if (this.error === undefined) return 'waiting'
    assert.ok(this.error instanceof StoreUnavailable, this.error.message)
    return this.error instanceof StoreBusy ? 'busy' : 'refused'
  }
}

function states(calls: readonly Asked[]): string[] {
  return calls.map(({ state }) => state)
}

describe('Connections', () => {
  it('that no call has used for a minute are closed, all but two: other instances may need them', async ({ mock }) => {
    mock.timers.enable({ apis: ['setInterval'] })
    const { clock, connections, askMany, get, counts } = newConnections(mock, 'pool_size=6')
    const pass = async (ms: number) => {
      clock.now += ms
      mock.timers.tick(ms)
      await someTurns()
    }
    for (const call of await askMany(6, 'read')) connections.release(call.got!)
    for (let second = 0; second < 50; second += 10) await pass(10_000)
    const [first, second, third] = [await get('read'), await get('read'), await get('read')]
    for (const connection of [first, second]) connections.release(connection)
    await pass(20_000)
    assert.equal(counts(), '1,2,0,0', 'three were used at once in the last minute')
    connections.release(third)
    await pass(MINUTE_MS)
    await pass(MINUTE_MS)
    assert.equal(counts(), '0,2,0,0')
    await get('read')
    assert.equal(counts(), '1,1,0,0')
    await connections.end()
  })

  it('are opened for the calls that wait, never more than the pool has, and used again', async ({ mock }) => {
    const { server, connections, askMany, get, counts } = newConnections(mock, 'pool_size=4')
    const none = { inUse: 0, idle: 0, parked: 0, waiting: 0 }
    assert.deepEqual(connections.stats, { ...none, servers: [] })
    const calls = await askMany(6, 'read')
    assert.deepEqual(states(calls), ['served', 'served', 'served', 'served', 'waiting', 'waiting'])
    assert.deepEqual(connections.stats, {
      ...none,
      inUse: 4,
      waiting: 2,
      servers: Array.from({ length: 4 }, () => ({
        host: 'h:5432',
        role: 'primary',
        startedAt: 'yesterday',
        timeline: undefined,
      })),
    })
    connections.release(calls[1]!.got!)
    await someTurns()
    assert.equal(calls[4]!.got, calls[1]!.got, 'the first that waits gets it')
    assert.equal(calls[5]!.state, 'waiting')
    for (const index of [0, 2, 3, 4]) connections.release(calls[index]!.got!)
    await someTurns()
    assert.deepEqual([counts(), server.attempts], ['1,3,0,0', 4])
    await get('read')
    assert.deepEqual([counts(), server.attempts], ['2,2,0,0', 4])
  })

  for (const [size, forWrites] of [
    [1, 1],
    [2, 1],
    [4, 3],
    [7, 6],
    [8, 6],
    [20, 15],
  ] as const)
    it(`are left to reads, a quarter of them and one at least, but not the only one: of ${size}, writes use ${forWrites}`, async ({
      mock,
    }) => {
      const { connections, ask, askMany, counts } = newConnections(mock, `pool_size=${size}`)
      const writes = await askMany(size + 1, 'write')
      assert.equal(counts(), `${forWrites},0,0,${size + 1 - forWrites}`)
      const read = ask('read')
      await someTurns()
      assert.equal(read.state, size === 1 ? 'waiting' : 'served')
      if (size === 1) return
      connections.release(read.got!)
      const late = ask('write')
      await someTurns()
      assert.deepEqual([late.state, connections.stats.idle], ['waiting', 1], 'an idle one is kept for reads')
      connections.release(writes[0]!.got!)
      await someTurns()
      assert.equal(writes[forWrites]!.state, 'served')
      assert.deepEqual([late.state, connections.stats.idle], ['waiting', 1])
    })

  it('are shared by short reads, if none of them takes long, while no call waits that could run', async ({ mock }) => {
    const { clock, connections, ask, get } = newConnections(mock, 'pool_size=2')
    const first = await get('read', true)
    assert.equal(connections.join(), first, 'though another can be opened')
    connections.release(await get('read'))
    assert.equal(connections.join(), first, 'though one is idle')
    clock.now += 21
    assert.equal(connections.join(), undefined, 'its reads take long')
    connections.release(first)
    const [third, waiting] = [ask('read'), ask('read')]
    await someTurns()
    assert.equal(connections.join(), undefined, 'a call waits')
    connections.release(third.got!)
    await someTurns()
    connections.release(first)
    await someTurns()
    assert.deepEqual([waiting.state, connections.stats.inUse], ['served', 2], 'its other read goes on')
    connections.release(first)
    assert.equal(connections.stats.idle, 1)
  })

  it('that broke are closed, with the idle ones, and others are opened for the calls that wait', async ({ mock }) => {
    const { server, connections, askMany, counts, closed } = newConnections(mock, 'pool_size=3')
    const calls = await askMany(3, 'read')
    connections.release(calls[0]!.got!)
    connections.discard(calls[1]!.got!)
    assert.deepEqual([closed(), counts()], [[true, true, false], '1,0,0,0'])
    connections.release(calls[1]!.got!)
    assert.equal(counts(), '1,0,0,0', 'one that is closed is not used again')
    const more = await askMany(3, 'read')
    assert.deepEqual([states(more), server.open.length], [['served', 'served', 'waiting'], 3])
    server.open[0]!.destroy()
    await someTurns()
    assert.equal(more[2]!.state, 'served', 'in the place of one that has ended by itself')
  })

  it('of overdue writes are parked until the answer comes; meanwhile writes are refused if no other is left for them', async ({
    mock,
  }) => {
    const { server, connections, ask, get, counts } = newConnections(mock, 'pool_size=2')
    const overdue = await get('write')
    const answer = Promise.withResolvers<void>()
    assert.equal(connections.hasOnlyParkedWrites, false)
    connections.park(overdue, answer.promise)
    assert.deepEqual([connections.hasOnlyParkedWrites, counts(), connections.parked.length], [true, '0,0,1,0', 1])
    const [write, read] = [ask('write'), ask('read')]
    await someTurns()
    assert.deepEqual(states([write, read]), ['busy', 'served'])
    assert.match(String(write.error), /busy: 0 in use, 1 without an answer; 0 writes wait/)
    answer.resolve()
    await someTurns()
    assert.deepEqual([counts(), connections.hasOnlyParkedWrites, server.open.length], ['1,1,0,0', false, 2])
    assert.equal(await get('write'), overdue)
  })

  it('of overdue writes are used again after an error of their statement, closed if they broke, and not parked if they are gone', async ({
    mock,
  }) => {
    const { server, connections, askMany, counts, closed } = newConnections(mock, 'pool_size=4')
    const [one, other, gone] = await askMany(3, 'write')
    connections.park(one!.got!, Promise.reject(serverSays('ERROR', '40P01')))
    connections.park(other!.got!, Promise.reject(BROKEN))
    server.opened[2]!.destroy()
    connections.park(gone!.got!, new Promise(() => {}))
    assert.equal(counts(), '0,0,2,0')
    await someTurns()
    assert.deepEqual([counts(), closed()], ['0,1,0,0', [false, true, true]])
  })

  it('of a pool of one, which is parked, leave room for another, which is closed again when it has two', async ({
    mock,
  }) => {
    const { server, connections, ask, get, counts } = newConnections(mock, 'pool_size=1')
    const answer = Promise.withResolvers<void>()
    connections.park(await get('write'), answer.promise)
    const [read, waiting] = [ask('read'), ask('read')]
    await someTurns()
    assert.deepEqual(states([read, waiting]), ['served', 'waiting'])
    connections.release(read.got!)
    await someTurns()
    assert.equal(waiting.got, read.got)
    answer.resolve()
    await someTurns()
    assert.deepEqual([counts(), server.open.length], ['1,0,0,0', 1], 'the parked one is spare by now')
  })

  it('are waited for by 50 reads and 50 writes each at most, and for as long as connecting to every host may take', async ({
    mock,
  }) => {
    const hosts = 'a,b'
    const { connections, ask, askMany } = newConnections(mock, 'pool_size=4&connect_timeout=1', () => {}, hosts)
    await askMany(4, 'read')
    mock.timers.enable({ apis: ['setTimeout'] })
    const reads = Array.from({ length: 200 }, () => ask('read'))
    const writes = Array.from({ length: 200 }, () => ask('write'))
    const late = [ask('read'), ask('write')]
    await someTurns()
    assert.deepEqual(new Set(states([...reads, ...writes])), new Set(['waiting']))
    assert.deepEqual(states(late), ['busy', 'busy'])
    assert.match(String(late[1]!.error), /busy: 4 in use, 0 without an answer; 200 writes wait\./)
    mock.timers.tick(2249)
    await someTurns()
    assert.equal(connections.stats.waiting, 400)
    mock.timers.tick(1)
    await someTurns()
    assert.deepEqual(new Set(states([...reads, ...writes])), new Set(['busy']))
    assert.equal(connections.stats.waiting, 0)
  })

  it('to a database that is away are tried again after a moment; until then calls are refused at once', async ({
    mock,
  }) => {
    const reports: string[] = []
    const report: Report = ({ message }) => void reports.push(message)
    const { clock, server, askMany, counts } = newConnections(mock, 'pool_size=4', report)
    server.refusal = BROKEN
    const calls = await askMany(3, 'read')
    assert.deepEqual(states(calls), ['refused', 'refused', 'refused'])
    assert.match(String(calls[0]!.error), /Cannot connect to PostgreSQL at h:5432: read ECONNRESET/)
    const { attempts } = server
    clock.now += 249
    assert.deepEqual([states(await askMany(1, 'write')), server.attempts], [['refused'], attempts])
    clock.now += 1
    assert.deepEqual([states(await askMany(1, 'read')), server.attempts], [['refused'], attempts + 1])
    assert.deepEqual(reports, ['database lost'])
    server.refusal = undefined
    clock.now += 250
    // As many may wait as for a whole pool: those who are refused come back at once, and keep the process from connecting.
    await askMany(200, 'read')
    assert.deepEqual([counts(), reports], ['4,0,0,196', ['database lost', 'database found']])
  })

  it('that were refused while the database was away may all be opened as soon as one of an overdue write has its answer', async ({
    mock,
  }) => {
    const { server, connections, askMany, get, counts } = newConnections(mock, 'pool_size=4')
    const answer = Promise.withResolvers<void>()
    connections.park(await get('write'), answer.promise)
    server.refusal = BROKEN
    assert.deepEqual(states(await askMany(1, 'read')), ['refused'])
    server.refusal = undefined
    answer.resolve()
    await someTurns()
    await askMany(4, 'read')
    assert.equal(counts(), '4,0,0,0')
  })

  it('that the database does not accept refuse no call while others work, and are tried again after a pause', async ({
    mock,
  }) => {
    const { clock, server, connections, ask, askMany, counts } = newConnections(mock, 'pool_size=8')
    const [first, second] = await askMany(2, 'read')
    server.refusal = new Error('too many connections')
    const waiting = await askMany(2, 'read')
    assert.deepEqual([states(waiting), server.attempts], [['waiting', 'waiting'], 4])
    const writes = await askMany(2, 'write')
    assert.deepEqual([states(writes), server.attempts], [['waiting', 'waiting'], 4], 'not before the pause is over')
    connections.release(first!.got!)
    await someTurns()
    assert.equal(waiting[0]!.state, 'served')
    clock.now += 1000
    server.refusal = undefined
    ask('read')
    await someTurns()
    assert.deepEqual([counts(), server.open.length], ['6,0,0,0', 6], 'one that works means that all may')
    connections.release(second!.got!)
    assert.equal(connections.stats.idle, 1)
  })

  it('that are refused are tried again after a second', async ({ mock }) => {
    const { clock, server, askMany, get } = newConnections(mock, 'pool_size=2')
    /** How many connections one more call tries to open, this many milliseconds later. */
    const triedAfter = async (ms: number) => {
      clock.now += ms
      const { attempts } = server
      await askMany(1, 'read')
      return server.attempts - attempts
    }
    const assertPause = async (ms: number) => assert.deepEqual([await triedAfter(ms - 1), await triedAfter(1)], [0, 1])
    await get('read')
    server.refusal = new Error('too many connections')
    assert.equal(await triedAfter(0), 1)
    for (let time = 0; time < 3; time += 1) await assertPause(1000)
  })

  it('are replaced after half an hour, and not before', async ({ mock }) => {
    const { clock, server, connections, get } = newConnections(mock, 'pool_size=1')
    for (const [minutes, isClosed] of [
      [30, false],
      [0.001, true],
    ] as const) {
      const connection = await get('read')
      clock.now += minutes * MINUTE_MS
      connections.release(connection)
      assert.deepEqual([server.opened[0]!.closed, connections.stats.idle], [isClosed, isClosed ? 0 : 1])
    }
  })

  it('to a primary that was replaced are closed as soon as the new one is known, idle or in use', async ({ mock }) => {
    const { server, connections, ask, askMany, closed } = newConnections(mock, 'pool_size=3')
    server.facts = { ...server.facts, timeline: { system: 'ours', number: 1 } }
    const [one, other] = await askMany(2, 'read')
    server.facts = { ...server.facts, startedAt: 'today', timeline: { system: 'ours', number: 2 } }
    // Another is being opened when these are released.
    const call = ask('read')
    for (const { got } of [one!, other!]) connections.release(got!)
    await someTurns()
    assert.deepEqual(closed(), [true, true, false])
    connections.release(call.got!)
    assert.equal(connections.stats.idle, 1)
  })

  it('to a primary that was replaced are handed to no call while they are being closed', async ({ mock }) => {
    const { clock, server, connections, ask, askMany, counts } = newConnections(mock, 'pool_size=16')
    server.facts = { ...server.facts, timeline: { system: 'ours', number: 1 } }
    await askMany(6, 'write')
    const reads = await askMany(2, 'read')
    server.refusal = new Error('too many connections')
    // While the database accepts eight, writes may use six: another write waits beside idle connections.
    ask('read')
    await someTurns()
    connections.release(reads[0]!.got!)
    await someTurns()
    server.refusal = undefined
    server.facts = { ...server.facts, timeline: { system: 'ours', number: 2 } }
    clock.now += 1000
    ask('read')
    for (const { got } of [reads[0]!, ...reads]) connections.release(got!)
    const write = ask('write')
    assert.equal(counts(), '6,2,0,1')
    await someTurns()
    assert.deepEqual([write.state, write.got?.closed], ['served', false])
  })

  it('are closed with the store, those in use when they are released; calls that wait are refused', async ({
    mock,
  }) => {
    const { server, connections, askMany, ask } = newConnections(mock, 'pool_size=3')
    const calls = await askMany(2, 'read')
    connections.release(calls[0]!.got!)
    // The second of these waits while a connection is being opened for it.
    const [, waiting] = [ask('read'), ask('read')]
    await connections.end()
    await someTurns()
    const [late] = await askMany(1, 'read')
    assert.deepEqual(states([waiting, late!]), ['refused', 'refused'])
    assert.match(String(late!.error), /The store is closed/)
    assert.deepEqual([server.open.length, server.attempts], [0, 3])
  })
})
