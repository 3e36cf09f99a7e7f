// The end of a call before its answer: by the caller's signal, or by its timeout.
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../../src/contract/operations.ts'
import { type CallOptions, type Petstore, TimeoutError } from '../src/petstore.ts'
import { callExample, newClient, PET, type Respond, sending, startOddServer, unavailable } from './odd-server.ts'

const silent: Respond = () => {}
const halfAnswered: Respond = (response) => response.writeHead(200, { 'Content-Type': 'application/json' }).write('[')

const STAGES = {
  'while it waits for an answer': silent,
  'while the answer arrives': halfAnswered,
  'while it waits for the next attempt': unavailable('20'),
}

/** A signal may live as long as the program, and a timer would keep the program from ending. */
function assertNothingLeft(signal: AbortSignal): void {
  assert.deepEqual(getEventListeners(signal, 'abort'), [])
  assert.ok(!process.getActiveResourcesInfo().includes('Timeout'))
}

describe('A call', () => {
  for (const [stage, respond] of Object.entries(STAGES)) {
    it(`is aborted ${stage}, and rejects with the reason of the signal`, async () => {
      const controller = new AbortController()
      const { signal } = controller
      const reason = new Error('Changed my mind')
      await using server = await startOddServer((response, request) => {
        respond(response, request)
        setTimeout(() => controller.abort(reason), 50)
      })
      const called = callExample(newClient(server), 'listPets', { signal })
      await assert.rejects(called, (error) => error === reason)
      assert.equal(server.requests.length, 1)
      assertNothingLeft(signal)
    })
  }

  for (const { id: operation } of OPERATIONS) {
    const call = (petstore: Petstore, options: CallOptions) => callExample(petstore, operation, options)

    it(`has a timeout, with an error of its own, and a signal: ${operation}`, async () => {
      await using server = await startOddServer(silent)
      const message = `${operation} took longer than 50 ms.`
      const expected = { name: 'TimeoutError', code: 'timeout', status: undefined, message }
      await assert.rejects(call(newClient(server), { timeout: 50 }), expected)
      await assert.rejects(call(newClient({ ...server, timeout: 50 }), {}), expected, 'or that of the client')
      const controller = new AbortController()
      const called = call(newClient(server), { signal: controller.signal })
      controller.abort(new Error('Changed my mind'))
      await assert.rejects(called, { message: 'Changed my mind' })
    })
  }

  it('times out while the answer arrives', async () => {
    await using server = await startOddServer(halfAnswered)
    await assert.rejects(callExample(newClient(server), 'listPets', { timeout: 150 }), TimeoutError)
  })

  it('with a signal that is aborted already sends nothing', async () => {
    await using server = await startOddServer(sending(200, '[]'))
    await assert.rejects(callExample(newClient(server), 'listPets', { signal: AbortSignal.abort() }), {
      name: 'AbortError',
    })
    assert.equal(server.requests.length, 0)
  })

  it('that has succeeded lets go of its signal and its timer', async () => {
    await using server = await startOddServer(sending(200, '[]'))
    const { signal } = new AbortController()
    await newClient(server).listPets({}, { signal })
    assertNothingLeft(signal)
  })

  it('refuses a timeout that no timer has', async () => {
    for (const timeout of [0, -1, Number.NaN, Infinity, 2 ** 31]) {
      await assert.rejects(callExample(newClient({}), 'listPets', { timeout }), RangeError)
      assert.throws(() => newClient({ timeout }), RangeError)
    }
  })
})

describe('An iteration', () => {
  it('is aborted between pages', async () => {
    await using server = await startOddServer(sending(200, `[${PET}]`, { Link: '<?cursor=b>; rel="next"' }), silent)
    const controller = new AbortController()
    const iterate = async () => {
      for await (const { id } of newClient(server).listPets({}, { signal: controller.signal })) {
        assert.equal(id, 1n)
        controller.abort()
      }
    }
    await assert.rejects(iterate, { name: 'AbortError' })
    assert.equal(server.requests.length, 1)
  })
})
