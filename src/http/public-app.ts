// Everything that needs no key, by Fastify: public routes, the console's pages, 404 and 405.
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import type { Refusal } from '../contract/errors.ts'
import { BODY_LIMIT, HEADERS_LIMIT } from '../contract/limits.ts'
import type { Log } from '../log.ts'
import type { Send } from './answer.ts'
import { askForBody } from './body.ts'
import type { Answer } from './call.ts'
import { isLast } from './connections.ts'
import { refusalFor } from './failures.ts'
import { checkFraming } from './framing.ts'
import type { Health } from './health.ts'
import { publicRoutes } from './public-routes.ts'
import { requestId } from './request-id.ts'
import { createRouteTable, type NotFoundPage } from './routes.ts'

export interface PublicAppParts {
  config: Config
  health: Health
  log: Log
  send: Send
  isStopping: () => boolean
  /** What a browser is shown for an unknown address outside the interface. */
  notFoundPage: NotFoundPage
}

export function createPublicApp({
  config,
  health,
  log,
  send,
  isStopping,
  notFoundPage,
}: PublicAppParts): FastifyInstance {
  const app = fastify({
    genReqId: requestId,
    trustProxy: config.trustProxy,
    bodyLimit: BODY_LIMIT,
    // A path parameter of any length is a page that does not exist, not a bad request.
    routerOptions: { maxParamLength: HEADERS_LIMIT },
    exposeHeadRoutes: false,
    // The console validates its forms itself, so Fastify's schema compilers need not be loaded.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    return503OnClosing: false,
  })
  app.decorateRequest('startedAt', 0)
  /** Apart from the console's pages, Fastify only routes; answers do not go through it. */
  function answer(request: FastifyRequest, reply: FastifyReply, result: Answer | Refusal): void {
    reply.hijack()
    send(request, reply.raw, result)
  }

  const unrouted = createRouteTable(app, notFoundPage)
  app.addHook('onRequest', (request, reply, done) => {
    request.startedAt = performance.now()
    // There is a Content-Type but no stream to read (app.ts): Fastify would wait for its end forever.
    if (request.raw.readableEnded) delete request.headers['content-type']
    // Without a route the answer is given here: the body of such a request is never read.
    const result = checkFraming(request) ?? (request.is404 ? unrouted(request) : undefined)
    if (result === undefined) done()
    else answer(request, reply, result)
  })
  app.addHook('preParsing', (request, _reply, payload, done) => {
    // A body of a type that nobody reads is refused right after this, without it.
    const [type = ''] = (request.headers['content-type'] ?? '').split(';')
    if (request.server.hasContentTypeParser(type.trim())) askForBody(request.raw)
    done(null, payload)
  })
  // For the console's pages; other answers go through `send`.
  app.addHook('onSend', (request, reply, payload, done) => {
    if (isStopping() || isLast(request.raw)) reply.raw.shouldKeepAlive = false
    done(null, payload)
  })
  app.setErrorHandler((error, request, reply) => answer(request, reply, refusalFor(error, request, log)))

  // Every operation requires a key; a route that is served here must declare that it does not.
  app.addHook('onRoute', ({ url, config: route }) => {
    if (!route?.public) throw new Error(`the route ${url} would be served without a key and does not say so`)
  })

  app.removeAllContentTypeParsers()
  for (const route of publicRoutes({ config, health, answer })) app.route(route)
  return app
}

function noSchemas(): never {
  throw new Error('routes have no schemas of their own: the contract checks')
}
