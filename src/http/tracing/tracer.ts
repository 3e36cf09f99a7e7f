// Traces requests that are sampled: a span for the request, with the names of OpenTelemetry's HTTP conventions, and below it one for each
// call to the store. Loaded only if traces are exported.
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'
import { type Config, ownBaseUrl } from '../../config.ts'
import { BASE_PATH, VERSION } from '../../contract/operations.ts'
import type { Log } from '../../log.ts'
import type { Tracing } from '../../contract/tracing-settings.ts'
import type { Recorder } from '../answers/recorder.ts'
import { type Arrival, loggedRequest, parseTraceparent } from '../call/call.ts'
import { createClientAddress } from '../call/client-address.ts'
import { type Attributes, createSpanExporter } from './span-exporter.ts'

/** Kinds of spans in OTLP, and the status of one that failed. */
const KIND = { server: 2, client: 3 }
const FAILED = { code: 2 }

const SPAN_PATH_KEPT = 256

/** Ends once. Calls to the store that end later are no part of it. */
interface RequestSpan {
  /** Returns a function that ends the span of the call. */
  beginCall: (name: string) => () => void
  end: Recorder
}

/** The span of the current request; empty unless it is sampled. */
const current = new AsyncLocalStorage<RequestSpan | undefined>()

export type Tracer = ReturnType<typeof createTracer>

export function createTracer(config: Config, tracing: Tracing, log: Log) {
  const service = { 'service.name': 'petstore', 'service.version': VERSION, 'service.instance.id': randomUUID() }
  const resource = { ...service, 'deployment.environment.name': config.environment, ...tracing.resource }
  const exporter = createSpanExporter(tracing, resource, log)
  const isSampled = createSampler(tracing, config.trustProxy)
  const scheme = ownBaseUrl(config)?.startsWith('https:') ? 'https' : 'http'
  const database = config.database.engine === 'sqlite' ? 'sqlite' : 'postgresql'

  function begin({ request, response, at }: Arrival): RequestSpan {
    const parent = parseTraceparent(request.headers['traceparent'])
    const [traceId, spanId] = [parent?.traceId ?? newId(32), newId(16)]
    const epoch = Date.now() - performance.now()
    // As text: it has more digits than a number.
    const nanoseconds = (time: number) => `${Math.round((epoch + time) * 1000)}000`
    let isEnded = false

    function add(span: object, from: number, to: number, attributes: Attributes): void {
      const times = { startTimeUnixNano: nanoseconds(from), endTimeUnixNano: nanoseconds(to) }
      if (!isEnded) exporter.add({ traceId, ...span, ...times }, attributes)
    }

    const span: RequestSpan = {
      beginCall(name) {
        const from = performance.now()
        return () => {
          const own = { spanId: newId(16), parentSpanId: spanId, name, kind: KIND.client }
          add(own, from, performance.now(), { 'db.system.name': database })
        }
      },
      // Queries, headers and addresses of clients are left out.
      end({ id, operation, page }, status, refusal) {
        const { method, path } = loggedRequest(request)
        // A tool is called by POST /mcp, whatever its operation is.
        const route = page ?? (operation && BASE_PATH + operation.path)
        const name = route === undefined ? method : `${method} ${route}`
        const isFailed = status > 499
        const own = { spanId, parentSpanId: parent?.spanId, name, kind: KIND.server, status: isFailed ? FAILED : {} }
        add(own, at, performance.now(), {
          'url.scheme': scheme,
          'http.request.method': method,
          'http.route': route,
          'http.response.status_code': status,
          'url.path': path.slice(0, SPAN_PATH_KEPT),
          'error.type': isFailed ? (refusal?.code ?? String(status)) : undefined,
          'petstore.operation': operation?.id,
          'petstore.error.code': refusal?.code,
          'petstore.request.id': id || undefined,
        })
        isEnded = true
      },
    }
    // If its body breaks off, the request is answered outside its context (socket-errors.ts).
    const onClose = () => response.headersSent && span.end({ id: '' }, response.statusCode)
    if (!request.complete) response.once('close', onClose)
    return span
  }

  return {
    /** Serves a request, in the context of its span if it is sampled. */
    serve: (arrival: Arrival, serve: (arrival: Arrival) => unknown): unknown => {
      const span = isSampled(arrival.request) ? begin(arrival) : undefined
      // A turn may have begun in the context of an earlier request.
      if (span === undefined && current.getStore() === undefined) return serve(arrival)
      return current.run(span, serve, arrival)
    },
    answered: (...answer: Parameters<Recorder>) => current.getStore()?.end(...answer),
    /** Begins the span of a call to the store; returns undefined unless the current request is traced. */
    beginCall: (name: string) => current.getStore()?.beginCall(name),
    stop: exporter.stop,
  }
}

/** Returns random hexadecimal digits, at most 32. */
const newId = (digits: number) => randomUUID().replaceAll('-', '').slice(-digits)

/**
 * Creates a function that decides whether a request is traced. The flag of a traceparent counts only from a trusted caller, and so
 * does its trace id, whose last 64 bits the share is taken by, as in other SDKs: with either one, any client could force a trace. A
 * caller is trusted if its address, behind trusted proxies the one that they forward, is one of PETSTORE_TRUST_PROXY.
 */
function createSampler({ isParentBased, share }: Tracing, trustProxy: Config['trustProxy']) {
  if (trustProxy === false) return () => Math.random() < share
  const [clientAddress, isTrusted] = [createClientAddress(trustProxy), proxyAddr.compile(trustProxy)]
  return (request: IncomingMessage) => {
    const parent = parseTraceparent(request.headers['traceparent'])
    if (parent === undefined || !isTrusted(clientAddress(request), 0)) return Math.random() < share
    return isParentBased ? parent.isSampled : parseInt(parent.traceId.slice(16), 16) / 2 ** 64 < share
  }
}
