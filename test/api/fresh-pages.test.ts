// Pages are kept (src/http/answers/answer-cache.ts), and yet nobody ever sees an old one: several servers write to one database.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { ENGINES, type TestDatabase, type TestEngine } from '../harness/databases/engines.ts'
import { listening, MAIN } from '../harness/programs/instance.ts'
import { PET_STATUSES } from '../../src/contract/pets.ts'
import { type Petstore, startPetstore } from '../harness/harness.ts'

interface Animal {
  id: number
  name: string
  status: string
}

type Call = (path: string, init?: RequestInit) => Promise<Response>

const LISTS = ['/pets', '/pets?limit=100', '/pets?limit=3', '/pets?status=sold', '/pets?limit=5&status=pending']

for (const engine of ENGINES) {
  describe(`a page on ${engine.name}`, { concurrency: false }, () => {
    const servers: Call[] = []
    const stack = new AsyncDisposableStack()
    let database: TestDatabase
    let first: Petstore

    before(async () => {
      ;({ database, first } = await startAll(engine, servers, stack))
    })
    after(() => stack.disposeAsync())

    /** Newest first: what every list must agree with. */
    const added: Animal[] = []

    async function add(server: number, name: string, status: string): Promise<Animal> {
      const response = await servers[server]!('/pets', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ name, categoryId: 1, status }),
      })
      assert.equal(response.status, 201)
      return (await response.json()) as Animal
    }

    async function read<T>(server: number, path: string): Promise<T> {
      const response = await servers[server]!(path)
      assert.equal(response.status, 200)
      return (await response.json()) as T
    }

    const at = fc.nat({ max: 2 })
    const step = fc.oneof(
      fc.record({ what: fc.constant('add' as const), at, status: fc.constantFrom(...PET_STATUSES) }),
      fc.record({ what: fc.constant('list' as const), at, path: fc.constantFrom(...LISTS) }),
      fc.record({ what: fc.constant('get' as const), at, age: fc.nat({ max: 3 }) }),
    )

    it('shows every animal that was answered before, whichever server or process added it', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
          for (const now of steps) {
            if (now.what === 'add') added.unshift(await add(now.at, `pet ${added.length}`, now.status))
            else if (now.what === 'list') assert.deepEqual(await read<Animal[]>(now.at, now.path), expected(now.path))
            else if (added[now.age] !== undefined)
              assert.deepEqual(await read(now.at, `/pets/${added[now.age]!.id}`), added[now.age])
          }
        }),
        { numRuns: 15 },
      )
    })

    function expected(path: string): Animal[] {
      const query = new URL(path, 'http://localhost').searchParams
      const status = query.get('status')
      return added
        .filter((animal) => status === null || animal.status === status)
        .slice(0, Number(query.get('limit') ?? 20))
    }

    it('shows it to many who write and read at the same time', async () => {
      const worker = async (number: number) => {
        for (let round = 0; round < 10; round += 1) {
          const mine = await add((number + round) % 3, `worker ${number}`, 'sold')
          // At most 8 others can have come after it.
          const list = await read<Animal[]>(round % 3, '/pets?limit=100&status=sold')
          assert.ok(
            list.some(({ id }) => id === mine.id),
            `animal ${mine.id} is not in the list that was asked for after it`,
          )
        }
      }
      await Promise.all(Array.from({ length: 8 }, (_, number) => worker(number)))
    })

    it('is there for every other connection by the time its create is answered', async () => {
      const others = await startPetstore({ database: database.url })
      try {
        await Promise.all(
          Array.from({ length: 40 }, async (_, number) => {
            const { id } = await add(0, `answered ${number}`, 'available')
            assert.ok(await others.store.pets.get(BigInt(id)), `animal ${id} was answered and is not stored`)
          }),
        )
      } finally {
        await others[Symbol.asyncDispose]()
      }
    })

    it('is the same whether it was read or kept: status, headers and body', async () => {
      const { id } = await add(0, 'Straße 🐈', 'pending')
      const etag = (await first.call('/pets?limit=2')).headers.get('etag')!
      const variants: { path: string; init?: RequestInit }[] = [
        { path: '/pets?limit=2' },
        { path: '/pets?limit=2', init: { method: 'HEAD' } },
        { path: '/pets?limit=2', init: { headers: { 'If-None-Match': etag } } },
        { path: '/pets?limit=2', init: { headers: { Origin: 'https://shop.example' } } },
        { path: '/pets?limit=2', init: { headers: { Authorization: 'Basic x' } } },
        { path: '/pets?limit=2', init: { headers: { Authorization: 'Bearer pets_test_0' } } },
        { path: `/pets/${id}` },
        {
          path: `/pets/${id}`,
          init: { headers: { Authorization: 'Bearer pets_test_0', Origin: 'https://shop.example' } },
        },
      ]
      for (const { path, init } of variants) {
        await add(0, 'a new version of the store', 'available')
        const cold = await seen(await first.call(path, init))
        for (let time = 0; time < 3; time += 1) assert.deepEqual(await seen(await first.call(path, init)), cold, path)
      }
    })

    if (engine.name === 'SQLite') {
      it('shows what another program changed in the file', async () => {
        const { id } = await add(0, 'before', 'sold')
        using db = new DatabaseSync(database.url.replace('sqlite:', ''), { timeout: 5000 })
        for (const name of ['one', 'two', 'three']) {
          for (let time = 0; time < 3; time += 1) await read(0, `/pets/${id}`)
          db.prepare('UPDATE pets SET name = ? WHERE id = ?').run(name, id)
          assert.equal((await read<Animal>(0, `/pets/${id}`)).name, name)
          assert.equal((await read<Animal[]>(0, '/pets'))[0]!.name, name)
        }
      })
    }
  })
}

/** Two servers of this process, each with a connection of its own, and one in another process. */
async function startAll(engine: TestEngine, servers: Call[], stack: AsyncDisposableStack) {
  const database = stack.use(await engine.newDatabase())
  const first = stack.use(await startPetstore({ database: database.url }))
  const second = stack.use(await startPetstore({ database: database.url }))
  const child = spawn(process.execPath, [MAIN, 'serve', '--port', '0', '--database', database.url])
  stack.defer(async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  const { url } = await listening(child)
  const elsewhere: Call = (path, init) =>
    fetch(`${url}/v1${path}`, { ...init, headers: { Authorization: `Bearer ${first.key}`, ...init?.headers } })
  servers.push(
    (path, init) => first.call(path, init),
    (path, init) => second.call(path, init),
    elsewhere,
  )
  return { database, first }
}

async function seen(response: Response): Promise<object> {
  const headers = Object.fromEntries(response.headers)
  for (const name of ['date', 'request-id']) delete headers[name]
  return { status: response.status, headers, body: await response.text() }
}
