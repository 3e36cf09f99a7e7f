// Repeating a create: the Idempotency-Key, on every engine.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { generateKey } from '../src/accounts/api-keys.ts'
import { newToken } from '../src/accounts/sessions.ts'
import { readIdempotencyKey } from '../src/http/handlers.ts'
import { ENGINES } from '../assurance/harness/engines.ts'
import { describeService, expectError, makeKey, type Petstore, startPetstore } from './harness.ts'

const REX = '{"name":"Rex","categoryId":3}'
const HOUR = 3_600_000

const addOnce = (petstore: Petstore, key: string, body: string = REX) => petstore.add(body, { 'Idempotency-Key': key })
const animals = async ({ store }: Petstore) =>
  Object.values(await store.pets.countByStatus()).reduce((sum, some) => sum + some, 0)

describeService('A create with an Idempotency-Key', (service) => {
  it('gives the first answer again, and adds no other animal', async () => {
    const first = await addOnce(service(), 'a')
    assert.equal(first.status, 201)
    assert.equal(first.headers.get('idempotent-replayed'), null)
    const text = await first.text()
    const before = await animals(service())
    for (let time = 0; time < 3; time += 1) {
      const again = await addOnce(service(), 'a')
      assert.equal(again.status, 201)
      assert.equal(again.headers.get('idempotent-replayed'), 'true')
      assert.equal(again.headers.get('location'), first.headers.get('location'))
      assert.equal(await again.text(), text)
    }
    assert.equal(await animals(service()), before)
  })

  it('compares the animal, not its spelling', async () => {
    const first = await (await addOnce(service(), 'b', '{"name":"R\\u0065x","categoryId":100}')).text()
    for (const body of [
      '{ "categoryId": 1e2, "name": "Rex", "status": "available" }',
      '{"name":"Rex","categoryId":100.0,"id":7,"owner":"me"}',
    ]) {
      const again = await addOnce(service(), 'b', body)
      assert.equal(again.headers.get('idempotent-replayed'), 'true')
      assert.equal(await again.text(), first)
    }
  })

  it('is refused with 422 for another animal, and adds none', async () => {
    await addOnce(service(), 'c')
    const before = await animals(service())
    for (const body of [
      '{"name":"rex","categoryId":3}',
      '{"name":"Rex","categoryId":4}',
      '{"name":"Rex","categoryId":3,"status":"sold"}',
      '{"name":"Rex ","categoryId":3}',
    ]) {
      await expectError(await addOnce(service(), 'c', body), 'idempotency_key_reused')
    }
    assert.equal(await animals(service()), before)
    assert.equal((await addOnce(service(), 'c')).headers.get('idempotent-replayed'), 'true')
  })

  it('makes one animal of many requests at the same time', async () => {
    const before = await animals(service())
    const responses = await Promise.all(Array.from({ length: 25 }, () => addOnce(service(), 'd')))
    const texts = new Set(await Promise.all(responses.map((response) => response.text())))
    assert.deepEqual([...new Set(responses.map(({ status }) => status))], [201])
    assert.equal(texts.size, 1)
    assert.equal(responses.filter(({ headers }) => !headers.has('idempotent-replayed')).length, 1)
    assert.equal(await animals(service()), before + 1)
  })

  it('adds at most one of several animals that come at the same time, and refuses the others', async () => {
    const before = await animals(service())
    const bodies = Array.from({ length: 10 }, (_, index) => `{"name":"Rex","categoryId":${index}}`)
    const responses = await Promise.all(bodies.map((body) => addOnce(service(), 'e', body)))
    assert.deepEqual(
      responses.map(({ status }) => status).toSorted((a, b) => a - b),
      [201, ...Array.from({ length: 9 }, () => 422)],
    )
    assert.equal(await animals(service()), before + 1)
  })

  it('tells apart animals whose names only look the same', async () => {
    const [composed, decomposed] = ['Zo\u00E9', 'Zoe\u0301'].map((name) => JSON.stringify({ name, categoryId: 1 }))
    assert.equal((await addOnce(service(), 'look', composed)).status, 201)
    await expectError(await addOnce(service(), 'look', decomposed), 'idempotency_key_reused')
  })

  it('does not store answers 4xx: the corrected request is the first', async () => {
    await expectError(await addOnce(service(), 'f', '{}'), 'invalid_pet')
    await expectError(await addOnce(service(), 'f', 'x'.repeat(20_000)), 'body_too_large')
    assert.equal((await addOnce(service(), 'f')).headers.get('idempotent-replayed'), null)
  })

  it('takes a key in quotes for the same as without', async () => {
    const pairs = [
      ['g', '"g"'],
      ['g"\\', '"g\\"\\\\"'],
      ['g h', '"g h"'],
      ["g'", '"g\'"'],
    ] as const
    for (const [plain, quoted] of pairs) {
      const first = await (await addOnce(service(), plain)).text()
      assert.equal(await (await addOnce(service(), quoted)).text(), first, quoted)
    }
  })

  it('tells apart keys that differ in any character', async () => {
    const keys = ['k', 'K', 'k ,', '"k', 'k"', 'x"k"', '"k"x', 'kk', 'ÿ', 'x'.repeat(255), `${'x'.repeat(254)}y`]
    const ids = await Promise.all(keys.map(async (key) => (await addOnce(service(), key)).text()))
    assert.equal(new Set(ids).size, keys.length)
  })

  for (const key of ['', '""', 'x'.repeat(256), `"${'x'.repeat(256)}"`]) {
    it(`must have 1 to 255 characters: ${key.length} are refused`, async () => {
      const before = await animals(service())
      assert.match(
        await expectError(await addOnce(service(), key), 'invalid_idempotency_key'),
        /must have 1 to 255 characters, got \d+/,
      )
      assert.equal(await animals(service()), before)
    })
  }

  it('counts 255 characters without the quotes', async () => {
    assert.equal((await addOnce(service(), `"${'q'.repeat(255)}"`)).status, 201)
    assert.equal((await addOnce(service(), `"${'\\"'.repeat(255)}"`)).status, 201, 'nor their backslashes')
    await expectError(await addOnce(service(), `"${'\\"'.repeat(256)}"`), 'invalid_idempotency_key')
  })

  it('belongs to its account', async () => {
    const first = await (await addOnce(service(), 'h')).text()
    const second = await makeKey(service())
    const other = await service().add(REX, { 'Idempotency-Key': 'h', Authorization: `Bearer ${second.key}` })
    assert.equal(other.headers.get('idempotent-replayed'), null)
    assert.notEqual(await other.text(), first)
  })

  it('serves all keys of its account', async () => {
    const first = await (await addOnce(service(), 'i')).text()
    const made = await service().accounts.createKey(service().account, 'second', undefined, 'command line')
    assert.ok('secret' in made)
    const other = await service().add(REX, { 'Idempotency-Key': 'i', Authorization: `Bearer ${made.secret}` })
    assert.equal(await other.text(), first)
  })

  it('means nothing to the other operations', async () => {
    assert.equal((await service().call('/pets', { headers: { 'Idempotency-Key': '' } })).status, 200)
  })
})

describe('An Idempotency-Key that contains a secret', () => {
  it('is stored as a hash, so that the secret is not in the database and different keys stay different', () => {
    const read = (key: string) => {
      const raw = { headers: { 'idempotency-key': key }, rawHeaders: ['Idempotency-Key', key] } as object
      return readIdempotencyKey({ id: '', ip: '', startedAt: 0, request: raw as IncomingMessage })
    }
    for (const makeSecret of [() => generateKey('staging'), newToken]) {
      const [one, other] = [makeSecret(), makeSecret()]
      assert.equal(read(one), `sha256:${hash('sha256', one)}`)
      assert.equal(read(`"${one}"`), read(one))
      assert.notEqual(read(other), read(one))
    }
    assert.equal(read('order 7'), 'order 7')
  })
})

describe('An Idempotency-Key and time', () => {
  for (const engine of ENGINES) {
    it(`is kept 24 hours, over restarts, then forgotten, on ${engine.name}`, async () => {
      let now = Date.UTC(2027, 0, 1)
      await using database = await engine.newDatabase()
      let key: string
      let first: string
      {
        await using petstore = await startPetstore({ database: database.url, clock: () => now })
        key = petstore.key
        first = await (await addOnce(petstore, 'a')).text()
        now += 24 * HOUR
        assert.equal(await (await addOnce(petstore, 'a')).text(), first, 'the last moment')
      }
      await using again = await startPetstore({ database: database.url, clock: () => now })
      const repeat = (body = REX) => again.add(body, { 'Idempotency-Key': 'a', Authorization: `Bearer ${key}` })
      assert.equal(await (await repeat()).text(), first, 'after a restart')
      now += 1
      const later = await repeat('{"name":"Another","categoryId":1}')
      assert.equal(later.status, 201)
      assert.equal(later.headers.get('idempotent-replayed'), null)
      await expectError(await repeat(), 'idempotency_key_reused')
    })
  }

  for (const engine of ENGINES) {
    it(`gives the first answer again also where the clock was set back since, on ${engine.name}`, async () => {
      let now = Date.UTC(2028, 0, 1)
      await using petstore = await startPetstore({ engine, clock: () => now })
      const first = await (await addOnce(petstore, 'a')).text()
      for (const earlier of [now - 1, now - 2 * 3_600_000, Date.UTC(2027, 0, 1), 0]) {
        now = earlier
        const again = await addOnce(petstore, 'a')
        assert.deepEqual([again.headers.get('idempotent-replayed'), await again.text()], ['true', first])
      }
    })
  }

  it('replays without a Location once getPet is removed', async () => {
    let now = Date.UTC(2030, 11, 4, 23)
    await using petstore = await startPetstore({ clock: () => now })
    const first = await addOnce(petstore, 'a')
    assert.ok(first.headers.has('location'))
    now += 2 * HOUR
    const again = await addOnce(petstore, 'a')
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    assert.equal(again.headers.get('location'), null)
    assert.equal(await again.text(), await first.text())
  })
})
