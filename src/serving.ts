// Starts what every process of an instance runs: a store, and an HTTP server with the operations, the health checks and the console.
import { Accounts } from './accounts/accounts.ts'
import { Keyring } from './accounts/api-keys.ts'
import { hashSingly } from './accounts/passwords.ts'
import { Sessions } from './accounts/sessions.ts'
import { createThrottles } from './accounts/throttle.ts'
import { Usage } from './accounts/usage.ts'
import { type Config, environmentSetting, ownBaseUrl } from './config.ts'
import type { ConsoleParts } from './console/every-page/visit.ts'
import { createRecorder } from './http/answers/recorder.ts'
import { createResponder } from './http/answers/responder.ts'
import { createSend } from './http/answers/send.ts'
import { AnswerCache } from './http/answers/answer-cache.ts'
import { createApp, type Operations, type Timeouts } from './http/app.ts'
import type { Arrival } from './http/call/call.ts'
import type { Metrics } from './http/metrics.ts'
import type { createPages } from './http/pages.ts'
import type { Tracer } from './http/tracing/tracer.ts'
import { reachOf } from './http/reach.ts'
import { addressOf, listen, type Where } from './http/connections/listening.ts'
import { createHealth, createReadiness, type Health, type Lifecycle } from './http/lifecycle.ts'
import { droppedLines, type Log, logRepeated } from './log.ts'
import { openForServing } from './store/opening/open-for-serving.ts'
import type { Observe, Report } from './store/store.ts'
import type { OnBroadcast, SendBroadcast } from './workers/channel.ts'

interface ServingParts {
  config: Config
  log: Log
  lifecycle: Lifecycle
  broadcast: SendBroadcast
  where: Where
  clock: () => number
  monotonic: () => number
  timeouts: Timeouts | undefined
  /** Called if this process cannot continue with its store; the whole instance then ends. */
  onBroken: (error: Error) => void
  /** In a worker, asks whether the first process has opened its store. */
  isStoreOpen?: () => Promise<boolean>
  /** In a worker, whether the first process hangs. */
  isFirstProcessHung?: () => boolean
}

export type Serving = Awaited<ReturnType<typeof startServing>>

/** Resolves when the server accepts connections, which may be before the store is open. */
export async function startServing(parts: ServingParts) {
  const { config, log, lifecycle, broadcast, where, clock, monotonic, onBroken, isStoreOpen } = parts
  if (config.workers > 1) hashSingly()
  const metrics = await loadMetrics(config)
  const tracer = await loadTracer(config, log)
  const observe = storeObserver(metrics, tracer)
  const { database, workers: processes } = config
  const report: Report = ({ level, message, details }) => log[level](details ?? {}, message)
  const opening = { ...environmentSetting(config), processes, report, observe, onBroken, isStoreOpen }
  const { store, opened } = await openForServing(database, opening)
  opened.catch(onBroken)
  metrics?.watchStore(store)
  metrics?.watchLog(() => droppedLines(log))
  const readiness = createReadiness(store, lifecycle, parts.isFirstProcessHung)
  const health = createHealth(readiness)

  const usage = new Usage(store, clock)
  usage.start((error, message) => logRepeated(log, 'error', { error }, message))
  const record = createRecorder(log, usage, metrics, clock, tracer?.answered)
  const responder = createResponder(createSend(record, ownBaseUrl(config), lifecycle), log)
  const cache = new AnswerCache(store)
  const keyring = new Keyring(store, config.environment, clock, monotonic)
  const pages = Promise.withResolvers<ServePage>()
  const servePage = (arrival: Arrival) => pages.promise.then((serve) => serve(arrival))
  const used = { store, cache, keyring, record, responder, servePage, tracer }
  const { server, operations } = createApp({ ...parts, ...used })
  metrics?.watchServer(server, cache)

  const onBroadcast: OnBroadcast = {
    forgetKeys: () => keyring.forgetAll(),
    flushUsage: () => usage.flush(),
    giveUpStore: () => store.giveUp(),
  }
  const onRevoked = async () => {
    keyring.forgetAll()
    await broadcast('forgetKeys')
  }
  const flushUsage = async () => {
    await Promise.all([usage.flush(), broadcast('flushUsage')])
  }
  const accounts = new Accounts({ store, environment: config.environment, clock, onRevoked })
  const sessions = new Sessions(store, clock, config.sessionMinutes * 60_000)

  try {
    await listen(server, where)
  } catch (error) {
    await lifecycle.abandon({ server, store })
    throw error
  }
  const [url, reach] = [addressOf(server), reachOf(config, server.address())]
  const throttles = createThrottles(monotonic, config.workers)
  const consoleParts = { config, ...reach, url, store, accounts, sessions, flushUsage, throttles, clock, log }
  // Requests for pages wait until the pages are loaded; operations are served meanwhile.
  setImmediate(() => pages.resolve(loadPages(consoleParts, health, operations)))

  return {
    /** With the actual port, such as http://127.0.0.1:8080. */
    url,
    reach,
    server,
    store,
    accounts,
    sessions,
    usage,
    metrics,
    tracer,
    readiness,
    health,
    responder,
    report,
    /** Resolves when the store is open; rejects with `CannotOpenStore` if that turns out to be impossible. */
    opened,
    onBroadcast,
  }
}

/** Returns the observer of calls to the store, if there are metrics or traces. */
function storeObserver(metrics: Metrics | undefined, tracer: Tracer | undefined): Observe | undefined {
  if (metrics === undefined) return tracer?.beginCall
  return (call) => {
    const endSpan = tracer?.beginCall(call)
    const began = performance.now()
    return () => {
      endSpan?.()
      metrics.storeCall(call, (performance.now() - began) / 1000)
    }
  }
}

/** Imports the metrics library only if there is an admin port to read the metrics. */
async function loadMetrics({ adminPort }: Config): Promise<Metrics | undefined> {
  if (adminPort === undefined) return undefined
  const { createMetrics } = await import('./http/metrics.ts')
  return createMetrics()
}

/** Imports what makes and exports traces only if there is a collector. */
async function loadTracer(config: Config, log: Log): Promise<Tracer | undefined> {
  if (config.tracing === undefined) return undefined
  const { createTracer } = await import('./http/tracing/tracer.ts')
  return createTracer(config, config.tracing, log)
}

type ServePage = ReturnType<typeof createPages>

/** Imports the pages after the server listens: they take longer to load than all other modules together. */
async function loadPages(parts: ConsoleParts, health: Health, operations: Operations): Promise<ServePage> {
  const [{ createConsole }, { createPages }] = await Promise.all([
    import('./console/console.ts'),
    import('./http/pages.ts'),
  ])
  return createPages(parts.config, health, createConsole(parts), operations)
}
