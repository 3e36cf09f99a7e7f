// Prometheus metrics, served on the admin port. Without an admin port nothing is measured.
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
  /** Counts an answer. A request that the HTTP parser refused has no operation and no duration. */
  answered(operation: Operation | undefined, status: number, seconds: number | undefined, rehearsed?: boolean): void
  storeCall(method: string, seconds: number): void
  /** These three register metrics that are read at each scrape (gauges.ts). */
  watchFront(front: FrontGauged): void
  watchStore(store: StoreGauged): void
  watchInstance(readiness: Readiness): void
  /** Returns the metrics of this process, to be added to those of other processes. */
  snapshot(): Promise<Snapshot>
  /** Adds up the metrics of several processes. */
  sum(snapshots: readonly Snapshot[]): Promise<Snapshot>
  /** Returns the page that Prometheus reads, with the metrics of the other processes of the instance added. */
  render(others?: readonly Snapshot[]): Promise<string>
  contentType: string
}

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Counters of these start at zero, so that the first error is an increase: Prometheus sees none when a series begins at 1. */
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
