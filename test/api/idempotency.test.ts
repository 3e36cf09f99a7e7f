// Repeating a create: the Idempotency-Key, on every engine.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { generateKey } from '../../src/accounts/api-keys.ts'
import { newToken } from '../../src/accounts/sessions.ts'
import { Refusal } from '../../src/contract/errors.ts'
import { readIdempotencyKey } from '../../src/http/operations/handlers.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { countPets, describeService, expectError, makeKey, type Petstore, startPetstore } from '../harness/harness.ts'

const REX = '{"name":"Rex","categoryId":3}'
const HOUR = 3_600_000

const addOnce = (petstore: Petstore, key: string, body: string = REX) => petstore.add(body, { 'Idempotency-Key': key })
const isReplayed = ({ headers }: Response) => headers.get('idempotent-replayed') === 'true'

describeService('A create with an Idempotency-Key', (service) => {
  it('gives the first answer again, and adds no other animal', async () => {
    const first = await addOnce(service(), 'a')
    assert.deepEqual([first.status, first.headers.get('idempotent-replayed')], [201, null])
    const text = await first.text()
    const before = await countPets(service())
    for (let time = 0; time < 3; time += 1) {
      const again = await addOnce(service(), 'a')
      assert.deepEqual([again.status, isReplayed(again)], [201, true])
      assert.equal(again.headers.get('location'), first.headers.get('location'))
      assert.equal(await again.text(), text)
    }
    assert.equal(await countPets(service()), before)
  })

  it('compares the animal, not its spelling', async () => {
    const first = await (await addOnce(service(), 'b', '{"name":"R\\u0065x","categoryId":100}')).text()
    for (const body of [
      '{ "categoryId": 1e2, "name": "Rex", "status": "available" }',
      '{"name":"Rex","categoryId":100.0,"id":7,"owner":"me"}',
    ]) {
      const again = await addOnce(service(), 'b', body)
      assert.deepEqual([isReplayed(again), await again.text()], [true, first])
    }
  })

  it('is refused with 422 for another animal, even one whose name only looks the same, and adds none', async () => {
    await addOnce(service(), 'c', '{"name":"Zo\u00E9","categoryId":3}')
    const before = await countPets(service())
    for (const body of [
      '{"name":"zo\u00E9","categoryId":3}',
      '{"name":"Zo\u00E9","categoryId":4}',
      '{"name":"Zo\u00E9","categoryId":3,"status":"sold"}',
      '{"name":"Zo\u00E9 ","categoryId":3}',
      '{"name":"Zoe\u0301","categoryId":3}',
    ]) {
      await expectError(await addOnce(service(), 'c', body), 'idempotency_key_reused')
    }
    assert.equal(await countPets(service()), before)
    assert.ok(isReplayed(await addOnce(service(), 'c', '{"name":"Zo\u00E9","categoryId":3}')))
  })

  it('makes one animal of many requests at the same time', async () => {
    const before = await countPets(service())
    const responses = await Promise.all(Array.from({ length: 25 }, () => addOnce(service(), 'd')))
    const texts = new Set(await Promise.all(responses.map((response) => response.text())))
    assert.deepEqual([...new Set(responses.map(({ status }) => status))], [201])
    assert.equal(texts.size, 1)
    assert.equal(responses.filter((response) => !isReplayed(response)).length, 1)
    assert.equal(await countPets(service()), before + 1)
  })

  it('adds at most one of several animals that come at the same time, and refuses the others', async () => {
    const before = await countPets(service())
    const bodies = Array.from({ length: 10 }, (_, index) => `{"name":"Rex","categoryId":${index}}`)
    const responses = await Promise.all(bodies.map((body) => addOnce(service(), 'e', body)))
    assert.deepEqual(
      responses.map(({ status }) => status).toSorted((a, b) => a - b),
      [201, ...Array.from({ length: 9 }, () => 422)],
    )
    assert.equal(await countPets(service()), before + 1)
  })

  it('does not store answers 4xx: the corrected request is the first', async () => {
    await expectError(await addOnce(service(), 'f', '{}'), 'invalid_pet')
    await expectError(await addOnce(service(), 'f', 'x'.repeat(20_000)), 'body_too_large')
    assert.ok(!isReplayed(await addOnce(service(), 'f')))
  })

  it('is refused if the key is empty or too long, and adds none', async () => {
    const before = await countPets(service())
    for (const key of ['', 'x'.repeat(256)])
      assert.match(
        await expectError(await addOnce(service(), key), 'invalid_idempotency_key'),
        /must have 1 to 255 characters, got \d+/,
      )
    assert.equal(await countPets(service()), before)
  })

  it('tells apart keys that differ in any character', async () => {
    const keys = ['k', 'K', 'k ,', '"k', 'k"', 'kk', 'ÿ', 'x'.repeat(255), `${'x'.repeat(254)}y`]
    const ids = await Promise.all(keys.map(async (key) => (await addOnce(service(), key)).text()))
    assert.equal(new Set(ids).size, keys.length)
    assert.equal(await (await addOnce(service(), '"k"')).text(), ids[0], 'quotes around a key are no part of it')
  })

  it('belongs to its account, for all keys of that', async () => {
    const first = await (await addOnce(service(), 'h')).text()
    const second = await service().accounts.createKey(service().account, 'second', undefined, 'command line')
    assert.ok('secret' in second)
    const add = (key: string) => service().add(REX, { 'Idempotency-Key': 'h', Authorization: `Bearer ${key}` })
    assert.equal(await (await add(second.secret)).text(), first)
    const stranger = await add((await makeKey(service())).key)
    assert.ok(!isReplayed(stranger))
    assert.notEqual(await stranger.text(), first)
  })

  it('means nothing to the other operations', async () => {
    assert.equal((await service().call('/pets', { headers: { 'Idempotency-Key': '' } })).status, 200)
  })
})

describe('An Idempotency-Key as it is read', () => {
  const read = (key: string) => {
    const request = { headers: { 'idempotency-key': key }, rawHeaders: ['Idempotency-Key', key] } as object
    return readIdempotencyKey({ id: '', ip: '', startedAt: 0, request: request as IncomingMessage })
  }

  it('is the same in quotes and without', () => {
    const keys = {
      '"g"': 'g',
      '"g\\"\\\\"': 'g"\\',
      '"g h"': 'g h',
      '"g\'"': "g'",
      'x"k"': 'x"k"',
      '"k"x': '"k"x',
      '"k': '"k',
    }
    for (const [written, key] of Object.entries(keys)) assert.equal(read(written), key)
  })

  it('must have 1 to 255 characters, counted without the quotes and their backslashes', () => {
    for (const key of ['q'.repeat(255), `"${'q'.repeat(255)}"`, `"${'\\"'.repeat(255)}"`])
      assert.match(read(key) as string, /^.{255}$/, key)
    for (const key of ['', '""', 'x'.repeat(256), `"${'x'.repeat(256)}"`, `"${'\\"'.repeat(256)}"`])
      assert.ok(read(key) instanceof Refusal, key)
  })

  it('is stored as a hash if it contains a secret, so that this is not in the database and different keys stay different', () => {
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
    it(`is kept 24 hours, over restarts and where the clock is set back, then forgotten, on ${engine.name}`, async () => {
      const start = Date.UTC(2027, 0, 1)
      let now = start
      await using database = await engine.newDatabase()
      let key: string
      let first: string
      {
        await using petstore = await startPetstore({ database: database.url, clock: () => now })
        key = petstore.key
        first = await (await addOnce(petstore, 'a')).text()
        for (const at of [start - 1, start - 2 * HOUR, Date.UTC(2026, 0, 1), 0, start + 24 * HOUR]) {
          now = at
          const again = await addOnce(petstore, 'a')
          assert.deepEqual([isReplayed(again), await again.text()], [true, first], new Date(at).toISOString())
        }
      }
      await using again = await startPetstore({ database: database.url, clock: () => now })
      const repeat = (body = REX) => again.add(body, { 'Idempotency-Key': 'a', Authorization: `Bearer ${key}` })
      assert.equal(await (await repeat()).text(), first, 'after a restart')
      now += 1
      const later = await repeat('{"name":"Another","categoryId":1}')
      assert.deepEqual([later.status, isReplayed(later)], [201, false])
      await expectError(await repeat(), 'idempotency_key_reused')
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
