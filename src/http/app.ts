// The HTTP server: what is for an operation goes down the pipeline; public routes, pages, and what leads nowhere go to Fastify.
import type { RequestListener } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Keyring } from '../accounts/keyring.ts'
import type { Usage } from '../accounts/usage.ts'
import { type Config, ownBaseUrl } from '../config.ts'
import type { Refusal } from '../contract/errors.ts'
import { BODY_LIMIT } from '../contract/operations.ts'
import type { Log } from '../log.ts'
import { createServer } from '../node-http.ts'
import type { Store } from '../store/store.ts'
import { createAdmission } from './admission.ts'
import { createSend } from './answer.ts'
import { createAuthenticate } from './authenticate.ts'
import type { Answer } from './call.ts'
import { createClientAddress } from './client-address.ts'
import { createRemovedCheck } from './deprecation.ts'
import { refusalFor } from './failures.ts'
import { checkFraming } from './framing.ts'
import type { Metrics } from './metrics.ts'
import { PageCache } from './page-cache.ts'
import { createHandlers } from './pets.ts'
import { type Arrival, createPipeline } from './pipeline.ts'
import { publicRoutes } from './public-routes.ts'
import { createRateLimit } from './rate-limit.ts'
import { requestId } from './request-id.ts'
import { createRouteTable, type NotFoundPage } from './routes.ts'
import { answerSpecialRequests, createSocketErrorHandler } from './socket-errors.ts'
import { gatherTurns } from './turns.ts'

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
const HEADERS_LIMIT = 16 * 1024

export interface AppParts {
  config: Config
  store: Store
  keyring: Keyring
  usage: Usage
  clock: () => number
  log: Log
  metrics: Metrics | undefined
  isStopping: () => boolean
  /** What a browser is shown where there is nothing, outside the interface. */
  notFoundPage: NotFoundPage
  timeouts?: Timeouts
}

export function createApp(parts: AppParts): FastifyInstance {
  const { config, store, keyring, usage, clock, log, metrics, isStopping, notFoundPage, timeouts = TIMEOUTS } = parts
  const baseUrl = ownBaseUrl(config)
  const send = createSend({ log, usage, metrics, baseUrl, clock, isStopping })
  const pages = new PageCache(store.pets)
  const serveOperation = createPipeline({
    pages,
    admit: createAdmission([createAuthenticate(keyring), createRemovedCheck(clock), createRateLimit(config.rateLimit, clock)]),
    handlers: createHandlers({ pets: store.pets, pages, clock, baseUrl }),
    send,
    log,
    clientAddress: createClientAddress(config.trustProxy),
  })

  const app = fastify({
    genReqId: requestId,
    trustProxy: config.trustProxy,
    bodyLimit: BODY_LIMIT,
    serverFactory(route) {
      const arrived = gatherTurns<Arrival>((arrivals) => {
        pages.refresh()
        for (const arrival of arrivals) {
          if (!serveOperation(arrival)) pass(arrival, route)
        }
      })
      // Without a stream for bodies that are not there: 6 % of a list.
      const options = { ...timeouts, maxHeaderSize: HEADERS_LIMIT, requireHostHeader: false, optimizeEmptyRequests: true }
      return createServer(options, (raw, response) => arrived({ raw, response, at: performance.now() }))
    },
    // A path parameter of any length is a page that is not there, not a bad request.
    routerOptions: { maxParamLength: HEADERS_LIMIT },
    exposeHeadRoutes: false,
    // Bodies are checked by the contract: Fastify's own schema compilers need not be loaded (60 ms of the start).
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    return503OnClosing: false,
    clientErrorHandler: createSocketErrorHandler({ log, metrics }),
  })
  answerSpecialRequests(app.server, { log, metrics })
  app.decorateRequest('startedAt', 0)
  /** Beside the pages of the console, Fastify only routes; answers don't go through it. */
  function answer(request: FastifyRequest, reply: FastifyReply, result: Answer | Refusal): void {
    reply.hijack()
    send(request, reply.raw, result)
  }

  const unrouted = createRouteTable(app, notFoundPage)
  app.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now()
    // Where there is no route the answer is given here: the body of such a request is nobody's business.
    const result = checkFraming(request) ?? (request.is404 ? unrouted(request) : undefined)
    if (result === undefined) done()
    else answer(request, reply, result)
  })
  app.setErrorHandler((error, request, reply) => answer(request, reply, refusalFor(error, request, log)))

  // The operations ask for a key, all of them; whatever else is served must say that it does not.
  app.addHook('onRoute', ({ url, config: route }) => {
    if (!route?.public) throw new Error(`the route ${url} would be served without a key and does not say so`)
  })

  app.removeAllContentTypeParsers()
  for (const route of publicRoutes({ config, store, answer, isStopping })) app.route(route)

  return app
}

function pass({ raw, response }: Arrival, route: RequestListener): void {
  // A type, and no stream to read: Fastify would wait for the end of it for ever.
  if (raw.readableEnded) delete raw.headers['content-type']
  route(raw, response)
}

function noSchemas(): never {
  throw new Error('routes have no schemas of their own: the contract checks')
}
