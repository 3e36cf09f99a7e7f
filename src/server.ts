// The only wiring: settings become a store, the store an app, and the app listens until it is told to stop.
import type { RequestListener, Server } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { Accounts } from './accounts/accounts.ts'
import { Sessions } from './accounts/sessions.ts'
import { startChores } from './chores.ts'
import type { Config } from './config.ts'
import type { ConsoleParts } from './console/visit.ts'
import { createAnswering, createFront, createObserver, type Front, type FrontParts } from './front.ts'
import { createAdmin } from './http/admin.ts'
import type { Send } from './http/answer.ts'
import type { Timeouts } from './http/app.ts'
import { createHealth, type Health } from './http/health.ts'
import type { Metrics } from './http/metrics.ts'
import { createReadiness } from './http/readiness.ts'
import { type Reach, reachOf } from './home.ts'
import { addressOf, cutOff, type InheritedSocket, listen, urlOf } from './listening.ts'
import type { Log } from './log.ts'
import { openForServing } from './opening.ts'
import type { Store } from './store/store.ts'
import { timedStore } from './store/timed-store.ts'
import { lastStep } from './within-time.ts'

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
  const { clock = Date.now, monotonic = () => performance.now() } = world
  const metrics = config.adminPort === undefined ? undefined : await loadMetrics()
  const { store: plain, opened } = await openForServing(config, log)
  const store = metrics === undefined && config.database.engine === 'sqlite' ? plain : timedStore(plain, createObserver(metrics, log))
  let stopping = false
  const isStopping = () => stopping
  const readiness = createReadiness(store, isStopping)
  metrics?.watchStore(store)
  metrics?.watchInstance(readiness)

  const answering = createAnswering({ config, log, store, clock, metrics, isStopping })
  const { usage, record, send } = answering
  const sessions = new Sessions(store.accounts, clock)
  const publicApp = Promise.withResolvers<PublicApp>()
  const elsewhere: RequestListener = (raw, response) => void publicApp.promise.then(({ routing }) => routing(raw, response))
  const frontParts = { config, log, store, clock, monotonic, metrics, answering, elsewhere }
  const health = createHealth(readiness)
  let front!: Front
  let admin: Server | undefined
  try {
    front = config.workers === 1 ? await openFront(frontParts, world) : await openWorkers(frontParts, world)
    if (metrics !== undefined) {
      admin = createAdmin({ metricsPage: async () => metrics.render(await front.snapshots()), contentType: metrics.contentType, health, send })
      await listen(admin, { host: config.adminHost, port: config.adminPort!, setting: 'admin-' })
    }
  } catch (error) {
    await Promise.all([front?.finish(), cutOff(admin)])
    await store.close()
    throw error
  }
  const { address, broken } = front
  const accounts = new Accounts({ store: store.accounts, environment: config.environment, clock, onRevoked: () => front.forgetKeys() })
  // Requests that are not for an operation wait for this; the operations are served meanwhile.
  const url = urlOf(address)
  const reach = reachOf(config, address)
  const consoleParts = { config, ...reach, url, store, accounts, sessions, flushUsage: () => front.flushUsage(), clock, monotonic, log, record }
  setImmediate(() => publicApp.resolve(loadPublicApp(consoleParts, health, send, isStopping)))
  let stopChores = async () => {}
  const startWork = () => {
    if (!stopping) stopChores = startChores({ store, usage, sessions, log, clock })
  }
  // Whoever runs this learns from `opened` that the store can't be opened.
  opened.then(startWork, () => {})

  async function drain(seconds: number): Promise<void> {
    stopping = true
    front.drain()
    await setTimeout(seconds * 1000)
  }

  async function stop(): Promise<void> {
    stopping = true
    // Chores that are running end before the store is closed.
    await Promise.all([front.finish(), lastStep(stopChores(), 'old records were still being purged', log)])
    await cutOff(admin)
    await (await publicApp.promise).close()
    await lastStep(usage.stop(), 'the last usage counts and failed requests could not be written', log)
    await lastStep(store.close(), 'the store could not be closed in order', log)
  }

  return { url, ...reach, adminUrl: admin && addressOf(admin), accounts, store, opened, broken, drain, stop }
}

async function openFront(parts: FrontParts, { socket, timeouts }: World): Promise<Front> {
  const front = createFront({ ...parts, timeouts })
  const { host, port } = parts.config
  try {
    await listen(front.server, socket ?? { host, port, setting: '' })
    return front
  } catch (error) {
    await cutOff(front.server)
    throw error
  }
}

/** Loaded on demand: most instances are one process. */
async function openWorkers(parts: FrontParts, { socket, timeouts }: World): Promise<Front> {
  const { startWorkers } = await import('./workers/primary.ts')
  return startWorkers(parts, socket, timeouts)
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
