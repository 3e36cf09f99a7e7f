// Requests that are sent without waiting for answers, and answers that nobody reads.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { residentMegabytes } from '../assurance/harness/process-tree.ts'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Folder, makeKey, serve } from './command.ts'
import { countPets, describeService, type Petstore, startPetstore } from './harness.ts'
import { RawConnection } from '../assurance/harness/raw-http.ts'

const HOST = 'Host: localhost\r\n'
/** Makes requests so long that less than a hundred of them arrive at once. */
const PADDING = `X-Padding: ${'x'.repeat(1000)}\r\n`

describeService('A pipelined request', (service) => {
  it('sees the effect of the one before it', async () => {
    const { url, key } = service()
    using connection = new RawConnection(url)
    const head = (method: string, more: string) =>
      `${method} /v1/pets HTTP/1.1\r\n${HOST}Authorization: Bearer ${key}\r\n${more}\r\n`
    for (let round = 0; round < 20; round += 1) {
      const body = JSON.stringify({ name: `pet ${round}`, categoryId: 1 })
      connection.send(
        head('POST', `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`) + body + head('GET', ''),
      )
      assert.equal((await connection.answer()).status, 201)
      const [newest] = JSON.parse((await connection.answer()).body) as { name: string }[]
      assert.equal(newest?.name, `pet ${round}`)
    }
  })

  it('is not served behind one whose Expect is refused: that one is the last of its connection', async () => {
    const petstore = service()
    const stored = await countPets(petstore)
    using connection = new RawConnection(petstore.url)
    const body = '{"name":"Rex","categoryId":1}'
    connection.send(
      `GET /livez HTTP/1.1\r\n${HOST}\r\n` +
        `GET /livez HTTP/1.1\r\n${HOST}Expect: a pony\r\n\r\n` +
        `POST /v1/pets HTTP/1.1\r\n${HOST}Authorization: Bearer ${petstore.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    assert.equal((await connection.answer()).status, 200)
    assert.equal((await connection.answer()).status, 417)
    await connection.closed()
    assert.equal((await petstore.add(body)).status, 201)
    assert.equal(await countPets(petstore), stored + 1, 'only the one that was answered')
  })

  it('waits as long as it takes, behind any number of others', async () => {
    const { url } = service()
    using connection = new RawConnection(url)
    connection.send(`GET /livez HTTP/1.1\r\n${HOST}${PADDING}\r\n`.repeat(2000))
    for (let count = 0; count < 2000; count += 1) assert.equal((await connection.answer()).status, 200)
  })

  it('is answered after the client has ended its side', async () => {
    const { url } = service()
    using connection = new RawConnection(url)
    connection.socket.end(`GET /v1/pets HTTP/1.1\r\n${HOST}\r\n`.repeat(3) + `GET /livez HTTP/1.1\r\n${HOST}\r\n`)
    for (const status of [401, 401, 401, 200]) assert.equal((await connection.answer()).status, status)
    await connection.closed()
  })
})

describe('A request behind an offer to upgrade', () => {
  let petstore: Petstore
  before(async () => {
    petstore = await startPetstore({ env: { PETSTORE_ADMIN_PORT: '0' } })
  })
  after(() => petstore[Symbol.asyncDispose]())

  const OFFER = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
  const get = (path: string) => `GET ${path} HTTP/1.1\r\n${HOST}OFFER\r\n`
  const list = `GET /v1/pets HTTP/1.1\r\n${HOST}KEYOFFER\r\n`
  const create = 'POST /v1/pets HTTP/1.1\r\nHost: localhost\r\nKEYOFFERContent-Type: application/json\r\n'
  const rex = '{"name":"Rex","categoryId":1}'
  const length = `Content-Length: ${rex.length}\r\n`
  const chunked = `Transfer-Encoding: chunked\r\n\r\n${rex.length.toString(16)}\r\n${rex}\r\n0\r\n\r\n`

  /** What is sent, and the statuses of the answers. */
  const cases: Record<string, [bytes: string, statuses: number[]]> = {
    'operations and pages': [list + get('/docs') + list + get('/v1/pets') + get('/livez'), [200, 200, 200, 401, 200]],
    'operations with bodies': [
      `${create}${length}\r\n${rex}${create}${chunked}${list}${create}\r\n`,
      [201, 201, 200, 400],
    ],
    'a body that must be asked for': [
      `${list}${create}${length}Expect: 100-continue\r\n\r\n${rex}${list}`,
      [200, 100, 201, 200],
    ],
    'a form of a page': [
      `${get('/livez')}POST /sign-in HTTP/1.1\r\n${HOST}OFFERContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b${get('/livez')}`,
      [200, 403, 200],
    ],
    'an expectation that fails': [`${list}GET /livez HTTP/1.1\r\n${HOST}OFFERExpect: tea\r\n\r\n`, [200, 417]],
    'many of them': [list.repeat(40), Array.from({ length: 40 }, () => 200)],
    'HTTP/1.0': [`GET /livez HTTP/1.0\r\nConnection: keep-alive\r\nOFFER\r\n${list}`, [200, 200]],
    'empty lines': [`${list}\r\n\r\n${list}`, [200, 200]],
    'a CONNECT': [`${list}CONNECT pets.example:443 HTTP/1.1\r\n${HOST}\r\nmore`, [200, 405]],
    'an unknown method': [`${list}PAT /v1/pets HTTP/1.1\r\n${HOST}\r\n`, [200, 400]],
    'another version': [`${list}GET /livez HTTP/3.0\r\n${HOST}\r\n`, [200, 400]],
    'a TLS handshake': [`${list}\x16\x03\x01\x02\x00`, [200, 400]],
    'HTTP/2': [`${list}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${'\0'.repeat(9)}`, [200, 400]],
  }

  for (const [what, [template, statuses]] of Object.entries(cases)) {
    it(`is answered as without that offer: ${what}`, async () => {
      for (const offer of ['', OFFER]) {
        const bytes = template.replaceAll('OFFER', offer).replaceAll('KEY', `Authorization: Bearer ${petstore.key}\r\n`)
        for (const cut of [0, ...Array.from({ length: 8 }, () => Math.ceil(Math.random() * (bytes.length - 1)))]) {
          using connection = new RawConnection(petstore.url)
          connection.socket.setNoDelay(true).write(bytes.slice(0, cut), 'latin1')
          await setTimeout(2)
          connection.socket.write(bytes.slice(cut), 'latin1')
          for (const [index, status] of statuses.entries())
            assert.equal((await connection.answer()).status, status, `answer ${index}, cut at ${cut}, ${offer}`)
        }
      }
    })
  }

  it('is answered on the admin port, too', async () => {
    using connection = new RawConnection(petstore.adminUrl!)
    connection.send(
      get('/livez').replace('OFFER', OFFER) +
        get('/readyz').replace('OFFER', OFFER) +
        get('/nowhere').replace('OFFER', ''),
    )
    for (const status of [200, 200, 404]) assert.equal((await connection.answer()).status, status)
  })
})

describe('A client that does not read its answers', () => {
  it('costs little memory, however many requests it sends: the service goes on', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    const { url, child } = await serve(folder)
    const authorization = `Authorization: Bearer ${key}\r\n`
    const body = JSON.stringify({ name: 'x'.repeat(200), categoryId: 1 })
    for (let count = 0; count < 100; count += 1) {
      await fetch(`${url}/v1/pets`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body,
      })
    }
    const atFirst = residentMegabytes(child.pid!)
    const list = `GET /v1/pets?limit=100 HTTP/1.1\r\n${HOST}${authorization}`
    const requests = [
      `${list}\r\n`,
      `${list}${PADDING}\r\n`,
      `GET /docs/errors HTTP/1.1\r\n${HOST}\r\n`,
      `GET /docs/errors HTTP/1.1\r\n${HOST}${PADDING}\r\n`,
    ]
    const sockets = Array.from({ length: 40 }, (_, index) => unread(url, requests[index % 4]!.repeat(10_000)))
    await setTimeout(3000)
    const grown = residentMegabytes(child.pid!) - atFirst
    assert.equal((await fetch(`${url}/livez`)).status, 200)
    for (const socket of sockets) socket.destroy()
    assert.ok(grown < 150, `memory grew by ${grown} MB`)
  })

  it('may let 128 requests wait behind the one that is served, and not one more', async () => {
    await using petstore = await startPetstore()
    for (const [count, answers] of [
      [129, 129],
      [130, 0],
    ] as const) {
      using connection = new RawConnection(petstore.url)
      await once(connection.socket, 'connect')
      connection.send(`GET /livez HTTP/1.1\r\n${HOST}\r\n`.repeat(count))
      for (let nth = 0; nth < answers; nth += 1) assert.equal((await connection.answer()).status, 200)
      if (answers === 0) await connection.closed()
    }
  })
})

/** A connection on which this is sent, and nothing is read. */
function unread(url: string, bytes: string): Socket {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).on('error', () => {})
  socket.write(bytes)
  return socket
}
