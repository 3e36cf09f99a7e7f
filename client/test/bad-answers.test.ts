// Answers that no pet store gives, and settings that lead nowhere: a clear error, and the key stays secret.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { freePort } from '../../assurance/harness/free-port.ts'
import { startPetstore } from '../../test/harness.ts'
import {
  AuthenticationError,
  InvalidRequestError,
  NetworkError,
  NotFoundError,
  PetstoreError,
  Petstore,
  ServerError,
  UnexpectedResponseError,
} from '../src/petstore.ts'
import { KEY, PET, sending, startOddServer } from './odd-server.ts'

const html = { 'Content-Type': 'text/html; charset=utf-8' }
const listing =
  (baseUrl: string, maxRetries = 0) =>
  async () =>
    new Petstore({ apiKey: KEY, baseUrl, maxRetries }).listPets()

describe('An answer that is not of the service', () => {
  const cases = [
    [
      'an error page of a proxy',
      sending(502, '<h1>Bad Gateway</h1>', html),
      ServerError,
      'unexpected_response',
      /answered 502 with text\/html instead of the service's JSON: a proxy/,
    ],
    [
      'a page that was not found',
      sending(404, '<h1>Not Found</h1>', html),
      NotFoundError,
      'unexpected_response',
      /answered 404 with text\/html.*check that baseUrl/,
    ],
    [
      'a page instead of animals',
      sending(200, '<h1>Welcome</h1>', html),
      UnexpectedResponseError,
      'unexpected_response',
      /answered 200 with text\/html.*check that baseUrl/,
    ],
    [
      'an empty answer',
      sending(200, ''),
      UnexpectedResponseError,
      'malformed_response',
      /JSON that is malformed or breaks off/,
    ],
    [
      'truncated JSON',
      sending(200, '[{"id":1,"na'),
      UnexpectedResponseError,
      'malformed_response',
      /JSON that is malformed or breaks off/,
    ],
    [
      'truncated JSON whose type has a parameter',
      sending(200, '[{"id":1,"na', { 'Content-Type': 'application/json; charset=utf-8' }),
      UnexpectedResponseError,
      'malformed_response',
      /JSON that is malformed or breaks off/,
    ],
    [
      'JSON nested without end',
      sending(200, '['.repeat(1_000_000)),
      UnexpectedResponseError,
      'malformed_response',
      /JSON that is malformed or breaks off/,
    ],
    [
      'JSON of something else',
      sending(200, '{"users":[]}'),
      UnexpectedResponseError,
      'unexpected_response',
      /not a result of listPets: check baseUrl/,
    ],
    [
      'an animal without an id',
      sending(200, PET.replace('"id"', '"nr"')),
      UnexpectedResponseError,
      'unexpected_response',
      /not a result of listPets/,
    ],
    [
      'an id as a string',
      sending(200, `[${PET.replace(':1,', ':"1",')}]`),
      UnexpectedResponseError,
      'unexpected_response',
      /not a result of listPets/,
    ],
    [
      'nothing in the place of an animal',
      sending(200, `[${PET},null]`),
      UnexpectedResponseError,
      'unexpected_response',
      /not a result of listPets/,
    ],
    [
      'nothing in the place of an error',
      sending(500, 'null'),
      ServerError,
      'unexpected_response',
      /answered 500 with application\/json instead of the service's/,
    ],
    [
      'an error of another shape',
      sending(403, '{"error":"forbidden"}'),
      InvalidRequestError,
      'unexpected_response',
      /answered 403 with application\/json instead of the service's/,
    ],
    [
      'an error without a message',
      sending(400, '{"code":"invalid_pet"}'),
      InvalidRequestError,
      'unexpected_response',
      /answered 400 with application\/json instead of the service's/,
    ],
    [
      'an error with a number for a code',
      sending(400, '{"code":400,"message":"Bad request"}'),
      InvalidRequestError,
      'unexpected_response',
      /answered 400 with application\/json instead of the service's/,
    ],
    [
      'an answer without a content type',
      (response: ServerResponse) => response.writeHead(500, { 'Request-Id': 'odd-1' }).end('no'),
      ServerError,
      'unexpected_response',
      /answered 500 with no content type instead of the service's/,
    ],
    [
      'several choices',
      sending(300, '[]'),
      UnexpectedResponseError,
      'unexpected_response',
      /was redirected\. Set baseUrl/,
    ],
    [
      'a code that this version does not know',
      sending(401, '{"code":"key_asleep","message":"The key is asleep.","status":401}'),
      AuthenticationError,
      'key_asleep',
      /^The key is asleep\.$/,
    ],
    [
      'a code of a status that it does not know',
      sending(499, '{"code":"teapot","message":"Tea?","status":499}'),
      InvalidRequestError,
      'teapot',
      /^Tea\?$/,
    ],
    [
      'a redirect',
      sending(301, '', { Location: 'https://pets.example/v1/pets' }),
      UnexpectedResponseError,
      'unexpected_response',
      /redirected to https:\/\/pets\.example.*Set baseUrl/,
    ],
    [
      'a next page without a cursor',
      sending(200, '[]', { Link: '</v1/pets>; rel="next"' }),
      UnexpectedResponseError,
      'unexpected_response',
      /does not lead on/,
    ],
  ] as const
  for (const [title, respond, ErrorClass, code, message] of cases) {
    it(`is a clear error: ${title}`, async () => {
      await using server = await startOddServer(respond)
      await assert.rejects(listing(server.baseUrl), (error) => {
        assert.ok(error instanceof PetstoreError && error instanceof ErrorClass, inspect(error))
        assert.deepEqual([error.code, error.requestId], [code, 'odd-1'])
        assert.equal(typeof error.status, 'number', 'an answer arrived')
        assert.match(error.message, message)
        return true
      })
    })
  }

  it('does not lead iteration in a circle', async () => {
    const circle = sending(200, `[${PET}]`, { Link: '<?cursor=again>; rel="next"' })
    await using server = await startOddServer(circle, circle, sending(200, '[]'))
    const iterate = async () => {
      for await (const pet of new Petstore({ apiKey: KEY, baseUrl: server.baseUrl }).listPets())
        assert.equal(pet.id, 1n)
    }
    await assert.rejects(iterate, /does not lead on/)
    assert.equal(server.requests.length, 2)
  })
})

describe('No answer', () => {
  const failing = (reason: unknown) =>
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- a fetch of the caller may throw anything
    new Petstore({ apiKey: KEY, baseUrl: 'http://a.example/v1', maxRetries: 0, fetch: () => Promise.reject(reason) })

  const reasons: [thrown: unknown, told: string][] = [
    [new TypeError('fetch failed', { cause: new Error('no route') }), 'fetch failed (no route)'],
    // Node tries several addresses of a host, and gives an error without a message.
    [
      new TypeError('fetch failed', { cause: Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }) }),
      'fetch failed (ECONNREFUSED)',
    ],
    [new TypeError('fetch failed', { cause: new RangeError() }), 'fetch failed (RangeError)'],
    [new TypeError('Failed to fetch'), 'Failed to fetch'],
    ['offline', 'offline'],
  ]
  for (const [thrown, told] of reasons) {
    it(`says why: ${told}`, async () => {
      await assert.rejects(async () => failing(thrown).listPets(), {
        name: 'NetworkError',
        message: `GET http://a.example/v1/pets got no complete answer: ${told}.`,
      })
    })
  }
})

describe('A redirect in a browser, which hides where it leads', () => {
  it('is told as a redirect', async () => {
    const hidden = Object.defineProperties(new Response(null), {
      type: { value: 'opaqueredirect' },
      status: { value: 0 },
      ok: { value: false },
    })
    const petstore = new Petstore({ apiKey: KEY, baseUrl: 'http://a.example/v1', fetch: async () => hidden })
    await assert.rejects(async () => petstore.listPets(), {
      name: 'UnexpectedResponseError',
      message: 'GET http://a.example/v1/pets was redirected. Set baseUrl to the final address.',
    })
  })
})

describe('The API key', () => {
  it('goes to no other address, whatever the next link or a redirect says', async () => {
    await using stranger = await startOddServer(sending(200, '[]'))
    await using server = await startOddServer(
      sending(200, `[${PET}]`, { Link: `<${stranger.baseUrl}/pets?cursor=b>; rel="next"` }),
      sending(307, '', { Location: `${stranger.baseUrl}/pets` }),
    )
    const iterate = async () => {
      for await (const pet of new Petstore({ apiKey: KEY, baseUrl: server.baseUrl }).listPets())
        assert.equal(pet.id, 1n)
    }
    await assert.rejects(iterate, /redirected/)
    assert.equal(server.requests[1]?.url, '/v1/pets?limit=100&cursor=b')
    assert.equal(stranger.requests.length, 0)
  })

  it('is not shown with the client', () => {
    const petstore = new Petstore({ apiKey: KEY, baseUrl: 'http://127.0.0.1:1/v1' })
    const shown = [
      inspect(petstore, { showHidden: true, depth: 9 }),
      JSON.stringify(petstore),
      inspect(petstore.listPets(), { showHidden: true, depth: 9 }),
    ]
    for (const text of shown) assert.ok(!text.includes(KEY), text)
    assert.deepEqual({ ...petstore }, { baseUrl: 'http://127.0.0.1:1/v1' })
  })

  for (const apiKey of ['', `${KEY}\n`, ` ${KEY}`, `${KEY}é`, undefined as unknown as string]) {
    it(`is refused without being quoted: ${JSON.stringify(apiKey)}`, () => {
      const options = { apiKey, baseUrl: 'http://127.0.0.1:1/v1' }
      assert.throws(
        () => new Petstore(options),
        (error) => error instanceof TypeError && error.message.startsWith('apiKey ') && !error.message.includes(KEY),
      )
    })
  }
})

describe('An Idempotency-Key that no header can hold', () => {
  it('is a TypeError at once, and nothing is sent', async () => {
    await using server = await startOddServer(sending(201, PET))
    const petstore = new Petstore({ apiKey: KEY, baseUrl: server.baseUrl })
    for (const idempotencyKey of ['two\nlines', 'Žofie'])
      await assert.rejects(petstore.createPet({ name: 'Rex', categoryId: 3 }, { idempotencyKey }), TypeError)
    assert.equal(server.requests.length, 0)
  })
})

describe('A wrong base address', () => {
  for (const baseUrl of [
    '',
    'pets.example/v1',
    '/v1',
    'ftp://pets.example/v1',
    'https://pets.example',
    'https://pets.example/v1/pets',
    'https://pets.example/v1?a=b',
    'https://pets.example/v1#a',
  ]) {
    it(`is refused: ${JSON.stringify(baseUrl)}`, () => {
      assert.throws(
        () => new Petstore({ apiKey: KEY, baseUrl }),
        (error) => error instanceof TypeError && error.message.includes(`ends in /v1, got "${baseUrl}"`),
      )
    })
  }

  it('or number of retries is refused', () => {
    assert.throws(
      () => new Petstore({ apiKey: KEY, baseUrl: 'https://pets.example/v1', maxRetries: Number.NaN }),
      /^RangeError: maxRetries must be 0 or more, got NaN\.$/,
    )
  })

  it('with a password is refused without quoting it', () => {
    for (const part of ['me:secret', 'secret', ':secret']) {
      assert.throws(
        () => new Petstore({ apiKey: KEY, baseUrl: `https://${part}@pets.example/v1` }),
        /^TypeError: baseUrl must not contain a user name or password\.$/,
      )
    }
    for (const baseUrl of [
      '//me:secret@pets.example/v1',
      'me:secret@pets.example/v1',
      'https://me:secret/v1',
      'https://me:secret@pets example/v1',
      'https://pets.example/v1?password=secret',
      'https://pets.example/v1?pwd=secret',
      'https://pets.example/v1?access_token=secret',
      'https://secret%40pets.example/v1',
    ]) {
      assert.throws(
        () => new Petstore({ apiKey: KEY, baseUrl }),
        ({ message }: Error) => message.startsWith('baseUrl must ') && !message.includes('secret'),
        baseUrl,
      )
    }
  })

  it('is a network error if nobody listens there', async () => {
    const port = await freePort()
    await assert.rejects(listing(`http://127.0.0.1:${port}/v1`), (error) => {
      assert.ok(error instanceof NetworkError)
      assert.match(
        error.message,
        new RegExp(`^GET http://127\\.0\\.0\\.1:${port}/v1/pets got no complete answer: .*ECONNREFUSED`),
      )
      return error.code === 'network_error'
    })
  })

  it('is told if it leads to another path of the service', async () => {
    await using service = await startPetstore()
    await assert.rejects(
      listing(`${service.url}/api/v1`),
      (error) => error instanceof NotFoundError && error.code === 'unknown_path',
    )
  })

  it('may end in a slash, and have a path before /v1', () => {
    assert.equal(
      new Petstore({ apiKey: KEY, baseUrl: new URL('https://example.com/pets/v1/') }).baseUrl,
      'https://example.com/pets/v1',
    )
  })
})
