// Serves a request that is not for an operation: the health checks, the OpenAPI document and the console, and 404, 405 and OPTIONS
// of all paths (routes.ts).
import type { Config } from '../config.ts'
import type { Responder } from './answer.ts'
import { type Arrival, checkFraming, createClientAddress, createOrigin, type PageCall, requestId } from './call.ts'
import { createOpenapiRoute } from './openapi-route.ts'
import { asksForPage, findRoute, type PageRoute, type Pages, tableOf, unrouted } from './routes.ts'

export function createPages(config: Config, health: Answers, pages: Pages, { respond }: Responder) {
  const table = tableOf([...publicRoutes(config, health), ...pages.routes])
  const clientAddress = createClientAddress(config.trustProxy)
  const originOf = createOrigin(config.trustProxy)

  return ({ request, response, at }: Arrival): void => {
    const found = findRoute(table, request.method!, request.url!)
    const call: PageCall = {
      id: requestId(request),
      request,
      ip: clientAddress(request),
      startedAt: at,
      ...originOf(request),
      parameters: found?.parameters ?? {},
      query: found?.query ?? '',
      showsPage: asksForPage(request),
    }
    respond(
      call,
      response,
      () => checkFraming(call) ?? found?.route.answer(call, response) ?? unrouted(call, table, pages),
    )
  }
}

/** By path. */
type Answers = Record<string, PageRoute['answer']>

/** Returns the routes of the health checks and of the OpenAPI document. */
function publicRoutes(config: Config, health: Answers): PageRoute[] {
  const answers: Answers = { ...health, '/openapi.json': createOpenapiRoute(config) }
  return Object.entries(answers).map(([path, answer]) => ({ method: 'GET', path, access: 'public', answer }))
}
