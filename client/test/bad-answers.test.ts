// Answers that no pet store gives, and settings that lead nowhere: a clear error, and the key stays secret.
import assert from 'node:assert/strict'
import { pipeline } from 'node:stream/promises'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { freePort } from '../../test/harness/connections/free-port.ts'
import { startPetstore } from '../../test/harness/harness.ts'
import {
  AuthenticationError,
  InvalidRequestError,
  NotFoundError,
  PetstoreError,
  Petstore,
  type PetstoreOptions,
  ServerError,
  UnexpectedResponseError,
} from '../src/petstore.ts'
import { KEY, newClient, PET, type Respond, sending, startOddServer } from './odd-server.ts'

/** Lists without retries. */
const list = async (options: Partial<PetstoreOptions>) => newClient({ maxRetries: 0, ...options }).listPets()

async function listAll(options: Partial<PetstoreOptions>): Promise<void> {
  for await (const pet of newClient(options).listPets()) assert.equal(pet.id, 1n)
}

/** An answer, and the error that it becomes: `unexpected_response` unless another code is given. */
type BadAnswer = [answer: Respond, ErrorClass: typeof PetstoreError, message: RegExp, code?: string]

const page = (status: number, ErrorClass: typeof PetstoreError, cause: string): BadAnswer => [
  sending(status, '<h1>A page</h1>', { 'Content-Type': 'text/html; charset=utf-8' }),
  ErrorClass,
  new RegExp(`answered ${status} with text/html instead of the service's JSON: ${cause}`),
]
const malformed = (body: string, type = 'application/json'): BadAnswer => [
  sending(200, body, { 'Content-Type': type }),
  UnexpectedResponseError,
  /JSON that is malformed or breaks off/,
  'malformed_response',
]
const noResult = (body: string): BadAnswer => [
  sending(200, body),
  UnexpectedResponseError,
  /not a result of listPets: check baseUrl/,
]
const noError = (status: number, body: string, ErrorClass: typeof PetstoreError): BadAnswer => [
  sending(status, body),
  ErrorClass,
  new RegExp(`answered ${status} with application/json instead of the service's`),
]
const newError = (status: number, code: string, ErrorClass: typeof PetstoreError): BadAnswer => [
  sending(status, JSON.stringify({ code, message: 'The key is asleep.', status })),
  ErrorClass,
  /^The key is asleep\.$/,
  code,
]
const misled = (status: number, headers: Record<string, string>, message: RegExp): BadAnswer => [
  sending(status, '[]', headers),
  UnexpectedResponseError,
  message,
]

const BAD_ANSWERS: Record<string, BadAnswer> = {
  'an error page of a proxy': page(502, ServerError, 'a proxy'),
  'a page that was not found': page(404, NotFoundError, 'check that baseUrl'),
  'a page instead of animals': page(200, UnexpectedResponseError, 'check that baseUrl'),
  'an empty answer': malformed(''),
  'truncated JSON': malformed('[{"id":1,"na'),
  'truncated JSON whose type has a parameter': malformed('[{"id":1,"na', 'application/json; charset=utf-8'),
  'JSON nested without end': malformed('['.repeat(1_000_000)),
  'JSON without end': [
    (response) =>
      void pipeline(
        function* () {
          for (;;) yield `[${PET},`.repeat(1000)
        },
        response.writeHead(200, { 'Content-Type': 'application/json', 'Request-Id': 'odd-1' }),
      ).catch(() => {}),
    UnexpectedResponseError,
    /JSON that is malformed or breaks off/,
    'malformed_response',
  ],
  'JSON of something else': noResult('{"users":[]}'),
  'an animal without an id': noResult(`[${PET.replace('"id"', '"nr"')}]`),
  'an id as a string': noResult(`[${PET.replace(':1,', ':"1",')}]`),
  'nothing in the place of an animal': noResult(`[${PET},null]`),
  'an animal in the place of a list': noResult(PET),
  'nothing in the place of an error': noError(500, 'null', ServerError),
  'an error of another shape': noError(403, '{"error":"forbidden"}', InvalidRequestError),
  'an error without a message': noError(400, '{"code":"invalid_pet"}', InvalidRequestError),
  'an error with a number for a code': noError(400, '{"code":400,"message":"Bad request"}', InvalidRequestError),
  'an answer without a content type': [
    (response) => response.writeHead(500, { 'Request-Id': 'odd-1' }).end('no'),
    ServerError,
    /answered 500 with no content type instead of the service's/,
  ],
  'several choices': misled(300, {}, /was redirected\. Set baseUrl/),
  'a redirect': misled(
    301,
    { Location: 'https://b.example/v1/pets' },
    /redirected to https:\/\/b\.example.*Set baseUrl/,
  ),
  'a next page without a cursor': misled(200, { Link: '</v1/pets>; rel="next"' }, /does not lead on/),
  'a code that this version does not know': newError(401, 'key_asleep', AuthenticationError),
  'a code of a status that it does not know': newError(499, 'key_asleep', InvalidRequestError),
}

describe('An answer that is not of the service', () => {
  for (const [title, [answer, ErrorClass, message, code = 'unexpected_response']] of Object.entries(BAD_ANSWERS)) {
    it(`is a clear error: ${title}`, async () => {
      await using server = await startOddServer(answer)
      await assert.rejects(list(server), (error) => {
        assert.ok(error instanceof PetstoreError && error instanceof ErrorClass, inspect(error))
        assert.deepEqual([error.code, error.requestId], [code, 'odd-1'])
        assert.equal(typeof error.status, 'number', 'an answer arrived')
        assert.match(error.message, message)
        return true
      })
    })
  }

  it('is told as a redirect also by a browser, which hides where it leads', async () => {
    const hidden = Object.defineProperties(new Response(null), {
      type: { value: 'opaqueredirect' },
      status: { value: 0 },
      ok: { value: false },
    })
    await assert.rejects(list({ fetch: async () => hidden }), {
      name: 'UnexpectedResponseError',
      message: 'GET http://a.example/v1/pets was redirected. Set baseUrl to the final address.',
    })
  })

  it('does not lead iteration in a circle', async () => {
    const circle = sending(200, `[${PET}]`, { Link: '<?cursor=again>; rel="next"' })
    await using server = await startOddServer(circle, circle, sending(200, '[]'))
    await assert.rejects(listAll(server), /does not lead on/)
    assert.equal(server.requests.length, 2)
  })
})

describe('No answer', () => {
  const failed = (cause?: Error) => new TypeError('fetch failed', { cause })
  const reasons: [thrown: unknown, told: string][] = [
    [failed(new Error('no route')), 'fetch failed (no route)'],
    // Node tries several addresses of a host, and gives an error without a message.
    [failed(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' })), 'fetch failed (ECONNREFUSED)'],
    [failed(new RangeError()), 'fetch failed (RangeError)'],
    [new TypeError('Failed to fetch'), 'Failed to fetch'],
    ['offline', 'offline'],
  ]
  for (const [thrown, told] of reasons) {
    it(`says why: ${told}`, async () => {
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- a fetch of the caller may throw anything
      await assert.rejects(list({ fetch: () => Promise.reject(thrown) }), {
        name: 'NetworkError',
        message: `GET http://a.example/v1/pets got no complete answer: ${told}.`,
      })
    })
  }

  it('is a network error if nobody listens at the address', async () => {
    const baseUrl = `http://127.0.0.1:${await freePort()}/v1`
    const message = new RegExp(`^GET ${baseUrl}/pets got no complete answer: .*ECONNREFUSED`)
    await assert.rejects(list({ baseUrl }), { name: 'NetworkError', code: 'network_error', message })
  })
})

describe('The API key', () => {
  it('goes to no other address, whatever the next link or a redirect says', async () => {
    await using stranger = await startOddServer(sending(200, '[]'))
    await using server = await startOddServer(
      sending(200, `[${PET}]`, { Link: `<${stranger.baseUrl}/pets?cursor=b>; rel="next"` }),
      sending(307, '', { Location: `${stranger.baseUrl}/pets` }),
    )
    await assert.rejects(listAll(server), /redirected/)
    assert.equal(server.requests[1]?.url, '/v1/pets?limit=100&cursor=b')
    assert.equal(stranger.requests.length, 0)
  })

  it('is not shown with the client', () => {
    const petstore = newClient({})
    const shown = [
      inspect(petstore, { showHidden: true, depth: 9 }),
      JSON.stringify(petstore),
      inspect(petstore.listPets(), { showHidden: true, depth: 9 }),
    ]
    for (const text of shown) assert.ok(!text.includes(KEY), text)
    assert.deepEqual({ ...petstore }, { baseUrl: 'http://a.example/v1' })
  })

  it('is refused without being quoted if no header can hold it', () => {
    for (const apiKey of ['', `${KEY}\n`, ` ${KEY}`, `${KEY}é`, undefined as unknown as string])
      assert.throws(
        () => new Petstore({ apiKey, baseUrl: 'http://a.example/v1' }),
        (error) => error instanceof TypeError && error.message.startsWith('apiKey ') && !error.message.includes(KEY),
        JSON.stringify(apiKey),
      )
  })
})

describe('An Idempotency-Key that no header can hold', () => {
  it('is a TypeError at once, and nothing is sent', async () => {
    const petstore = newClient({ fetch: () => assert.fail('a request was sent') })
    for (const idempotencyKey of ['two\nlines', 'Žofie'])
      await assert.rejects(petstore.createPet({ name: 'Rex', categoryId: 3 }, { idempotencyKey }), TypeError)
  })
})

describe('A wrong base address', () => {
  it('is refused, and quoted', () => {
    for (const baseUrl of [
      '',
      'pets.example/v1',
      '/v1',
      'ftp://pets.example/v1',
      'https://pets.example',
      'https://pets.example/v1/pets',
      'https://pets.example/v1?a=b',
      'https://pets.example/v1#a',
    ])
      assert.throws(
        () => newClient({ baseUrl }),
        (error) => error instanceof TypeError && error.message.includes(`ends in /v1, got "${baseUrl}"`),
        baseUrl,
      )
  })

  it('or number of retries is refused', () => {
    const message = 'maxRetries must be 0 or more, got NaN.'
    assert.throws(() => newClient({ maxRetries: Number.NaN }), { name: 'RangeError', message })
  })

  it('with a password is refused without quoting it', () => {
    for (const part of ['me:secret', 'secret', ':secret'])
      assert.throws(() => newClient({ baseUrl: `https://${part}@pets.example/v1` }), {
        name: 'TypeError',
        message: 'baseUrl must not contain a user name or password.',
      })
    for (const baseUrl of [
      '//me:secret@pets.example/v1',
      'me:secret@pets.example/v1',
      'https://me:secret/v1',
      'https://me:secret@pets example/v1',
      'https://pets.example/v1?password=secret',
      'https://pets.example/v1?pwd=secret',
      'https://pets.example/v1?access_token=secret',
      'https://secret%40pets.example/v1',
    ])
      assert.throws(
        () => newClient({ baseUrl }),
        ({ message }: Error) => message.startsWith('baseUrl must ') && !message.includes('secret'),
        baseUrl,
      )
  })

  it('is told if it leads to another path of the service', async () => {
    await using service = await startPetstore()
    const baseUrl = `${service.url}/api/v1`
    await assert.rejects(list({ baseUrl }), { name: 'NotFoundError', code: 'unknown_path' })
  })

  it('may end in a slash, and have a path before /v1', () => {
    const { baseUrl } = newClient({ baseUrl: new URL('https://example.com/pets/v1/') })
    assert.equal(baseUrl, 'https://example.com/pets/v1')
  })
})
