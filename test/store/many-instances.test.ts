// Several instances on one PostgreSQL keep the promises of one. Pages that show what another one added are in
// test/api/fresh-pages.test.ts, keys that another one revoked in test/spec/5-authentication.test.ts.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import connectTo from 'postgres'
import { postgres, type TestDatabase } from '../harness/databases/engines.ts'
import { countPets, expectError, type Petstore, startPetstore } from '../harness/harness.ts'

const rex = { name: 'Rex', categoryId: 3 }

interface Pet {
  id: number
}

describe('several instances on one database', { concurrency: false }, () => {
  let database: TestDatabase
  let one: Petstore
  let two: Petstore

  before(async () => {
    database = await postgres.newEmptyDatabase()
    one = await startPetstore({ database: database.url })
    two = await startPetstore({ database: database.url })
  })
  after(async () => {
    await one[Symbol.asyncDispose]()
    await two[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  it('make one animal of 50 parallel requests with one Idempotency-Key', async () => {
    const soFar = await countPets(one)
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        // The key of one instance, used at the other too: accounts are shared.
        const headers = { 'Idempotency-Key': 'the-same', Authorization: `Bearer ${one.key}` }
        return (index % 2 === 0 ? one : two).add(rex, headers)
      }),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
    const bodies = await Promise.all(answers.map((answer) => answer.json() as Promise<Pet>))
    assert.equal(new Set(bodies.map(({ id }) => id)).size, 1)
    assert.equal(answers.filter(({ headers }) => headers.get('Idempotent-Replayed') === null).length, 1)
    assert.equal(await countPets(one), soFar + 1)
  })

  it('answer 409 when the first with an Idempotency-Key takes too long, and go on when it has given up', async () => {
    const sql = connectTo(database.url.replace(/\?.*/, ''), { max: 1, prepare: false })
    const headers = { 'Idempotency-Key': 'slow' }
    await sql.begin(async (first) => {
      await first`INSERT INTO idempotency_records VALUES (${one.account.id}, 'slow', ${Buffer.alloc(32)}, 1, ${Date.now()})`
      const started = performance.now()
      const running = await one.add(rex, headers)
      assert.equal(running.headers.get('retry-after'), '1')
      await expectError(running, 'idempotency_in_progress')
      assert.ok(performance.now() - started < 15_000)
      await first`DELETE FROM idempotency_records WHERE key = 'slow'`
    })
    await sql.end()
    assert.equal((await one.add(rex, headers)).status, 201)
  })

  it('come up, all five of them, when they are started at once on an empty database', async () => {
    await using empty = await postgres.newEmptyDatabase()
    await using running = new AsyncDisposableStack()
    const starts = await Promise.allSettled(
      Array.from({ length: 5 }, async () => running.use(await startPetstore({ database: empty.url }))),
    )
    const five = starts.map((start) => (start.status === 'fulfilled' ? start.value : assert.fail(String(start.reason))))
    for (const instance of five) assert.equal((await instance.add(rex)).status, 201)
    assert.equal(await countPets(five[0]!), 5)
  })

  it('page through while animals are added at the other: none twice, none of the old ones missed', async () => {
    const old = await Promise.all(
      Array.from({ length: 60 }, async () => ((await (await one.add(rex)).json()) as Pet).id),
    )
    const adding = new AbortController()
    const adder = (async () => {
      while (!adding.signal.aborted) await Promise.all([two.add(rex), two.add(rex), one.add(rex)])
    })()
    const seen: number[] = []
    let next: string | undefined = '/pets?limit=7'
    while (next !== undefined) {
      const page = await one.call(next)
      seen.push(...((await page.json()) as Pet[]).map(({ id }) => id))
      next = /<\/v1([^>]+)>; rel="next"/.exec(page.headers.get('Link') ?? '')?.[1]
    }
    adding.abort()
    await adder
    assert.equal(new Set(seen).size, seen.length)
    for (const id of old) assert.ok(seen.includes(id), `${id} was missed`)
  })
})
