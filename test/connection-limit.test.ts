// The limit of connections that several processes share: here by servers of this process, which lease from the same slots.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { it } from 'node:test'
import { TIMEOUTS } from '../src/http/app.ts'
import { tendConnections } from '../src/http/connections.ts'
import { ConnectionLeases, ConnectionLimit } from '../src/http/connection-limit.ts'
import { addressOf, cutOff, listen } from '../src/http/listening.ts'
import { createServer } from '../src/http/node-http.ts'
import { createLog } from '../src/log.ts'
import { get, RawConnection } from '../assurance/harness/raw-http.ts'
import { until } from '../assurance/harness/until.ts'
import { close, connectionsTo } from './worker-connection.ts'

const GET = get('/')

const atOnce = async <T>(work: () => T | Promise<T>): Promise<T> => work()

/** A server with slots of its own. `between` carries the calls between it and the process that leases the slots. */
async function startServer(leases: ConnectionLeases, between: typeof atOnce = atOnce) {
  const found = { refused: 0, arrived: 0, asked: 0, reasons: new Set<string>() }
  const server = createServer((request, response) => {
    found.arrived += 1
    const serve = () => void response.end()
    if (limit.isKept(request.socket, serve)) serve()
  })
  const limit = new ConnectionLimit((wanted) => {
    found.asked += 1
    return between(() => leases.lease(server, wanted))
  })
  leases.add(server, () => between(() => limit.giveBack()))
  limit.extend(leases.leaseShare(server))
  limit.watch(server, (reason) => {
    found.refused += 1
    found.reasons.add(reason)
  })
  await listen(server, { host: '127.0.0.1', port: 0, setting: '' })
  return { server, url: addressOf(server), found, [Symbol.asyncDispose]: () => cutOff(server) }
}

async function startThree(leases: ConnectionLeases, stack: AsyncDisposableStack) {
  const start = async () => stack.use(await startServer(leases))
  return [await start(), await start(), await start()] as const
}

/** Opens connections one after the other, so that their order is certain; each sends a request, which arrives. */
async function openInTurn({ url, found }: Awaited<ReturnType<typeof startServer>>, count: number) {
  const open: RawConnection[] = []
  for (const before = found.arrived; open.length < count;) {
    const connection = new RawConnection(url)
    open.push(connection)
    connection.send(GET)
    await until(() => found.arrived === before + open.length, 'the request arrives')
  }
  return open
}

const statuses = (open: readonly RawConnection[]) =>
  Promise.all(open.map(async (connection) => (await connection.answer()).status))

it('A process admits connections up to its share without asking the first process, which may hang', async () => {
  await using hung = await startServer(new ConnectionLeases(6, 2), () => new Promise<never>(() => {}))
  const open = await openInTurn(hung, 3)
  assert.deepEqual(await statuses(open), [200, 200, 200])
  assert.equal(hung.found.asked, 0)
  close(open)
})

it('A process gets the slots that the others do not use, and is refused none below the limit', async () => {
  const leases = new ConnectionLeases(12, 3)
  await using servers = new AsyncDisposableStack()
  const [one, two, three] = await startThree(leases, servers)
  const [ofTwo, ofThree] = [await openInTurn(two, 1), await openInTurn(three, 2)]
  const ofOne = await openInTurn(one, 9)
  assert.deepEqual(new Set(await statuses([...ofTwo, ...ofThree, ...ofOne])), new Set([200]))
  const beyond = [one, two, three].map(({ url }) => new RawConnection(url))
  await Promise.all(beyond.map((connection) => connection.closed()))
  assert.deepEqual(
    [one, two, three].map(({ found }) => found.refused),
    [1, 1, 1],
  )
  assert.deepEqual(one.found.reasons, new Set(['limit']))
  close([ofOne[0]!])
  await until(async () => {
    using next = new RawConnection(two.url)
    return await answerOrEnd(next)
  }, 'the slot is free again')
  close([...ofOne, ...ofTwo, ...ofThree])
})

it('Processes that need slots at the same time are refused none while another process has unused ones', async () => {
  const leases = new ConnectionLeases(9, 3)
  const idle = new ConnectionLimit(() => assert.fail('it needs no slots'))
  leases.add('idle', () => idle.giveBack())
  for (const full of ['one', 'two']) leases.add(full, () => 0)
  for (const process of ['idle', 'one', 'two']) {
    const share = leases.leaseShare(process)
    if (process === 'idle') idle.extend(share)
  }
  // The idle process gives back two of its three slots, which the others take, then the third.
  const needing = ['one', 'two', 'one', 'two']
  const leased = await Promise.all(needing.map((process) => leases.lease(process, 1)))
  assert.deepEqual(leased, [1, 1, 1, 0])
})

it('A process is refused none while a lease that another one needs only a part of is on its way to that', async () => {
  const leases = new ConnectionLeases(3, 2)
  const other = new ConnectionLimit(() => assert.fail('it has asked'))
  leases.add('other', () => other.giveBack())
  for (const full of ['one', 'two']) leases.add(full, () => 0)
  const arrives = async (slots: number) => {
    for (let hop = 0; hop < 10; hop += 1) await Promise.resolve()
    other.extend(slots)
    return slots
  }
  const needing = [leases.lease('other', 1).then(arrives), leases.lease('one', 1), leases.lease('two', 1)]
  assert.deepEqual(await Promise.all(needing), [2, 1, 1])
})

it('No more connections than the limit are kept in all processes, whichever gets them and in whatever order', async () => {
  const most = 30
  const leases = new ConnectionLeases(most, 3)
  await using stack = new AsyncDisposableStack()
  const servers = await startThree(leases, stack)
  const isOpen = ({ socket }: RawConnection) => !socket.destroyed
  let open: RawConnection[] = []
  for (const [round, shares] of [
    [40, 5, 5],
    [0, 35, 0],
    [1, 1, 40],
    [20, 20, 20],
  ].entries()) {
    const more = servers.flatMap((server, index) => connectionsTo(server, shares[index]))
    const answered = (await Promise.all(more.map((connection) => answerOrEnd(connection)))).filter(Boolean).length
    open = [...open, ...more].filter(isOpen)
    assert.equal(open.length, most, `round ${round}`)
    assert.ok(answered <= most)
    // Half of them leave.
    const leaving = open.filter((_, index) => index % 2 === round % 2)
    close(leaving)
    open = open.filter(isOpen)
    const kept = () => Promise.all(servers.map(({ server }) => countOf(server)))
    await until(async () => (await kept()).reduce((sum, count) => sum + count) === open.length, 'they have left')
  }
  close(open)
})

it('A request waits until its connection is decided; of too many connections the newest are refused', async () => {
  const decision = Promise.withResolvers<void>()
  await using one = await startServer(new ConnectionLeases(3, 2), (work) => decision.promise.then(work))
  const open = await openInTurn(one, 5)
  // The share of the process is one slot.
  await until(() => open[0]!.socket.bytesRead > 0)
  assert.ok(open.slice(1).every(({ socket }) => socket.bytesRead === 0))
  decision.resolve()
  assert.deepEqual(await statuses(open.slice(0, 3)), [200, 200, 200])
  for (const connection of open.slice(3)) await connection.closed()
  assert.equal(one.found.refused, 2)
  assert.ok(open.slice(0, 3).every(({ socket }) => !socket.destroyed))
  close(open)
})

it('A connection that no slot is leased for in time is refused; a lease that comes later is used', async ({ mock }) => {
  const answer = Promise.withResolvers<void>()
  await using one = await startServer(new ConnectionLeases(2, 2), (work) => answer.promise.then(work))
  const [first] = await openInTurn(one, 1)
  mock.timers.enable({ apis: ['setTimeout'] })
  const [refused] = await openInTurn(one, 1)
  mock.timers.tick(3000)
  await ended(refused!)
  assert.deepEqual(one.found.reasons, new Set(['no answer']))
  mock.timers.reset()
  answer.resolve()
  const [late] = await openInTurn(one, 1)
  assert.deepEqual(await statuses([first!, late!]), [200, 200])
  assert.equal(one.found.asked, 1, 'the late lease suffices')
  close([first!, late!])
})

it('A process that does not give back its slots delays others once, and its slots are free when it has ended', async ({
  mock,
}) => {
  const leases = new ConnectionLeases(4, 2)
  leases.add('a process that hangs', () => new Promise(() => {}))
  leases.leaseShare('a process that hangs')
  leases.add('a process that starts', () => assert.fail('it has nothing to give back'))
  await using one = await startServer(leases)
  const open = await openInTurn(one, 2)
  mock.timers.enable({ apis: ['setTimeout'] })
  const [delayed] = await openInTurn(one, 1)
  mock.timers.tick(1000)
  await ended(delayed!)
  // The timers stand still: nothing waits for the process any more.
  await ended(new RawConnection(one.url))
  mock.timers.reset()
  leases.forget('a process that hangs')
  open.push(...(await openInTurn(one, 2)))
  assert.deepEqual(await statuses(open), [200, 200, 200, 200])
  close(open)
})

/** Waits without a timer, since the timers stand still. */
async function ended({ socket }: RawConnection): Promise<void> {
  if (!socket.closed) await once(socket, 'close')
  assert.equal(socket.bytesRead, 0)
}

function countOf(server: Awaited<ReturnType<typeof startServer>>['server']): Promise<number> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count)))
}

/** Sends a request; resolves with whether it was answered, when it is or when the connection has ended. */
async function answerOrEnd(connection: RawConnection): Promise<boolean> {
  connection.send(GET)
  await until(() => connection.socket.bytesRead > 0 || connection.socket.destroyed)
  return connection.socket.bytesRead > 0
}

it('Refused connections are logged, and then their number every ten seconds', ({ mock }) => {
  mock.timers.enable({ apis: ['setInterval'] })
  const counts: unknown[] = []
  const write = (line: string) => void counts.push((JSON.parse(line) as { count?: number }).count)
  const server = createServer()
  const [log, monotonic] = [createLog('info', { write }), () => 0]
  tendConnections(server, { ...TIMEOUTS, maxConnections: 1, connectionLimit: undefined, monotonic, log }, () => {})
  for (let refused = 0; refused < 3; refused += 1) server.emit('drop')
  mock.timers.tick(10_000)
  assert.deepEqual(counts, [undefined, 2])
})
