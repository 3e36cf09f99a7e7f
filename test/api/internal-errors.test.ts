// A fault of the service costs one request, never the process: whatever throws, at whichever step, is a 500 and a log line.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { before, describe, it } from 'node:test'
import { Keyring } from '../../src/accounts/api-keys.ts'
import { Usage } from '../../src/accounts/usage.ts'
import { readConfig } from '../../src/config.ts'
import { examplePath, OPERATIONS } from '../../src/contract/operations.ts'
import { createRecorder } from '../../src/http/answers/recorder.ts'
import { createResponder } from '../../src/http/answers/responder.ts'
import { createSend, type Send } from '../../src/http/answers/send.ts'
import { AnswerCache } from '../../src/http/answers/answer-cache.ts'
import { type AppParts, createApp, TIMEOUTS } from '../../src/http/app.ts'
import { addressOf, cutOff, listen } from '../../src/http/connections/listening.ts'
import { createMetrics } from '../../src/http/metrics.ts'
import { createPages } from '../../src/http/pages.ts'
import { createHealth } from '../../src/http/lifecycle.ts'
import { createLog } from '../../src/log.ts'
import { createAdmin } from '../../src/server.ts'
import { RawConnection } from '../harness/connections/raw-http.ts'
import { Folder, serve } from '../harness/programs/command.ts'
import { startPetstore } from '../harness/harness.ts'

const fault = (): never => {
  throw new Error('a planted fault')
}
const laterFault = async (): Promise<never> => fault()
/** Throws at any use. */
const broken = new Proxy(fault, { get: fault, apply: fault }) as never

interface Faulty {
  /** Parts of the app that are replaced. */
  app?: Partial<AppParts>
  send?: Send
  log?: 'info' | 'error'
  usage?: Usage
  metrics?: ReturnType<typeof createMetrics>
  findCached?: () => never
  /** The answer of a page. */
  page?: () => Promise<never>
}

/** Every step on the way of a request, broken in turn, and the requests that need it. */
const FAULTS: Record<string, { faulty: Faulty; hit: RegExp }> = {
  'in the answer cache': { faulty: { findCached: fault }, hit: /^(GET|HEAD) / },
  'in the key check': { faulty: { app: { keyring: broken } }, hit: /v1/ },
  'in the check for a removed operation': { faulty: { app: { clock: fault } }, hit: /v1/ },
  'in the rate limit': { faulty: { app: { monotonic: fault } }, hit: /v1/ },
  'in the store': { faulty: { app: { store: broken } }, hit: /v1/ },
  'in the path of pages': { faulty: { app: { servePage: fault } }, hit: /^(GET|PUT) \/(?!v1)/ },
  'in pages that could not be loaded': { faulty: { app: { servePage: laterFault } }, hit: /^(GET|PUT) \/(?!v1)/ },
  'in a page': { faulty: { page: laterFault }, hit: /^(GET|PUT) \/nowhere/ },
  'in sending': { faulty: { send: fault }, hit: /\// },
}

/** Answers are recorded after they were sent, so that these faults change no answer. */
const RECORDING_FAULTS: Record<string, Faulty> = {
  'in a line of the log': { log: 'info' },
  'in the metrics': { metrics: broken },
  'in the usage counts': { usage: broken },
}

describe('A fault of the service', () => {
  let whole: Awaited<ReturnType<typeof answersOf>>
  before(async () => {
    whole = await answersOf({})
    assert.deepEqual(whole.faults, [])
  })

  for (const [where, { faulty, hit }] of Object.entries(FAULTS)) {
    it(`${where} is a 500 with a line in the log, and the other requests are answered`, async () => {
      const { answers, faults } = await answersOf(faulty)
      for (const [request, status] of answers) {
        assert.equal(status, hit.test(request) ? 500 : whole.answers.get(request), request)
      }
      assert.ok(faults.length >= [...answers.values()].filter((status) => status === 500).length)
    })
  }
  for (const [where, faulty] of Object.entries(RECORDING_FAULTS)) {
    it(`${where} changes no answer, and is logged`, async () => {
      const { answers, faults } = await answersOf(faulty)
      assert.deepEqual(answers, whole.answers)
      assert.ok(faults.length > 0)
    })
  }
  it('of which not even the log can tell is still a 500', async () => {
    const { answers } = await answersOf({ app: { store: broken }, log: 'error' })
    assert.equal(answers.get('GET /v1/pets'), 500)
  })
})

describe('A fault behind the admin port', () => {
  it('is a 500 with a line in the log, and the port goes on', async () => {
    const { log, faults } = collectingLog()
    const responder = createResponder(
      createSend(() => {}, undefined, { closesConnections: false }),
      log,
    )
    const routes = { ...createHealth(laterFault), '/metrics': laterFault }
    await using admin = await listening(createAdmin(routes, responder))
    const answers = await askAll(admin.url, { Accept: '*/*' }, ['GET /metrics', 'GET /readyz', 'GET /livez'])
    assert.deepEqual([...answers.values()], [500, 500, 200])
    assert.equal(faults.length, 2)
  })
})

describe('Clients that hang up behind a proxy', () => {
  it('before their connections are accepted do not harm the process', async () => {
    await using folder = await Folder.create()
    const env = { PETSTORE_TRUST_PROXY: '127.0.0.1', PETSTORE_ADMIN_PORT: '0' }
    const { url, adminUrl, child, lines } = await serve(folder, { env })
    for (const target of [`${url}/livez`, `${url}/sign-in`, `${url}/v1/pets`, `${url}/nowhere`, `${adminUrl}/livez`]) {
      // A process that is stopped accepts nothing: all of them are reset while they wait in the kernel.
      child.kill('SIGSTOP')
      await Promise.all(Array.from({ length: 50 }, () => hangUp(new URL(target))))
      child.kill('SIGCONT')
      assert.equal((await fetch(`${url}/livez`)).status, 200, target)
    }
    assert.deepEqual(
      lines.filter(({ level }) => level === 'error'),
      [],
    )
  })
})

async function hangUp({ hostname, port, pathname }: URL): Promise<void> {
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n`)
  socket.resetAndDestroy()
}

/** Sends requests of all kinds to a server with this fault. Returns the statuses, and the errors that were logged. */
async function answersOf(faulty: Faulty): Promise<{ answers: Map<string, number>; faults: string[] }> {
  const config = readConfig({}, { PETSTORE_RATE_LIMIT: '1000/1', PETSTORE_ENVIRONMENT: 'staging' })
  await using petstore = await startPetstore()
  const { store, key } = petstore
  const { log, faults } = collectingLog()
  if (faulty.log !== undefined) log[faulty.log] = fault
  const monotonic = () => performance.now()
  const record = createRecorder(
    log,
    faulty.usage ?? new Usage(store, Date.now),
    faulty.metrics ?? createMetrics(),
    Date.now,
  )
  const responder = createResponder(faulty.send ?? createSend(record, undefined, { closesConnections: false }), log)
  const cache = new AnswerCache(store)
  if (faulty.findCached !== undefined) cache.find = faulty.findCached
  const health = createHealth(async () => undefined)
  const notFound = faulty.page ?? (async () => ({ status: 404, headers: [], body: undefined }))
  const parts: AppParts = {
    config,
    store,
    cache,
    log,
    record,
    responder,
    monotonic,
    keyring: new Keyring(store, 'staging', Date.now, monotonic),
    clock: Date.now,
    servePage: async (arrival) => pages(arrival),
    // The check of connections has the clock of the rate limit: on a busy machine it ran meanwhile, and met its fault.
    timeouts: { ...TIMEOUTS, connectionsCheckingInterval: 600_000 },
    ...faulty.app,
  }
  const app = createApp(parts)
  const pages = createPages(config, health, { routes: [], notFound }, app.operations)
  await using server = await listening(app.server)
  const usual = { Authorization: `Bearer ${key}`, Accept: 'text/html', 'Content-Type': 'application/json' }
  const headers = { ...usual, 'Request-Id': 'asked' }
  const operations = OPERATIONS.map((operation) => `${operation.method} /v1${examplePath(operation)}`)
  const answers = await askAll(server.url, headers, [...operations, 'GET /livez', 'GET /nowhere', 'PUT /nowhere'])
  // What the parser refuses is recorded, too.
  using malformed = new RawConnection(server.url)
  malformed.send('nonsense\r\n\r\n')
  answers.set('nonsense', (await malformed.answer()).status)
  return { answers, faults }
}

async function askAll(url: string, headers: Record<string, string>, requests: readonly string[]) {
  const answers = new Map<string, number>()
  for (const request of requests) {
    const [method = '', path = ''] = request.split(' ')
    const operation = OPERATIONS.find((each) => each.method === method && `/v1${examplePath(each)}` === path)
    const body = operation?.body ? JSON.stringify(operation.body.example) : null
    const answer = await fetch(url + path, { method, headers, body })
    const text = await answer.text()
    assert.equal(answer.headers.get('request-id') === 'asked', headers['Request-Id'] === 'asked', request)
    // Only an answer that could not be sent in the usual way has no headers of its operation.
    if (answer.headers.get('connection') !== 'close')
      assert.equal(answer.headers.has('deprecation'), operation?.deprecation !== undefined, request)
    if (answer.status === 500) {
      const isPage = headers['Accept'] === 'text/html' && /^\/(?!v1|livez)/.test(path)
      assert.match(
        text,
        isPage ? /<h1>Something went wrong<.*Request id: <code>[\w-]+</s : /^{"code":"internal_error"/,
        request,
      )
    }
    answers.set(request, answer.status)
  }
  return answers
}

function collectingLog() {
  const faults: string[] = []
  const log = createLog('info', { write: (line) => void (line.includes('a planted fault') && faults.push(line)) })
  return { log, faults }
}

async function listening(server: Server) {
  await listen(server, { host: '127.0.0.1', port: 0, setting: '' })
  return { url: addressOf(server), [Symbol.asyncDispose]: () => cutOff(server) }
}
