// Serves a request that is not for an operation: the health checks, the OpenAPI document, the tools (mcp.ts) and the console, and
// 404, 405 and OPTIONS of all paths (routes.ts).
import type { Config } from '../config.ts'
import { renderOpenapi } from '../contract/openapi.ts'
import { Refusal } from '../contract/errors.ts'
import { BASE_PATH } from '../contract/operations.ts'
import type { Operations } from './app.ts'
import { answerOrNotModified, type CachedAnswer, rendered } from './answers/answer-cache.ts'
import { type Answer, type Arrival, type PageCall, requestId, type Result } from './call/call.ts'
import { checkFraming } from './call/framing.ts'
import { createClientAddress, createOrigin } from './call/client-address.ts'
import { createMcp } from './mcp/mcp.ts'
import { isOwnName } from './reach.ts'
import { asksForPage, findRoute, type PageRoute, type Pages, tableOf, unrouted } from './call/routes.ts'

export function createPages(config: Config, health: Answers, pages: Pages, operations: Operations) {
  const mcp = createMcp(config, operations)
  const answers: Answers = { ...health, '/openapi.json': createOpenapiRoute(config) }
  const own = Object.entries(answers).map(
    ([path, answer]) => ({ method: 'GET', path, access: 'public', answer }) as const,
  )
  const table = tableOf<PageRoute>([...own, mcp.route, ...pages.routes])
  const clientAddress = createClientAddress(config.trustProxy)
  const originOf = createOrigin(config.trustProxy)

  /** Finds out whose key came with a request that is refused, so that its owner sees it among the failed requests. */
  async function answerUnrouted(call: PageCall): Promise<Result> {
    const result = unrouted(call, table, pages)
    // MCP clients before revision 2026-07-28 ask for a stream when they connect; its 405 is no failure that the owner must see.
    const isProbe = call.request.method === 'GET' && call.request.url === mcp.route.path
    // Without the database the answer is the same.
    if (result instanceof Refusal && !isProbe)
      await Promise.resolve(operations.authenticate(call)).catch(() => undefined)
    return result
  }

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
      page: found?.route.path,
    }
    const answer = () => found?.route.answer(call, response) ?? answerUnrouted(call)
    void operations.responder.respond(call, response, () => checkFraming(call) ?? mcp.checkOrigin(call) ?? answer())
  }
}

/** By path. */
type Answers = Record<string, PageRoute['answer']>

/** Stands for the address of a client in the document, which takes milliseconds to render. */
const ADDRESS = 'https://petstore.invalid'

/** Serves the OpenAPI document, with an address that generators can call. Keeps the last one. */
export function createOpenapiRoute({ environment, baseUrl, stagingBaseUrl }: Config): (call: PageCall) => Answer {
  let template: string | undefined
  let kept: { address: string; answer: CachedAnswer } | undefined

  return (call) => {
    const address = apiAddress(call)
    if (kept?.address !== address) {
      const here = { environment, address: ADDRESS }
      template ??= renderOpenapi({ production: baseUrl, staging: stagingBaseUrl, here })
      const json = template.replace(ADDRESS, () => address)
      kept = { address, answer: rendered(undefined, json) }
    }
    return answerOrNotModified(call, kept.answer)
  }
}

/**
 * Returns the address that this client uses, or a relative one if its Host header cannot be trusted. The document shows
 * it only if this environment has no configured base address.
 */
function apiAddress({ protocol, host }: PageCall): string {
  return isOwnName(host) ? `${protocol}://${host}${BASE_PATH}` : BASE_PATH
}
