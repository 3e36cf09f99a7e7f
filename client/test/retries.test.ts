// Retries: what passes is repeated, and a create happens once, whatever dies in between.
import assert from 'node:assert/strict'
import { after, before as beforeAll, describe, it } from 'node:test'
import { Folder, makeKey, serve } from '../../test/harness/programs/command.ts'
import { startCuttingProxy } from '../../test/harness/databases/cutting-proxy.ts'
import { sqlite } from '../../test/harness/databases/engines.ts'
import { freePort } from '../../test/harness/connections/free-port.ts'
import { countPets, describeOnSqlite } from '../../test/harness/harness.ts'
import { type CreatePetOptions, type Pet, Petstore } from '../src/petstore.ts'
import { OPERATIONS } from '../src/contract.ts'
import { type OperationId, type PetstoreError } from '../src/petstore.ts'
import { Transport } from '../src/transport.ts'
import { KEY, newClient, PET, type Respond, sending, startOddServer, unavailable } from './odd-server.ts'

const REX = { name: 'Rex', categoryId: 3 }

describeOnSqlite(
  'A client of the service',
  (service) => {
    /** The first attempt asks for a failure that staging rehearses. */
    function rehearsing(failure: string, maxRetries = 3): Petstore {
      let attempts = 0
      const send: typeof fetch = (input, init) => {
        const headers = new Headers(init?.headers)
        attempts += 1
        if (attempts === 1) headers.set('Petstore-Rehearse', failure)
        return fetch(input, { ...init, headers })
      }
      return new Petstore({ apiKey: service().key, baseUrl: `${service().url}/v1`, fetch: send, maxRetries })
    }

    for (const failure of ['503', '429', 'delay=200ms', 'disconnect', 'disconnect-after-commit']) {
      it(`reads, and adds an animal once, through ${failure}`, async () => {
        const before = await countPets(service())
        const pet = await rehearsing(failure).createPet(REX)
        assert.equal(await countPets(service()), before + 1)
        assert.deepEqual((await rehearsing(failure).listPets({ limit: 1 })).pets, [pet])
      })
    }

    it('learns what failed when its retries are used up', async () => {
      const list = async () => rehearsing('429', 0).listPets()
      await assert.rejects(list, { name: 'RateLimitError', retryAfter: 1000 })
      await assert.rejects(rehearsing('503', 0).createPet(REX), { name: 'ServerError', code: 'service_unavailable' })
    })

    /** Creates of which the service has the request, and the client no answer. */
    const unanswered: Record<string, [options: () => CreatePetOptions, error: string]> = {
      lost: [() => ({}), 'NetworkError'],
      'held up beyond the timeout': [() => ({ timeout: 2000 }), 'TimeoutError'],
      'held up until the call is aborted': [() => ({ signal: AbortSignal.timeout(2000) }), 'TimeoutError'],
    }
    for (const [what, [options, name]] of Object.entries(unanswered)) {
      it(`finds the animal by its Idempotency-Key after a create whose answer is ${what}`, async () => {
        await using proxy = await startCuttingProxy(service().url)
        const petstore = new Petstore({ apiKey: service().key, baseUrl: `${proxy.url}v1`, maxRetries: 0 })
        const before = await countPets(service())
        const held = what === 'lost' ? proxy.cutNextAnswer() : proxy.holdNextAnswer()
        await assert.rejects(petstore.createPet(REX, { idempotencyKey: what, ...options() }), { name })
        await held?.arrived
        const pet = await petstore.createPet(REX, { idempotencyKey: what })
        assert.equal(await countPets(service()), before + 1)
        assert.deepEqual((await petstore.listPets({ limit: 1 })).pets, [pet])
      })
    }
  },
  { engine: sqlite },
)

describe('A service that dies in the middle of creates', () => {
  it('has added each animal once when it is back', async () => {
    await using folder = await Folder.create()
    const env = { PORT: String(await freePort()) }
    const { key } = await makeKey(folder)
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
    const stored: Pet[] = await Array.fromAsync(petstore.listPets())
    const byId = (a: Pet, b: Pet) => Number(a.id - b.id)
    assert.deepEqual(stored.toSorted(byId), created.toSorted(byId))
  })
})

describe('A failure that passes', () => {
  it('is retried, all attempts of a create with one Idempotency-Key, each create with its own', async () => {
    await using server = await startOddServer(
      unavailable(),
      sending(502, '<html>Bad gateway', { 'Content-Type': 'text/html' }),
      unavailable('next Tuesday'),
      sending(201, PET),
    )
    await newClient(server).createPet(REX)
    await newClient(server).createPet(REX)
    const [first, ...others] = server.requests.map(({ headers }) => headers['idempotency-key'])
    assert.match(String(first), /^[0-9a-f]{32}$/)
    const last = others.pop()
    assert.deepEqual(others, [first, first, first])
    assert.notEqual(last, first)
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
    assert.equal((await newClient(server).listPets()).pets.length, 1)
    assert.equal(server.requests.length, 3)
  })

  it('is thrown once the retries are used up', async () => {
    await using server = await startOddServer(unavailable('0'))
    await assert.rejects(newClient({ ...server, maxRetries: 2 }).createPet(REX), {
      name: 'ServerError',
      code: 'service_unavailable',
      message: 'The database is unavailable.',
      status: 503,
      requestId: 'odd-1',
      retryAfter: 0,
    })
    assert.equal(server.requests.length, 3)
  })

  it('is not waited for beyond the timeout: the Retry-After comes with the error', async () => {
    for (const header of ['3600', new Date(Date.now() + 3_600_000).toUTCString()]) {
      await using server = await startOddServer(unavailable(header))
      await assert.rejects(
        newClient(server).createPet(REX),
        (error: { retryAfter: number }) => error.retryAfter > 3_590_000 && error.retryAfter <= 3_600_000,
      )
      assert.equal(server.requests.length, 1)
    }
  })
})

/** Operations as another release might have them. */
const OTHERS = {
  removeToy: { method: 'DELETE', path: '/toys/{toyId}', repeat: 'idempotent' },
  addToy: { method: 'POST', path: '/toys', repeat: 'never' },
  addToyOnce: { method: 'POST', path: '/toys', repeat: 'with key' },
}

describe('An operation whose answer is lost', () => {
  beforeAll(() => void Object.assign(OPERATIONS, OTHERS))
  after(() => Object.keys(OTHERS).forEach((name) => Reflect.deleteProperty(OPERATIONS, name)))

  const lost: Respond = (response) => void response.destroy()
  const error = (status: number, code: string) => sending(status, JSON.stringify({ code, message: 'No.', status }))
  const gone = error(404, 'toy_not_found')
  const done: Respond = (response) => void response.writeHead(204).end()

  /** Resolves with the error, or nothing, and how many requests were sent. */
  async function outcomeOf(name: keyof typeof OTHERS, headers: Record<string, string>, ...answers: Respond[]) {
    await using server = await startOddServer(...answers)
    const settings = { baseUrl: server.baseUrl, timeout: 30_000, maxRetries: 3, fetch, onDeprecation: () => {} }
    const call = { path: '/toys/1', headers, parse: ({ status }: { status: number }) => status === 204 || undefined }
    const called = new Transport(KEY, settings).call(name as OperationId, call, {})
    const failed = await called.then(
      () => undefined,
      (reason: PetstoreError) => reason,
    )
    return [failed?.code, server.requests.length]
  }

  it('is sent again only if that does no harm', async () => {
    assert.deepEqual(await outcomeOf('addToy', {}, unavailable('0'), done), ['service_unavailable', 1])
    assert.deepEqual(await outcomeOf('addToy', {}, lost, done), ['network_error', 1])
    assert.deepEqual(await outcomeOf('addToyOnce', {}, lost, done), ['network_error', 1])
    assert.deepEqual(await outcomeOf('addToyOnce', { 'Idempotency-Key': 'a' }, lost, done), [undefined, 2])
    assert.deepEqual(await outcomeOf('removeToy', {}, lost, done), [undefined, 2])
    const limited = sending(429, '{"code":"rate_limited","message":"Slow down."}', { 'Retry-After': '0' })
    assert.deepEqual(await outcomeOf('addToy', {}, limited, done), [undefined, 2], 'nothing was done')
  })

  it('has removed what the next attempt does not find; without an earlier attempt that is an error', async () => {
    for (const answer of [lost, unavailable('0')])
      assert.deepEqual(await outcomeOf('removeToy', {}, answer, gone), [undefined, 2])
    assert.deepEqual(await outcomeOf('removeToy', {}, gone), ['toy_not_found', 1])
    const limited = sending(429, '{"code":"rate_limited","message":"Slow down."}', { 'Retry-After': '0' })
    assert.deepEqual(await outcomeOf('removeToy', {}, limited, gone), ['toy_not_found', 2])
    assert.deepEqual(await outcomeOf('removeToy', {}, lost, error(404, 'unknown_path')), ['unknown_path', 2])
  })
})
