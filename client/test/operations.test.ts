// The client against the real service, on both engines: the three operations, exact integers, paging, errors.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeService, type Petstore as Service, startPetstore } from '../../test/harness.ts'
import { ENGINES } from '../../assurance/harness/engines.ts'
import { examplePath, OPERATIONS } from '../../src/contract/operations.ts'
import { kindOf } from '../../src/store/records.ts'
import { toJson } from '../../test/openapi-document.ts'
import {
  AuthenticationError,
  type DeprecationNotice,
  InvalidRequestError,
  type NewPet,
  NotFoundError,
  type OperationId,
  type Pet,
  Petstore,
  type PetstoreOptions,
  RateLimitError,
} from '../src/petstore.ts'
import { Transport } from '../src/transport.ts'
import { KEY, startOddServer } from './odd-server.ts'

const INT64_MAX = 2n ** 63n - 1n
const INT64_MIN = -(2n ** 63n)

const clientOf = ({ url, key }: Service, options: Partial<PetstoreOptions> = {}) =>
  new Petstore({ apiKey: key, baseUrl: `${url}/v1`, onDeprecation: () => {}, ...options })

async function collect(pets: AsyncIterable<Pet>): Promise<Pet[]> {
  const all: Pet[] = []
  for await (const pet of pets) all.push(pet)
  return all
}

const addMany = (petstore: Petstore, count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, index) => petstore.createPet({ name: `Pet ${index}`, categoryId: index })),
  )

/** A call of each method, with the examples of its operation. */
const exampleOf = (id: OperationId, parameter: string) =>
  OPERATIONS.find((operation) => operation.id === id)!.parameters.find(({ name }) => name === parameter)!.example

const CALLS: Record<OperationId, (petstore: Petstore, body: unknown) => PromiseLike<unknown>> = {
  listPets: async (petstore) => (await petstore.listPets()).pets,
  createPet: (petstore, body) => petstore.createPet(body as NewPet),
  getPet: (petstore) => petstore.getPet(exampleOf('getPet', 'petId') as number),
}

describe('Each method of the client', () => {
  for (const operation of OPERATIONS) {
    it(`sends and returns what the document has as its example: ${operation.id}`, async () => {
      const { method, body, success } = operation
      let sent: unknown
      const fetch: NonNullable<PetstoreOptions['fetch']> = async (url, init) => {
        sent = [init?.method, (url as URL).href, init?.body && JSON.parse(init.body as string)]
        const content = success.content === undefined ? null : JSON.stringify(success.content.example)
        return new Response(content, { status: success.status })
      }
      const baseUrl = 'http://petstore.example/v1'
      const returned = await CALLS[operation.id](
        new Petstore({ apiKey: 'x', baseUrl, onDeprecation: () => {}, fetch }),
        body?.example,
      )
      assert.deepEqual(sent, [method, baseUrl + examplePath(operation), body?.example])
      if (success.content === undefined) assert.equal(returned, undefined)
      else assert.deepEqual(JSON.parse(toJson(returned)), success.content.example)
    })
  }
})

describe('A success without content', () => {
  it('is a result of an operation that has none, and of no other', async () => {
    await using server = await startOddServer((response) => response.writeHead(204).end())
    const settings = { baseUrl: server.baseUrl, timeout: 9000, maxRetries: 0, fetch, onDeprecation: () => {} }
    const parse = ({ status }: { status: number }) => status === 204 || undefined
    assert.equal(await new Transport(KEY, settings).call('getPet', { path: '/pets/1', parse }, {}), true)
    const message = `GET ${server.baseUrl}/pets/1 answered 204 with no content, which is not a result of getPet: check baseUrl.`
    const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl })
    await assert.rejects(petstore.getPet(1), { name: 'UnexpectedResponseError', message })
  })
})

describe('A deprecated operation', () => {
  const deprecated = (headers: Record<string, string>) => async () => Response.json([], { headers })
  const petstoreOf = (options: Partial<PetstoreOptions>) =>
    new Petstore({ apiKey: 'x', baseUrl: 'http://petstore.example/v1', ...options })

  it('is reported with console.warn unless the caller wants it otherwise', async (context) => {
    const warn = context.mock.method(console, 'warn', () => {})
    await petstoreOf({ fetch: deprecated({ Deprecation: '@0' }) }).listPets()
    assert.deepEqual(
      warn.mock.calls.map((call) => call.arguments),
      [['The Petstore operation listPets is deprecated.']],
    )
  })

  it('is reported by either header, with the dates that are well-formed', async () => {
    const notices: unknown[] = []
    for (const headers of [
      { Deprecation: '@1794614400' },
      { Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' },
      { Deprecation: 'true', Sunset: 'soon' },
      {},
    ]) {
      const onDeprecation = ({ since, sunset, message }: DeprecationNotice) =>
        notices.push([since?.getTime(), sunset?.getTime(), message])
      await petstoreOf({ fetch: deprecated(headers), onDeprecation }).listPets()
    }
    assert.deepEqual(notices, [
      [Date.UTC(2026, 10, 14), undefined, 'The Petstore operation listPets is deprecated.'],
      [
        undefined,
        Date.UTC(2030, 11, 5),
        'The Petstore operation listPets is deprecated and will be removed on 2030-12-05.',
      ],
      [undefined, undefined, 'The Petstore operation listPets is deprecated.'],
    ])
  })

  it('is reported once for each operation, also if another was reported before', async () => {
    const notices: string[] = []
    const onDeprecation = ({ operation }: DeprecationNotice) => notices.push(operation)
    const petstore = petstoreOf({ fetch: deprecated({ Deprecation: '@0' }), onDeprecation })
    await petstore.listPets()
    await petstore.listPets()
    await assert.rejects(petstore.getPet(1), /not a result of getPet/)
    assert.deepEqual(notices, ['listPets', 'getPet'])
  })

  it('fails the call with what onDeprecation throws, once and without a retry', async () => {
    let requests = 0
    const reason = new Error('no deprecated operations here')
    const petstore = petstoreOf({
      fetch: async () => {
        requests += 1
        return Response.json([], { headers: { Deprecation: '@0' } })
      },
      onDeprecation: () => {
        throw reason
      },
    })
    await assert.rejects(
      async () => petstore.listPets(),
      (error) => error === reason,
    )
    assert.equal(requests, 1)
    assert.deepEqual((await petstore.listPets()).pets, [])
  })
})

describe('An iteration', () => {
  it('goes on after an empty page that leads on, and sends the cursor as it was', async () => {
    const sent: (string | null)[] = []
    const pages = [
      Response.json([], { headers: { Link: '</v1/pets?cursor=a%2Bb%26c>; rel="next"' } }),
      Response.json([{ id: 1, name: 'Rex', categoryId: 3, status: 'sold' }]),
    ]
    const fetch: NonNullable<PetstoreOptions['fetch']> = async (url) => {
      sent.push((url as URL).searchParams.get('cursor'))
      return pages[sent.length - 1]!
    }
    const petstore = new Petstore({ apiKey: 'x', baseUrl: 'http://petstore.example/v1', fetch })
    assert.deepEqual(
      (await collect(petstore.listPets())).map(({ name }) => name),
      ['Rex'],
    )
    assert.deepEqual(sent, [null, 'a+b&c'])
  })
})

describe('A list', () => {
  const REX = { name: 'Rex', categoryId: 3, status: 'sold' }
  const UNAVAILABLE = { code: 'service_unavailable', message: 'The database is unavailable.', status: 503 }
  const first = () => Response.json([{ id: 2, ...REX }], { headers: { Link: '<?cursor=a>; rel="next"' } })
  const second = () => Response.json([{ id: 1, ...REX }])
  const ids = (pets: readonly Pet[]) => pets.map(({ id }) => id)
  const petstoreOf = (fetch: NonNullable<PetstoreOptions['fetch']>) =>
    new Petstore({ apiKey: 'x', baseUrl: 'http://petstore.example/v1', fetch })

  it('begins at its first page each time that it is iterated, also after it was awaited or left early', async () => {
    const list = petstoreOf(async (url) => ((url as URL).searchParams.has('cursor') ? second() : first())).listPets()
    assert.deepEqual(ids((await list).pets), [2n])
    for await (const { id } of list) if (id === 1n) break
    for (let time = 0; time < 2; time += 1) assert.deepEqual(ids(await collect(list)), [2n, 1n])
  })

  it('has its timeout and its retries for each page, however long the caller takes between two of them', async ({
    mock,
  }) => {
    let now = 0
    mock.method(performance, 'now', () => now)
    mock.method(Math, 'random', () => 0)
    const refused = () => Response.json(UNAVAILABLE, { status: 503, headers: { 'Retry-After': '0' } })
    const answers = [refused, refused, refused, first, refused, refused, refused, second]
    const found: Pet[] = []
    for await (const pet of petstoreOf(async () => answers.shift()!()).listPets({}, { timeout: 20_000 })) {
      found.push(pet)
      now += 3_600_000
    }
    assert.deepEqual(ids(found), [2n, 1n])
  })
})

describe('An animal', () => {
  it('is sent without its id and what is no field, and read with a status and fields that this version does not know', async () => {
    let sent = ''
    const answer = { id: 2, name: 'Rex', categoryId: 3, status: 'reserved', colour: 'brown' }
    const fetch: NonNullable<PetstoreOptions['fetch']> = async (_url, init) => {
      sent = init!.body as string
      return Response.json(answer, { status: 201 })
    }
    const petstore = new Petstore({ apiKey: 'x', baseUrl: 'http://petstore.example/v1', fetch })
    const stored = { id: 1n, name: 'Rex', categoryId: 3n, status: 'sold', colour: 'brown' } as const
    assert.deepEqual(await petstore.createPet(stored), { id: 2n, name: 'Rex', categoryId: 3n, status: 'reserved' })
    assert.equal(sent, '{"name":"Rex","categoryId":3,"status":"sold"}')
  })
})

describe('A client without settings of its own', () => {
  const UNAVAILABLE = { code: 'service_unavailable', message: 'The database is unavailable.', status: 503 }

  it('retries three times, and ends a call after 30 seconds', async ({ mock }) => {
    mock.method(Math, 'random', () => 0)
    const sent: (AbortSignal | null | undefined)[] = []
    const fetch: NonNullable<PetstoreOptions['fetch']> = async (_url, init) => {
      sent.push(init?.signal)
      return Response.json(UNAVAILABLE, { status: 503, headers: { 'Retry-After': '0' } })
    }
    const options = { apiKey: 'x', baseUrl: 'http://petstore.example/v1' }
    await assert.rejects(async () => new Petstore({ ...options, fetch }).listPets(), { status: 503 })
    assert.equal(sent.length, 4)
    mock.timers.enable({ apis: ['setTimeout'] })
    const silent: NonNullable<PetstoreOptions['fetch']> = (_url, init) =>
      new Promise((_resolve, reject) => {
        init!.signal!.addEventListener('abort', () => reject(new Error('aborted')))
      })
    const called = new Petstore({ ...options, fetch: silent }).getPet(1)
    mock.timers.tick(30_000)
    await assert.rejects(called, { message: 'getPet took longer than 30000 ms.' })
  })
})

describe('A fetch of the caller', () => {
  it("is called as a plain function: a browser's own refuses any other `this`", async () => {
    const receivers: unknown[] = []
    const fetch: NonNullable<PetstoreOptions['fetch']> = async function (this: unknown) {
      receivers.push(this)
      return Response.json([])
    }
    await new Petstore({ apiKey: 'x', baseUrl: 'http://petstore.example/v1', fetch }).listPets()
    assert.deepEqual(receivers, [undefined])
  })

  it('may take the place of the global one after the client was made, as tracing libraries do', async ({ mock }) => {
    const petstore = new Petstore({ apiKey: 'x', baseUrl: 'http://petstore.example/v1' })
    mock.method(globalThis, 'fetch', async () => Response.json([]))
    assert.deepEqual((await petstore.listPets()).pets, [])
  })
})

describeService('The client', (service) => {
  it('adds an animal, and finds it by list and get', async () => {
    const petstore = clientOf(service())
    const rex = await petstore.createPet({ name: 'Rex "the" dög\u2028', categoryId: 3, status: 'pending' })
    assert.deepEqual(rex, { id: rex.id, name: 'Rex "the" dög\u2028', categoryId: 3n, status: 'pending' })
    assert.deepEqual((await petstore.listPets({ status: 'pending', limit: 1 })).pets, [rex])
    assert.deepEqual(await petstore.getPet(rex.id), rex)
    assert.deepEqual(await petstore.getPet(Number(rex.id)), rex)
  })

  it('leaves the status to the service if none is given', async () => {
    assert.equal(
      (await clientOf(service()).createPet({ name: 'Rex', categoryId: 1, status: undefined })).status,
      'available',
    )
  })

  for (const categoryId of [INT64_MIN, INT64_MAX, 2n ** 53n + 1n, -1n, 0n]) {
    it(`keeps the category ${categoryId} digit for digit`, async () => {
      const petstore = clientOf(service())
      const pet = await petstore.createPet({ name: 'Rex', categoryId })
      assert.equal(pet.categoryId, categoryId)
      assert.deepEqual((await petstore.listPets({ limit: 1 })).pets, [pet])
    })
  }

  it('refuses a number that may have been rounded, before anything is sent', async () => {
    const petstore = clientOf(service(), { fetch: () => assert.fail('a request was sent') })
    const refused: [value: unknown, shown: string][] = [
      [2 ** 53, 'the number 9007199254740992'],
      [1.5, 'the number 1.5'],
      [Number.NaN, 'the number NaN'],
      [Infinity, 'the number Infinity'],
      ['3', 'string'],
    ]
    for (const [given, shown] of refused) {
      const value = given as number
      await assert.rejects(petstore.createPet({ name: 'Rex', categoryId: value }), {
        name: 'TypeError',
        message: `categoryId must be a bigint or a safe integer, got ${shown}.`,
      })
      await assert.rejects(petstore.getPet(value), /^TypeError: id must be a bigint or a safe integer/)
      if (typeof value === 'string') continue
      const filters = { categoryId: value } as object
      const message = `categoryId must be a bigint or a safe integer, got ${shown}.`
      await assert.rejects(async () => petstore.listPets(filters), { name: 'TypeError', message })
    }
  })

  it('returns a page when awaited, of the limit and with the cursor of the next', async () => {
    const petstore = clientOf(service())
    await addMany(petstore, 25)
    const list = petstore.listPets()
    const first = await list
    assert.equal(first.pets.length, 20)
    assert.equal(await list, first)
    const second = await petstore.listPets({ limit: 2, cursor: first.nextCursor })
    assert.equal(second.pets.length, 2)
    assert.ok(second.pets[0]!.id < first.pets.at(-1)!.id)
    assert.equal((await petstore.listPets({ status: 'sold' })).nextCursor, undefined)
  })

  it('returns every animal once when iterated, while others are added', async () => {
    const petstore = clientOf(service())
    await addMany(petstore, 30)
    const before = await collect(petstore.listPets())
    const seen: Pet[] = []
    for await (const pet of petstore.listPets({ limit: 7 })) {
      if (seen.length % 5 === 0) await petstore.createPet({ name: 'Later', categoryId: 1 })
      seen.push(pet)
    }
    assert.deepEqual(seen, before)
    assert.ok((await collect(petstore.listPets())).length > before.length)
  })

  it('iterates over one status only, and fetches no page that is not needed', async () => {
    const paths: string[] = []
    const petstore = clientOf(service(), {
      fetch: (input, init) => {
        paths.push(new URL(input as URL).search)
        return fetch(input, init)
      },
    })
    await petstore.createPet({ name: 'Rex', categoryId: 1, status: 'sold' })
    await petstore.createPet({ name: 'Mittens', categoryId: 1, status: 'sold' })
    paths.length = 0
    for await (const pet of petstore.listPets({ status: 'sold', limit: 1 })) {
      assert.equal(pet.name, 'Mittens')
      break
    }
    assert.deepEqual(paths, ['?status=sold&limit=1'])
  })

  it('throws what the service answers, with code, message, status and request id', async () => {
    const petstore = clientOf(service())
    const invalid = { name: 'InvalidRequestError', status: 400, requestId: /./ }
    await assert.rejects(petstore.createPet({ name: ' ', categoryId: 1 }), {
      ...invalid,
      code: 'invalid_pet',
      message: /^name must be/,
    })
    await assert.rejects(async () => petstore.listPets({ limit: 101 }), {
      ...invalid,
      code: 'invalid_parameter',
      message: /limit/,
    })
    await assert.rejects(petstore.getPet(INT64_MAX), NotFoundError)
    await assert.rejects(collect(petstore.listPets({ cursor: 'mine' })), InvalidRequestError)
    const stranger = clientOf(service(), { apiKey: 'mine' })
    await assert.rejects(
      stranger.createPet({ name: 'Rex', categoryId: 1 }),
      (error) => error instanceof AuthenticationError && error.code === 'malformed_api_key',
    )
  })

  it('throws 422 for an Idempotency-Key that was used for another animal', async () => {
    const petstore = clientOf(service())
    const first = await petstore.createPet({ name: 'Rex', categoryId: 1 }, { idempotencyKey: 'rex-1' })
    assert.deepEqual(await petstore.createPet({ name: 'Rex', categoryId: 1 }, { idempotencyKey: 'rex-1' }), first)
    await assert.rejects(petstore.createPet({ name: 'Max', categoryId: 1 }, { idempotencyKey: 'rex-1' }), {
      code: 'idempotency_key_reused',
      status: 422,
    })
  })

  it('reports a deprecated operation once, also if its answer is an error', async () => {
    const notices: DeprecationNotice[] = []
    const petstore = clientOf(service(), { onDeprecation: (notice) => void notices.push(notice) })
    const { id } = await petstore.createPet({ name: 'Rex', categoryId: 1 })
    await assert.rejects(petstore.getPet(id + 1n), { status: 404 })
    assert.equal(notices.length, 1)
    await petstore.getPet(id)
    const [notice, ...others] = notices
    assert.deepEqual(others, [])
    assert.equal(notice?.operation, 'getPet')
    assert.equal(notice.since?.toISOString(), '2026-11-14T00:00:00.000Z')
    assert.equal(notice.sunset?.toISOString(), '2030-12-05T00:00:00.000Z')
    assert.match(
      notice.message,
      /^The Petstore operation getPet is deprecated and will be removed on 2030-12-05: see http.*#getPet$/,
    )
    await clientOf(service(), { onDeprecation: (other) => void notices.push(other) }).getPet(id)
    assert.equal(notices.length, 2)
  })
})

describe('The client at the last id', () => {
  for (const engine of ENGINES) {
    it(`returns it digit for digit, on ${engine.name}`, async () => {
      await using service = await startPetstore({ engine })
      const petstore = clientOf(service)
      await service.store.records.raiseLastId(kindOf('pets'), INT64_MAX - 2n)
      const ids = [
        (await petstore.createPet({ name: 'Rex', categoryId: 1 })).id,
        (await petstore.createPet({ name: 'Max', categoryId: 1 })).id,
      ]
      assert.deepEqual(ids, [INT64_MAX - 1n, INT64_MAX])
      assert.deepEqual(
        (await collect(petstore.listPets({ limit: 1 }))).map(({ id }) => id),
        [INT64_MAX, INT64_MAX - 1n],
      )
      assert.equal((await petstore.getPet(INT64_MAX)).name, 'Max')
    })
  }
})

describe('The client after the removal of getPet', () => {
  it('throws 410 with what the service suggests instead, and reports the deprecation', async () => {
    await using service = await startPetstore({ clock: () => Date.UTC(2030, 11, 5) })
    const notices: string[] = []
    const petstore = clientOf(service, { onDeprecation: ({ operation }) => void notices.push(operation) })
    await assert.rejects(petstore.getPet(1), {
      name: 'InvalidRequestError',
      code: 'operation_removed',
      status: 410,
      message: /status/,
    })
    assert.deepEqual(notices, ['getPet'])
  })
})

describe('The client past the rate limit', () => {
  it('waits as long as Retry-After says, or throws it at once if the timeout comes before', async () => {
    // The window ends when the test says so, however slow the machine is.
    let now = 0
    await using service = await startPetstore({ env: { PETSTORE_RATE_LIMIT: '2/2' }, monotonic: () => now })
    const refusals: number[] = []
    const petstore = clientOf(service, {
      fetch: async (...call) => {
        const answer = await fetch(...call)
        if (answer.status === 429) refusals.push(performance.now())
        if (refusals.length === 2) now = 2000
        return answer
      },
    })
    await petstore.listPets()
    await petstore.listPets()
    await assert.rejects(async () => petstore.listPets({}, { timeout: 1900 }), RateLimitError)
    assert.equal(refusals.length, 1)
    assert.equal((await petstore.listPets()).pets.length, 0)
    assert.equal(refusals.length, 2)
    assert.ok(performance.now() - refusals[1]! > 1900)
  })
})
