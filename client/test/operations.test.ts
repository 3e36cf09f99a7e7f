// The operations, exact integers, paging, deprecations and errors: with answers of the test, and against the real service.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeOnSqlite, type Petstore as Service, startPetstore } from '../../test/harness/harness.ts'
import { sqlite } from '../../test/harness/databases/engines.ts'
import { examplePath, OPERATIONS } from '../../src/contract/operations.ts'
import { kindOf } from '../../src/store/records.ts'
import { toJson } from '../../test/harness/openapi-document.ts'
import {
  AuthenticationError,
  type DeprecationNotice,
  InvalidRequestError,
  NotFoundError,
  type Pet,
  type PetstoreOptions,
  RateLimitError,
} from '../src/petstore.ts'
import { Transport } from '../src/transport.ts'
import { callExample, KEY, newClient, startOddServer } from './odd-server.ts'

const INT64_MAX = 2n ** 63n - 1n
const INT64_MIN = -(2n ** 63n)
const REX = { name: 'Rex', categoryId: 3, status: 'sold' }

const clientOf = ({ url, key }: Service, options: Partial<PetstoreOptions> = {}) =>
  newClient({ apiKey: key, baseUrl: `${url}/v1`, ...options })

/** A client whose requests get these answers. */
const answeredBy = (
  answer: (url: URL, init: RequestInit) => Response | Promise<Response>,
  options: Partial<PetstoreOptions> = {},
) => newClient({ fetch: async (url, init) => answer(url as URL, init!), ...options })

const idsOf = (pets: readonly Pet[]) => pets.map(({ id }) => id)

describe('Each method of the client', () => {
  for (const operation of OPERATIONS) {
    it(`sends and returns what the document has as its example: ${operation.id}`, async () => {
      const { method, body, success } = operation
      let sent: unknown
      const petstore = answeredBy((url, init) => {
        sent = [init.method, url.href, init.body && JSON.parse(init.body as string)]
        const content = success.content === undefined ? null : JSON.stringify(success.content.example)
        return new Response(content, { status: success.status })
      })
      const answered = await callExample(petstore, operation.id)
      // A page has its list beside the cursor of the next one.
      const isPage = Array.isArray(success.content?.example) && !Array.isArray(answered)
      const returned = isPage ? Object.values(answered as object).find(Array.isArray) : answered
      assert.deepEqual(sent, [method, petstore.baseUrl + examplePath(operation), body?.example])
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
    await assert.rejects(newClient(server).getPet(1), { name: 'UnexpectedResponseError', message })
  })
})

describe('A deprecated operation', () => {
  const deprecated = (headers: Record<string, string>, options: Partial<PetstoreOptions>) =>
    answeredBy(() => Response.json([], { headers }), options)
  const deprecation = 'The Petstore operation listPets is deprecated'

  it('is reported with console.warn unless the caller wants it otherwise', async (context) => {
    const warn = context.mock.method(console, 'warn', () => {})
    await deprecated({ Deprecation: '@0' }, { onDeprecation: undefined }).listPets()
    assert.deepEqual(
      warn.mock.calls.map((call) => call.arguments),
      [[`${deprecation}.`]],
    )
  })

  it('is reported by either header, with the dates that are well-formed', async () => {
    const notices: unknown[] = []
    const onDeprecation = ({ since, sunset, message }: DeprecationNotice) =>
      notices.push([since?.getTime(), sunset?.getTime(), message])
    for (const headers of [
      { Deprecation: '@1794614400' },
      { Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT' },
      { Deprecation: 'true', Sunset: 'soon' },
      {},
    ])
      await deprecated(headers, { onDeprecation }).listPets()
    assert.deepEqual(notices, [
      [Date.UTC(2026, 10, 14), undefined, `${deprecation}.`],
      [undefined, Date.UTC(2030, 11, 5), `${deprecation} and will be removed on 2030-12-05.`],
      [undefined, undefined, `${deprecation}.`],
    ])
  })

  it('is reported once for each operation, also if another was reported before', async () => {
    const notices: string[] = []
    const onDeprecation = ({ operation }: DeprecationNotice) => notices.push(operation)
    const petstore = deprecated({ Deprecation: '@0' }, { onDeprecation })
    for (let time = 0; time < 2; time += 1) await petstore.listPets()
    await assert.rejects(petstore.getPet(1), /not a result of getPet/)
    assert.deepEqual(notices, ['listPets', 'getPet'])
  })

  it('fails the call with what onDeprecation throws, once and without a retry', async () => {
    let requests = 0
    const reason = new Error('no deprecated operations here')
    const answer = () => {
      requests += 1
      return Response.json([], { headers: { Deprecation: '@0' } })
    }
    const onDeprecation = () => {
      throw reason
    }
    const petstore = answeredBy(answer, { onDeprecation })
    const list = async () => petstore.listPets()
    await assert.rejects(list, (error) => error === reason)
    assert.equal(requests, 1)
    assert.deepEqual((await list()).pets, [])
  })
})

describe('A list', () => {
  const first = () => Response.json([{ id: 2, ...REX }], { headers: { Link: '<?cursor=a>; rel="next"' } })
  const second = () => Response.json([{ id: 1, ...REX }])

  it('goes on after an empty page that leads on, and sends the cursor as it was', async () => {
    const sent: (string | null)[] = []
    const empty = Response.json([], { headers: { Link: '</v1/pets?cursor=a%2Bb%26c>; rel="next"' } })
    const petstore = answeredBy((url) => (sent.push(url.searchParams.get('cursor')) === 1 ? empty : second()))
    assert.deepEqual(idsOf(await Array.fromAsync(petstore.listPets())), [1n])
    assert.deepEqual(sent, [null, 'a+b&c'])
  })

  it('begins at its first page each time that it is iterated, also after it was awaited or left early', async () => {
    const list = answeredBy((url) => (url.searchParams.has('cursor') ? second() : first())).listPets()
    assert.deepEqual(idsOf((await list).pets), [2n])
    for await (const { id } of list) if (id === 1n) break
    for (let time = 0; time < 2; time += 1) assert.deepEqual(idsOf(await Array.fromAsync(list)), [2n, 1n])
  })

  it('has its timeout and its retries for each page, however long the caller takes between two of them', async ({
    mock,
  }) => {
    let now = 0
    mock.method(performance, 'now', () => now)
    mock.method(Math, 'random', () => 0)
    const answers = [unavailable, unavailable, unavailable, first, unavailable, unavailable, unavailable, second]
    const found: Pet[] = []
    for await (const pet of answeredBy(() => answers.shift()!()).listPets({}, { timeout: 20_000 })) {
      found.push(pet)
      now += 3_600_000
    }
    assert.deepEqual(idsOf(found), [2n, 1n])
  })
})

function unavailable(): Response {
  const body = { code: 'service_unavailable', message: 'The database is unavailable.', status: 503 }
  return Response.json(body, { status: 503, headers: { 'Retry-After': '0' } })
}

describe('An animal', () => {
  it('is sent without its id and what is no field, and read with a status and fields that this version does not know', async () => {
    let sent: unknown
    const petstore = answeredBy((_url, { body }) => {
      sent = body
      return Response.json({ id: 2, ...REX, status: 'reserved', colour: 'brown' }, { status: 201 })
    })
    const stored = { id: 1n, name: 'Rex', categoryId: 3n, status: 'sold', colour: 'brown' } as const
    assert.deepEqual(await petstore.createPet(stored), { id: 2n, name: 'Rex', categoryId: 3n, status: 'reserved' })
    assert.equal(sent, '{"name":"Rex","categoryId":3,"status":"sold"}')
  })

  it('is not sent with a number that may have been rounded', async () => {
    const petstore = answeredBy(() => assert.fail('a request was sent'))
    const refused: [value: unknown, shown: string][] = [
      [2 ** 53, 'the number 9007199254740992'],
      [1.5, 'the number 1.5'],
      [Number.NaN, 'the number NaN'],
      [Infinity, 'the number Infinity'],
      ['3', 'string'],
    ]
    for (const [given, shown] of refused) {
      const value = given as number
      const error = (name: string) => ({
        name: 'TypeError',
        message: `${name} must be a bigint or a safe integer, got ${shown}.`,
      })
      await assert.rejects(petstore.createPet({ name: 'Rex', categoryId: value }), error('categoryId'))
      await assert.rejects(petstore.getPet(value), error('id'))
      if (typeof value === 'string') continue
      const filters = { categoryId: value } as object
      await assert.rejects(async () => petstore.listPets(filters), error('categoryId'))
    }
  })
})

describe('A client without settings of its own', () => {
  it('retries three times, and ends a call after 30 seconds', async ({ mock }) => {
    mock.method(Math, 'random', () => 0)
    let requests = 0
    const refused = answeredBy(() => {
      requests += 1
      return unavailable()
    })
    await assert.rejects(async () => refused.listPets(), { status: 503 })
    assert.equal(requests, 4)
    mock.timers.enable({ apis: ['setTimeout'] })
    const silent = answeredBy(
      (_url, { signal }) =>
        new Promise((_resolve, reject) => {
          signal!.addEventListener('abort', () => reject(new Error('aborted')))
        }),
    )
    const called = silent.getPet(1)
    mock.timers.tick(30_000)
    await assert.rejects(called, { message: 'getPet took longer than 30000 ms.' })
  })
})

describe('A fetch of the caller', () => {
  it("is called as a plain function: a browser's own refuses any other `this`", async () => {
    const receivers: unknown[] = []
    const fetch = async function (this: unknown) {
      receivers.push(this)
      return Response.json([])
    }
    await newClient({ fetch }).listPets()
    assert.deepEqual(receivers, [undefined])
  })

  it('may take the place of the global one after the client was made, as tracing libraries do', async ({ mock }) => {
    const petstore = newClient({})
    mock.method(globalThis, 'fetch', async () => Response.json([]))
    assert.deepEqual((await petstore.listPets()).pets, [])
  })
})

describeOnSqlite(
  'The client',
  (service) => {
    it('adds an animal, and finds it by list and get, digit for digit', async () => {
      const petstore = clientOf(service())
      const name = 'Rex "the" dög\u2028'
      for (const categoryId of [3, INT64_MIN, INT64_MAX, 2n ** 53n + 1n, -1n, 0n]) {
        const rex = await petstore.createPet({ name, categoryId, status: 'pending' })
        assert.deepEqual(rex, { id: rex.id, name, categoryId: BigInt(categoryId), status: 'pending' })
        assert.deepEqual((await petstore.listPets({ status: 'pending', limit: 1 })).pets, [rex])
        for (const id of [rex.id, Number(rex.id)]) assert.deepEqual(await petstore.getPet(id), rex)
      }
      const { status } = await petstore.createPet({ name, categoryId: 1, status: undefined })
      assert.equal(status, 'available', 'the service decides if none is given')
    })

    it('returns a page when awaited, and every animal once when iterated, while others are added', async () => {
      const petstore = clientOf(service())
      const add = (_: unknown, index: number) => petstore.createPet({ name: `Pet ${index}`, categoryId: index })
      await Promise.all(Array.from({ length: 25 }, add))
      const list = petstore.listPets()
      const first = await list
      assert.equal(await list, first)
      const second = await petstore.listPets({ limit: 5, cursor: first.nextCursor })
      const newest = [...first.pets, ...second.pets]
      assert.equal(newest.length, 25)
      const seen: Pet[] = []
      for await (const pet of petstore.listPets({ limit: 7 })) {
        if (seen.length % 5 === 0) await petstore.createPet({ name: 'Later', categoryId: 1 })
        if (seen.push(pet) === 25) break
      }
      assert.deepEqual(seen, newest)
      assert.equal((await petstore.listPets({ status: 'sold' })).nextCursor, undefined)
    })

    it('iterates over one status only, and fetches no page that is not needed', async () => {
      for (const name of ['Rex', 'Mittens'])
        await clientOf(service()).createPet({ name, categoryId: 1, status: 'sold' })
      const sent: string[] = []
      const send: typeof fetch = (url, init) => {
        sent.push((url as URL).search)
        return fetch(url, init)
      }
      const found: string[] = []
      for await (const { name } of clientOf(service(), { fetch: send }).listPets({ status: 'sold', limit: 1 }))
        if (found.push(name) === 2) break
      assert.deepEqual(found, ['Mittens', 'Rex'])
      assert.deepEqual([sent.length, sent[0]], [2, '?status=sold&limit=1'])
    })

    it('throws what the service answers, with code, message, status and request id', async () => {
      const petstore = clientOf(service())
      const invalid = { name: 'InvalidRequestError', status: 400, requestId: /./ }
      const noName = { ...invalid, code: 'invalid_pet', message: /^name must be/ }
      await assert.rejects(petstore.createPet({ name: ' ', categoryId: 1 }), noName)
      const badLimit = { ...invalid, code: 'invalid_parameter', message: /limit/ }
      await assert.rejects(async () => petstore.listPets({ limit: 101 }), badLimit)
      await assert.rejects(petstore.getPet(INT64_MAX), NotFoundError)
      await assert.rejects(Array.fromAsync(petstore.listPets({ cursor: 'mine' })), InvalidRequestError)
      await assert.rejects(
        clientOf(service(), { apiKey: 'mine' }).createPet({ name: 'Rex', categoryId: 1 }),
        (error) => error instanceof AuthenticationError && error.code === 'malformed_api_key',
      )
    })

    it('returns the last ids digit for digit', async () => {
      const petstore = clientOf(service())
      // The last case of this service: there is no id left after it.
      await service().store.records.raiseLastId(kindOf('pets'), INT64_MAX - 2n)
      for (const name of ['Last but one', 'Last']) await petstore.createPet({ name, categoryId: 1 })
      const found: Pet[] = []
      for await (const pet of petstore.listPets({ limit: 1 })) if (found.push(pet) === 2) break
      assert.deepEqual(idsOf(found), [INT64_MAX, INT64_MAX - 1n])
      assert.equal((await petstore.getPet(INT64_MAX)).name, 'Last')
    })
  },
  { engine: sqlite },
)

describe('The client of an operation that is removed one day', () => {
  it('reports it once, with its dates and documentation, and then throws 410 with what the service suggests instead', async () => {
    let now = Date.UTC(2030, 11, 4)
    await using service = await startPetstore({ clock: () => now })
    const notices: DeprecationNotice[] = []
    const petstore = clientOf(service, { onDeprecation: (notice) => void notices.push(notice) })
    await assert.rejects(petstore.getPet(1), { status: 404 })
    now = Date.UTC(2030, 11, 5)
    const removed = { name: 'InvalidRequestError', code: 'operation_removed', status: 410, message: /status/ }
    await assert.rejects(petstore.getPet(1), removed)
    assert.deepEqual(notices, [
      {
        operation: 'getPet',
        since: new Date('2026-11-14'),
        sunset: new Date('2030-12-05'),
        documentation: `${service.url}/docs/deprecations#getPet`,
        message: `The Petstore operation getPet is deprecated and will be removed on 2030-12-05: see ${service.url}/docs/deprecations#getPet`,
      },
    ])
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
