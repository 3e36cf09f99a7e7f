// The only wiring: settings become a store, the store an app, and the app listens, until it is told to stop.
import { lookup } from 'node:dns/promises'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { Accounts } from './accounts/accounts.ts'
import { Keyring } from './accounts/keyring.ts'
import { Sessions } from './accounts/sessions.ts'
import { Usage } from './accounts/usage.ts'
import type { Config } from './config.ts'
import { createConsole } from './console/console.ts'
import { createApp, type Timeouts } from './http/app.ts'
import type { Metrics } from './http/metrics.ts'
import type { Log } from './log.ts'
import { ONCE_KEPT_MS } from './store/once.ts'
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
  const answered = metrics && ((request: FastifyRequest, status: number) => metrics.answered(request, status))
  const pages = createConsole({ config, store, accounts, sessions, usage, clock, log, answered })
  const app = createApp({
    config,
    store,
    keyring,
    usage,
    clock,
    log,
    metrics,
    isStopping: () => stopping,
    notFoundPage: pages.notFound,
    ...(timeouts && { timeouts }),
  })
  app.register(pages.plugin)
  const admin = metrics && createAdmin(metrics)
  try {
    await listen(app, { host: config.host, port: config.port, setting: '' })
    if (admin !== undefined) await listen(admin, { host: config.adminHost, port: config.adminPort!, setting: 'admin-' })
  } catch (error) {
    await Promise.all([app.close(), admin?.close()])
    await store.close()
    throw error
  }
  usage.start((error) => log.error({ error }, 'usage counts could not be written; they are kept'))
  const chores = startChores({ store, usage, sessions, log, clock })

  async function stop(): Promise<void> {
    stopping = true
    clearInterval(chores)
    // Idle connections end now, busy ones with their answer; those that don't end by themselves are cut off.
    // An answer given before the stop does not end its connection, and the rest of its request may still be coming in.
    const sweep = setInterval(() => app.server.closeIdleConnections(), 50)
    const cut = setTimeout(() => app.server.closeAllConnections(), STOP_WITHIN_MS)
    await Promise.all([app.close(), admin?.close()])
    clearInterval(sweep)
    clearTimeout(cut)
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
      while ((await store.pets.purgeOnce(clock() - ONCE_KEPT_MS)) > 0);
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

function createAdmin(metrics: Metrics): FastifyInstance {
  const admin = fastify()
  admin.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.render()))
  return admin
}

async function listen(app: FastifyInstance, where: CannotListen['where']): Promise<void> {
  try {
    // A name such as localhost may have two addresses; for the second, Fastify would open a server without our handlers.
    const { address } = await lookup(where.host)
    await app.listen({ host: address, port: where.port })
  } catch (error) {
    throw new CannotListen(where, error)
  }
}

function addressOf(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
