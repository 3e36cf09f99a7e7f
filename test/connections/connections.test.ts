// What becomes of connections: several requests on one, clients that are slow, leave, or send on after their answer.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { TIMEOUTS as DEFAULT_TIMEOUTS } from '../../src/http/app.ts'
import { until } from '../harness/until.ts'
import { Folder, serve } from '../harness/programs/command.ts'
import { allowedAt, countPets, type Petstore, sharePetstore, startPetstore } from '../harness/harness.ts'
import { create, expectRawError, get, list, LIVEZ, RawConnection, REX } from '../harness/connections/raw-http.ts'

const CONNECT = 'CONNECT pets.example:443 HTTP/1.1\r\nHost: pets.example\r\n\r\n'

const newestNames = async (petstore: Petstore, limit: number) =>
  ((await (await petstore.call(`/pets?limit=${limit}`)).json()) as { name: string }[]).map(({ name }) => name)

describe('A connection', () => {
  const service = sharePetstore()
  /** What was logged, and how many animals there were, before the test. */
  let linesBefore = 0
  let petsBefore = 0
  const mark = async () => {
    linesBefore = service().logged.length
    petsBefore = await countPets(service())
  }
  const linesSince = () => service().logged.slice(linesBefore)
  const petsSince = async () => (await countPets(service())) - petsBefore

  it('carries requests one after the other without waiting, answered in their order', async () => {
    using connection = new RawConnection(service().url)
    connection.send(
      create(service().key) + list(service().key) + create(service().key, '{') + get('/nowhere') + list(service().key),
    )
    for (const expected of [201, 200, 400, 404, 200]) {
      const { status, headers } = await connection.answer()
      assert.deepEqual([status, headers.get('keep-alive')], [expected, 'timeout=65'])
    }
  })

  it('carries very many at once: none is lost, and what they add is in their order', async () => {
    using connection = new RawConnection(service().url)
    const added = Array.from({ length: 100 }, (_, index) => `pet ${index}`)
    connection.send(added.map((name) => create(service().key, JSON.stringify({ name, categoryId: 1 }))).join(''))
    for (const name of added)
      assert.equal((JSON.parse((await connection.answer()).body) as { name: string }).name, name)
    assert.deepEqual(await newestNames(service(), 100), added.toReversed())
  })

  const LAST = {
    'it is told that the next request is broken': ['NONSENSE\r\n\r\nNONSENSE\r\n\r\n', 'malformed_request', undefined],
    'a CONNECT is refused': [CONNECT, 'method_not_allowed', allowedAt()],
  } as const
  for (const [what, [last, code, allow]] of Object.entries(LAST)) {
    it(`gets the answers that are due before ${what}`, async () => {
      await mark()
      using connection = new RawConnection(service().url)
      connection.send(create(service().key) + list(service().key) + last)
      assert.deepEqual(await connection.statuses(2), [201, 200])
      const refused = await connection.answer()
      expectRawError(refused, code)
      assert.equal(refused.headers.get('allow'), allow)
      await connection.closed()
      assert.equal(await petsSince(), 1)
    })
  }

  it('may be left in the middle of a request, or reset after a refused CONNECT: nothing is stored, and the service goes on', async () => {
    await mark()
    const whole = create(service().key)
    for (const length of [1, 20, whole.length - REX.length - 2, whole.length - 10, whole.length - 1]) {
      using connection = new RawConnection(service().url)
      connection.send(whole.slice(0, length))
      await setTimeout(20)
    }
    for (let count = 0; count < 20; count += 1) {
      using connection = new RawConnection(service().url)
      await once(connection.socket, 'connect')
      connection.send(whole.slice(0, -1))
      connection.socket.resetAndDestroy()
    }
    for (let count = 0; count < 5; count += 1) {
      using connection = new RawConnection(service().url)
      connection.send(CONNECT)
      connection.socket.once('data', () => connection.socket.resetAndDestroy())
      await once(connection.socket, 'close')
    }
    using half = new RawConnection(service().url)
    half.socket.end(whole.slice(0, -5))
    expectRawError(await half.answer(), 'malformed_request')
    assert.equal(await petsSince(), 0)
    assert.deepEqual(
      linesSince().filter(({ level }) => level === 'error'),
      [],
    )
  })

  it('takes a request byte by byte', async () => {
    using connection = new RawConnection(service().url)
    connection.socket.setNoDelay(true)
    for (const character of create(service().key)) {
      connection.send(character)
      await setImmediate()
    }
    assert.equal((await connection.answer()).status, 201)
  })

  it("leaves a line in the log with the client's address where it breaks off in a body, asked for or not yet", async () => {
    const expecting = create(service().key, REX, 'Expect: 100-continue\r\n').slice(0, -REX.length)
    const delayed = create(service().key, REX, 'Petstore-Rehearse: delay=100ms\r\n').slice(0, -1)
    const broken: [bytes: string, status: number][] = [
      [expecting, 100],
      // Both come in one packet: with the answer to the first, the other request is under way.
      [LIVEZ + delayed, 200],
    ]
    for (const [bytes, status] of broken) {
      await mark()
      using connection = new RawConnection(service().url)
      assert.equal((await connection.ask(bytes)).status, status)
      connection.socket.resetAndDestroy()
      const creates = () => linesSince().filter(({ operation }) => operation === 'createPet')
      await until(() => creates().length > 0, 'the request is logged')
      assert.deepEqual(
        creates().map(({ code, address }) => [code, address]),
        [['malformed_request', '127.0.0.1']],
      )
    }
  })

  it('waits for its turn with many others, and the event loop turns meanwhile', async () => {
    const open = Array.from({ length: 500 }, () => new RawConnection(service().url))
    const askAll = async () => {
      for (const connection of open) connection.send(list(service().key))
      for (const connection of open) assert.equal((await connection.answer()).status, 200)
    }
    // Connections are accepted one in a turn: now all of them are.
    await askAll()
    let inThisTurn = 0
    let mostInATurn = 0
    for (const { socket } of open) {
      socket.on('data', () => {
        inThisTurn += 1
        if (inThisTurn === 1) void setImmediate().then(() => (inThisTurn = 0))
        mostInATurn = Math.max(mostInATurn, inThisTurn)
      })
    }
    await askAll()
    assert.ok(mostInATurn <= 256, `${mostInATurn} answers came in one turn`)
    for (const connection of open) connection[Symbol.dispose]()
  })

  it('takes no other request with it where its client leaves just after sending', async () => {
    using leaving = new RawConnection(service().url)
    using staying = new RawConnection(service().url)
    for (const connection of [leaving, staying]) assert.equal((await connection.ask(LIVEZ)).status, 200)
    const leave = (message: unknown) => {
      const { request, socket } = message as { request: IncomingMessage; socket: Socket }
      if (request.url === '/livez?leaving') process.nextTick(() => socket.destroy())
    }
    subscribe('http.server.request.start', leave)
    try {
      leaving.send(get('/livez?leaving'))
      assert.equal((await staying.ask(LIVEZ)).status, 200)
      await leaving.closed()
    } finally {
      unsubscribe('http.server.request.start', leave)
    }
  })
})

describe('A connection with limits', { concurrency: 3 }, () => {
  it('is told 408 where the headers, or the body, take too long, and ends without a word where nothing is asked any more', async () => {
    const timeouts = {
      headersTimeout: 300,
      requestTimeout: 600,
      keepAliveTimeout: 300,
      stalledTimeout: 1000,
      lingerTimeout: 1000,
      connectionsCheckingInterval: 50,
    }
    await using petstore = await startPetstore({ timeouts })
    const slow = ['', 'GET /v1/pets HTT', get('/v1/pets', 'X-Slow: ').slice(0, -2), create(petstore.key).slice(0, -1)]
    for (const start of slow) {
      using connection = new RawConnection(petstore.url)
      expectRawError(await connection.ask(start), 'request_timeout')
      await connection.closed()
    }
    assert.equal(await countPets(petstore), 0)
    assert.deepEqual(
      petstore.logged.flatMap(({ code }) => code ?? []),
      slow.map(() => 'request_timeout'),
      'each has one line',
    )
    // With the usual time for the headers, which may take a while on a busy machine.
    const { keepAliveTimeout, connectionsCheckingInterval } = timeouts
    await using patient = await startPetstore({
      timeouts: { ...DEFAULT_TIMEOUTS, keepAliveTimeout, connectionsCheckingInterval },
    })
    using idle = new RawConnection(patient.url)
    assert.equal((await idle.ask(list(patient.key))).status, 200)
    await idle.closed()
  })

  it('ends where a client that has its last answer falls silent and never ends its side', async () => {
    const timeouts = { ...DEFAULT_TIMEOUTS, lingerTimeout: 60_000 }
    await using petstore = await startPetstore({ timeouts, env: { PETSTORE_ADMIN_PORT: '0' } })
    using connection = new RawConnection(petstore.url, { allowHalfOpen: true })
    assert.equal((await connection.ask(get('/livez', 'Connection: close\r\n'))).status, 200)
    await until(
      async () => /^petstore_connections 0$/m.test(await (await fetch(`${petstore.adminUrl}/metrics`)).text()),
      'the service has closed it',
    )
  })

  it('is closed at once where too many are open, and the admin port still answers', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_MAX_CONNECTIONS: '3', PETSTORE_ADMIN_PORT: '0' } })
    const open = [1, 2, 3].map(() => new RawConnection(petstore.url))
    for (const connection of open) assert.equal((await connection.ask(list(petstore.key))).status, 200)
    for (let count = 0; count < 3; count += 1) {
      using refused = new RawConnection(petstore.url)
      await refused.closed()
    }
    assert.equal((await fetch(`${petstore.adminUrl}/livez`)).status, 200)
    const refusals = petstore.logged.filter(({ msg }) => String(msg).startsWith('connections are refused'))
    assert.deepEqual(
      refusals.map(({ level, maxConnections }) => [level, maxConnections]),
      [['warn', 3]],
    )
    open.pop()![Symbol.dispose]()
    await until(async () => (await fetch(`${petstore.url}/livez`)).ok, 'a connection is accepted again')
    for (const connection of open) connection[Symbol.dispose]()
  })

  it('does not hold up a stop, whatever it left undone', async () => {
    // No timeout ends a connection before the stop would be late.
    const timeouts = { ...DEFAULT_TIMEOUTS, headersTimeout: 60_000, requestTimeout: 60_000, lingerTimeout: 60_000 }
    const petstore = await startPetstore({ timeouts, env: { PETSTORE_ADMIN_PORT: '0' } })
    using tunnel = new RawConnection(petstore.url)
    expectRawError(await tunnel.ask(`${CONNECT}some bytes`), 'method_not_allowed')
    using open = new RawConnection(petstore.url)
    open.send(create(petstore.key).slice(0, -5))
    using scrape = new RawConnection(petstore.adminUrl!)
    scrape.send('GET /metrics HTTP/1.1\r\nHost: ')
    await setTimeout(50)
    const started = performance.now()
    await petstore[Symbol.asyncDispose]()
    assert.ok(performance.now() - started < 30_000)
  })
})

/** Linux limits every backlog by this. */
const SOMAXCONN = '/proc/sys/net/core/somaxconn'
const hasLongBacklog = existsSync(SOMAXCONN) && Number(readFileSync(SOMAXCONN, 'utf8')) >= 1000

describe('New connections', () => {
  it('are not kept waiting by many busy ones: waiting ones are let in before requests are served', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_LOG_LEVEL: 'warn' } })
    const request = list(petstore.key)
    const open = async (length: number) => {
      const connections = Array.from({ length }, () => new RawConnection(petstore.url))
      await Promise.all(connections.map(({ socket }) => once(socket, 'connect')))
      return connections
    }
    let served = 0
    const busy = await open(300)
    for (const { socket } of busy) {
      socket.on('data', () => {
        served += 1
        socket.write(request)
      })
      socket.write(request)
    }
    await until(() => served > busy.length, 'all of them are busy')
    const servedBefore = served
    const newcomers = await open(20)
    await Promise.all(newcomers.map((newcomer) => newcomer.ask(request)))
    const beside = (served - servedBefore) / newcomers.length
    for (const { socket } of [...busy, ...newcomers]) socket.destroy()
    // About 50, with the turns that clients of the same process take; some 1,200, were each turn to serve requests.
    assert.ok(beside < 250, `${beside} requests of busy connections were served for each new one`)
  })

  it('wait for a process that is busy, some thousands of them', { skip: !hasLongBacklog }, async () => {
    await using folder = await Folder.create()
    const { url, child } = await serve(folder)
    child.kill('SIGSTOP')
    // Node's own default is 511.
    const waiting = Array.from({ length: 700 }, () => new RawConnection(url))
    await Promise.all(waiting.map(({ socket }) => once(socket, 'connect')))
    child.kill('SIGCONT')
    for (const { socket } of waiting) socket.destroy()
  })
})
