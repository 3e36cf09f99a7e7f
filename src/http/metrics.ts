// Prometheus metrics, for the admin port. Without that port nothing is measured.
import {
  AggregatorRegistry,
  collectDefaultMetrics,
  Counter,
  Histogram,
  type Metric,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client'
import { type Operation, OPERATIONS } from '../contract/operations.ts'
import { type FrontGauged, frontGauges, instanceGauges, type StoreGauged, storeGauges } from './gauges.ts'
import type { Readiness } from './readiness.ts'

/** The metrics of one process. */
export type Snapshot = MetricObjectWithValues<MetricValue<string>>[]

export interface Metrics {
  /** A request that the HTTP parser refused belongs to no operation and took no measurable time. */
  answered(operation: Operation | undefined, status: number, seconds: number | undefined, rehearsed?: boolean): void
  storeCall(method: string, seconds: number): void
  /** Add what is read off these at each scrape. */
  watchFront(front: FrontGauged): void
  watchStore(store: StoreGauged): void
  watchInstance(readiness: Readiness): void
  /** What was measured so far, to be added up with that of other processes. */
  snapshot(): Promise<Snapshot>
  /** Adds up what several processes have measured. */
  sum(snapshots: readonly Snapshot[]): Promise<Snapshot>
  /** The page that Prometheus reads, with what these other processes of the instance have measured. */
  render(others?: readonly Snapshot[]): Promise<string>
  contentType: string
}

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Server errors are counted from zero, so that the first one is an increase: Prometheus sees none in a series that begins. */
const SERVER_ERRORS = [500, 503]

export function createMetrics(): Metrics {
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
  const store = new Histogram({
    name: 'petstore_store_duration_seconds',
    help: 'Time of a call to the store, by method',
    labelNames: ['method'],
    buckets: SECONDS,
    registers,
  })
  for (const { id } of OPERATIONS) for (const status of SERVER_ERRORS) requests.inc({ operation: id, status }, 0)
  const watch = (gauges: readonly Metric[]) => gauges.forEach((gauge) => registry.registerMetric(gauge))
  return {
    answered(operation, status, seconds, rehearsed = false) {
      const name = operation?.id ?? 'none'
      requests.inc({ operation: name, status, ...(rehearsed && { rehearsed: 'yes' }) })
      if (seconds !== undefined) latency.observe({ operation: name, class: `${Math.floor(status / 100)}xx` }, seconds)
      if (operation?.deprecation !== undefined) deprecated.inc({ operation: name })
    },
    storeCall(method, seconds) {
      store.observe({ method }, seconds)
    },
    watchFront: (front) => watch(frontGauges(front)),
    watchStore: (gauged) => watch(storeGauges(gauged)),
    watchInstance: (readiness) => watch(instanceGauges(readiness)),
    snapshot: () => registry.getMetricsAsJSON(),
    sum: (snapshots) => AggregatorRegistry.aggregate([...snapshots]).getMetricsAsJSON(),
    async render(others = []) {
      if (others.length === 0) return registry.metrics()
      return AggregatorRegistry.aggregate([await registry.getMetricsAsJSON(), ...others]).metrics()
    },
    contentType: registry.contentType,
  }
}
