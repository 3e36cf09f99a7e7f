// The only wiring: settings become a store, the store an app, and the app listens until it is told to stop.
import type { RequestListener } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { Accounts } from './accounts/accounts.ts'
import { Keyring } from './accounts/keyring.ts'
import { Sessions } from './accounts/sessions.ts'
import { Usage } from './accounts/usage.ts'
import { startChores } from './chores.ts'
import { type Config, ownBaseUrl } from './config.ts'
import type { ConsoleParts } from './console/visit.ts'
import { createAdmin } from './http/admin.ts'
import { createSend, type Send } from './http/answer.ts'
import { AnswerCache } from './http/answer-cache.ts'
import { createApp, type Timeouts } from './http/app.ts'
import { createHealth, type Health } from './http/health.ts'
import type { Metrics } from './http/metrics.ts'
import { createReadiness } from './http/readiness.ts'
import { createRecorder } from './http/record.ts'
import { type Reach, reachOf } from './home.ts'
import { addressOf, cutOff, finish, type InheritedSocket, listen } from './listening.ts'
import { type Log, logRepeated } from './log.ts'
import { requireEnvironment } from './store/environment.ts'
import { openStore } from './store/open-store.ts'
import type { Report, Store } from './store/store.ts'
import { timedStore } from './store/timed-store.ts'
import { type Opening, openOrWait } from './store/waiting-store.ts'
import { withinTime } from './within-time.ts'

/** How long each of the last steps of a stop may take: a database that hangs must not hold it up. */
const LAST_STEP_MS = 1500

/** A call to the database that takes longer is logged. */
const SLOW_SECONDS = 1

export interface Running extends Reach {
  /** Where it really listens, such as http://127.0.0.1:8080. */
  url: string
  adminUrl: string | undefined
  accounts: Accounts
  store: Store
  /** Resolves when the store is open; rejects with `CannotOpenStore` if that turns out to be impossible. */
  opened: Promise<void>
  /** Is not ready from now on, and serves everything for this long; each answer is the last of its connection. */
  drain(seconds: number): Promise<void>
  /** Finishes running requests, writes the last usage counts, closes the store; takes at most 10 seconds. */
  stop(): Promise<void>
}

/** What surrounds the service, and what a test may replace. */
export interface World {
  /** Instead of an address to listen on. */
  socket?: InheritedSocket | undefined
  /** The time of day, for dates. */
  clock?: () => number
  /** Milliseconds that only ever grow, for ages and windows: the time of day can be set back. */
  monotonic?: () => number
  timeouts?: Timeouts | undefined
}

export async function startServer(config: Config, log: Log, world: World = {}): Promise<Running> {
  const { socket, clock = Date.now, monotonic = () => performance.now(), timeouts } = world
  const metrics = config.adminPort === undefined ? undefined : await loadMetrics()
  const { store: plain, opened } = await openForServing(config, log)
  const store = metrics === undefined && config.database.engine === 'sqlite' ? plain : timedStore(plain, storeCall)
  let stopping = false
  const isStopping = () => stopping
  const readiness = createReadiness(store, isStopping)
  const cache = new AnswerCache(store)

  const keyring = new Keyring(store.accounts, config.environment, clock, monotonic)
  const accounts = new Accounts({
    store: store.accounts,
    environment: config.environment,
    clock,
    onRevoked: () => keyring.forgetAll(),
  })
  const sessions = new Sessions(store.accounts, clock)
  const usage = new Usage(store.accounts, clock)
  const record = createRecorder({ log, usage, metrics, clock })
  const send = createSend({ record, baseUrl: ownBaseUrl(config), isStopping })
  const publicApp = Promise.withResolvers<PublicApp>()
  const app = createApp({
    config,
    store,
    cache,
    keyring,
    clock,
    monotonic,
    log,
    record,
    send,
    elsewhere: (raw, response) => void publicApp.promise.then(({ routing }) => routing(raw, response)),
    timeouts,
  })
  const health = createHealth(readiness)
  const admin = metrics && createAdmin({ metrics, health, send })
  metrics?.watch({ server: app, store, cache, readiness })
  try {
    await listen(app, socket ?? { host: config.host, port: config.port, setting: '' })
    if (admin !== undefined) await listen(admin, { host: config.adminHost, port: config.adminPort!, setting: 'admin-' })
  } catch (error) {
    await Promise.all([cutOff(app), cutOff(admin)])
    await store.close()
    throw error
  }
  // Requests that are not for an operation wait for this; the operations are served meanwhile.
  const url = addressOf(app)
  const reach = reachOf(config, app.address())
  const consoleParts = { config, ...reach, url, store, accounts, sessions, usage, clock, monotonic, log, record }
  setImmediate(() => publicApp.resolve(loadPublicApp(consoleParts, health, send, isStopping)))
  usage.start((error, message) => logRepeated(log, 'error', { error }, message))
  let stopChores = async () => {}
  const startWork = () => {
    if (!stopping) stopChores = startChores({ store, usage, sessions, log, clock })
  }
  // Whoever runs this learns from `opened` that the store can't be opened.
  opened.then(startWork, () => {})

  function storeCall(method: string, seconds: number): void {
    metrics?.storeCall(method, seconds)
    if (seconds > SLOW_SECONDS) logRepeated(log, 'warn', { seconds }, `slow database call: ${method}`)
  }

  async function drain(seconds: number): Promise<void> {
    stopping = true
    await setTimeout(seconds * 1000)
  }

  function lastStep(step: Promise<unknown>, failure: string): Promise<unknown> {
    return withinTime(step, LAST_STEP_MS).catch((error) => log.error({ error }, failure))
  }

  async function stop(): Promise<void> {
    stopping = true
    // Chores that are running end before the store is closed.
    await Promise.all([finish(app), lastStep(stopChores(), 'old records were still being purged')])
    await cutOff(admin)
    await (await publicApp.promise).close()
    await lastStep(usage.stop(), 'the last usage counts and failed requests could not be written')
    await lastStep(store.close(), 'the store could not be closed in order')
  }

  return { url, ...reach, adminUrl: admin && addressOf(admin), accounts, store, opened, drain, stop }
}

/** Throws `CannotOpenStore` if the store can't be opened, now or later; also for a database of the other environment. */
function openForServing(config: Config, log: Log): Promise<Opening> {
  const report: Report = ({ level, message, details }) => log[level](details ?? {}, message)
  // Before it listens, the service may stand still while another process holds the lock of a SQLite file; later it may not.
  let lockWait: { lockWaitMs?: number } = {}
  return openOrWait(async () => {
    const options = { ...lockWait, report }
    lockWait = { lockWaitMs: 0 }
    const store = await openStore(config.database, options)
    try {
      await requireEnvironment(store, config)
    } catch (error) {
      await store.close()
      throw error
    }
    for (const warning of store.opened.warnings) log.warn(warning)
    return store
  }, report)
}

/** Loaded on demand: without an admin port its libraries are not needed. */
async function loadMetrics(): Promise<Metrics> {
  const { createMetrics } = await import('./http/metrics.ts')
  return createMetrics()
}

interface PublicApp {
  routing: RequestListener
  close(): Promise<unknown>
}

/** Loaded on demand too: the framework and the pages take longer to load than everything else together. */
async function loadPublicApp(parts: ConsoleParts, health: Health, send: Send, isStopping: () => boolean): Promise<PublicApp> {
  const [{ createConsole }, { createPublicApp }] = await Promise.all([import('./console/console.ts'), import('./http/public-app.ts')])
  const { plugin, notFound } = createConsole(parts)
  const { config, log } = parts
  const app = createPublicApp({ config, health, log, send, isStopping, notFoundPage: notFound })
  await app.register(plugin)
  await app.ready()
  return { routing: (raw, response) => app.routing(raw, response), close: () => app.close() }
}
