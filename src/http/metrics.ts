// Prometheus metrics, served on the admin port. Without an admin port nothing is measured.
import type { Server } from 'node:http'
import {
  AggregatorRegistry,
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  type Metric,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client'
import { type Operation, OPERATIONS, VERSION } from '../contract/operations.ts'
import type { Store } from '../store/store.ts'
import { dueResponse } from './connections/request-order.ts'
import { openConnections } from './connections/stalled-readers.ts'

/** The metrics of one process. */
export type Snapshot = MetricObjectWithValues<MetricValue<string>>[]

export type Metrics = ReturnType<typeof createMetrics>

type Cache = { lookups: { hits: number; misses: number } }
type Readiness = () => Promise<string | undefined>

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** The counters of these statuses start at 0: Prometheus sees no increase, and so no error, if a series begins at 1. */
const SERVER_ERRORS = [500, 503]

const LOG_HELP = 'Log lines that were dropped because their reader was too slow, or had stopped'

export function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: 'petstore_requests_total',
    help: 'Answered requests, by operation and status; rehearsed failures of staging are labelled',
    labelNames: ['operation', 'status', 'rehearsed'],
    registers,
  })
  const latency = new Histogram({
    name: 'petstore_request_duration_seconds',
    help: 'Time from a request to its answer, by operation and class of status',
    labelNames: ['operation', 'class'],
    buckets: SECONDS,
    registers,
  })
  const deprecated = new Counter({
    name: 'petstore_deprecated_requests_total',
    help: 'Requests to deprecated operations',
    labelNames: ['operation'],
    registers,
  })
  const storeCalls = new Histogram({
    name: 'petstore_store_duration_seconds',
    help: 'Time of a call to the store, by method',
    labelNames: ['method'],
    buckets: SECONDS,
    registers,
  })
  for (const { id } of OPERATIONS) for (const status of SERVER_ERRORS) requests.inc({ operation: id, status }, 0)

  const watch = (metrics: readonly Metric[]) => metrics.forEach((metric) => registry.registerMetric(metric))
  return {
    contentType: registry.contentType,
    /** Counts an answer. A request that the HTTP parser refused has no operation and no duration. */
    answered(operation: Operation | undefined, status: number, seconds: number | undefined, rehearsed = false): void {
      const name = operation?.id ?? 'none'
      requests.inc({ operation: name, status, ...(rehearsed && { rehearsed: 'yes' }) })
      if (seconds !== undefined) latency.observe({ operation: name, class: `${Math.floor(status / 100)}xx` }, seconds)
      if (operation?.deprecation !== undefined) deprecated.inc({ operation: name })
    },
    storeCall(method: string, seconds: number): void {
      storeCalls.observe({ method }, seconds)
    },
    watchServer: (server: Server, cache: Cache) => watch(serverMetrics(server, cache)),
    watchStore: (store: Store) => watch(storeMetrics(store)),
    watchLog: (dropped: () => number) => watch([total('petstore_log_lines_dropped_total', LOG_HELP, dropped)]),
    watchInstance: (readiness: Readiness) => watch(instanceMetrics(readiness)),
    /** Returns the metrics of this process, to be added to those of other processes. */
    snapshot: (): Promise<Snapshot> => registry.getMetricsAsJSON(),
    sum: (snapshots: Snapshot[]): Promise<Snapshot> => AggregatorRegistry.aggregate(snapshots).getMetricsAsJSON(),
    /** Returns the page that Prometheus reads, with the metrics of the other processes of the instance added. */
    async render(others: Snapshot[] = []): Promise<string> {
      if (others.length === 0) return registry.metrics()
      return AggregatorRegistry.aggregate([await registry.getMetricsAsJSON(), ...others]).metrics()
    },
  }
}

// The metrics below read their values at each scrape.

function serverMetrics(server: Server, { lookups }: Cache): Metric[] {
  const open = openConnections(server)
  const inFlight = () => [...open].filter((socket) => dueResponse(socket)).length
  const found = () => ({ hit: lookups.hits, miss: lookups.misses })
  return [
    gauge('petstore_connections', 'Open connections of clients', () => open.size),
    gauge(
      'petstore_connections_limit',
      'How many there may be: --max-connections of each process',
      () => server.maxConnections,
    ),
    gauge('petstore_requests_in_flight', 'Requests that are not answered yet', inFlight),
    total('petstore_cache_lookups_total', 'Reads by whether their answer was in the cache', found, 'result'),
  ]
}

function storeMetrics(store: Store): Metric[] {
  const stateHelp = 'Connections to the database: in use, idle, or parked until an overdue write is answered'
  const states = () => {
    const { inUse = 0, idle = 0, parked = 0 } = store.connections() ?? {}
    return { in_use: inUse, idle, parked }
  }
  const waiting = () => store.connections()?.waiting ?? 0
  const database = new Gauge<string>({
    name: 'petstore_database_info',
    help: 'The database servers that connections lead to; server is when each was started, in microseconds since 1970',
    labelNames: ['host', 'role', 'server', 'timeline'],
    registers: [],
    // The processes of an instance usually use the same one.
    aggregator: 'max',
    collect() {
      this.reset()
      for (const { host, role, startedAt, timeline = '' } of store.connections()?.servers ?? [])
        this.set({ host, role, server: startedAt, timeline }, 1)
    },
  })
  return [
    total('petstore_commits_total', 'Commits that writes can share', () => store.commits().commits),
    total('petstore_committed_writes_total', 'Writes in these commits', () => store.commits().writes),
    gauge('petstore_database_connections', stateHelp, states, 'state'),
    gauge('petstore_database_calls_waiting', 'Calls that wait for a connection to the database', waiting),
    database,
  ]
}

/** Returns the metrics of the instance as a whole, which only its first process has. */
function instanceMetrics(readiness: Readiness): Metric[] {
  const isReady = async () => ((await readiness()) === undefined ? 1 : 0)
  return [
    gauge('petstore_ready', 'Whether /readyz answers 200', isReady),
    gauge('petstore_build_info', 'The version that runs', () => ({ [VERSION]: 1 }), 'version'),
  ]
}

/** A number, or with a label a number for each of its values. */
type Sampled = number | Record<string, number>

function gauge(name: string, help: string, read: () => Sampled | Promise<Sampled>, label?: string): Metric {
  return new Gauge<string>({
    ...namesOf(name, help, label),
    async collect() {
      for (const [labels, value] of samplesOf(await read(), label)) this.set(labels, value)
    },
  })
}

function total(name: string, help: string, read: () => Sampled, label?: string): Metric {
  return new Counter<string>({
    ...namesOf(name, help, label),
    collect() {
      this.reset()
      for (const [labels, value] of samplesOf(read(), label)) this.inc(labels, value)
    },
  })
}

function namesOf(name: string, help: string, label: string | undefined) {
  return { name, help, labelNames: label === undefined ? [] : [label], registers: [] }
}

function samplesOf(sampled: Sampled, label = ''): [labels: Record<string, string>, value: number][] {
  if (typeof sampled === 'number') return [[{}, sampled]]
  return Object.entries(sampled).map(([labelValue, value]) => [{ [label]: labelValue }, value])
}
