// Traces: a collector receives the spans of requests, linked from the client's span to the calls to the store; one that fails harms nothing.
import assert from 'node:assert/strict'
import dns from 'node:dns'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { ENGINES } from '../harness/databases/engines.ts'
import { until } from '../harness/until.ts'
import { BadSetting, readConfig } from '../../src/config.ts'
import { createSpanExporter } from '../../src/http/tracing/span-exporter.ts'
import { createLog } from '../../src/log.ts'
import { VERSION } from '../../src/contract/operations.ts'
import { TRACING_VARIABLES } from '../../src/contract/tracing-settings.ts'
import { Folder, serve } from '../harness/programs/command.ts'
import { type Petstore, type PetstoreOptions, startPetstore } from '../harness/harness.ts'
import { post as callMcp } from '../harness/connections/mcp-client.ts'

type Attributes = { key: string; value: { stringValue: string } | { intValue: string } }[]

interface ExportedSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attributes
  status: { code?: number }
}

interface Span extends Omit<ExportedSpan, 'attributes'> {
  attributes: Record<string, string>
  resource: Record<string, string>
}

const recordOf = (attributes: Attributes) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, 'intValue' in value ? value.intValue : value.stringValue]),
  )

/** A collector that keeps what it receives, and answers as `answer` does. */
async function startCollector(answer: RequestListener = (_, response) => response.end('{}')) {
  const spans: Span[] = []
  const requests: { url: string; authorization: string | undefined; agent: string | undefined }[] = []
  const receive = (body: string) => {
    const { resourceSpans } = JSON.parse(body) as {
      resourceSpans: { resource: { attributes: Attributes }; scopeSpans: { spans: ExportedSpan[] }[] }[]
    }
    for (const { resource, scopeSpans } of resourceSpans)
      for (const span of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({ ...span, attributes: recordOf(span.attributes), resource: recordOf(resource.attributes) })
  }
  const server = createServer((request, response) => {
    const { authorization, 'user-agent': agent } = request.headers
    requests.push({ url: request.url!, authorization, agent })
    void text(request)
      .then(receive)
      .then(() => answer(request, response))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { spans, requests, url, [Symbol.dispose]: () => server.close().closeAllConnections() }
}

async function startTraced(url: string, env: Record<string, string> = {}, options: PetstoreOptions = {}) {
  return startPetstore({ ...options, env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, ...env } })
}

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const traceparent = (flags: string) => ({ traceparent: `00-${TRACE}-${PARENT}-${flags}` })

/** Returns the path of names from the request's span to this one. */
function pathOf(spans: readonly Span[], span: Span): string {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId)
  return parent === undefined ? span.name : `${pathOf(spans, parent)} > ${span.name}`
}

/** The names of the kinds that spans have in OTLP. */
const KINDS = ['', 'internal', 'server', 'client']
const namesAndKinds = (spans: readonly Span[]) => spans.map((span) => `${KINDS[span.kind]} ${pathOf(spans, span)}`)

for (const engine of ENGINES) {
  describe(`Traces on ${engine.name}`, () => {
    for (const workers of ['1', '2'])
      it(`lead from the client's span to each call to the store with ${workers} processes`, async () => {
        using collector = await startCollector()
        const petstore = await startTraced(collector.url, { PETSTORE_WORKERS: workers }, { engine })
        try {
          const added = await petstore.add({ name: 'Rex', categoryId: 3 }, traceparent('01'))
          assert.equal(added.status, 201)
          assert.equal((await petstore.call('/pets?limit=7')).status, 200)
          const params = { name: 'listPets', arguments: { limit: 0 } }
          await callMcp(petstore, { id: 1, method: 'tools/call', params })
        } finally {
          await petstore.stop()
        }
        const { spans } = collector
        const root = spans.find(({ name }) => name === 'POST /v1/pets')!
        assert.deepEqual([root.traceId, root.parentSpanId, root.kind], [TRACE, PARENT, 2])
        const { 'petstore.request.id': id, 'service.instance.id': _, ...attributes } = root.attributes
        assert.ok(id)
        assert.deepEqual(attributes, {
          'url.scheme': 'http',
          'http.request.method': 'POST',
          'http.route': '/v1/pets',
          'http.response.status_code': '201',
          'url.path': '/v1/pets',
          'petstore.operation': 'createPet',
        })
        assert.equal(root.resource['service.name'], 'petstore')
        assert.deepEqual(namesAndKinds(spans.filter(({ traceId }) => traceId === TRACE)), [
          'client POST /v1/pets > accounts.keyByHash',
          'client POST /v1/pets > pets.create',
          'server POST /v1/pets',
        ])
        for (const { startTimeUnixNano, endTimeUnixNano, name } of spans) {
          assert.ok(BigInt(startTimeUnixNano) <= BigInt(endTimeUnixNano), name)
          assert.ok(Math.abs(Number(BigInt(endTimeUnixNano) / 1_000_000n) - Date.now()) < 60_000, name)
        }
        const list = spans.find(({ name }) => name === 'GET /v1/pets')!
        assert.notEqual(list.traceId, TRACE)
        const call = spans.find((span) => pathOf(spans, span) === 'GET /v1/pets > pets.list')!
        const system = engine.name === 'SQLite' ? 'sqlite' : 'postgresql'
        assert.deepEqual([call.kind, call.attributes], [3, { 'db.system.name': system }])
        const tool = spans.find(({ name }) => name === 'POST /mcp')!.attributes
        assert.deepEqual([tool['petstore.operation'], tool['petstore.error.code']], ['listPets', 'invalid_parameter'])
      })
  })
}

describe('A trace', () => {
  async function spansOf(env: Record<string, string>, use: (petstore: Petstore) => Promise<unknown>): Promise<Span[]> {
    using collector = await startCollector()
    const petstore = await startTraced(collector.url, { PETSTORE_WORKERS: '1', ...env })
    try {
      await use(petstore)
    } finally {
      await petstore.stop()
    }
    return collector.spans
  }
  const roots = (spans: readonly Span[]) => spans.filter(({ kind }) => kind === 2)

  // The caller of a test is 127.0.0.1.
  const ids = { low: 'f'.repeat(16) + '7e' + 'f'.repeat(14), high: '0'.repeat(16) + '8' + '0'.repeat(15) }
  for (const [sampler, arg, trust, parent, expected] of [
    ['parentbased_always_off', '1', '127.0.0.1', '01', 1],
    ['parentbased_always_on', '1', '127.0.0.1', '00', 0],
    ['parentbased_always_off', '1', '', '01', 0],
    ['parentbased_always_on', '1', '', '00', 1],
    ['parentbased_traceidratio', '0', '10.0.0.0/8', '01', 0],
    ['always_off', '1', '127.0.0.1', '01', 0],
    ['always_on', '1', '127.0.0.1', '00', 1],
    ['traceidratio', '0', '', '01', 0],
  ] as const)
    it(`with ${sampler} ${arg}, trusting ${trust || 'nobody'}, of a caller's flag ${parent}: ${expected}`, async () => {
      const env = { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: arg, PETSTORE_TRUST_PROXY: trust }
      const spans = await spansOf(env, (petstore) => petstore.call('/pets', { headers: traceparent(parent) }))
      assert.equal(roots(spans).length, expected)
      for (const { traceId } of roots(spans)) assert.equal(traceId, TRACE)
    })

  it('is not forced through a proxy that forwards the header of its client', async () => {
    const env = { OTEL_TRACES_SAMPLER: 'parentbased_always_off', PETSTORE_TRUST_PROXY: '127.0.0.1,10.0.0.0/8' }
    const call = (address: string) => ({ headers: { ...traceparent('01'), 'x-forwarded-for': address } })
    const spans = await spansOf(env, async (petstore) => {
      await petstore.call('/pets?limit=1', call('203.0.113.9'))
      await petstore.call('/pets?limit=2', call('10.1.2.3, 203.0.113.9'))
      await petstore.call('/pets?limit=3', call('10.1.2.3'))
    })
    assert.equal(roots(spans).length, 1)
  })

  it('is taken of its share of requests, whichever trace id a client chooses', async () => {
    const env = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' }
    const count = 400
    const spans = await spansOf(env, async (petstore) => {
      for (const id of [ids.low, ids.high])
        for (let index = 0; index < count; index += 1)
          await petstore.call('/pets', { headers: { traceparent: `00-${id}-${PARENT}-01` } })
    })
    // Six standard deviations.
    for (const id of [ids.low, ids.high]) {
      const share = roots(spans).filter(({ traceId }) => traceId === id).length
      assert.ok(Math.abs(share - count / 4) < 6 * Math.sqrt((count * 3) / 16), `${share} of ${count}`)
    }
  })

  it('of a trusted caller is taken by its trace id, as every service of the trace takes it', async () => {
    const env = {
      OTEL_TRACES_SAMPLER: 'traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.5',
      PETSTORE_TRUST_PROXY: '127.0.0.1',
    }
    const spans = await spansOf(env, async (petstore) => {
      for (const id of [ids.low, ids.high])
        await petstore.call('/pets', { headers: { traceparent: `00-${id}-${PARENT}-00` } })
    })
    assert.deepEqual(
      roots(spans).map(({ traceId }) => traceId),
      [ids.low],
    )
  })

  it('begins anew if the traceparent is malformed', async () => {
    const valid = `00-${TRACE}-${PARENT}-01`
    const malformed = [
      `${valid}-x`,
      `${valid}-`,
      `ff${valid.slice(2)}`,
      `01${valid.slice(2)}.x`,
      valid.toUpperCase(),
      valid.replace(TRACE, '0'.repeat(32)),
      valid.replace(PARENT, '0'.repeat(16)),
      valid.slice(0, -1),
      `${valid}, ${valid}`,
    ]
    const parents = [valid, `01${valid.slice(2)}-x`, ...malformed]
    const spans = await spansOf({}, async (petstore) => {
      for (const parent of parents)
        await petstore.call('/pets', { headers: { traceparent: parent, tracestate: 'a=b' } })
    })
    const continued = roots(spans).filter(({ traceId }) => traceId === TRACE)
    assert.deepEqual([roots(spans).length, continued.length], [parents.length, 2])
  })

  it('has the route and the calls of a client that disconnects while the database is locked', async () => {
    await using database = await ENGINES[0]!.newDatabase()
    using collector = await startCollector()
    const petstore = await startTraced(collector.url, { PETSTORE_WORKERS: '1' }, { database: database.url })
    const other = new DatabaseSync(database.url.replace('sqlite:', ''))
    try {
      await petstore.call('/pets')
      other.exec('BEGIN IMMEDIATE')
      const socket = connect(Number(new URL(petstore.url).port), '127.0.0.1')
      const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${petstore.key}`
      const body = JSON.stringify({ name: 'Rex', categoryId: 1 })
      socket.write(`${head}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      await petstore.call('/pets')
      socket.resetAndDestroy()
      await petstore.call('/pets')
      other.exec('COMMIT')
      await until(() => petstore.logged.some(({ operation }) => operation === 'createPet'), 'the create is answered')
    } finally {
      other.close()
      await petstore.stop()
    }
    const { spans } = collector
    const paths = namesAndKinds(spans).filter((path) => path.includes('POST'))
    assert.deepEqual(paths, ['client POST /v1/pets > pets.create', 'server POST /v1/pets'])
  })

  it('ends when the client disconnects before the end of its body', async () => {
    const spans = await spansOf({}, async (petstore) => {
      const { port } = new URL(petstore.url)
      const socket = connect(Number(port), '127.0.0.1')
      const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${petstore.key}`
      socket.write(`${head}\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n`)
      await once(socket, 'data')
      socket.destroy()
      await petstore.call('/pets')
    })
    const lost = roots(spans).filter(({ name }) => name === 'POST')
    assert.deepEqual(
      lost.map(({ attributes }) => attributes['http.response.status_code']),
      ['400'],
    )
  })

  it('names the error, and holds no key, query or address', async () => {
    let key = ''
    const spans = await spansOf(
      { OTEL_SERVICE_NAME: 'shop', OTEL_RESOURCE_ATTRIBUTES: 'team=a%20b' },
      async (petstore) => {
        key = petstore.key
        await petstore.call(`/pets/${key}?token=secret-query`)
        await petstore.call('/pets', { headers: { 'petstore-rehearse': '503' } })
        await petstore.call('/pets', { headers: { authorization: 'Bearer wrong' } })
        await fetch(`${petstore.url}/nowhere?${key}`)
        await fetch(`${petstore.url}/livez`)
      },
    )
    const exported = JSON.stringify(spans)
    for (const secret of [key, 'secret-query', '127.0.0.1']) assert.ok(!exported.includes(secret), secret)
    const [get, failed, refused, nowhere, livez] = roots(spans)
    assert.equal(get!.attributes['http.route'], '/v1/pets/{petId}')
    assert.equal(get!.attributes['petstore.error.code'], 'pet_not_found')
    assert.deepEqual([get!.attributes['error.type'], get!.status], [undefined, {}])
    assert.deepEqual([failed!.attributes['error.type'], failed!.status], ['service_unavailable', { code: 2 }])
    assert.equal(failed!.attributes['http.response.status_code'], '503')
    assert.deepEqual([refused!.attributes['http.response.status_code'], refused!.status], ['401', {}])
    assert.deepEqual([nowhere!.name, livez!.name], ['GET', 'GET /livez'])
    assert.equal(get!.resource['service.name'], 'shop')
    assert.equal(get!.resource['team'], 'a b')
  })
})

describe('A collector', () => {
  for (const own of [false, true])
    it(`gets the headers at the address of the settings, ${own ? 'those for traces' : 'those for all signals'}`, async () => {
      using collector = await startCollector()
      const env = {
        OTEL_TRACES_EXPORTER: 'otlp',
        OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20eDp5',
        OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/base/`,
        ...(own && {
          OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x=y',
          OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/`,
        }),
      }
      await using petstore = await startTraced(collector.url, env)
      await petstore.call('/pets')
      await petstore.stop()
      const [url, authorization] = own ? ['/own/', undefined] : ['/base/v1/traces', 'Basic eDp5']
      assert.deepEqual(collector.requests[0], { url, authorization, agent: `petstore/${VERSION}` })
    })

  it('has the time of the settings to answer', async () => {
    using collector = await startCollector(() => {})
    const env = { OTEL_EXPORTER_OTLP_TIMEOUT: 'x', OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '10' }
    await using petstore = await startTraced(collector.url, env)
    await petstore.call('/pets')
    await petstore.stop()
    assert.match(JSON.stringify(petstore.logged), /aborted due to timeout.*traces cannot be exported/)
  })

  const FAULTS: Record<string, RequestListener> = {
    'answers 500': (_, response) => response.writeHead(500).end(),
    redirects: ({ url }, response) =>
      response.writeHead(url === '/v1/traces' ? 307 : 200, { location: '/elsewhere' }).end(),
    hangs: () => {},
    'sends no HTTP': (request) => request.socket.end('rubbish\r\n\r\n'),
    'never ends its answer': (_, response) => {
      const write = () => void (!response.destroyed && response.write('x'.repeat(65_536), () => setImmediate(write)))
      write()
    },
  }
  for (const [fault, answer] of Object.entries(FAULTS))
    it(`that ${fault} harms no request, and is logged once`, async () => {
      using collector = await startCollector(answer)
      const env = { PETSTORE_WORKERS: '1' }
      await using petstore = await startTraced(collector.url, env)
      // An export that hangs is still running when the service stops, and on a busy machine any other may be.
      const told = fault === 'hangs' ? 'the last traces could not be exported' : 'traces cannot be exported'
      const warnings = () => petstore.logged.filter(({ msg }) => String(msg).startsWith(told))
      for (let round = fault === 'hangs' ? 1 : 0; round < 2; round += 1) {
        const before = collector.requests.length
        await until(async () => {
          const answers = await Promise.all(Array.from({ length: 50 }, () => petstore.call('/pets/7')))
          assert.ok(answers.every(({ status }) => status === 404))
          return collector.requests.length > before
        }, 'another export')
      }
      const started = performance.now()
      await petstore.stop()
      // An export that is waited for takes ten seconds.
      assert.ok(performance.now() - started < 9000)
      assert.equal(warnings().length, fault === 'never ends its answer' ? 0 : 1, JSON.stringify(warnings()))
    })

  for (const [host, addresses] of [
    ['127.0.0.1', []],
    ['localhost', ['127.0.0.1', '127.0.0.2']],
  ] as const)
    it(`that is not there is logged once, with the reason: ${host} ${addresses.join()}`, async ({ mock }) => {
      const answer = addresses.map((address) => ({ address, family: 4 }))
      if (addresses.length > 0)
        mock.method(dns, 'lookup', (...[, , done]: [string, object, (error: null, found: object) => void]) =>
          done(null, answer),
        )
      const free = await startCollector()
      free[Symbol.dispose]()
      await using petstore = await startTraced(free.url.replace('127.0.0.1', host))
      await petstore.call('/pets')
      await petstore.stop()
      const logged = petstore.logged.filter(({ msg }) => String(msg).includes('traces'))
      assert.deepEqual(
        logged.map(({ level, msg }) => [level, msg]),
        [['warn', 'traces cannot be exported, and are dropped until they can']],
      )
      assert.match(String(logged[0]!['reason']), /ECONNREFUSED/)
    })

  it('that is slow makes no more than 2048 spans wait, and one that works again is reported with what was dropped', async () => {
    const answers: (() => void)[] = []
    using collector = await startCollector((_, response) => {
      const isFirst = collector.requests.length === 1
      answers.push(() => response.writeHead(isFirst ? 503 : 200).end())
    })
    const lines: string[] = []
    const { tracing } = readConfig({}, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    const log = createLog('notice', { write: (line: string) => void lines.push(line) })
    const exporter = createSpanExporter(tracing!, {}, log)
    for (let count = 0; count < 10_000; count += 1) exporter.add({ name: 'GET' }, {})
    await until(() => answers.length === 1, 'the first export')
    answers[0]!()
    const stopped = exporter.stop()
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      await until(() => answers.length > attempt, 'the next export')
      answers[attempt]!()
    }
    await stopped
    assert.equal(collector.spans.length, 512 + 2048)
    assert.match(lines[0]!, /the collector is slow: 2048 spans wait/)
    assert.match(lines[1]!, new RegExp(`"dropped":${10_000 - 2048},`))
  })
})

describe('Without a collector', () => {
  for (const [what, env] of Object.entries({
    'no endpoint': { OTEL_TRACES_SAMPLER: 'nonsense' },
    'an endpoint': { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
  }))
    it(`nothing of traces is loaded: ${what}`, async () => {
      await using folder = await Folder.create()
      const { child, ended } = await serve(folder, { env: { ...env, NODE_V8_COVERAGE: folder.at('loaded') } })
      child.kill('SIGTERM')
      await ended
      const loaded = readdirSync(folder.at('loaded'))
        .map((name) => readFileSync(join(folder.at('loaded'), name), 'utf8'))
        .join('')
      assert.ok(loaded.includes('/src/http/app.ts'))
      assert.equal(loaded.includes('/src/http/tracing/tracer.ts'), what === 'an endpoint')
      assert.equal(loaded.includes('/src/http/tracing/span-exporter.ts'), what === 'an endpoint')
    })
})

describe('The variables of OpenTelemetry', () => {
  const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }
  for (const [variable, value, shown] of [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'localhost:4318', 'http'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'grpc://u:secret@x', 'grpc'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://u:secret@x', 'http'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://[', 'http'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://x?key=secret', 'http'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://x#secret', 'http'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization: secret', '***'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization=secret%0A', '***'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization=secret\u0001', '***'],
    ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'authorization: secret', '***'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'http://x?key=secret', 'http'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'grpc'],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'http/protobuf', 'http/protobuf'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '1.5', '1.5'],
    ['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', '2147483648', '2147483648'],
    ['OTEL_TRACES_EXPORTER', 'zipkin', 'zipkin'],
    ['OTEL_SDK_DISABLED', 'maybe', 'maybe'],
    ['OTEL_TRACES_SAMPLER', 'sometimes', 'sometimes'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5', '1.5'],
    ['OTEL_TRACES_SAMPLER_ARG', '9e-0', '9e-0'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'a=%', 'a=%'],
  ] as const)
    it(`refuse ${variable}=${value}`, () => {
      assert.throws(
        () => readConfig({}, { ...ENDPOINT, [variable]: value }),
        (error) => {
          assert.ok(error instanceof BadSetting)
          assert.match(error.message, new RegExp(`^${variable} must be `))
          assert.ok(error.message.includes(shown) && !error.message.includes('secret'), error.message)
          return true
        },
      )
    })

  it('come from .env too, where those of the environment win', () => {
    const env = { OTEL_SERVICE_NAME: 'a', OTEL_RESOURCE_ATTRIBUTES: 'service.name=c,a%2Cb/c=M%C3%BC' }
    const { tracing } = readConfig({}, env, { ...ENDPOINT, OTEL_SERVICE_NAME: 'b' })
    assert.equal(tracing?.url, 'http://127.0.0.1:4318/v1/traces')
    assert.deepEqual(tracing?.resource, { 'service.name': 'a', 'a,b/c': 'Mü' })
  })

  it('for traces alone replace those for all signals, and an empty one counts as unset', () => {
    const ALL: [env: Record<string, string>, url: string | undefined, timeoutMs?: number][] = [
      [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c:4318' }, 'http://c:4318/', 10_000],
      [
        { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c/v1/x', OTEL_EXPORTER_OTLP_ENDPOINT: '[' },
        'http://c/v1/x',
        10_000,
      ],
      [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '' }, 'http://127.0.0.1:4318/v1/traces', 10_000],
      [
        { OTEL_TRACES_EXPORTER: 'OTLP', OTEL_EXPORTER_OTLP_TIMEOUT: '0' },
        'http://localhost:4318/v1/traces',
        2 ** 31 - 1,
      ],
      [
        { ...ENDPOINT, OTEL_TRACES_EXPORTER: '', OTEL_EXPORTER_OTLP_TIMEOUT: '7' },
        'http://127.0.0.1:4318/v1/traces',
        7,
      ],
      [{ OTEL_TRACES_EXPORTER: 'console' }, undefined],
      [{ OTEL_TRACES_EXPORTER: 'otlp', OTEL_SDK_DISABLED: 'true' }, undefined],
      [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'None', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, undefined],
    ]
    for (const [env, url, timeoutMs] of ALL) {
      const { tracing } = readConfig({}, env)
      assert.deepEqual([tracing?.url, tracing?.timeoutMs], [url, timeoutMs], JSON.stringify(env))
    }
  })

  it('have choices in upper and lower case, as OpenTelemetry specifies', () => {
    const choices = { OTEL_EXPORTER_OTLP_PROTOCOL: 'HTTP/JSON', OTEL_TRACES_SAMPLER: 'ParentBased_Always_Off' }
    const { tracing } = readConfig({}, { ...ENDPOINT, ...choices, OTEL_SDK_DISABLED: 'False' })
    assert.deepEqual([tracing?.isParentBased, tracing?.share], [true, 0])
    assert.equal(readConfig({}, { ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }).tracing, undefined)
  })

  it('are all documented', () => {
    const documented = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
    for (const variable of Object.keys(TRACING_VARIABLES)) assert.ok(documented.includes(`\`${variable}\``), variable)
  })
})
