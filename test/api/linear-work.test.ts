// Whatever a client sends, reading it takes time in proportion to its length: nobody can freeze the service with one request.
// Each reader is timed with a text and with one twice as long, in the same run.
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { isWellFormedKey } from '../../src/accounts/api-keys.ts'
import { isCsrfToken, isToken } from '../../src/accounts/sessions.ts'
import { addressGroup } from '../../src/accounts/throttle.ts'
import { readCookies } from '../../src/console/every-page/visit.ts'
import { html } from '../../src/http/html/html.ts'
import { SECTIONS } from '../../src/console/console.ts'
import { safeNext } from '../../src/console/every-page/visit.ts'
import { acceptsGzip } from '../../src/console/every-page/assets.ts'
import { decodeCursor, parseListQuery } from '../../src/contract/list-query.ts'
import { int64FromJsonNumber, int64FromText } from '../../src/contract/int64.ts'
import { parseJson, quote } from '../../src/contract/json.ts'
import { NewPetSchema, parseNewPet } from '../../src/contract/pets.ts'
import { redactSecrets } from '../../src/contract/text/redact.ts'
import { createAuthenticate } from '../../src/http/operations/authenticate.ts'
import { checkFraming } from '../../src/http/call/framing.ts'
import { createClientAddress, createOrigin } from '../../src/http/call/client-address.ts'
import { type OperationCall, requestId } from '../../src/http/call/call.ts'
import { matchesEtag } from '../../src/http/answers/answer-cache.ts'
import { checkJsonHeaders, parseJsonBody } from '../../src/http/body.ts'
import { readIdempotencyKey } from '../../src/http/operations/handlers.ts'
import { findOperation, originForm } from '../../src/http/call/routes.ts'
import { cpuTime } from '../harness/programs/cpu-time.ts'
import { startPetstore } from '../harness/harness.ts'

/** More than a request can hold (16 KiB), so that what grows faster than its input stands out. */
const LENGTH = 20_000
/** Twice the input may take this much longer: quadratic work takes four times as long. */
const FACTOR = 3
/** Too little to matter, whatever the factor; quadratic work on such an input takes hundreds of milliseconds. */
const NEGLIGIBLE_MS = 100
const TRIES = 8

/** Garbage collection and the like only ever add time, so the least of several tries counts. */
async function assertLinear(work: (length: number) => unknown, length: number, told: string): Promise<void> {
  let [single, double] = [Infinity, Infinity]
  for (let tries = 0; tries < TRIES; tries += 1) {
    double = Math.min(double, await cpuTime(() => work(2 * length)))
    if (double < NEGLIGIBLE_MS) return
    single = Math.min(single, await cpuTime(() => work(length)))
    if (double < FACTOR * single) return
  }
  assert.fail(`${told}: ${single.toFixed(1)} ms, twice as long ${double.toFixed(1)} ms`)
}

/** A request as the steps see it, with this one header. */
function callWith(name: string, value: string): OperationCall {
  const request = {
    headers: { host: 'pets.example', [name]: value },
    rawHeaders: [name, value],
    httpVersion: '1.1',
    httpVersionMajor: 1,
    socket: { remoteAddress: '127.0.0.1' },
  }
  return { id: 'r', request: request as unknown as IncomingMessage } as OperationCall
}

const keyring = { recall: (secret: string) => (isWellFormedKey(secret) ? undefined : 'malformed_api_key') }
const authenticate = createAuthenticate(keyring as never)
const clientAddress = createClientAddress(['loopback', '10.0.0.0/8'])
const originOf = createOrigin(['loopback'])
const namePattern = new RegExp(NewPetSchema.properties.name.pattern)
const jsonBody = (text: string) => parseJsonBody(Buffer.from(text))

const READERS: Record<string, (text: string) => unknown> = {
  'a path': (text) => findOperation('GET', originForm(`/v1/pets/${text}`)),
  'a request target': (text) => originForm(text),
  'a query': (text) => parseListQuery(new URLSearchParams(text)),
  'a limit': (limit) => parseListQuery(new URLSearchParams({ limit })),
  'a status': (status) => parseListQuery(new URLSearchParams({ status })),
  'a cursor': decodeCursor,
  'a petId': int64FromText,
  'a JSON number': int64FromJsonNumber,
  'a JSON body': jsonBody,
  'a JSON string': (text) => jsonBody(JSON.stringify({ name: text })),
  'a number in a JSON body': (text) => jsonBody(`{"categoryId":${text}}`),
  'a name': (name) => parseNewPet({ name, categoryId: 1n }),
  'the pattern of a name': (text) => namePattern.test(text),
  'broken bytes': (text) => parseJson(Buffer.from(text, 'latin1')),
  'a quotation': quote,
  'a text with secrets': redactSecrets,
  Authorization: (text) => authenticate(callWith('authorization', text)),
  'a Bearer key': (text) => authenticate(callWith('authorization', `Bearer ${text}`)),
  'Idempotency-Key': (text) => readIdempotencyKey(callWith('idempotency-key', text)),
  'If-None-Match': (text) => matchesEtag(text, '"jI1XyzS2v6k3bXWlUlhvZA"'),
  'Request-Id': (text) => requestId(callWith('request-id', text).request),
  Host: (text) => checkFraming(callWith('host', text)),
  'Transfer-Encoding': (text) => checkFraming(callWith('transfer-encoding', text)),
  'Content-Type': (text) => checkJsonHeaders(callWith('content-type', text)),
  'a charset': (text) => checkJsonHeaders(callWith('content-type', `application/json; ${text}`)),
  'X-Forwarded-For': (text) => addressGroup(clientAddress(callWith('x-forwarded-for', text).request)),
  Cookie: (text) => readCookies(callWith('cookie', `petstore=${text}`), false),
  'Accept-Encoding': (text) => acceptsGzip(callWith('accept-encoding', text)),
  'X-Forwarded-Host': (text) => originOf(callWith('x-forwarded-host', text).request),
  'a session token': isToken,
  'a CSRF token': (text) => isCsrfToken('token', text),
  'the page after a sign-in': (text) => safeNext(text, { sections: SECTIONS }),
  'a text on a page': (text) => html`${text}`,
}

describe('The time to read', () => {
  /** What readers look for, the characters that they skip, and what makes them fail at the very end. */
  const edge = fc.constantFrom('', ...'10x \0"\\%/;,=&-.e[{@', 'W/', 'bearer', '://', ';charset', '\ud800', '\u00ff')
  const runs = [
    '\\"',
    '%25',
    '%41',
    ';charset=',
    'charset ',
    ', ',
    'a=',
    'a&',
    '1.',
    '{"a":',
    '1,',
    '"a",',
    '""',
    'W/"",',
  ]
  const odd = ['pets_live_', '::1,', '10.0.0.1,', '\u3000', '🐈', '\ud800', '\u00ff']
  const run = fc.constantFrom(...'01x \t\0"\\%/;,&-.e[@_:<', ...runs, ...odd)

  for (const [name, read] of Object.entries(READERS)) {
    it(`${name} grows with its length and no faster`, async () => {
      await fc.assert(
        fc.asyncProperty(edge, run, edge, (start, unit, end) => {
          const text = (length: number) => start + unit.repeat(length / unit.length) + end
          return assertLinear((length) => read(text(length)), LENGTH, JSON.stringify([start, unit, end]))
        }),
        {
          numRuns: 40,
          endOnFailure: true,
          examples: [
            ['', 'x', '\0'],
            ['1', '0', '1'],
            ['1.', '0', '1'],
            ['"', 'x', ''],
          ],
        },
      )
    })
  }

  it('a whole request grows with its length and no faster, whatever part of it is long', async () => {
    await using petstore = await startPetstore({ env: { PETSTORE_TRUST_PROXY: 'loopback' } })
    const { url } = petstore
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const parts: Record<string, (text: string) => Promise<Response>> = {
      name: (text) => petstore.add(`{"name":"${text}\\u0000","categoryId":1}`),
      'categoryId as digits': (text) => petstore.add(`{"name":"Rex","categoryId":1${text.replaceAll(/./g, '0')}1}`),
      'categoryId as a fraction': (text) =>
        petstore.add(`{"name":"Rex","categoryId":1.${text.replaceAll(/./g, '0')}1}`),
      'broken JSON': (text) => petstore.add(`{"name":"${text}`),
      query: (text) => petstore.call(`/pets?${text}`),
      path: (text) => petstore.call(`/pets/${text}`),
      'unknown path': (text) => fetch(`${url}/${text}`),
      Accept: (text) => fetch(`${url}/nowhere`, { headers: { Accept: `text/htm${text}` } }),
      Cookie: (text) => fetch(`${url}/keys`, { redirect: 'manual', headers: { Cookie: `petstore=${text}` } }),
      'X-Forwarded-For': (text) => fetch(`${url}/sign-in`, { headers: { 'X-Forwarded-For': text } }),
      'Accept-Encoding': (text) => fetch(`${url}/assets/console.css`, { headers: { 'Accept-Encoding': text } }),
      'If-None-Match': (text) => petstore.call('/pets', { headers: { 'If-None-Match': text } }),
      form: (text) => fetch(`${url}/sign-in`, { method: 'POST', headers: form, body: `csrf=${text}&email=${text}` }),
    }
    for (const [name, send] of Object.entries(parts)) {
      for (const unit of ['x', '1', '%20', ';', ',', 'a=', '/']) {
        const work = async (length: number) => (await send(unit.repeat(length / unit.length))).arrayBuffer()
        await assertLinear(work, name === 'form' ? 3500 : 7000, `${name} of ${unit}`)
      }
    }
  })
})
