// The HTTP server: what is for an operation goes down the pipeline, all else to the public app.
import type { RequestListener, Server } from 'node:http'
import type { Keyring } from '../accounts/keyring.ts'
import { type Config, ownBaseUrl } from '../config.ts'
import type { Log } from '../log.ts'
import { createServer } from '../node-http.ts'
import type { Store } from '../store/store.ts'
import { gatherTurns } from '../turns.ts'
import { createAdmission } from './admission.ts'
import { createAuthenticate } from './authenticate.ts'
import type { Send } from './call.ts'
import { createClientAddress } from './client-address.ts'
import { createRemovedCheck } from './deprecation.ts'
import type { Metrics } from './metrics.ts'
import { PageCache } from './page-cache.ts'
import { createHandlers } from './pets.ts'
import { type Arrival, createPipeline } from './pipeline.ts'
import { createRateLimit } from './rate-limit.ts'
import { answerSpecialRequests, createSocketErrorHandler } from './socket-errors.ts'

/** How long a client may take: to send its headers, its whole request, and between two requests. */
export interface Timeouts {
  headersTimeout: number
  requestTimeout: number
  keepAliveTimeout: number
  /** How often the first two are looked at; Node's own 30 seconds would make them that much longer. */
  connectionsCheckingInterval: number
}

const TIMEOUTS: Timeouts = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1000,
}
export const HEADERS_LIMIT = 16 * 1024

export interface AppParts {
  config: Config
  store: Store
  keyring: Keyring
  clock: () => number
  log: Log
  metrics: Metrics | undefined
  send: Send
  /** What takes requests that are not for an operation. */
  elsewhere: RequestListener
  timeouts?: Timeouts | undefined
}

export function createApp(parts: AppParts): Server {
  const { config, store, keyring, clock, log, metrics, send, elsewhere, timeouts = TIMEOUTS } = parts
  const pages = new PageCache(store)
  const serveOperation = createPipeline({
    pages,
    admit: createAdmission([createAuthenticate(keyring), createRemovedCheck(clock), createRateLimit(config.rateLimit, clock)]),
    handlers: createHandlers({ pets: store.pets, pages, clock, baseUrl: ownBaseUrl(config) }),
    send,
    log,
    clientAddress: createClientAddress(config.trustProxy),
  })
  // First all requests of a turn are read, then all are looked up, then all are answered. Code stays in the processor's
  // caches, and the client is woken once for many answers: that alone took a list from 0.70 to 0.90 of bare node:http.
  const arrived = gatherTurns<Arrival>((arrivals) => {
    pages.refresh()
    for (const arrival of arrivals) {
      if (!serveOperation(arrival)) elsewhere(arrival.raw, arrival.response)
    }
  })

  // Without a stream for bodies that are not there: 6 % of a list.
  const options = { ...timeouts, maxHeaderSize: HEADERS_LIMIT, requireHostHeader: false, optimizeEmptyRequests: true }
  const server = createServer(options, (raw, response) => arrived({ raw, response, at: performance.now() }))
  server.on('clientError', createSocketErrorHandler({ log, metrics }))
  answerSpecialRequests(server, { log, metrics })
  return server
}
