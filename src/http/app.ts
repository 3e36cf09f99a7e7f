// The HTTP server: requests for an operation go down the pipeline, all others to the pages.
import type { RequestListener, Server } from 'node:http'
import type { Keyring } from '../accounts/keyring.ts'
import { type Config, ownBaseUrl } from '../config.ts'
import { HEADERS_LIMIT } from '../contract/limits.ts'
import type { Log } from '../log.ts'
import { createServer } from './node-http.ts'
import type { Store } from '../store/store.ts'
import { gatherTurns } from '../timing.ts'
import type { Responder } from './answer.ts'
import type { AnswerCache } from './answer-cache.ts'
import { createAuthenticate } from './authenticate.ts'
import { checkBodyHeaders, expectContinue } from './body.ts'
import { type Arrival, createClientAddress } from './call.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import { inTurn, tendConnections } from './connections.ts'
import { createRemovedCheck } from './deprecation.ts'
import { createHandlers } from './handlers.ts'
import { createPipeline } from './pipeline.ts'
import { createRateLimit, type Lease } from './rate-limit.ts'
import type { Recorder } from './record.ts'
import { createRehearsal, type Hold } from './rehearse.ts'
import { answerUnparsedRequests } from './socket-errors.ts'

/** How long a client may take to send its headers, its whole request, and between two requests. */
export interface Timeouts {
  headersTimeout: number
  requestTimeout: number
  keepAliveTimeout: number
  /** How long a client may read nothing of its answer; longer if much of it is buffered (connections.ts). */
  stalledTimeout: number
  /** How long a client may continue to send after the last answer of its connection. */
  lingerTimeout: number
  /** How often connections are checked for these timeouts. Node's default of 30 seconds would make each up to 30 seconds longer. */
  connectionsCheckingInterval: number
}

export const TIMEOUTS: Timeouts = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  stalledTimeout: 30_000,
  lingerTimeout: 10_000,
  connectionsCheckingInterval: 1000,
}

/**
 * How many requests are served in one turn of the event loop; the others wait for the next turns. A new connection takes several
 * turns, on the admin port too: with 1,000 busy connections its /livez had a p99 of 119 ms without this limit, 29 ms with it.
 */
const REQUESTS_A_TURN = 128

/**
 * How many turns in a row may accept a connection before requests are served. Node accepts one connection per turn: were each of these
 * turns to serve as many requests as there are, new connections would wait for seconds beside 800 busy ones.
 */
const ACCEPTING_TURNS = 32

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
  /** Serves the requests that are not for an operation. */
  servePage: (arrival: Arrival) => Promise<void>
  /** Leases requests of the rate limit; undefined unless several processes share it. */
  lease: Lease | undefined
  /** Delays a request for a rehearsal. */
  hold: Hold
  /** Undefined unless several processes share the limit of connections. */
  limit: ConnectionLimit | undefined
  timeouts?: Timeouts | undefined
}

export function createApp(parts: AppParts): Server {
  const { config, cache, clock, monotonic, log, responder, servePage, limit, timeouts = TIMEOUTS } = parts
  const serveOperation = createPipeline({
    cache,
    steps: [
      createAuthenticate(parts.keyring),
      createRemovedCheck(clock),
      ...(config.environment === 'staging' ? [createRehearsal(parts.hold)] : []),
      createRateLimit(config.rateLimit, monotonic, parts.lease),
      checkBodyHeaders,
    ],
    handlers: createHandlers(parts.store, cache, clock, ownBaseUrl(config)),
    respond: responder.respond,
    clientAddress: createClientAddress(config.trustProxy),
  })
  const serveArrival = (arrival: Arrival) => serveOperation(arrival) || servePage(arrival)
  // All requests of a turn are parsed, then all are looked up, then all are answered. Code stays in the processor's caches, and
  // the client wakes up once for many answers: this alone took a list from 0.70 to 0.90 of the rate of bare node:http.
  const arrived = gatherTurns<Arrival>(
    (arrivals) => {
      cache.beginTurn()
      for (const arrival of arrivals) {
        // Skips a client that has disconnected.
        if (!arrival.request.socket.destroyed) responder.guard(arrival, serveArrival)
      }
    },
    REQUESTS_A_TURN,
    isAccepting,
  )
  let accepted = false
  let acceptingTurns = 0
  /** Returns whether more connections may be waiting, which come first. */
  function isAccepting(): boolean {
    const isFirst = accepted && acceptingTurns < ACCEPTING_TURNS
    acceptingTurns = isFirst ? acceptingTurns + 1 : 0
    accepted = false
    return isFirst
  }

  // `optimizeEmptyRequests` creates no stream for a request without a body: that saves 6 % of a list.
  const options = { ...timeouts, maxHeaderSize: HEADERS_LIMIT, requireHostHeader: false, optimizeEmptyRequests: true }
  const admit: RequestListener = (request, response) => {
    if (limit === undefined || limit.isKept(request.socket, () => admit(request, response)))
      arrived({ request, response, at: performance.now() })
  }
  const serve: RequestListener = (request, response) => inTurn(response, () => admit(request, response))
  const server = createServer(serve, options)
  server.on('checkContinue', (request, response) => {
    expectContinue(request, response)
    serve(request, response)
  })
  for (const event of ['connection', 'drop']) server.on(event, () => (accepted = true))
  const { maxConnections } = config
  tendConnections(server, { ...timeouts, maxConnections, limit, monotonic, log })
  answerUnparsedRequests(server, parts.record)
  return server
}
