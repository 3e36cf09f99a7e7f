// A body is read whole, however the network cuts it: into chunks, segments, with or without pauses.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import * as fc from 'fast-check'
import { BODY_LIMIT } from '../../src/contract/limits.ts'
import { signedIn } from '../harness/connections/console-client.ts'
import { makeKey, sharePetstore } from '../harness/harness.ts'
import { postgres } from '../harness/databases/engines.ts'
import { get, keyHeader, RawConnection } from '../harness/connections/raw-http.ts'

const ANIMAL = '{"name":"Zoë 🐕","categoryId":9223372036854775807,"status":"pending"}'

/** Bodies that show whether all of them was read, and nothing else. */
const BODIES: readonly Buffer[] = [
  ANIMAL,
  `${ANIMAL}${' \n'.repeat(2000)}`,
  `${ANIMAL}garbage`,
  ANIMAL + ANIMAL,
  Buffer.concat([Buffer.from(ANIMAL), Buffer.from([0xff, 0xfe])]),
  ANIMAL.slice(0, 30),
  // At the limit, and over it.
  ANIMAL.padEnd(BODY_LIMIT - Buffer.byteLength(ANIMAL) + ANIMAL.length),
  ANIMAL.padEnd(40_000, 'x'),
].map((body) => Buffer.from(body as string))

/** What else may be under way while the body arrives; `earlier` is the path of a request that is sent with it. */
const COMPANY: Record<string, { headers?: string; earlier?: string; freshKey?: boolean; expect?: boolean }> = {
  alone: {},
  'behind a rehearsed delay': { headers: 'Petstore-Rehearse: delay=30ms\r\n' },
  'while the key is looked up': { freshKey: true },
  'with an Idempotency-Key': { headers: 'Idempotency-Key: {random}\r\n' },
  'pipelined behind a list': { earlier: '/v1/pets?limit=1' },
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

/** What is sent on a connection before the body. */
interface Sent {
  head: string
  earlier?: string
  expect?: boolean
}

/** Sends a request in pieces; returns status and body of its answer. */
async function exchange(
  url: string,
  { head, earlier = '', expect = false }: Sent,
  body: Buffer,
  cut: Cutting,
): Promise<[status: number, body: string]> {
  using connection = new RawConnection(url)
  connection.socket.setNoDelay(true)
  const { header, bytes } = framed(body, cut.chunks)
  const headBytes = Buffer.from(`${earlier}${head}${header}\r\n`)
  if (expect) {
    const answer = await connection.ask(headBytes)
    if (answer.status !== 100) return [answer.status, answer.body]
  }
  const parts = pieces(expect ? bytes : Buffer.concat([headBytes, bytes]), cut.segments)
  for (const [index, part] of parts.entries()) {
    connection.send(part)
    const pause = cut.pauses[index] ?? 0
    if (pause > 0 && index < parts.length - 1) await setTimeout(pause)
  }
  if (earlier !== '') assert.equal((await connection.answer()).status, 200)
  const answer = await connection.answer()
  return [answer.status, answer.body.replace(/"id":\d+,/, '')]
}

// On PostgreSQL, where every step that asks the store waits.
describe('A body in pieces', () => {
  const service = sharePetstore({ engine: postgres, env: { PETSTORE_RATE_LIMIT: '1000000/1' } })

  /** Checks that a request gets the same answer, however it is cut. `sent` makes its start anew for each try. */
  async function sameHoweverCut(sent: () => Sent | Promise<Sent>, body: Buffer, numRuns: number): Promise<number> {
    const ask = async (cut: Cutting) => exchange(service().url, await sent(), body, cut)
    const uncut = await ask({ chunks: undefined, segments: [], pauses: [] })
    const examples: [Cutting][] = [
      [{ chunks: [0.5], segments: [], pauses: [] }],
      [{ chunks: [1 - 7 / body.length], segments: [], pauses: [] }],
      // The rest comes while the body is being read.
      [{ chunks: undefined, segments: [0.7], pauses: [15] }],
      [{ chunks: [0.5], segments: [0.7], pauses: [15] }],
    ]
    const isSame = fc.asyncProperty(cutting, async (cut) => assert.deepEqual(await ask(cut), uncut))
    await fc.assert(isSame, { numRuns, examples })
    return uncut[0]
  }

  for (const [company, { headers = '', freshKey = false, earlier = '', expect = false }] of Object.entries(COMPANY)) {
    it(`of a create, ${company}: gives the answer of the uncut request`, async () => {
      // Many keys are made, and each is looked up once.
      const { account } = await makeKey(service())
      const keyOf = async () => {
        if (!freshKey) return service().key
        const made = await service().accounts.createKey(account, 'cut', undefined, 'command line')
        if (!('secret' in made)) throw new Error(made.message)
        return made.secret
      }
      const sent = async () => {
        const more = headers.replace('{random}', () => crypto.randomUUID())
        const lines = `Host: localhost\r\n${keyHeader(await keyOf())}Content-Type: application/json\r\n${more}`
        const head = `POST /v1/pets HTTP/1.1\r\n${lines}`
        return { head, earlier: earlier && get(earlier, keyHeader(service().key)), expect }
      }
      for (const body of BODIES) await sameHoweverCut(sent, body, 5)
    })
  }

  it('of a form: gives the answer of the uncut request', async () => {
    const client = await signedIn(service())
    const page = '/animals/new'
    const type = 'Content-Type: application/x-www-form-urlencoded\r\n'
    const lines = `Host: localhost\r\nAccept: text/html\r\nCookie: ${client.cookie}\r\n${type}Request-Id: cut\r\n`
    for (const name of ['Zoë 🐕', '', 'x'.repeat(1000), 'x'.repeat(40_000)]) {
      const fields = { ...(await client.hiddenFields(page, page)), name, categoryId: 'none', status: 'sold' }
      const body = Buffer.from(new URLSearchParams(fields).toString())
      const status = await sameHoweverCut(() => ({ head: `POST ${page} HTTP/1.1\r\n${lines}` }), body, 6)
      assert.equal(status, name.length > BODY_LIMIT ? 413 : 400)
    }
  })
})
