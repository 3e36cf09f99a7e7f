// What every process of an instance runs: its own store, the HTTP server on it with the operations and the console.
import type { RequestListener, Server } from 'node:http'
import { Accounts } from './accounts/accounts.ts'
import { Keyring } from './accounts/keyring.ts'
import { hashSingly } from './accounts/passwords.ts'
import { Sessions } from './accounts/sessions.ts'
import { Usage } from './accounts/usage.ts'
import { type Config, environmentSetting, ownBaseUrl } from './config.ts'
import type { ConsoleParts } from './console/visit.ts'
import { createSend, type Send } from './http/answer.ts'
import { AnswerCache } from './http/answer-cache.ts'
import { createApp, type Timeouts } from './http/app.ts'
import { createHealth, type Health } from './http/health.ts'
import type { Metrics } from './http/metrics.ts'
import { createReadiness, type Readiness } from './http/readiness.ts'
import { createRecorder } from './http/record.ts'
import { type Reach, reachOf } from './http/reach.ts'
import { addressOf, cutOff, finish, lastStep, listen, type Where } from './http/listening.ts'
import { type Log, logRepeated } from './log.ts'
import type { Shared, Told } from './http/shared.ts'
import { openForServing } from './store/opening-store.ts'
import { DiskHangs, type Observe, type Report, type Store } from './store/store.ts'

export interface ServingParts {
  config: Config
  log: Log
  shared: Shared
  where: Where
  clock: () => number
  monotonic: () => number
  timeouts: Timeouts | undefined
  /** Called if this process can't go on with its store; then the whole instance ends. */
  onBroken: (error: Error) => void
  /** Whether another process of the instance has opened the database before, and looks after it. */
  isWorker: boolean
}

export interface Serving {
  /** Where it really listens, such as http://127.0.0.1:8080. */
  url: string
  reach: Reach
  server: Server
  store: Store
  accounts: Accounts
  sessions: Sessions
  usage: Usage
  metrics: Metrics | undefined
  readiness: Readiness
  health: Health
  send: Send
  /** Resolves when the store is open; rejects with `CannotOpenStore` if that turns out to be impossible. */
  opened: Promise<void>
  /** What other processes of the instance may ask for. */
  told: Record<Told, () => void | Promise<void>>
  /** Is not ready from now on, but goes on serving; each answer is the last of its connection. */
  drain(): void
  /** Accepts no more connections, and resolves when the running requests are answered or cut off. */
  finish(): Promise<void>
  /** Writes the last usage counts and closes the store. Returns false if the disk hangs: then the process must be killed. */
  close(): Promise<boolean>
  /** Ends without waiting for anything. */
  abandon(): Promise<void>
}

/** Resolves when connections are accepted. */
export async function startServing(parts: ServingParts): Promise<Serving> {
  const { config, log, shared, where, clock, monotonic, timeouts, onBroken, isWorker } = parts
  if (config.workers > 1) hashSingly()
  const metrics = await loadMetrics(config)
  const observe = storeObserver(config, metrics, log)
  const { database, workers: processes } = config
  const report: Report = ({ level, message, details }) => log[level](details ?? {}, message)
  const opening = { ...environmentSetting(config), processes, report, observe, onBroken, isWorker }
  const { store, opened } = await openForServing(database, opening)
  opened.catch(onBroken)
  metrics?.watchStore(store)
  let stopping = false
  const isStopping = () => stopping
  const readiness = createReadiness(store, isStopping)
  const health = createHealth(readiness)

  const usage = new Usage(store, clock)
  usage.start((error, message) => logRepeated(log, 'error', { error }, message))
  const record = createRecorder({ log, usage, metrics, clock })
  const send = createSend({ record, baseUrl: ownBaseUrl(config), isStopping })
  const cache = new AnswerCache(store)
  const keyring = new Keyring(store, config.environment, clock, monotonic)
  const pages = Promise.withResolvers<RequestListener>()
  const elsewhere: RequestListener = (raw, response) => void pages.promise.then((serve) => serve(raw, response))
  const { lease, hold, allowConnections: allow } = shared
  const answering = { record, send, elsewhere, lease, hold, allow }
  const server = createApp({ config, store, cache, keyring, clock, monotonic, log, timeouts, ...answering })
  metrics?.watchFront({ server, cache })

  const told = { forgetKeys: () => keyring.forgetAll(), flushUsage: () => usage.flush() }
  const onRevoked = async () => {
    told.forgetKeys()
    await shared.tellOthers('forgetKeys')
  }
  const flushUsage = async () => {
    await Promise.all([told.flushUsage(), shared.tellOthers('flushUsage')])
  }
  const accounts = new Accounts({ store, environment: config.environment, clock, onRevoked })
  const sessions = new Sessions(store, clock)

  async function abandon(): Promise<void> {
    await cutOff(server)
    await store.close()
  }
  try {
    await listen(server, where)
  } catch (error) {
    await abandon()
    throw error
  }
  const [url, reach] = [addressOf(server), reachOf(config, server.address())]
  const people = { accounts, sessions, flushUsage, throttles: shared }
  const consoleParts = { config, ...reach, url, store, ...people, clock, log }
  // Requests that are not for an operation wait for this; the operations are served meanwhile.
  setImmediate(() => pages.resolve(loadPages(consoleParts, health, send)))

  const made = { server, store, accounts, sessions, usage, metrics, readiness, health, send }
  return {
    ...made,
    url,
    reach,
    opened,
    told,
    abandon,
    drain() {
      stopping = true
    },
    async finish() {
      stopping = true
      await finish(server)
    },
    async close() {
      await lastStep(usage.stop(), 'the last usage counts and failed requests could not be written', log)
      const failure = await lastStep(store.close(), 'the store could not be closed in order', log)
      return !(failure instanceof DiskHangs)
    },
  }
}

/** A call to the database that takes longer is logged. */
const SLOW_SECONDS = 1

/** Returns what measures the calls to the store. SQLite answers at once, so nothing is measured there unless there are metrics. */
function storeObserver({ database }: Config, metrics: Metrics | undefined, log: Log): Observe | undefined {
  if (metrics === undefined && database.engine === 'sqlite') return undefined
  return (method, seconds) => {
    metrics?.storeCall(method, seconds)
    if (seconds > SLOW_SECONDS) logRepeated(log, 'warn', { seconds }, `slow database call: ${method}`)
  }
}

/** Loaded on demand: without an admin port its libraries are not needed. */
async function loadMetrics({ adminPort }: Config): Promise<Metrics | undefined> {
  if (adminPort === undefined) return undefined
  const { createMetrics } = await import('./http/metrics.ts')
  return createMetrics()
}

/** Loaded on demand too: the pages take longer to load than everything else together. */
async function loadPages(parts: ConsoleParts, health: Health, send: Send): Promise<RequestListener> {
  const [{ createConsole }, { createPages }] = await Promise.all([
    import('./console/console.ts'),
    import('./http/pages.ts'),
  ])
  return createPages(parts.config, health, createConsole(parts), send, parts.log)
}
