// The HTTP server, and the path of a request for an operation: route, checks, handler, answer. All other requests go to the pages.
import type { IncomingMessage, Server } from 'node:http'
import type { Keyring } from '../accounts/api-keys.ts'
import { type Config, ownBaseUrl } from '../config.ts'
import { ALLOWED } from '../contract/environments.ts'
import type { Refusal } from '../contract/errors.ts'
import { HEADERS_LIMIT } from '../contract/limits.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import type { Recorder } from './answers/recorder.ts'
import type { Responder } from './answers/responder.ts'
import { type AnswerCache, answerOrNotModified, type CachedAnswer } from './answers/answer-cache.ts'
import { createAuthenticate } from './operations/authenticate.ts'
import { checkBodyHeaders } from './body.ts'
import { checkFraming } from './call/framing.ts'
import { createClientAddress } from './call/client-address.ts'
import { type Arrival, type Call, OperationCall, type Result, type Step } from './call/call.ts'
import { tendConnections } from './connections/client-connections.ts'
import { createHandlers } from './operations/handlers.ts'
import { createServer } from './connections/node-http.ts'
import { createRateLimit } from './operations/rate-limit.ts'
import { rehearse } from './operations/rehearse.ts'
import { createRemovedCheck, findOperation, isRead, originForm } from './call/routes.ts'
import { answerUnparsedRequests } from './answers/socket-errors.ts'
import type { Tracer } from './tracing/tracer.ts'

/** How long a client may take to send its headers, its whole request, and between two requests. */
export const TIMEOUTS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  /** How long a client may read nothing of its answer (stalled-readers.ts). */
  stalledTimeout: 300_000,
  /** How long a client may continue to send after the last answer of its connection. */
  lingerTimeout: 10_000,
  /** How often connections are checked for these timeouts. Node's default of 30 seconds would make each up to 30 seconds longer. */
  connectionsCheckingInterval: 1000,
}

export type Timeouts = typeof TIMEOUTS

export interface AppParts {
  config: Config
  store: Store
  cache: AnswerCache
  keyring: Keyring
  clock: () => number
  monotonic: () => number
  log: Log
  record: Recorder
  responder: Responder
  /** Undefined if no traces are exported. */
  tracer?: Tracer | undefined
  servePage: (arrival: Arrival) => Promise<void>
  timeouts?: Timeouts | undefined
}

export function createApp(parts: AppParts): { server: Server; operations: Operations } {
  const { config, monotonic, log, responder, servePage, tracer, timeouts = TIMEOUTS } = parts
  const operations = createOperations(parts)
  const serveAny = (arrival: Arrival) => operations.serve(arrival) || servePage(arrival)
  const serve = tracer === undefined ? serveAny : (arrival: Arrival) => tracer.serve(arrival, serveAny)
  // `optimizeEmptyRequests` creates no stream for a request without a body: that saves 6 % of a list.
  const options = { ...timeouts, maxHeaderSize: HEADERS_LIMIT, requireHostHeader: false, optimizeEmptyRequests: true }
  const server = createServer(undefined, options)
  const limits = { ...timeouts, maxConnections: config.maxConnections, monotonic, log }
  tendConnections(server, limits, (arrivals) => {
    for (const arrival of arrivals) {
      // Skips a client that has disconnected.
      if (!arrival.request.socket.destroyed) responder.catchStray(arrival, serve)
    }
  })
  answerUnparsedRequests(server, parts.record, responder)
  return { server, operations }
}

export type Operations = ReturnType<typeof createOperations>

function createOperations(parts: AppParts) {
  const { config, store, cache, keyring, clock, monotonic, responder } = parts
  const clientAddress = createClientAddress(config.trustProxy)
  const handlers = createHandlers(store, cache, clock, ownBaseUrl(config))
  const authenticate = createAuthenticate(keyring)
  /** The checks between route and handler, in order. The first refusal is the answer. */
  const steps: readonly Step[] = [
    checkFraming,
    authenticate,
    createRemovedCheck(clock),
    ...(ALLOWED.rehearsal[config.environment] ? [rehearse] : []),
    ...(config.rateLimit === undefined ? [] : [createRateLimit(config.rateLimit, monotonic)]),
    checkBodyHeaders,
  ]

  /** Runs the steps until one refuses. Returns a promise only if a step does, so that a cached answer costs none. */
  function check(call: OperationCall, first = 0): ReturnType<Step> {
    for (let index = first; index < steps.length; index += 1) {
      const verdict = steps[index]!(call)
      if (verdict instanceof Promise) return verdict.then((refusal) => refusal ?? check(call, index + 1))
      if (verdict !== undefined) return verdict
    }
    return undefined
  }

  function handle(call: OperationCall, cached: CachedAnswer | undefined): Result | Promise<Result> {
    if (cached === undefined) return handlers[call.operation.id](call)
    cache.lookups.hits += 1
    return answerOrNotModified(call, cached)
  }

  function resultOf(call: OperationCall, cached: CachedAnswer | undefined): Result | Promise<Result> {
    const verdict = check(call)
    if (verdict instanceof Promise) return verdict.then((refusal) => refusal ?? handle(call, cached))
    return verdict ?? handle(call, cached)
  }

  /** Serves a request for an operation. Returns false for any other request. */
  function serve(arrival: Arrival): boolean {
    const { request, response } = arrival
    const cached = isRead(request.method) ? cache.find(request.url!) : undefined
    if (cached === undefined) request.url = originForm(request.url!)
    const route = cached?.route ?? findOperation(request.method!, request.url!)
    if (route === undefined) return false
    const call = new OperationCall(arrival, route, clientAddress)
    void responder.respond(call, response, () => resultOf(call, cached))
    return true
  }

  /** Runs the operation that `request` is for within another call, `outer`, whose answer it becomes; with a refusal, only the checks. */
  async function runWithin(outer: Call, request: IncomingMessage, refusal?: Refusal): Promise<Result> {
    // The outer call may have arrived in an earlier turn.
    cache.refresh()
    const route = findOperation(request.method!, request.url!)!
    const arrival = { request, at: outer.startedAt } as Arrival
    const call = new OperationCall(arrival, route, clientAddress)
    try {
      return refusal === undefined ? await resultOf(call, undefined) : ((await check(call)) ?? refusal)
    } finally {
      const { answerHeaders, rehearsed, disconnects } = call
      Object.assign(outer, { answerHeaders, rehearsed, disconnects })
    }
  }

  return { serve, authenticate, runWithin, clock, responder }
}
