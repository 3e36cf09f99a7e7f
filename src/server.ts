// The only wiring: settings become a store, the store an app, and the app listens, until it is told to stop.
import { once } from 'node:events'
import type { RequestListener, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Accounts } from './accounts/accounts.ts'
import { Keyring } from './accounts/keyring.ts'
import { Sessions } from './accounts/sessions.ts'
import { Usage } from './accounts/usage.ts'
import { type Config, ownBaseUrl } from './config.ts'
import type { ConsoleParts } from './console/visit.ts'
import { createAdmin } from './http/admin.ts'
import { createSend } from './http/answer.ts'
import { createApp, type Timeouts } from './http/app.ts'
import type { Send } from './http/call.ts'
import type { Metrics } from './http/metrics.ts'
import type { Log } from './log.ts'
import { IDEMPOTENCY_KEPT_MS } from './store/idempotency.ts'
import { openStore } from './store/open-store.ts'
import type { Store } from './store/store.ts'
import { timedStore } from './store/timed-store.ts'

/** What runs may take this long to finish; then it is cut off. With the last writes a stop stays under 10 seconds. */
const STOP_WITHIN_MS = 6000
const PURGE_EVERY_MS = 600_000

export interface Running {
  /** Where it really listens, such as http://127.0.0.1:8080. */
  url: string
  adminUrl: string | undefined
  accounts: Accounts
  store: Store
  /** Finishes what runs, writes what is counted, closes the store. */
  stop(): Promise<void>
}

/** It can't listen there; `setting` begins the names of the settings that say where. */
export class CannotListen extends Error {
  override name = 'CannotListen'
  readonly where: { host: string; port: number; setting: '' | 'admin-' }
  constructor(where: CannotListen['where'], cause: unknown) {
    super(`cannot listen on ${where.host} port ${where.port}`, { cause })
    this.where = where
  }
}

/** The world that a test may replace. */
export interface World {
  clock?: () => number
  timeouts?: Timeouts | undefined
}

export async function startServer(config: Config, log: Log, { clock = Date.now, timeouts }: World = {}): Promise<Running> {
  const metrics = config.adminPort === undefined ? undefined : await loadMetrics()
  const opened = await openStore(config.database)
  const store = metrics === undefined ? opened : timedStore(opened, (method, seconds) => metrics.storeCall(method, seconds))
  let stopping = false

  const keyring = new Keyring(store.accounts, config.environment, clock)
  const accounts = new Accounts({
    store: store.accounts,
    environment: config.environment,
    clock,
    onRevoked: () => keyring.forgetAll(),
  })
  const sessions = new Sessions(store.accounts, clock)
  const usage = new Usage(store.accounts, clock)
  const isStopping = () => stopping
  const send = createSend({ log, usage, metrics, baseUrl: ownBaseUrl(config), clock, isStopping })
  const publicApp = Promise.withResolvers<PublicApp>()
  const app = createApp({
    config,
    store,
    keyring,
    clock,
    log,
    metrics,
    send,
    elsewhere: (raw, response) => void publicApp.promise.then(({ routing }) => routing(raw, response)),
    timeouts,
  })
  const admin = metrics && createAdmin(metrics)
  try {
    await listen(app, { host: config.host, port: config.port, setting: '' })
    if (admin !== undefined) await listen(admin, { host: config.adminHost, port: config.adminPort!, setting: 'admin-' })
  } catch (error) {
    await Promise.all([cutOff(app), cutOff(admin)])
    await store.close()
    throw error
  }
  // What is not for an operation waits for this; the operations go on in between.
  const answered = metrics && metrics.answered.bind(metrics)
  const visits = { config, store, accounts, sessions, usage, clock, log, answered }
  setImmediate(() => publicApp.resolve(loadPublicApp(visits, send, isStopping)))
  usage.start((error) => log.error({ error }, 'usage counts could not be written; they are kept'))
  const chores = startChores({ store, usage, sessions, log, clock })

  async function stop(): Promise<void> {
    stopping = true
    clearInterval(chores)
    // Idle connections end now, busy ones with their answer; those that don't end by themselves are cut off.
    // An answer given before the stop does not end its connection, and the rest of its request may still be coming in.
    const sweep = setInterval(() => app.closeIdleConnections(), 50)
    const cut = setTimeout(() => app.closeAllConnections(), STOP_WITHIN_MS)
    await Promise.all([close(app), cutOff(admin)])
    clearInterval(sweep)
    clearTimeout(cut)
    await (await publicApp.promise).close()
    await usage.stop().catch((error) => log.error({ error }, 'the last usage counts could not be written'))
    await store.close()
  }

  return { url: addressOf(app), adminUrl: admin && addressOf(admin), accounts, store, stop }
}

interface ChoreParts {
  store: Store
  usage: Usage
  sessions: Sessions
  log: Log
  clock: () => number
}

/** Forgets what is past its time: at the start, then every ten minutes. */
function startChores({ store, usage, sessions, log, clock }: ChoreParts): NodeJS.Timeout {
  const purge = async () => {
    try {
      while ((await store.pets.purgeIdempotencyRecords(clock() - IDEMPOTENCY_KEPT_MS)) > 0);
      await usage.purge()
      await sessions.purge()
    } catch (error) {
      log.error({ error }, 'old records could not be purged; tried again later')
    }
  }
  void purge()
  return setInterval(() => void purge(), PURGE_EVERY_MS).unref()
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

/** Loaded on demand too: the framework and the pages take longer to load than all else together. */
async function loadPublicApp(parts: ConsoleParts, send: Send, isStopping: () => boolean): Promise<PublicApp> {
  const [{ createConsole }, { createPublicApp }] = await Promise.all([import('./console/console.ts'), import('./http/public-app.ts')])
  const { plugin, notFound } = createConsole(parts)
  const { config, store, log } = parts
  const app = createPublicApp({ config, store, log, send, isStopping, notFoundPage: notFound })
  await app.register(plugin)
  await app.ready()
  return { routing: (raw, response) => app.routing(raw, response), close: () => app.close() }
}

async function listen(server: Server, where: CannotListen['where']): Promise<void> {
  try {
    server.listen({ host: where.host, port: where.port })
    await once(server, 'listening')
  } catch (error) {
    throw new CannotListen(where, error)
  }
}

/** Resolves when the last connection has ended; also for a server that never listened. */
function close(server: Server | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (server === undefined) resolve()
    else server.close(() => resolve())
  })
}

/** Without waiting for what runs. */
function cutOff(server: Server | undefined): Promise<void> {
  const closed = close(server)
  server?.closeAllConnections()
  return closed
}

function addressOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
