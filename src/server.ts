// The only wiring: settings become a store, the store an app, and the app listens until it is told to stop.
import type { RequestListener } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { Accounts } from './accounts/accounts.ts'
import { Sessions } from './accounts/sessions.ts'
import { startChores } from './chores.ts'
import type { Config } from './config.ts'
import type { ConsoleParts } from './console/visit.ts'
import {
  closeStore,
  createAnswering,
  createFront,
  type Front,
  type FrontParts,
  loadMetrics,
  storeObserver,
} from './front.ts'
import type { Send } from './http/answer.ts'
import type { Timeouts } from './http/app.ts'
import { createAdmin, createHealth, type Health } from './http/health.ts'
import { createRateWindow } from './http/rate-limit.ts'
import { createReadiness } from './http/readiness.ts'
import { type Reach, reachOf } from './home.ts'
import { addressOf, cutOff, finish, type InheritedSocket, listen } from './listening.ts'
import type { Log } from './log.ts'
import { openForServing } from './store/opening-store.ts'
import type { Store } from './store/store.ts'
import { lastStep } from './within-time.ts'
import type { Workers } from './workers/primary.ts'

export interface Running extends Reach {
  /** Where it really listens, such as http://127.0.0.1:8080. */
  url: string
  adminUrl: string | undefined
  accounts: Accounts
  store: Store
  /** Resolves when the store is open; rejects with `CannotOpenStore` if that turns out to be impossible. */
  opened: Promise<void>
  /** Rejects if the service can't go on, with a message for the operator; never resolves. */
  broken: Promise<never>
  /** Is not ready from now on, and serves everything for this long; each answer is the last of its connection. */
  drain(seconds: number): Promise<void>
  /** Finishes running requests, writes the last usage counts, closes the store; takes at most 10 seconds. */
  stop(): Promise<void>
}

/** What surrounds the service, and what a test may replace. */
export interface World {
  /** Instead of an address to listen on. */
  socket?: InheritedSocket | undefined
  /** The time of day, for dates. Workers have their own clocks. */
  clock?: () => number
  /** Milliseconds that only ever grow, for ages and windows: the time of day can be set back. */
  monotonic?: () => number
  timeouts?: Timeouts | undefined
}

export async function startServer(config: Config, log: Log, world: World = {}): Promise<Running> {
  const { socket, clock = Date.now, monotonic = () => performance.now(), timeouts } = world
  const metrics = await loadMetrics(config)
  const broken = Promise.withResolvers<never>()
  // The command that serves waits for it; a test may not.
  broken.promise.catch(() => {})
  const observe = storeObserver(config, metrics, log)
  const { store, opened } = await openForServing(config, log, { observe, onBroken: broken.reject })
  let stopping = false
  const isStopping = () => stopping
  const readiness = createReadiness(store, isStopping)
  metrics?.watchStore(store)
  metrics?.watchInstance(readiness)

  const answering = createAnswering({ config, log, store, clock, metrics, isStopping })
  const { usage, send } = answering
  const sessions = new Sessions(store, clock)
  const pages = Promise.withResolvers<RequestListener>()
  const elsewhere: RequestListener = (raw, response) => void pages.promise.then((serve) => serve(raw, response))
  const lease =
    config.workers > 1 && config.rateLimit !== undefined ? createRateWindow(config.rateLimit, monotonic) : undefined
  const frontParts = { config, log, store, clock, monotonic, metrics, answering, elsewhere, lease, timeouts }
  const front = createFront(frontParts)
  const health = createHealth(readiness)
  const metricsPage = async () => metrics!.render(await workers?.snapshots())
  const admin = metrics && createAdmin({ metricsPage, contentType: metrics.contentType, health, send })
  let workers: Workers | undefined
  try {
    await listen(front.server, socket ?? { host: config.host, port: config.port, setting: '' })
    if (admin !== undefined) await listen(admin, { host: config.adminHost, port: config.adminPort!, setting: 'admin-' })
    if (config.workers > 1) workers = await loadWorkers(frontParts, front)
    workers?.broken.catch(broken.reject)
  } catch (error) {
    await Promise.all([cutOff(front.server), cutOff(admin)])
    await store.close()
    throw error
  }
  const accounts = new Accounts({
    store,
    environment: config.environment,
    clock,
    onRevoked: forgetKeys,
  })
  // Requests that are not for an operation wait for this; the operations are served meanwhile.
  const url = addressOf(front.server)
  const reach = reachOf(config, front.server.address())
  const consoleParts = { config, ...reach, url, store, accounts, sessions, flushUsage, clock, monotonic, log }
  setImmediate(() => pages.resolve(loadPages(consoleParts, health, send)))
  let stopChores = async () => {}
  const startWork = () => {
    if (!stopping) stopChores = startChores({ store, usage, sessions, log, clock })
  }
  // Whoever runs this learns from `opened` that the store can't be opened.
  opened.then(startWork, () => {})

  async function forgetKeys(): Promise<void> {
    front.forgetKeys()
    await workers?.forgetKeys()
  }

  async function flushUsage(): Promise<void> {
    await Promise.all([usage.flush(), workers?.flushUsage()])
  }

  async function drain(seconds: number): Promise<void> {
    stopping = true
    workers?.drain()
    await setTimeout(seconds * 1000)
  }

  async function stop(): Promise<void> {
    stopping = true
    // Chores that are running end before the store is closed, and workers while it can still be written to.
    await Promise.all([
      finish(front.server),
      workers?.stop(),
      lastStep(stopChores(), 'old records were still being purged', log),
    ])
    await cutOff(admin)
    await closeStore(store, usage, log)
  }

  return {
    url,
    ...reach,
    adminUrl: admin && addressOf(admin),
    accounts,
    store,
    opened,
    broken: broken.promise,
    drain,
    stop,
  }
}

/** Loaded on demand: most instances are one process. */
async function loadWorkers(parts: FrontParts, front: Front): Promise<Workers> {
  const { startWorkers } = await import('./workers/primary.ts')
  return startWorkers(parts, front)
}

/** Loaded on demand too: the pages take longer to load than everything else together. */
async function loadPages(parts: ConsoleParts, health: Health, send: Send): Promise<RequestListener> {
  const [{ createConsole }, { createPages }] = await Promise.all([
    import('./console/console.ts'),
    import('./http/pages.ts'),
  ])
  return createPages(parts.config, health, createConsole(parts), send, parts.log)
}
