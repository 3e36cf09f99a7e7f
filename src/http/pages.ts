// Serves a request that is not for an operation: the health checks, the OpenAPI document, the tools (mcp.ts) and the console, and
// 404, 405 and OPTIONS of all paths (routes.ts).
import { gzipSync } from 'node:zlib'
import type { Config } from '../config.ts'
import { renderOpenapi } from '../contract/openapi.ts'
import { Refusal } from '../contract/errors.ts'
import { BASE_PATH } from '../contract/operations.ts'
import type { Operations } from './app.ts'
import { etagOf, matchesEtag } from './answer-cache.ts'
import {
  acceptsGzip,
  type Answer,
  type Arrival,
  checkFraming,
  createClientAddress,
  createOrigin,
  type PageCall,
  requestId,
  type Result,
} from './call.ts'
import { createMcp } from './mcp.ts'
import { isOwnName } from './reach.ts'
import { asksForPage, findRoute, type PageRoute, type Pages, tableOf, unrouted } from './routes.ts'

export function createPages(config: Config, health: Answers, pages: Pages, operations: Operations) {
  const mcp = createMcp(config, operations)
  const table = tableOf([...publicRoutes(config, health), mcp.route, ...pages.routes])
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
    operations.responder.respond(call, response, () => checkFraming(call) ?? mcp.checkOrigin(call) ?? answer())
  }
}

/** By path. */
type Answers = Record<string, PageRoute['answer']>

/** Returns the routes of the health checks and of the OpenAPI document. */
function publicRoutes(config: Config, health: Answers): PageRoute[] {
  const answers: Answers = { ...health, '/openapi.json': createOpenapiRoute(config) }
  return Object.entries(answers).map(([path, answer]) => ({ method: 'GET', path, access: 'public', answer }))
}

/** Few names lead to one machine. A client that sends many others must not fill the memory. */
const MOST_KEPT = 8

/** Serves the OpenAPI document with an address that generators can call and an ETag, compressed for clients that accept gzip. */
export function createOpenapiRoute({ environment, baseUrl, stagingBaseUrl }: Config): (call: PageCall) => Answer {
  const kept = new Map<string, Record<'plain' | 'compressed', ReturnType<typeof representation>>>()

  function documentFor(address: string) {
    const known = kept.get(address)
    if (known !== undefined) return known
    const json = renderOpenapi({ production: baseUrl, staging: stagingBaseUrl, here: { environment, address } })
    const document = {
      plain: representation(Buffer.from(json)),
      compressed: representation(gzipSync(json), ['Content-Encoding', 'gzip']),
    }
    if (kept.size >= MOST_KEPT) kept.clear()
    kept.set(address, document)
    return document
  }

  return (call) => {
    const document = documentFor(apiAddress(call))
    const { etag, headers, body } = acceptsGzip(call) ? document.compressed : document.plain
    const validator = ['ETag', etag, 'Vary', 'Accept-Encoding']
    if (matchesEtag(call.request.headers['if-none-match'], etag))
      return { status: 304, headers: validator, body: undefined }
    return { status: 200, headers: [...headers, ...validator], body }
  }
}

/**
 * Returns the address that this client uses, or a relative one if its Host header cannot be trusted. The document shows
 * it only if this environment has no configured base address.
 */
function apiAddress({ protocol, host }: PageCall): string {
  return isOwnName(host) ? `${protocol}://${host}${BASE_PATH}` : BASE_PATH
}

function representation(body: Buffer, encoding: string[] = []) {
  const headers = ['Content-Type', 'application/json', ...encoding, 'Content-Length', String(body.length)]
  return { etag: etagOf(body), headers, body }
}
