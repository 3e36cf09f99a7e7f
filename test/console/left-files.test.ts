// Files and searches whose people have gone, and people who ask for many: nobody else waits, and no connection or reading is left.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { TIMEOUTS } from '../../src/http/app.ts'
import { ClientLeft } from '../../src/http/connections/client-left.ts'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { get, LIVEZ, RawConnection } from '../harness/connections/raw-http.ts'
import { until } from '../harness/until.ts'
import { type ConsoleClient, signedIn, signedInAs } from '../harness/connections/console-client.ts'
import { describeService, type Petstore, startPetstore } from '../harness/harness.ts'

const PAGE = '/animals/import'
const rows = (count: number, name = 'Rex') =>
  `name,categoryId\n${Array.from({ length: count }, (_, index) => `${name} ${index},3\n`).join('')}`

async function bring(person: ConsoleClient, content: string): Promise<string> {
  const sent = await person.postFile(PAGE, await person.hiddenFields(PAGE), content, 'pets.csv')
  assert.equal(sent.status, 303, sent.body)
  return sent.location!
}

/** Holds each reading of a file at its first part, until it is released, and counts them. */
function hold({ store: { uploads } }: Petstore, page: string) {
  const read = uploads.part.bind(uploads)
  const { promise: released, resolve } = Promise.withResolvers<void>()
  const held = { begun: 0, parts: 0, release: resolve, [Symbol.dispose]: () => void (uploads.part = read) }
  uploads.part = async (id, number) => {
    if (!page.endsWith(id)) return read(id, number)
    held.parts += 1
    if (number === 0) held.begun += 1
    await released
    return read(id, number)
  }
  return held
}

const HANG_UPS: Record<string, (connection: RawConnection) => void> = {
  'an end': ({ socket }) => socket.end(),
  'a reset behind requests that wait': ({ socket }) =>
    void socket.write(LIVEZ.repeat(5), () => void setTimeout(10).then(() => socket.resetAndDestroy())),
}

const BREAK_OFFS: ((connection: RawConnection) => void)[] = [
  ({ socket }) => socket.end(),
  ({ socket }) => void setTimeout(20).then(() => socket.resetAndDestroy()),
  (connection) => connection.send('no chunk\r\n'),
]

const ADMIN = { PETSTORE_ADMIN_PORT: '0' }

describeService(
  'A file whose reader has gone',
  (service) => {
    const connections = async () => {
      const page = await (await fetch(`${service().adminUrl}/metrics`)).text()
      return Number(/^petstore_connections (\d+)$/m.exec(page)?.[1])
    }

    for (const [how, hangUp] of Object.entries(HANG_UPS))
      it(`is read no further, and keeps no connection, after ${how}; others are answered meanwhile`, async () => {
        const person = await signedIn(service())
        const other = await signedInAs(service(), `${how.replaceAll(' ', '-')}@example.com`)
        const content = rows(2500, how)
        const page = await bring(person, content)
        const others = await bring(other, rows(100))
        const body = new URLSearchParams({ ...(await person.hiddenFields(page)), act: 'add' }).toString()
        const cookie = `Cookie: ${person.cookie}\r\n`
        const type = 'Content-Type: application/x-www-form-urlencoded\r\n'
        const form = `POST ${page} HTTP/1.1\r\nHost: localhost\r\n${cookie}${type}Content-Length: ${body.length}\r\n\r\n${body}`
        using held = hold(service(), page)
        const gone = Array.from(
          { length: 60 },
          (_, index) => new RawConnection(service().url, { allowHalfOpen: index % 2 === 0 }),
        )
        for (const [index, each] of gone.entries()) each.send(index % 3 === 0 ? get(page, cookie) : form)
        await until(() => held.begun === 2, 'the page and the form are being read')
        assert.equal((await service().call('/pets')).status, 200)
        assert.match((await other.get(others)).body, /100 animals; 0 rows left out/)
        const before = await connections()
        assert.ok(before >= 60, `${before}`)
        gone.forEach(hangUp)
        await until(async () => (await connections()) <= before - 60, 'their connections are closed')
        assert.equal(held.begun, 2)
        held.parts = 0
        held.release()
        await until(async () => (await person.get(page)).body.includes('2,500 animals'), 'the page is read')
        const ofPage = 1 + Math.ceil(content.length / 65_536)
        assert.ok(held.parts <= ofPage + 2, `${held.parts} parts were read, where one page takes ${ofPage}`)
        for (const { socket } of gone) socket.destroy()
      })

    it('stops being added at a batch, and goes on from there when its form is sent again', async () => {
      const person = await signedIn(service())
      const page = await bring(person, rows(400, 'Half'))
      const fields = { ...(await person.hiddenFields(page)), act: 'add' }
      const { imports } = service().store
      const add = imports.addRows.bind(imports)
      const leaving = new AbortController()
      imports.addRows = async (...parameters) => {
        imports.addRows = add
        const isAdded = await add(...parameters)
        leaving.abort()
        return isAdded
      }
      const sent = fetch(service().url + page, {
        method: 'POST',
        body: new URLSearchParams(fields),
        headers: { Cookie: person.cookie, Accept: 'text/html' },
        signal: leaving.signal,
      })
      await assert.rejects(sent, /abort/)
      let come = ''
      await until(async () => {
        const shown = (await person.get(page)).body
        const now = /(\d+) of 400 animals added/.exec(shown)?.[1] ?? ''
        const isSame = now === come
        come = now
        return isSame
      })
      assert.ok(Number(come) >= 50 && Number(come) < 400, come)
      await person.fillIn(page, { act: 'add' })
      const names = (await service().store.pets.list({ limit: 100_000 })).filter(({ name }) => name.startsWith('Half'))
      assert.equal(names.length, 400)
    })

    it('is one of two that a person reads at a time: a third one gets 429 with Retry-After, in every session', async () => {
      const [person, same] = [await signedIn(service()), await signedIn(service())]
      const pages = [await bring(person, rows(10)), await bring(person, rows(11)), await bring(person, rows(12))]
      const { uploads } = service().store
      const read = uploads.part.bind(uploads)
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      let begun = 0
      uploads.part = async (...parameters) => {
        begun += 1
        await released
        return read(...parameters)
      }
      const reading = [person.get(pages[0]!), same.get(pages[1]!)]
      await until(() => begun === 2)
      const joined = same.get(pages[0]!)
      for (const refused of [await same.get(pages[2]!), await person.postFile(PAGE, {}, 'x', 'x.csv')]) {
        assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '5'])
        assert.match(refused.body, /Two of your files or changes are still at work.*Try again in a moment/s)
      }
      release()
      for (const { status } of await Promise.all([...reading, joined])) assert.equal(status, 200)
      uploads.part = read
      assert.equal((await person.get(pages[2]!)).status, 200)
    })

    it('frees the share of its person when its form breaks off, however it does', async () => {
      const person = await signedIn(service())
      const types = ['multipart/form-data; boundary=b', 'application/x-www-form-urlencoded']
      for (const type of types)
        for (const breakOff of BREAK_OFFS) {
          const head = `POST ${PAGE} HTTP/1.1\r\nHost: localhost\r\nCookie: ${person.cookie}\r\nContent-Type: ${type}\r\n`
          for (let time = 0; time < 2; time += 1) {
            const connection = new RawConnection(service().url)
            const body = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nname'
            connection.send(`${head}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n`)
            breakOff(connection)
            await once(connection.socket, 'close')
          }
          const isFree = async () => (await person.postFile(PAGE, {}, 'x', 'x.csv')).status === 403
          await until(isFree, `after ${String(breakOff)}, ${type}`)
        }
    })
  },
  { env: ADMIN },
)

describeService('A search', (service) => {
  it('is one at a time: the next one takes its place, beside those of others, and it ends when its client has gone', async () => {
    const [person, other] = [await signedIn(service()), await signedInAs(service(), 'searching@example.com')]
    const { pets } = service().store
    const search = pets.search.bind(pets)
    const begun: AbortSignal[] = []
    pets.search = (query) => {
      begun.push(query.signal!)
      return new Promise((_, reject) => query.signal!.addEventListener('abort', () => reject(query.signal!.reason)))
    }
    const left = new RawConnection(service().url)
    left.send(get('/animals?q=other', `Cookie: ${other.cookie}\r\n`))
    await until(() => begun.length === 1)
    const first = person.get('/animals?q=one')
    await until(() => begun.length === 2)
    const second = person.get('/animals?q=two')
    await until(() => begun.length === 3)
    const { status, headers, body } = await first
    assert.deepEqual([status, headers.get('retry-after')], [429, '5'])
    assert.match(body, /You have searched again meanwhile/)
    assert.deepEqual(
      begun.map(({ aborted }) => aborted),
      [false, true, false],
    )
    left.socket.resetAndDestroy()
    await until(() => begun[0]!.aborted, 'the search of the client that has gone ends')
    pets.search = search
    assert.equal((await person.get('/animals?q=rex')).status, 200)
    assert.equal((await second).status, 429)
    const signal = AbortSignal.abort(new ClientLeft())
    await assert.rejects(pets.search({ words: ['rex'], limit: 5, signal }), ClientLeft)
  })
})

describe('A file on a slow line', () => {
  const timeouts = { ...TIMEOUTS, headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 10 }

  /** Sends the head of a form with a file, and then a piece after the other as long as it may; also returns the longest pause. */
  async function send(petstore: Petstore, person: ConsoleClient, piece: string, windows: number) {
    const start = '--b\r\nContent-Disposition: form-data; name='
    const { csrf } = await person.hiddenFields(PAGE)
    const head = `${start}"csrf"\r\n\r\n${csrf}\r\n${start}"file"; filename="a.csv"\r\n\r\nname,categoryId\n`
    const type = 'Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n'
    using connection = new RawConnection(petstore.url)
    const chunk = (text: string) => connection.send(`${text.length.toString(16)}\r\n${text}\r\n`)
    connection.send(`POST ${PAGE} HTTP/1.1\r\nHost: localhost\r\nCookie: ${person.cookie}\r\n${type}\r\n`)
    chunk(head)
    const end = performance.now() + windows * timeouts.requestTimeout
    const answered = once(connection.socket, 'data').then(() => true)
    let [pause, last] = [0, performance.now()]
    while (last < end && !(await Promise.race([answered, setTimeout(10, false)]))) {
      chunk(piece)
      pause = Math.max(pause, performance.now() - last)
      last = performance.now()
    }
    chunk('\r\n--b--\r\n')
    connection.send('0\r\n\r\n')
    return { status: (await connection.answer()).status, pause: Math.max(pause, performance.now() - last) }
  }

  it('is taken as long as it comes at the least rate, however long that takes; one that trickles gets 408', async () => {
    await using petstore = await startPetstore({ timeouts })
    const person = await signedIn(petstore)
    let sent = await send(petstore, person, rows(100), 5)
    // Where the machine paused for that long, the line was slow: this shows nothing.
    while (sent.status === 408 && sent.pause > timeouts.requestTimeout / 3)
      sent = await send(petstore, person, rows(100), 5)
    assert.equal(sent.status, 303, `with pauses of ${sent.pause} ms at most`)
    for (let time = 0; time < 2; time += 1) assert.equal((await send(petstore, person, 'x', 200)).status, 408)
    await until(async () => (await person.postFile(PAGE, {}, 'x', 'x.csv')).status === 403, 'its share is free again')
  })
})
