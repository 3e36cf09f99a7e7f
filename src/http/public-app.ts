// What needs no key, by Fastify: public routes, the console's pages, and the answers where there is nothing.
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import type { Refusal } from '../contract/errors.ts'
import { BODY_LIMIT } from '../contract/operations.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { HEADERS_LIMIT } from './app.ts'
import type { Answer, Send } from './call.ts'
import { refusalFor } from './failures.ts'
import { checkFraming } from './framing.ts'
import { publicRoutes } from './public-routes.ts'
import { requestId } from './request-id.ts'
import { createRouteTable, type NotFoundPage } from './routes.ts'

export interface PublicAppParts {
  config: Config
  store: Store
  log: Log
  send: Send
  isStopping: () => boolean
  /** What a browser is shown where there is nothing, outside the interface. */
  notFoundPage: NotFoundPage
}

export function createPublicApp({ config, store, log, send, isStopping, notFoundPage }: PublicAppParts): FastifyInstance {
  const app = fastify({
    genReqId: requestId,
    trustProxy: config.trustProxy,
    bodyLimit: BODY_LIMIT,
    // A path parameter of any length is a page that is not there, not a bad request.
    routerOptions: { maxParamLength: HEADERS_LIMIT },
    exposeHeadRoutes: false,
    // Forms are checked by the console: Fastify's own schema compilers need not be loaded.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    return503OnClosing: false,
  })
  app.decorateRequest('startedAt', 0)
  /** Beside the pages of the console, Fastify only routes; answers don't go through it. */
  function answer(request: FastifyRequest, reply: FastifyReply, result: Answer | Refusal): void {
    reply.hijack()
    send(request, reply.raw, result)
  }

  const unrouted = createRouteTable(app, notFoundPage)
  app.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now()
    // A type, and no stream to read (app.ts): Fastify would wait for the end of it for ever.
    if (request.raw.readableEnded) delete request.headers['content-type']
    // Where there is no route the answer is given here: the body of such a request is nobody's business.
    const result = checkFraming(request) ?? (request.is404 ? unrouted(request) : undefined)
    if (result === undefined) done()
    else answer(request, reply, result)
  })
  app.setErrorHandler((error, request, reply) => answer(request, reply, refusalFor(error, request, log)))

  // The operations ask for a key, all of them; whatever is served here must say that it does not.
  app.addHook('onRoute', ({ url, config: route }) => {
    if (!route?.public) throw new Error(`the route ${url} would be served without a key and does not say so`)
  })

  app.removeAllContentTypeParsers()
  for (const route of publicRoutes({ config, store, answer, isStopping })) app.route(route)
  return app
}

function noSchemas(): never {
  throw new Error('routes have no schemas of their own: the contract checks')
}
