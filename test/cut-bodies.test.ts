// A body is read whole, however the network cuts it: into chunks, segments, with or without pauses.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import * as fc from 'fast-check'
import { BODY_LIMIT } from '../src/contract/limits.ts'
import { ConsoleClient, signedIn } from './console-client.ts'
import { describeService, makeKey, type Petstore } from './harness.ts'
import { RawConnection } from '../assurance/harness/raw-http.ts'

const ANIMAL = '{"name":"Zoë 🐕","categoryId":9223372036854775807,"status":"pending"}'

/** Bodies that show whether all of them was read, and nothing else. */
const BODIES: Record<string, Buffer> = {
  'an animal': Buffer.from(ANIMAL),
  'an animal with white space behind it': Buffer.from(`${ANIMAL}${' \n'.repeat(2000)}`),
  'an animal with garbage behind it': Buffer.from(`${ANIMAL}garbage`),
  'two animals': Buffer.from(ANIMAL + ANIMAL),
  'an animal with invalid UTF-8 behind it': Buffer.concat([Buffer.from(ANIMAL), Buffer.from([0xff, 0xfe])]),
  'half an animal': Buffer.from(ANIMAL.slice(0, 30)),
  'a body at the limit': Buffer.from(ANIMAL.padEnd(BODY_LIMIT - Buffer.byteLength(ANIMAL) + ANIMAL.length)),
  'a body over the limit': Buffer.from(ANIMAL.padEnd(40_000, 'x')),
}

/** What else may be under way while the body arrives; `{key}` stands for a key. */
const COMPANY: Record<string, { headers?: string; before?: string; freshKey?: boolean; expect?: boolean }> = {
  alone: {},
  'behind a rehearsed delay': { headers: 'Petstore-Rehearse: delay=30ms\r\n' },
  'while the key is looked up': { freshKey: true },
  'with an Idempotency-Key': { headers: 'Idempotency-Key: {random}\r\n' },
  'pipelined behind a list': {
    before: 'GET /v1/pets?limit=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n',
  },
  'after 100 Continue': { headers: 'Expect: 100-continue\r\n', expect: true },
}

/** Where a run of bytes is cut, and how long is waited at each cut. */
interface Cutting {
  /** Cuts into chunks, as shares of the body; undefined for a body with Content-Length. */
  chunks: number[] | undefined
  /** Cuts into segments, as shares of everything that is sent. */
  segments: number[]
  pauses: number[]
}

const share = fc.double({ min: 0, max: 1, noNaN: true })
const cutting: fc.Arbitrary<Cutting> = fc.record({
  chunks: fc.option(fc.array(share, { maxLength: 6, size: 'max' }), { nil: undefined }),
  segments: fc.array(share, { maxLength: 6, size: 'max' }),
  pauses: fc.array(fc.constantFrom(0, 0, 1, 4, 15, 40), { minLength: 8, maxLength: 8 }),
})

const UNCUT: Cutting = { chunks: undefined, segments: [], pauses: [] }

function pieces(bytes: Buffer, shares: readonly number[]): Buffer[] {
  const at = [0, ...shares.map((value) => Math.round(value * bytes.length)).toSorted((a, b) => a - b), bytes.length]
  return at
    .slice(1)
    .map((end, index) => bytes.subarray(at[index], end))
    .filter(({ length }) => length > 0)
}

function framed(body: Buffer, chunks: number[] | undefined): { header: string; bytes: Buffer } {
  if (chunks === undefined) return { header: `Content-Length: ${body.length}\r\n`, bytes: body }
  const parts = pieces(body, chunks).flatMap((part) => [
    Buffer.from(`${part.length.toString(16)}\r\n`),
    part,
    Buffer.from('\r\n'),
  ])
  return { header: 'Transfer-Encoding: chunked\r\n', bytes: Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]) }
}

interface Sent {
  head: string
  body: Buffer
  cut: Cutting
  before?: string | undefined
  expect?: boolean | undefined
}

/** Sends a request in pieces; returns status and body of its answer. */
async function exchange(
  url: string,
  { head, body, cut, before = '', expect = false }: Sent,
): Promise<[status: number, body: string]> {
  using connection = new RawConnection(url)
  connection.socket.setNoDelay(true)
  const { header, bytes } = framed(body, cut.chunks)
  const headBytes = Buffer.from(`${before}${head}${header}\r\n`)
  let answer
  if (expect) {
    connection.send(headBytes)
    answer = await connection.answer()
    if (answer.status !== 100) return [answer.status, answer.body]
  }
  const parts = pieces(expect ? bytes : Buffer.concat([headBytes, bytes]), cut.segments)
  for (const [index, part] of parts.entries()) {
    connection.send(part)
    const pause = cut.pauses[index] ?? 0
    if (pause > 0 && index < parts.length - 1) await setTimeout(pause)
  }
  if (before !== '') assert.equal((await connection.answer()).status, 200)
  answer = await connection.answer()
  return [answer.status, answer.body.replace(/"id":\d+,/, '')]
}

async function createHead(
  { headers = '', freshKey = false }: (typeof COMPANY)[string],
  petstore: Petstore,
): Promise<string> {
  const key = freshKey
    ? await petstore.accounts.createKey(petstore.account, 'cut', undefined, 'command line')
    : undefined
  if (key !== undefined && !('secret' in key)) throw new Error(key.message)
  const more = headers.replace('{random}', () => crypto.randomUUID())
  const lines = `Host: localhost\r\nAuthorization: Bearer ${key?.secret ?? petstore.key}\r\nContent-Type: application/json\r\n${more}`
  return `POST /v1/pets HTTP/1.1\r\n${lines}`
}

/** Many keys are made, and each is looked up once. */
async function withFreshAccount(petstore: Petstore): Promise<Petstore> {
  return { ...petstore, ...(await makeKey(petstore)) }
}

function formHeaders({ cookie }: ConsoleClient): string {
  return `Host: localhost\r\nAccept: text/html\r\nCookie: ${cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\nRequest-Id: cut\r\n`
}

describeService(
  'A body in pieces',
  (service) => {
    for (const [company, settings] of Object.entries(COMPANY)) {
      it(`of a create, ${company}: gives the answer of the uncut request`, async () => {
        const petstore = settings.freshKey ? await withFreshAccount(service()) : service()
        const before = settings.before?.replace('{key}', petstore.key)
        for (const [what, body] of Object.entries(BODIES)) {
          const ask = async (cut: Cutting) =>
            exchange(petstore.url, {
              head: await createHead(settings, petstore),
              body,
              cut,
              before,
              expect: settings.expect,
            })
          const uncut = await ask(UNCUT)
          const numRuns = 8
          await fc.assert(
            fc.asyncProperty(cutting, async (cut) => assert.deepEqual(await ask(cut), uncut, what)),
            {
              numRuns,
              examples: [
                [{ chunks: [0.5], segments: [], pauses: [] }],
                [{ chunks: [1 - 7 / body.length], segments: [], pauses: [] }],
              ],
            },
          )
        }
      })
    }

    it('of a form: gives the answer of the uncut request', async () => {
      const client = await signedIn(service())
      const head = `POST /animals/new HTTP/1.1\r\n${formHeaders(client)}`
      for (const name of ['Zoë 🐕', '', 'x'.repeat(1000), 'x'.repeat(40_000)]) {
        const fields = {
          ...(await client.hiddenFields('/animals/new', '/animals/new')),
          name,
          categoryId: 'none',
          status: 'sold',
        }
        const body = Buffer.from(new URLSearchParams(fields).toString())
        const ask = (cut: Cutting) => exchange(service().url, { head, body, cut })
        const uncut = await ask(UNCUT)
        assert.equal(uncut[0], name.length > BODY_LIMIT ? 413 : 400)
        await fc.assert(
          fc.asyncProperty(cutting, async (cut) => assert.deepEqual(await ask(cut), uncut)),
          { numRuns: 12, examples: [[{ chunks: [0.5], segments: [], pauses: [] }]] },
        )
      }
    })
  },
  { env: { PETSTORE_RATE_LIMIT: '1000000/1' } },
)
