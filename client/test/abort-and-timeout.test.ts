// The end of a call before its answer: by the caller's signal, or by its timeout.
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'
import { type CallOptions, type OperationId, Petstore, TimeoutError } from '../src/petstore.ts'
import { KEY, PET, type Respond, sending, startOddServer } from './odd-server.ts'

const silent: Respond = () => {}
const halfAnswered: Respond = (response) => response.writeHead(200, { 'Content-Type': 'application/json' }).write('[')
const unavailable = sending(
  503,
  '{"code":"service_unavailable","message":"The database is unavailable.","status":503}',
  { 'Retry-After': '20' },
)

const STAGES = [
  ['while it waits for an answer', silent],
  ['while the answer arrives', halfAnswered],
  ['while it waits for the next attempt', unavailable],
] as const

/** A signal may live as long as the program, and a timer would keep the program from ending. */
function assertNothingLeft(signal: AbortSignal): void {
  assert.deepEqual(getEventListeners(signal, 'abort'), [])
  assert.deepEqual(
    process.getActiveResourcesInfo().filter((name) => name === 'Timeout'),
    [],
  )
}

describe('A call', () => {
  for (const [stage, respond] of STAGES) {
    it(`is aborted ${stage}, and rejects with the reason of the signal`, async () => {
      const controller = new AbortController()
      const { signal } = controller
      const reason = new Error('Changed my mind')
      await using server = await startOddServer((response, request) => {
        respond(response, request)
        setTimeout(() => controller.abort(reason), 50)
      })
      const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl })
      await assert.rejects(
        async () => petstore.listPets({}, { signal }),
        (error) => error === reason,
      )
      assert.equal(server.requests.length, 1)
      assertNothingLeft(signal)
    })
  }

  for (const [stage, respond] of STAGES.slice(0, 2)) {
    it(`times out ${stage}, with an error of its own`, async () => {
      await using server = await startOddServer(respond)
      const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl })
      const started = performance.now()
      await assert.rejects(petstore.createPet({ name: 'Rex', categoryId: 1 }, { timeout: 150 }), (error) => {
        assert.ok(error instanceof TimeoutError)
        assert.deepEqual(
          [error.code, error.status, error.message],
          ['timeout', undefined, 'createPet took longer than 150 ms.'],
        )
        return true
      })
      assert.ok(performance.now() - started < 20_000)
    })
  }

  it('takes the timeout of the client if it has none of its own', async () => {
    await using server = await startOddServer(silent)
    const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl, timeout: 50 })
    await assert.rejects(async () => petstore.listPets(), { message: 'listPets took longer than 50 ms.' })
  })

  it('with a signal that is aborted already sends nothing', async () => {
    await using server = await startOddServer(sending(200, '[]'))
    const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl })
    await assert.rejects(async () => petstore.listPets({}, { signal: AbortSignal.abort() }), { name: 'AbortError' })
    assert.equal(server.requests.length, 0)
  })

  it('that has succeeded lets go of its signal and its timer', async () => {
    await using server = await startOddServer(sending(200, '[]'))
    const { signal } = new AbortController()
    await new Petstore({ apiKey: KEY, baseUrl: server.baseUrl }).listPets({}, { signal })
    assertNothingLeft(signal)
  })

  for (const timeout of [0, -1, Number.NaN, Infinity, 2 ** 31]) {
    it(`refuses a timeout of ${timeout}`, async () => {
      const petstore = new Petstore({ apiKey: KEY, baseUrl: 'http://127.0.0.1:1/v1' })
      await assert.rejects(async () => petstore.listPets({}, { timeout }), RangeError)
      assert.throws(() => new Petstore({ apiKey: KEY, baseUrl: 'http://127.0.0.1:1/v1', timeout }), RangeError)
    })
  }
})

describe('Each operation', () => {
  const calls: Record<OperationId, (petstore: Petstore, options: CallOptions) => Promise<unknown>> = {
    listPets: async (petstore, options) => petstore.listPets({}, options),
    createPet: (petstore, options) => petstore.createPet({ name: 'Rex', categoryId: 1 }, options),
    getPet: (petstore, options) => petstore.getPet(1, options),
  }
  for (const [operation, call] of Object.entries(calls)) {
    it(`has a timeout and a signal of its own: ${operation}`, async () => {
      await using server = await startOddServer(silent)
      const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl })
      await assert.rejects(call(petstore, { timeout: 50 }), { message: `${operation} took longer than 50 ms.` })
      const controller = new AbortController()
      const called = call(petstore, { signal: controller.signal })
      controller.abort(new Error('Changed my mind'))
      await assert.rejects(called, { message: 'Changed my mind' })
    })
  }
})

describe('An iteration', () => {
  it('is aborted between pages', async () => {
    await using server = await startOddServer(sending(200, `[${PET}]`, { Link: '<?cursor=b>; rel="next"' }), silent)
    const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl })
    const controller = new AbortController()
    const iterate = async () => {
      for await (const { id } of petstore.listPets({}, { signal: controller.signal })) {
        assert.equal(id, 1n)
        controller.abort()
      }
    }
    await assert.rejects(iterate, { name: 'AbortError' })
    assert.equal(server.requests.length, 1)
  })
})
