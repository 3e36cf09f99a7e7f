// Prometheus metrics, for the admin port. Without that port nothing is measured.
import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client'
import type { Operation } from '../contract/operation.ts'

export interface Metrics {
  /** A request that the HTTP parser refused belongs to no operation and took no measurable time. */
  answered(operation: Operation | undefined, status: number, seconds: number | undefined, rehearsed?: boolean): void
  storeCall(method: string, seconds: number): void
  render(): Promise<string>
  contentType: string
}

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

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
    help: 'Time from a request to its answer, by operation',
    labelNames: ['operation'],
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
  return {
    answered(operation, status, seconds, rehearsed = false) {
      const name = operation?.id ?? 'none'
      requests.inc({ operation: name, status, ...(rehearsed && { rehearsed: 'yes' }) })
      if (seconds !== undefined) latency.observe({ operation: name }, seconds)
      if (operation?.deprecation !== undefined) deprecated.inc({ operation: name })
    },
    storeCall(method, seconds) {
      store.observe({ method }, seconds)
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  }
}
