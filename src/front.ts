// The front: accepts connections and serves the operations. It runs in the process of the service, or once in each worker.
import type { RequestListener, Server } from 'node:http'
import { Keyring } from './accounts/keyring.ts'
import { Usage } from './accounts/usage.ts'
import { type Config, ownBaseUrl } from './config.ts'
import { createSend, type Send } from './http/answer.ts'
import { AnswerCache } from './http/answer-cache.ts'
import { createApp, type Timeouts } from './http/app.ts'
import type { Metrics } from './http/metrics.ts'
import type { Lease } from './http/rate-limit.ts'
import { createRecorder, type Recorder } from './http/record.ts'
import { type Log, logRepeated } from './log.ts'
import type { Observe, Store } from './store/store.ts'
import { lastStep } from './within-time.ts'

/** What both the front and the public app answer and record with. */
export interface Answering {
  usage: Usage
  record: Recorder
  send: Send
}

interface AnsweringParts {
  config: Config
  log: Log
  store: Store
  clock: () => number
  metrics: Metrics | undefined
  isStopping: () => boolean
}

export function createAnswering({ config, log, store, clock, metrics, isStopping }: AnsweringParts): Answering {
  const usage = new Usage(store, clock)
  usage.start((error, message) => logRepeated(log, 'error', { error }, message))
  const record = createRecorder({ log, usage, metrics, clock })
  return { usage, record, send: createSend({ record, baseUrl: ownBaseUrl(config), isStopping }) }
}

/** A call to the database that takes longer is logged. */
const SLOW_SECONDS = 1

/** Returns what observes the calls to the store. SQLite answers at once, so it is not observed unless there are metrics. */
export function storeObserver({ database }: Config, metrics: Metrics | undefined, log: Log): Observe | undefined {
  if (metrics === undefined && database.engine === 'sqlite') return undefined
  return (call, seconds) => {
    metrics?.storeCall(call, seconds)
    if (seconds > SLOW_SECONDS) logRepeated(log, 'warn', { seconds }, `slow database call: ${call}`)
  }
}

/** Loaded on demand: without an admin port its libraries are not needed. */
export async function loadMetrics({ adminPort }: Config): Promise<Metrics | undefined> {
  if (adminPort === undefined) return undefined
  const { createMetrics } = await import('./http/metrics.ts')
  return createMetrics()
}

/** The last of a process: writes what was counted, and closes the store. */
export async function closeStore(store: Store, usage: Usage, log: Log): Promise<void> {
  await lastStep(usage.stop(), 'the last usage counts and failed requests could not be written', log)
  await lastStep(store.close(), 'the store could not be closed in order', log)
}

export interface FrontParts extends Omit<AnsweringParts, 'isStopping'> {
  answering: Answering
  monotonic: () => number
  /** Takes the requests that are not for an operation. */
  elsewhere: RequestListener
  /** Where several processes share the rate limit. */
  lease?: Lease | undefined
  timeouts?: Timeouts | undefined
}

export interface Front {
  server: Server
  /** From now on each key is looked up again: one that was revoked is refused. */
  forgetKeys(): void
}

/** Whoever makes it listens and stops. With workers, each front has its share of the connections. */
export function createFront(parts: FrontParts): Front {
  const { log, store, clock, monotonic, metrics, elsewhere, lease, timeouts } = parts
  const { record, send } = parts.answering
  const { workers, maxConnections } = parts.config
  const config = { ...parts.config, maxConnections: Math.ceil(maxConnections / workers) }
  const cache = new AnswerCache(store)
  const keyring = new Keyring(store, config.environment, clock, monotonic)
  const server = createApp({
    config,
    store,
    cache,
    keyring,
    clock,
    monotonic,
    log,
    record,
    send,
    elsewhere,
    lease,
    timeouts,
  })
  metrics?.watchFront({ server, cache })
  return { server, forgetKeys: () => keyring.forgetAll() }
}
