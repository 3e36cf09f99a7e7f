// A server, a proxy or fetch that echoes the API key: nothing that the client hands out for a log repeats it.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { type DeprecationNotice, NetworkError, Petstore, type PetstoreOptions } from '../src/petstore.ts'
import { cpuTime } from '../../test/harness/programs/cpu-time.ts'
import { KEY, PET, type Respond, sending, startOddServer } from './odd-server.ts'

const hex = (character: string) => character.charCodeAt(0).toString(16)
const FORMS: ((character: string) => string)[] = [
  (character) => character,
  (character) => character.toLowerCase(),
  (character) => `%${hex(character)}`,
  (character) => `%${hex(character).toUpperCase()}`,
  (character) => `%25${hex(character)}`,
  (character) => `%2525${hex(character)}`,
  (character) => String.raw`\u00${hex(character)}`,
  (character) => String.raw`\u00${hex(character).toUpperCase()}`,
  (character) => String.raw`\\\\u00${hex(character)}`,
  (character) => `%5Cu00${hex(character)}`,
]

/** The key with each character in one of the forms, or all of them in the same. */
const echoes = fc.oneof(
  fc.constantFrom(...FORMS).map((form) => Array.from(KEY, form).join('')),
  fc
    .array(fc.constantFrom(...FORMS), { minLength: KEY.length, maxLength: KEY.length })
    .map((forms) => forms.map((form, index) => form(KEY[index]!)).join('')),
)

const PLACES: Record<string, (echo: string) => Respond[]> = {
  'the message of an error': (echo) => [
    sending(400, JSON.stringify({ code: 'echo', message: `Got Bearer ${echo}.`, status: 400 })),
  ],
  'a message with JSON escapes': (echo) => [
    sending(400, `{"code":"echo","message":"Got Bearer ${echo}.","status":400}`),
  ],
  'the code of an error': (echo) => [sending(400, JSON.stringify({ code: echo, message: 'No.', status: 400 }))],
  'the request id of an error': (echo) => [
    sending(404, '{"code":"echo","message":"No.","status":404}', { 'Request-Id': echo }),
  ],
  'the request id of an answer that is no result': (echo) => [sending(200, '{}', { 'Request-Id': echo })],
  'the request id of a page': (echo) => [sending(200, '[]', { 'Request-Id': echo })],
  'a Location': (echo) => [sending(302, '', { Location: `https://pets.example/sign-in?token=${echo}` })],
  'a content type': (echo) => [sending(502, '', { 'Content-Type': `text/${echo}` })],
  'a status text': (echo) => [(response) => response.writeHead(502, `Bad ${echo}`).end()],
  'a header that is malformed': (echo) => [
    (response) => response.socket!.end(`HTTP/1.1 200 OK\r\n${echo} : x\r\n ${echo}\r\n\r\n`),
  ],
  'the documentation of a deprecation': (echo) => [
    sending(200, '[]', {
      Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
      Link: `</docs/${echo}?key=${echo}>; rel="deprecation"`,
    }),
  ],
  'a cursor, which the next address repeats': (echo) => [
    sending(200, `[${PET}]`, { Link: `<?cursor=${echo}>; rel="next"` }),
    sending(200, '[]', { Link: '<?>; rel="next"' }),
  ],
}

/** Decodes as a reader of the log could, until nothing changes. */
function decoded(text: string): string {
  const next = text.replaceAll(
    /%([0-7][0-9a-f])|[\\/]+u00([0-7][0-9a-f])/gi,
    (_escape, percent: string, json: string) => String.fromCharCode(Number.parseInt(percent ?? json, 16)),
  )
  return next === text ? text : decoded(next)
}

/** Fails if a value shows a quarter of the key, in whatever form, to console.log, JSON.stringify or String. */
function assertNoKey(value: unknown): void {
  const shown = [inspect(value, { showHidden: true, depth: 20 }), JSON.stringify(value), String(value)]
  if (value instanceof Error) shown.push(value.message, value.stack ?? '')
  for (const text of shown) {
    const plain = decoded(text).toLowerCase()
    for (let start = 0; start + 12 <= KEY.length; start += 12)
      assert.ok(!plain.includes(KEY.slice(start, start + 12).toLowerCase()), text)
  }
}

/** Lists animals until the end or an error, and returns everything on the way that people log. */
async function outputsOf(options: Partial<PetstoreOptions>): Promise<unknown[]> {
  const outputs: unknown[] = []
  const onDeprecation = (notice: DeprecationNotice) => outputs.push(notice)
  const petstore = new Petstore({
    apiKey: KEY,
    baseUrl: 'http://127.0.0.1:1/v1',
    maxRetries: 0,
    onDeprecation,
    ...options,
  })
  try {
    const { nextCursor, requestId } = await petstore.listPets()
    outputs.push({ requestId })
    if (nextCursor !== undefined) await petstore.listPets({ cursor: nextCursor })
  } catch (error) {
    outputs.push(error)
  }
  return outputs
}

describe('The API key', () => {
  for (const [place, responses] of Object.entries(PLACES)) {
    it(`is not repeated from ${place}`, async () => {
      await fc.assert(
        fc.asyncProperty(echoes, async (echo) => {
          await using server = await startOddServer(...responses(echo))
          const outputs = await outputsOf({ baseUrl: server.baseUrl })
          assert.notEqual(outputs.length, 0)
          for (const output of outputs) assertNoKey(output)
        }),
        { numRuns: 10 },
      )
    })
  }

  it('is not repeated whatever characters it has', async () => {
    const apiKey = Array.from({ length: 94 }, (_, index) => String.fromCharCode(0x21 + index)).join('')
    const body = JSON.stringify({ code: 'echo', message: `Got Bearer ${apiKey}.`, status: 400 })
    await using server = await startOddServer(sending(400, body))
    const [error] = await outputsOf({ apiKey, baseUrl: server.baseUrl })
    assert.equal((error as Error).message, 'Got Bearer [apiKey].')
  })

  const throwing: Record<string, (echo: string) => unknown> = {
    'an error': (echo) => new TypeError(`fetch failed for ${echo}`),
    'the cause of an error': (echo) =>
      new TypeError('fetch failed', { cause: Object.assign(new Error(`bad ${echo}`), { code: echo }) }),
    'several errors': (echo) => new AggregateError([new Error(echo), echo], echo),
    'the fields of an error': (echo) =>
      Object.assign(new Error('failed'), {
        url: echo,
        request: { headers: new Headers({ Authorization: `Bearer ${echo}` }) },
        data: Buffer.from(echo),
        [echo]: 1,
      }),
    'the name of an error': (echo) => Object.assign(new Error('failed'), { name: echo }),
    'a string': (echo) => echo,
    'an object': (echo) => ({ authorization: echo }),
    'an error that is its own cause': (echo) => {
      const error = new Error(echo)
      return Object.assign(error, { cause: error })
    },
  }
  for (const [what, make] of Object.entries(throwing)) {
    it(`is not repeated from what fetch throws: ${what}`, async () => {
      await fc.assert(
        fc.asyncProperty(echoes, async (echo) => {
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- a fetch of the caller may throw anything
          const [error] = await outputsOf({ fetch: () => Promise.reject(make(echo)) })
          assert.ok(error instanceof NetworkError)
          assertNoKey(error)
        }),
        { numRuns: 10 },
      )
    })
  }
})

describe('What is not the API key', () => {
  it('stays in the cause of an error', async () => {
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', port: 1 })
    const thrown = new TypeError('fetch failed', { cause: new AggregateError([refused], 'all failed') })
    const [error] = await outputsOf({ fetch: () => Promise.reject(thrown) })
    assert.ok(error instanceof NetworkError)
    const { cause } = error as { cause: typeof thrown & { cause: AggregateError } }
    assert.deepEqual(
      [cause.name, cause.message, cause.stack, cause.cause.message],
      ['TypeError', 'fetch failed', thrown.stack, 'all failed'],
    )
    assert.deepEqual({ ...cause.cause.errors[0] }, { code: 'ECONNREFUSED', port: 1 })
  })

  it('stays in the cause of an error of another realm, such as that of a test runner', async () => {
    const thrown: unknown = runInNewContext("Object.assign(new TypeError('fetch failed'), { code: 'ECONNRESET' })")
    assert.ok(!(thrown instanceof Error))
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- it is one, of another realm
    const [error] = await outputsOf({ fetch: () => Promise.reject(thrown) })
    assert.ok(error instanceof NetworkError)
    const { name, message, code } = error.cause as Error & { code: string }
    assert.deepEqual([name, message, code], ['TypeError', 'fetch failed', 'ECONNRESET'])
  })

  it('stays data: an animal and a cursor may contain the key', async () => {
    await using server = await startOddServer(
      sending(200, `[${PET.replace('Rex', KEY)}]`, { Link: `<?cursor=${KEY}>; rel="next"` }),
    )
    const { pets, nextCursor } = await new Petstore({ apiKey: KEY, baseUrl: server.baseUrl }).listPets()
    assert.deepEqual([pets[0]?.name, nextCursor], [KEY, KEY])
  })

  it('stays in a message, and so does a code that contains a placeholder for a key', async () => {
    const body = JSON.stringify({
      code: 'invalid_key',
      message: `100% \\u0070 Bearer ${KEY}: /v1/pets?a=%70`,
      status: 401,
    })
    await using server = await startOddServer(sending(401, body))
    const failing = (apiKey: string) =>
      new Petstore({ apiKey, baseUrl: server.baseUrl }).createPet({ name: 'Rex', categoryId: 3 })
    await assert.rejects(failing(KEY), {
      name: 'AuthenticationError',
      code: 'invalid_key',
      status: 401,
      requestId: 'odd-1',
      message: '100% \\u0070 Bearer [apiKey]: /v1/pets?a=%70',
    })
    await assert.rejects(failing('key'), { code: 'invalid_key' })
  })

  it('takes no time that grows faster than the message', async () => {
    for (const part of ['%', '%25', '25', '\\', '%5c', 'pets_test_', KEY.slice(0, -1)]) {
      await using server = await startOddServer(
        sending(
          400,
          JSON.stringify({ code: 'echo', message: `%${part.repeat(1_000_000 / part.length)}`, status: 400 }),
        ),
      )
      const took = await cpuTime(async () => {
        const [error] = await outputsOf({ baseUrl: server.baseUrl, timeout: 60_000 })
        assert.equal((error as NetworkError).code, 'echo', part)
      })
      assert.ok(took < 5000, `${part}: it took ${took} ms`)
    }
  })
})
