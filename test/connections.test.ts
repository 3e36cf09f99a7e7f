// What becomes of connections: several requests on one, clients that are slow, leave, or send on after their answer.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { TIMEOUTS as DEFAULT_TIMEOUTS } from '../src/http/app.ts'
import { until } from '../assurance/harness/until.ts'
import { Folder, serve } from './command.ts'
import { allowedAt, type Petstore, startPetstore } from './harness.ts'
import { expectRawError, RawConnection } from '../assurance/harness/raw-http.ts'

const REX = '{"name":"Rex","categoryId":1}'
const HOST = 'Host: pets.example\r\n'
const JSON_TYPE = 'Content-Type: application/json\r\n'
const TIMEOUTS = {
  headersTimeout: 300,
  requestTimeout: 600,
  keepAliveTimeout: 300,
  stalledTimeout: 1000,
  lingerTimeout: 1000,
  connectionsCheckingInterval: 50,
}

const keyOf = ({ key }: Petstore) => `Authorization: Bearer ${key}\r\n`
const create = (petstore: Petstore, body = REX) =>
  `POST /v1/pets HTTP/1.1\r\n${HOST}${keyOf(petstore)}${JSON_TYPE}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const list = (petstore: Petstore) => `GET /v1/pets HTTP/1.1\r\n${HOST}${keyOf(petstore)}\r\n`
const names = async (petstore: Petstore) =>
  ((await (await petstore.call('/pets')).json()) as { name: string }[]).map(({ name }) => name)

describe('A connection', { concurrency: 3 }, () => {
  it('carries requests one after the other without waiting, answered in their order', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    connection.send(
      create(petstore) +
        list(petstore) +
        create(petstore, '{') +
        'GET /nowhere HTTP/1.1\r\n' +
        HOST +
        '\r\n' +
        list(petstore),
    )
    for (const expected of [201, 200, 400, 404, 200]) {
      const { status, headers } = await connection.answer()
      assert.deepEqual([status, headers.get('keep-alive')], [expected, 'timeout=65'])
    }
  })

  it('carries very many at once: none is lost, and what they add is in their order', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    const added = Array.from({ length: 100 }, (_, index) => `pet ${index}`)
    connection.send(added.map((name) => create(petstore, JSON.stringify({ name, categoryId: 1 }))).join(''))
    for (const name of added)
      assert.equal((JSON.parse((await connection.answer()).body) as { name: string }).name, name)
    const newestFirst = (await (await petstore.call('/pets?limit=100')).json()) as { name: string }[]
    assert.deepEqual(
      newestFirst.map(({ name }) => name),
      added.toReversed(),
    )
  })

  it('gets the answers that are due before it is told that the next request is broken', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    connection.send(create(petstore) + list(petstore) + 'NONSENSE\r\n\r\nNONSENSE\r\n\r\n')
    assert.equal((await connection.answer()).status, 201)
    assert.equal((await connection.answer()).status, 200)
    expectRawError(await connection.answer(), 'malformed_request')
    await connection.closed()
    assert.deepEqual(await names(petstore), ['Rex'])
  })

  it('gets the answers that are due before a CONNECT is refused', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    connection.send(create(petstore) + list(petstore) + `CONNECT pets.example:443 HTTP/1.1\r\n${HOST}\r\n`)
    assert.equal((await connection.answer()).status, 201)
    assert.equal((await connection.answer()).status, 200)
    const refused = await connection.answer()
    expectRawError(refused, 'method_not_allowed')
    assert.equal(refused.headers.get('allow'), allowedAt())
    await connection.closed()
  })

  it('gets one answer to a request that breaks after it, and ends', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    connection.send(`POST /v1/pets HTTP/1.1\r\n${HOST}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`)
    expectRawError(await connection.answer(), 'missing_api_key')
    connection.send('nonsense\r\n')
    await connection.closed()
  })

  it('may be reset after a refused CONNECT: the service goes on', async () => {
    await using petstore = await startPetstore()
    for (let count = 0; count < 5; count += 1) {
      using connection = new RawConnection(petstore.url)
      connection.send(`CONNECT pets.example:443 HTTP/1.1\r\n${HOST}\r\n`)
      connection.socket.once('data', () => connection.socket.resetAndDestroy())
      await once(connection.socket, 'close')
    }
    assert.deepEqual(await names(petstore), [])
  })

  it('may be left in the middle of a request: nothing is stored, and the service goes on', async () => {
    await using petstore = await startPetstore()
    const whole = create(petstore)
    for (const length of [1, 20, whole.length - REX.length - 2, whole.length - 10, whole.length - 1]) {
      using connection = new RawConnection(petstore.url)
      connection.send(whole.slice(0, length))
      await setTimeout(20)
    }
    for (let count = 0; count < 20; count += 1) {
      using connection = new RawConnection(petstore.url)
      await once(connection.socket, 'connect')
      connection.send(whole.slice(0, -1))
      connection.socket.resetAndDestroy()
    }
    using half = new RawConnection(petstore.url)
    half.socket.end(whole.slice(0, -5))
    expectRawError(await half.answer(), 'malformed_request')
    assert.deepEqual(await names(petstore), [])
    assert.deepEqual(
      petstore.logged.filter(({ level }) => level === 'error'),
      [],
    )
  })

  it('takes a request byte by byte', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    connection.socket.setNoDelay(true)
    for (const character of create(petstore)) {
      connection.send(character)
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.equal((await connection.answer()).status, 201)
  })

  it('is asked for the body with 100 Continue, also where the answer then is no', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    const [head, body] = create(petstore).split('\r\n\r\n')
    connection.send(`${head}\r\nExpect: 100-continue\r\n\r\n`)
    assert.equal((await connection.answer()).status, 100)
    connection.send(body!)
    assert.equal((await connection.answer()).status, 201)
  })

  it('is told 408 where the headers, or the body, take too long; nothing is stored', async () => {
    await using petstore = await startPetstore({ timeouts: TIMEOUTS })
    for (const start of [
      '',
      'GET /v1/pets HTT',
      `GET /v1/pets HTTP/1.1\r\n${HOST}X-Slow: `,
      create(petstore).slice(0, -1),
    ]) {
      using connection = new RawConnection(petstore.url)
      connection.send(start)
      expectRawError(await connection.answer(), 'request_timeout')
      await connection.closed()
    }
    assert.deepEqual(await names(petstore), [])
    const timeouts = petstore.logged.filter(({ code }) => code === 'request_timeout')
    assert.equal(timeouts.length, 4)
    assert.equal(petstore.logged.filter(({ status }) => status === 400).length, 0, 'and each has one line')
  })

  it('ends without a word where nothing is asked any more', async () => {
    await using petstore = await startPetstore({ timeouts: TIMEOUTS })
    using connection = new RawConnection(petstore.url)
    connection.send(list(petstore))
    assert.equal((await connection.answer()).status, 200)
    await connection.closed()
  })

  it('ends where a client that has its answer never ends its request', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    connection.send(
      `POST /v1/pets HTTP/1.1\r\n${HOST}${keyOf(petstore)}${JSON_TYPE}Content-Length: 999999999999\r\n\r\n{`,
    )
    expectRawError(await connection.answer(), 'body_too_large')
    await connection.closed()
  })

  it('ends where a client that was refused a CONNECT sends on', async () => {
    await using petstore = await startPetstore({ timeouts: TIMEOUTS })
    using connection = new RawConnection(petstore.url, { allowHalfOpen: true })
    connection.send(`CONNECT pets.example:443 HTTP/1.1\r\n${HOST}\r\n`)
    expectRawError(await connection.answer(), 'method_not_allowed')
    const sending = setInterval(() => connection.send('more'), 50)
    try {
      await connection.closed()
    } finally {
      clearInterval(sending)
    }
  })

  it("leaves a line in the log with the client's address where it breaks off in a body", async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    const [head] = create(petstore).split('\r\n\r\n')
    connection.send(`${head}\r\nExpect: 100-continue\r\n\r\n`)
    assert.equal((await connection.answer()).status, 100)
    connection.socket.resetAndDestroy()
    await until(() => petstore.logged.length > 0, 'the request is logged')
    assert.deepEqual(
      petstore.logged.map(({ operation, code, address }) => [operation, code, address]),
      [['createPet', 'malformed_request', '127.0.0.1']],
    )
  })

  it('leaves a line in the log where it breaks off before its body is asked for', async () => {
    await using petstore = await startPetstore()
    using connection = new RawConnection(petstore.url)
    const delayed = create(petstore).replace(HOST, `${HOST}Petstore-Rehearse: delay=100ms\r\n`)
    connection.send(`GET /livez HTTP/1.1\r\n${HOST}\r\n${delayed.slice(0, -1)}`)
    // Both came in one packet: with this answer, the other request is under way.
    assert.equal((await connection.answer()).status, 200)
    connection.socket.resetAndDestroy()
    const creates = () => petstore.logged.filter(({ operation }) => operation === 'createPet')
    await until(() => creates().length > 0, 'the request is logged')
    assert.deepEqual(
      creates().map(({ code }) => code),
      ['malformed_request'],
    )
  })

  it('ends where a client that has its last answer falls silent and never ends its side', async () => {
    await using petstore = await startPetstore({
      timeouts: { ...DEFAULT_TIMEOUTS, lingerTimeout: 60_000 },
      env: { PETSTORE_ADMIN_PORT: '0' },
    })
    using connection = new RawConnection(petstore.url, { allowHalfOpen: true })
    connection.send(`GET /livez HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`)
    assert.equal((await connection.answer()).status, 200)
    await until(
      async () => /^petstore_connections 0$/m.test(await (await fetch(`${petstore.adminUrl}/metrics`)).text()),
      'the service has closed it',
    )
  })

  it('is closed at once where too many are open, and the admin port still answers', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_MAX_CONNECTIONS: '3', PETSTORE_ADMIN_PORT: '0' } })
    const open = [1, 2, 3].map(() => new RawConnection(petstore.url))
    for (const connection of open) {
      connection.send(list(petstore))
      assert.equal((await connection.answer()).status, 200)
    }
    for (let count = 0; count < 3; count += 1) {
      using refused = new RawConnection(petstore.url)
      await refused.closed()
    }
    assert.equal((await fetch(`${petstore.adminUrl}/livez`)).status, 200)
    const refusals = petstore.logged.filter(({ msg }) => String(msg).startsWith('connections are refused'))
    assert.deepEqual(
      refusals.map(({ level }) => level),
      ['warn'],
    )
    open.pop()![Symbol.dispose]()
    await until(async () => (await fetch(`${petstore.url}/livez`)).ok, 'a connection is accepted again')
    for (const connection of open) connection[Symbol.dispose]()
  })

  it('waits for its turn with many others, and the event loop turns meanwhile', async () => {
    await using petstore = await startPetstore()
    const open = Array.from({ length: 500 }, () => new RawConnection(petstore.url))
    const askAll = async () => {
      for (const connection of open) connection.send(list(petstore))
      for (const connection of open) assert.equal((await connection.answer()).status, 200)
    }
    // Connections are accepted one in a turn: now all of them are.
    await askAll()
    let inThisTurn = 0
    let mostInATurn = 0
    for (const { socket } of open) {
      socket.on('data', () => {
        inThisTurn += 1
        if (inThisTurn === 1) setImmediate(() => (inThisTurn = 0))
        mostInATurn = Math.max(mostInATurn, inThisTurn)
      })
    }
    await askAll()
    assert.ok(mostInATurn <= 256, `${mostInATurn} answers came in one turn`)
    for (const connection of open) connection[Symbol.dispose]()
  })

  it('takes no other request with it where its client leaves just after sending', async () => {
    await using petstore = await startPetstore()
    using leaving = new RawConnection(petstore.url)
    using staying = new RawConnection(petstore.url)
    const ask = (target: string) => `GET ${target} HTTP/1.1\r\n${HOST}\r\n`
    for (const connection of [leaving, staying]) {
      connection.send(ask('/livez'))
      assert.equal((await connection.answer()).status, 200)
    }
    const leave = (message: unknown) => {
      const { request, socket } = message as { request: IncomingMessage; socket: Socket }
      if (request.url === '/livez?leaving') process.nextTick(() => socket.destroy())
    }
    subscribe('http.server.request.start', leave)
    try {
      leaving.send(ask('/livez?leaving'))
      staying.send(ask('/livez'))
      assert.equal((await staying.answer()).status, 200)
      await leaving.closed()
    } finally {
      unsubscribe('http.server.request.start', leave)
    }
  })

  it('does not hold up a stop, whatever it left undone', async () => {
    // No timeout ends a connection before the stop would be late.
    const timeouts = { ...DEFAULT_TIMEOUTS, headersTimeout: 60_000, requestTimeout: 60_000, lingerTimeout: 60_000 }
    const petstore = await startPetstore({ timeouts, env: { PETSTORE_ADMIN_PORT: '0' } })
    using tunnel = new RawConnection(petstore.url)
    tunnel.send(`CONNECT pets.example:443 HTTP/1.1\r\n${HOST}\r\nsome bytes`)
    expectRawError(await tunnel.answer(), 'method_not_allowed')
    using open = new RawConnection(petstore.url)
    open.send(create(petstore).slice(0, -5))
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
    const request = `GET /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${petstore.key}\r\n\r\n`
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
    const before = served
    const newcomers = await open(20)
    for (const newcomer of newcomers) newcomer.send(request)
    await Promise.all(newcomers.map((newcomer) => newcomer.answer()))
    const beside = (served - before) / newcomers.length
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
    await Promise.all(waiting.map(({ socket }) => once(socket, 'connect', { signal: AbortSignal.timeout(30_000) })))
    child.kill('SIGCONT')
    for (const { socket } of waiting) socket.destroy()
  })
})
