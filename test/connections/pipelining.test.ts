// Requests that are sent without waiting for answers, and answers that nobody reads.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { residentMegabytes } from '../harness/programs/process-tree.ts'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Folder, makeKey, serve } from '../harness/programs/command.ts'
import { countPets, describeService, sharePetstore } from '../harness/harness.ts'
import { create, get, keyHeader, list, LIVEZ, RawConnection, REX } from '../harness/connections/raw-http.ts'

const HOST = 'Host: localhost\r\n'
/** Makes requests so long that less than a hundred of them arrive at once. */
const PADDING = `X-Padding: ${'x'.repeat(1000)}\r\n`

describeService('A pipelined request', (service) => {
  it('sees the effect of the one before it', async () => {
    const { url, key } = service()
    using connection = new RawConnection(url)
    for (let round = 0; round < 20; round += 1) {
      const body = JSON.stringify({ name: `pet ${round}`, categoryId: 1 })
      connection.send(create(key, body) + list(key))
      assert.equal((await connection.answer()).status, 201)
      const [newest] = JSON.parse((await connection.answer()).body) as { name: string }[]
      assert.equal(newest?.name, `pet ${round}`)
    }
  })
})

describe('A pipelined request', () => {
  const service = sharePetstore({ env: { PETSTORE_ADMIN_PORT: '0' } })

  it('is not served behind one whose Expect is refused: that one is the last of its connection', async () => {
    using connection = new RawConnection(service().url)
    connection.send(LIVEZ + get('/livez', 'Expect: a pony\r\n') + create(service().key))
    assert.deepEqual(await connection.statuses(2), [200, 417])
    await connection.closed()
    assert.equal((await service().add(REX)).status, 201)
    assert.equal(await countPets(service()), 1, 'only the one that was answered')
  })

  it('waits as long as it takes, behind any number of others', async () => {
    using connection = new RawConnection(service().url)
    connection.send(get('/livez', PADDING).repeat(2000))
    assert.deepEqual(new Set(await connection.statuses(2000)), new Set([200]))
  })

  it('is answered after the client has ended its side', async () => {
    using connection = new RawConnection(service().url)
    connection.socket.end(get('/v1/pets').repeat(3) + LIVEZ)
    assert.deepEqual(await connection.statuses(4), [401, 401, 401, 200])
    await connection.closed()
  })

  it('is one of at most 128 that wait behind the one that is served: with one more, its connection is closed', async () => {
    for (const [count, answers] of [
      [129, 129],
      [130, 0],
    ] as const) {
      using connection = new RawConnection(service().url)
      await once(connection.socket, 'connect')
      connection.send(LIVEZ.repeat(count))
      assert.equal((await connection.statuses(answers)).length, answers)
      if (answers === 0) await connection.closed()
    }
  })

  const OFFER = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
  const form = `Content-Type: application/json\r\nContent-Length: ${REX.length}\r\n`
  const post = (headers: string, body: string) => `POST /v1/pets HTTP/1.1\r\n${HOST}${OFFER}${headers}\r\n${body}`

  it('behind an offer to upgrade is not served: the offer is ignored, and its answer is the last of the connection', async () => {
    const { key, adminUrl, url } = service()
    const offering: [bytes: string, statuses: number[], at?: string | undefined][] = [
      [get('/v1/pets', keyHeader(key) + OFFER), [200]],
      [get('/v1/pets', OFFER), [401]],
      [get('/docs', OFFER), [200]],
      [get('/livez', OFFER), [200], adminUrl],
      [`GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n${OFFER}\r\n`, [200]],
      [post(keyHeader(key) + form, REX), [201]],
      [post(`${keyHeader(key)}${form}Expect: 100-continue\r\n`, REX), [100, 201]],
    ]
    const before = await countPets(service())
    let created = 0
    for (const [bytes, statuses, at = url] of offering) {
      const all = bytes + create(key).repeat(3)
      for (const cut of [
        0,
        bytes.length,
        bytes.length + 9,
        ...Array.from({ length: 5 }, () => Math.ceil(Math.random() * (all.length - 1))),
      ]) {
        using connection = new RawConnection(at)
        connection.socket.setNoDelay(true).write(all.slice(0, cut), 'latin1')
        await setTimeout(2)
        connection.socket.write(all.slice(cut), 'latin1')
        assert.deepEqual(await connection.statuses(statuses.length), statuses, `${bytes}, cut at ${cut}`)
        await connection.closed()
        if (statuses.includes(201)) created += 1
      }
    }
    assert.equal(await countPets(service()), before + created)
  })
})

describe('A client that does not read its answers', () => {
  it('costs little memory, however many requests it sends: the service goes on', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    const { url, child } = await serve(folder)
    using filling = new RawConnection(url)
    const body = JSON.stringify({ name: 'x'.repeat(200), categoryId: 1 })
    for (let count = 0; count < 100; count += 1) assert.equal((await filling.ask(create(key, body))).status, 201)
    const atFirst = residentMegabytes(child.pid!)
    const requests = ['', PADDING].flatMap((padding) => [
      get('/v1/pets?limit=100', keyHeader(key) + padding),
      get('/docs/errors', padding),
    ])
    const unread = Array.from({ length: 40 }, (_, index) => {
      const connection = new RawConnection(url)
      connection.socket.pause()
      connection.send(requests[index % 4]!.repeat(10_000))
      return connection
    })
    await setTimeout(3000)
    const grown = residentMegabytes(child.pid!) - atFirst
    assert.equal((await fetch(`${url}/livez`)).status, 200)
    for (const { socket } of unread) socket.destroy()
    assert.ok(grown < 150, `memory grew by ${grown} MB`)
  })
})
