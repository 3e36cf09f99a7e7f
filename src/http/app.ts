// The pipeline, in order: request id, framing, route, method, key, removal, rate, content, handler, answer.
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Keyring } from '../accounts/keyring.ts'
import type { Usage } from '../accounts/usage.ts'
import { type Config, ownBaseUrl } from '../config.ts'
import type { Refusal } from '../contract/errors.ts'
import { BASE_PATH, BODY_LIMIT, OPERATIONS } from '../contract/operations.ts'
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
import { createFastLane } from './fast-lane.ts'
import { checkFraming } from './framing.ts'
import type { Metrics } from './metrics.ts'
import { PageCache } from './page-cache.ts'
import { createHandlers } from './pets.ts'
import { publicRoutes } from './public-routes.ts'
import { createRateLimit } from './rate-limit.ts'
import { requestId } from './request-id.ts'
import { createRouteTable, type NotFoundPage, originForm } from './routes.ts'
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
  const admit = createAdmission([createAuthenticate(keyring), createRemovedCheck(clock), createRateLimit(config.rateLimit, clock)])
  const fastLane = createFastLane({ pages, admit, send, log, clientAddress: createClientAddress(config.trustProxy) })

  const app = fastify({
    genReqId: requestId,
    trustProxy: config.trustProxy,
    bodyLimit: BODY_LIMIT,
    serverFactory: (route) =>
      createServer({ ...timeouts, maxHeaderSize: HEADERS_LIMIT, requireHostHeader: false }, (raw, response) => {
        if (!fastLane(raw, response)) route(raw, response)
      }),
    // A path parameter of any length is an animal that is not there, not a bad request.
    routerOptions: { maxParamLength: HEADERS_LIMIT },
    exposeHeadRoutes: false,
    // Bodies are checked by the contract: Fastify's own schema compilers need not be loaded (60 ms of the start).
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    return503OnClosing: false,
    clientErrorHandler: createSocketErrorHandler({ log, metrics }),
    rewriteUrl: ({ url = '/' }) => originForm(url),
  })
  answerSpecialRequests(app.server, { log, metrics })
  app.decorateRequest('operation', undefined)
  app.decorateRequest('caller', undefined)
  app.decorateRequest('answerHeaders', undefined)
  app.decorateRequest('version', undefined)
  app.decorateRequest('startedAt', 0)
  /** Fastify routes and reads bodies; answers don't go through it. */
  function answer(request: FastifyRequest, reply: FastifyReply, result: Answer | Refusal): void {
    reply.hijack()
    send(request, reply.raw, result)
  }

  const unrouted = createRouteTable(app, notFoundPage)
  app.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now()
    request.version = pages.versionOnArrival()
    // Where there is no route the answer is given here: the body of such a request is nobody's business.
    const result = checkFraming(request) ?? (request.is404 ? unrouted(request) : undefined)
    if (result === undefined) done()
    else answer(request, reply, result)
  })
  app.setErrorHandler((error, request, reply) => answer(request, reply, refusalFor(error, request, log)))

  // Every route asks for a key, unless it says that it is public.
  app.addHook('onRoute', (route) => {
    if (route.config?.public) return
    route.onRequest = (request, reply, done) => {
      request.operation = route.config?.operation
      const decided = (refusal: Refusal | undefined) => {
        if (refusal === undefined) done()
        // By then the parser has read what came with the headers: a body with broken framing is told first.
        else queueMicrotask(() => answer(request, reply, refusal))
      }
      admit(request, decided, (error) => done(error as Error))
    }
  })

  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))

  const handlers = createHandlers({ pets: store.pets, pages, clock, baseUrl })
  for (const operation of OPERATIONS) {
    const handle = handlers[operation.id]
    app.route({
      method: operation.method === 'GET' ? ['GET', 'HEAD'] : operation.method,
      // `[^]+`, anything: the path with nothing in the parameter's place is not this route.
      url: BASE_PATH + operation.path.replace(/\{(\w+)\}/, ':$1([^]+)'),
      config: { operation },
      handler: async (request, reply) => answer(request, reply, await handle(request)),
    })
  }
  for (const route of publicRoutes({ config, store, answer, isStopping })) app.route(route)

  return app
}

function noSchemas(): never {
  throw new Error('routes have no schemas of their own: the contract checks')
}
