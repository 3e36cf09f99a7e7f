// The client against the failures that staging rehearses: what is safe is retried, and a create happens once.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { countPets, describeService } from '../../test/harness.ts'
import { Petstore, RateLimitError, ServerError, TimeoutError } from '../src/petstore.ts'

const REX = { name: 'Rex', categoryId: 3 }

describeService('A client on staging', (service) => {
  /** The first `times` attempts of each client ask for the failure. */
  function rehearsing(what: string, { times = 1, ...options }: { times?: number; maxRetries?: number } = {}): Petstore {
    let left = times
    const send: typeof fetch = (input, init) => {
      const headers = new Headers(init?.headers)
      if (left > 0) headers.set('Petstore-Rehearse', what)
      left -= 1
      return fetch(input, { ...init, headers })
    }
    return new Petstore({ apiKey: service().key, baseUrl: `${service().url}/v1`, fetch: send, ...options })
  }

  for (const failure of ['503', '429', 'delay=200ms', 'disconnect', 'disconnect-after-commit']) {
    it(`adds an animal once through ${failure}`, async () => {
      const before = await countPets(service())
      const petstore = rehearsing(failure)
      const pet = await petstore.createPet(REX)
      assert.equal(await countPets(service()), before + 1)
      assert.deepEqual((await petstore.listPets({ limit: 1 })).pets, [pet])
    })

    it(`reads through ${failure}`, async () => {
      assert.equal((await rehearsing(failure).listPets({ limit: 1 })).pets.length, 1)
    })
  }

  it('says what failed when its retries are used up', async () => {
    await assert.rejects(
      rehearsing('503', { maxRetries: 0 }).createPet(REX),
      (error) => error instanceof ServerError && error.code === 'service_unavailable',
    )
    await assert.rejects(
      async () => rehearsing('429', { maxRetries: 0 }).listPets(),
      (error) => error instanceof RateLimitError && error.retryAfter === 1000,
    )
  })

  it('times out on an answer that is held up', async () => {
    await assert.rejects(
      async () => rehearsing('delay=2s', { maxRetries: 0 }).listPets({}, { timeout: 300 }),
      TimeoutError,
    )
  })
})
