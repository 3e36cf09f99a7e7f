// When PostgreSQL goes away: every request is answered, and fast; when it is back, so is the service, by itself.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { until } from '../harness/until.ts'
import { ConsoleClient, signedIn } from '../harness/connections/console-client.ts'
import { newPostgresDatabase, type TestDatabase, withParameters } from '../harness/databases/engines.ts'
import { OPERATIONS } from '../../src/contract/operations.ts'
import { callExample, type Petstore, startPetstore } from '../harness/harness.ts'
import { type PostgresServer, startPostgres } from '../harness/databases/postgres-server.ts'

const rex = { name: 'Rex', categoryId: 3 }

/** No request may take longer than this, whatever the database does: 2 s to connect, 3 s for a statement, and as much on a busy machine. */
const LONGEST_MS = 15_000

describe('when the database goes away', { concurrency: false }, () => {
  let server: PostgresServer
  let database: TestDatabase
  /** Waits for a connection far longer than LONGEST_MS, which none of its requests may: it is for a database that refuses. */
  let petstore: Petstore
  /** Is for a database that hangs. */
  let hasty: Petstore

  before(async () => {
    server = await startPostgres()
    database = await newPostgresDatabase(server.url)
    petstore = await startPetstore({ database: withParameters(database.url, 'connect_timeout=30') })
    hasty = await startPetstore({ database: withParameters(database.url, 'connect_timeout=2&statement_timeout=3000') })
  })
  after(async () => {
    await Promise.all([petstore, hasty].map((one) => one[Symbol.asyncDispose]()))
    await server.end()
  })

  /** The key check is remembered for a moment only: each of these meets the database, one way or the other. */
  const requests = (to: Petstore) => [
    ...OPERATIONS.map((operation) => callExample(to, operation)),
    to.add(rex, { 'Idempotency-Key': 'k' }),
  ]

  async function assertUnavailable(answers: readonly Promise<Response>[]) {
    const started = performance.now()
    for (const answer of await Promise.all(answers)) {
      assert.equal(answer.status, 503)
      assert.match(answer.headers.get('Retry-After') ?? '', /^[1-9]$/)
      assert.equal(((await answer.json()) as { code: string }).code, 'service_unavailable')
    }
    const took = performance.now() - started
    assert.ok(took < LONGEST_MS, `it took ${took} ms`)
  }

  async function assertHealth({ url }: Petstore, ready: number) {
    assert.equal((await fetch(`${url}/livez`)).status, 200)
    assert.equal((await fetch(`${url}/readyz`)).status, ready)
  }

  async function assertRecovers(of: Petstore) {
    await until(async () => (await fetch(`${of.url}/readyz`)).status === 200, 'ready after the database was back')
    assert.equal((await of.add(rex)).status, 201)
    assert.equal((await of.call('/pets')).status, 200)
  }

  it('answers 503 at once while it is stopped, and serves again when it is back', async () => {
    assert.equal((await petstore.add(rex)).status, 201)
    await server.stop()
    await assertUnavailable(requests(petstore))
    await assertHealth(petstore, 503)
    await server.start()
    await assertRecovers(petstore)
    await assertHealth(petstore, 200)
  })

  it('answers on a page while it is stopped, to who is signed in too, and shows the first page', async () => {
    const client = await signedIn(petstore)
    await server.stop()
    for (const page of ['/keys', '/animals']) {
      const { status, headers, body } = await client.get(page)
      assert.deepEqual([status, headers.get('retry-after')], [503, '2'])
      assert.match(headers.get('content-type') ?? '', /text\/html/)
      assert.ok(body.includes(headers.get('request-id')!))
    }
    assert.equal((await new ConsoleClient(petstore.url).get('/')).status, 200)
    await server.start()
    await assertRecovers(petstore)
    assert.equal((await client.get('/keys')).status, 200)
  })

  it('lets no read fail because its connection is from before a restart', async () => {
    // Without chores: one that meets the stopped database makes the service refuse calls for a moment, to spare the database.
    await using resting = await startPetstore({
      database: withParameters(database.url, 'connect_timeout=30'),
      chores: false,
    })
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(Array.from({ length: 20 }, () => resting.call('/pets')))
      await server.stop()
      await server.start()
      await setTimeout(300)
      const answers = await Promise.all(Array.from({ length: 20 }, () => resting.call('/pets')))
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
    }
  })

  it('answers 503 in time while it hangs, however many ask, and serves again when it wakes up', async () => {
    await assertRecovers(hasty)
    await Promise.all(requests(hasty))
    await server.pause()
    try {
      await assertUnavailable(requests(hasty))
      await assertUnavailable(Array.from({ length: 200 }, () => hasty.call('/pets')))
      await assertHealth(hasty, 503)
    } finally {
      await server.resume()
    }
    await assertRecovers(hasty)
  })

  it('never logs the password of the database', async () => {
    const password = new URL(database.url).password
    const logged = JSON.stringify([petstore.logged, hasty.logged])
    assert.ok(logged.includes('the database is unavailable'))
    for (const secret of [password, decodeURIComponent(password)]) assert.ok(!logged.includes(secret))
  })
})
