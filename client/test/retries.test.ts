// Retries: what passes is repeated, and a create happens once, whatever dies in between.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Folder, makeKey, serve } from '../../test/command.ts'
import { startCuttingProxy } from '../../test/cutting-proxy.ts'
import { ENGINES } from '../../assurance/harness/engines.ts'
import { freePort } from '../../assurance/harness/free-port.ts'
import { countPets, describeService } from '../../test/harness.ts'
import { NetworkError, type Pet, Petstore } from '../src/petstore.ts'
import { KEY, PET, sending, startOddServer } from './odd-server.ts'

const REX = { name: 'Rex', categoryId: 3 }
const UNAVAILABLE = '{"code":"service_unavailable","message":"The database is unavailable.","status":503}'

describeService('A create whose answer is lost', (service) => {
  it('is repeated, adds one animal, and returns it', async () => {
    await using proxy = await startCuttingProxy(service().url)
    const petstore = new Petstore({ apiKey: service().key, baseUrl: `${proxy.url}v1` })
    const before = await countPets(service())
    proxy.cutNextAnswer()
    const pet = await petstore.createPet(REX)
    assert.equal(await countPets(service()), before + 1)
    assert.deepEqual((await petstore.listPets({ limit: 1 })).pets, [pet])
  })

  it('is a network error without retries; the same key then finds the animal', async () => {
    await using proxy = await startCuttingProxy(service().url)
    const petstore = new Petstore({ apiKey: service().key, baseUrl: `${proxy.url}v1`, maxRetries: 0 })
    const before = await countPets(service())
    proxy.cutNextAnswer()
    await assert.rejects(
      petstore.createPet(REX, { idempotencyKey: 'lost' }),
      (error) => error instanceof NetworkError && error.status === undefined,
    )
    await petstore.createPet(REX, { idempotencyKey: 'lost' })
    assert.equal(await countPets(service()), before + 1)
  })
})

describeService('A create whose answer is held up', (service) => {
  const endings = [
    ['times out', () => ({ timeout: 2000 })],
    ['is aborted', () => ({ signal: AbortSignal.timeout(2000) })],
  ] as const
  for (const [ending, options] of endings) {
    it(`${ending}; the same key then finds the animal`, async () => {
      await using proxy = await startCuttingProxy(service().url)
      const petstore = new Petstore({ apiKey: service().key, baseUrl: `${proxy.url}v1` })
      const before = await countPets(service())
      const held = proxy.holdNextAnswer()
      await assert.rejects(petstore.createPet(REX, { idempotencyKey: ending, ...options() }), { name: 'TimeoutError' })
      await held.arrived
      const pet = await petstore.createPet(REX, { idempotencyKey: ending })
      assert.equal(await countPets(service()), before + 1)
      assert.deepEqual((await petstore.listPets({ limit: 1 })).pets, [pet])
    })
  }
})

describe('A service that dies in the middle of creates', () => {
  for (const engine of ENGINES) {
    it(`has added each animal once when it is back, on ${engine.name}`, async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const env = { DATABASE_URL: database.url, PORT: String(await freePort()) }
      const { key } = await makeKey(folder, env)
      const first = await serve(folder, { env })
      const petstore = new Petstore({ apiKey: key, baseUrl: `${first.url}/v1`, maxRetries: 10, timeout: 60_000 })

      const creates: Promise<Pet>[] = []
      for (let number = 0; number < 120; number += 1) {
        creates.push(petstore.createPet({ name: `Pet ${number}`, categoryId: number }))
        // Some are answered, some are under way, and some are still to be sent when the service dies.
        if (number % 20 === 19) await creates[number - 10]
      }
      first.child.kill('SIGKILL')
      await first.ended
      await serve(folder, { env })

      const created = await Promise.all(creates)
      const stored: Pet[] = []
      for await (const pet of petstore.listPets()) stored.push(pet)
      const byId = (a: Pet, b: Pet) => Number(a.id - b.id)
      assert.deepEqual(stored.toSorted(byId), created.toSorted(byId))
    })
  }
})

describe('A failure that passes', () => {
  it('is retried, all attempts of a create with one Idempotency-Key, each create with its own', async () => {
    await using server = await startOddServer(
      sending(503, UNAVAILABLE),
      sending(502, '<html>Bad gateway', { 'Content-Type': 'text/html' }),
      sending(201, PET),
    )
    const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl })
    await petstore.createPet(REX)
    await petstore.createPet(REX)
    const [first, second, third, other] = server.requests.map(({ headers }) => headers['idempotency-key'])
    assert.match(String(first), /^[0-9a-f]{32}$/)
    assert.deepEqual([second, third], [first, first])
    assert.notEqual(other, first)
  })

  it('is retried if the answer breaks off, as a cut connection or as truncated JSON', async () => {
    await using server = await startOddServer(
      (response) =>
        response
          .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '100' })
          .write('[', () => response.destroy()),
      sending(200, `[${PET.slice(0, -5)}`),
      sending(200, `[${PET}]`),
    )
    const { pets } = await new Petstore({ apiKey: KEY, baseUrl: server.baseUrl }).listPets()
    assert.equal(pets.length, 1)
    assert.equal(server.requests.length, 3)
  })

  it('is thrown once the retries are used up', async () => {
    await using server = await startOddServer(sending(503, UNAVAILABLE, { 'Retry-After': '0' }))
    const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl, maxRetries: 2 })
    const expected = {
      name: 'ServerError',
      code: 'service_unavailable',
      message: 'The database is unavailable.',
      status: 503,
      requestId: 'odd-1',
      retryAfter: 0,
    }
    await assert.rejects(petstore.createPet(REX), expected)
    assert.equal(server.requests.length, 3)
  })

  it('is not waited for beyond the timeout: the Retry-After comes with the error', async () => {
    for (const header of ['3600', new Date(Date.now() + 3_600_000).toUTCString()]) {
      await using server = await startOddServer(sending(503, UNAVAILABLE, { 'Retry-After': header }))
      const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl })
      await assert.rejects(
        petstore.createPet(REX),
        (error: { retryAfter: number }) => error.retryAfter > 3_590_000 && error.retryAfter <= 3_600_000,
      )
      assert.equal(server.requests.length, 1)
    }
  })

  it('is retried after the usual wait if the Retry-After is nonsense', async () => {
    await using server = await startOddServer(
      sending(503, UNAVAILABLE, { 'Retry-After': 'next Tuesday' }),
      sending(201, PET),
    )
    const started = performance.now()
    await new Petstore({ apiKey: KEY, baseUrl: server.baseUrl }).createPet(REX)
    assert.ok(performance.now() - started < 30_000)
    assert.equal(server.requests.length, 2)
  })
})
