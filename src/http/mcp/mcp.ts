// The Model Context Protocol at /mcp (Streamable HTTP, without sessions and streams): lists the operations as tools and calls them.
// A request of the newest revision describes itself in its `_meta`; clients of the earlier one initialize first, which needs no state.
import type { IncomingHttpHeaders } from 'node:http'
import { type Config, ownBaseUrl } from '../../config.ts'
import { Refusal } from '../../contract/errors.ts'
import { describe, exactJson, type Fields, fieldsOf, isObject, quote } from '../../contract/json.ts'
import { OPERATIONS, VERSION } from '../../contract/operations.ts'
import { jsonContent } from '../answers/content.ts'
import type { Operations } from '../app.ts'
import { checkBodySize, checkJsonHeaders, parseJsonBody, readBody } from '../body.ts'
import type { Answer, Call, Result } from '../call/call.ts'
import type { PageRoute } from '../call/routes.ts'
import { requestFor, toolResult, toolsAt } from './tools.ts'

const [NEWEST, EARLIER] = ['2026-07-28', '2025-11-25']
const META = 'io.modelcontextprotocol/'
const SERVER_INFO = { name: 'petstore', title: 'Petstore', version: VERSION }
const ABOUT = {
  capabilities: { tools: {} },
  instructions:
    'Give each animal that you add an idempotencyKey of its own; to repeat a failed call, use the same one.',
}
const CACHEABLE = { ttlMs: 300_000, cacheScope: 'public' }
const INVALID =
  'The body must be one message of JSON-RPC 2.0 (no batch): a method, params that are an object, an id that is text or an int64.'

/** The origin of a page of the browser's own machine. */
const LOCAL = /^https?:\/\/(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/

type Id = string | bigint | undefined

export function createMcp(config: Config, { authenticate, runWithin, clock }: Operations) {
  const base = ownBaseUrl(config)
  const ownOrigin = base && new URL(base).origin

  async function answer(call: Call): Promise<Result> {
    const refusal = (await authenticate(call)) ?? checkJsonHeaders(call) ?? checkBodySize(call.request)
    const bytes = refusal ?? (await readBody(call.request))
    if (bytes instanceof Refusal) return bytes
    const json = parseJsonBody(bytes)
    if (json instanceof Refusal) return failure(undefined, -32_700, json.message, 400)
    const { id: sent, jsonrpc, method, params = {} } = fieldsOf(json.value)
    const id = typeof sent === 'string' || typeof sent === 'bigint' ? sent : undefined
    if (jsonrpc !== '2.0' || typeof method !== 'string' || !isObject(params) || sent !== id)
      return failure(id, -32_600, INVALID, 400)
    // A notification.
    if (id === undefined) return { status: 202, headers: ['Content-Length', '0'], body: undefined }
    const isNewest = readRevision(id, method, params, call.request.headers)
    if (typeof isNewest !== 'boolean') return isNewest
    if (method === 'tools/call') return callTool(call, id, params, isNewest)
    const result = resultOf(method, isNewest)
    if (result !== undefined) return success(id, result, isNewest)
    return failure(
      id,
      -32_601,
      `The service has no method ${quote(method)} in this revision of the protocol.`,
      isNewest ? 404 : 200,
    )
  }

  /** Returns undefined if the revision does not have the method. */
  function resultOf(method: string, isNewest: boolean): object | undefined {
    if (method === 'tools/list') return { tools: toolsAt(clock()), ...(isNewest && CACHEABLE) }
    if (isNewest)
      return method === 'server/discover' ? { supportedVersions: [NEWEST, EARLIER], ...ABOUT, ...CACHEABLE } : undefined
    if (method === 'initialize') return { protocolVersion: EARLIER, serverInfo: SERVER_INFO, ...ABOUT }
    return method === 'ping' ? {} : undefined
  }

  /** Runs the operation. Whatever its result is, also an error that is thrown, `present` makes it the result of the tool. */
  async function callTool(call: Call, id: Id, { name, arguments: sent }: Fields, isNewest: boolean) {
    const operation = OPERATIONS.find((each) => each.id === name)
    if (operation === undefined) return failure(id, -32_602, `Unknown tool: ${describe(name)}.`)
    const given = sent ?? {}
    if (!isObject(given)) return failure(id, -32_602, `arguments must be an object, got ${describe(given)}.`)
    const present = (result: Result) => success(id, toolResult(result), isNewest)
    Object.assign(call, { operation, present })
    const { request, refusal } = requestFor(operation, given, call.request)
    return runWithin(call, request, refusal)
  }

  /** Refuses pages of other sites, as DNS rebinding would bring them, whatever their method. */
  function checkOrigin({ request: { url, headers } }: Call): Answer | undefined {
    const { origin = ownOrigin } = headers
    if (origin === ownOrigin || LOCAL.test(origin!) || decodeURI(url!.split('?', 1)[0]!) !== route.path)
      return undefined
    return failure(undefined, -32_600, `Pages of ${quote(origin!)} may not call ${route.path}.`, 403)
  }

  const route: PageRoute = { method: 'POST', path: '/mcp', access: 'public', answer }
  return { route, checkOrigin }
}

/** Returns whether a request follows the newest revision; an error if it follows none, or if its headers differ from its body. */
function readRevision(id: Id, method: string, { name, _meta: meta }: Fields, headers: IncomingHttpHeaders) {
  const { [`${META}protocolVersion`]: declared, [`${META}clientCapabilities`]: capabilities } = fieldsOf(meta)
  const requested = declared ?? headers['mcp-protocol-version'] ?? EARLIER
  if (requested === EARLIER) return false
  const data = { supported: [NEWEST, EARLIER], requested }
  if (requested !== NEWEST) return failure(id, -32_022, 'The service does not have this revision.', 400, data)
  if (declared === undefined || !isObject(capabilities))
    return failure(id, -32_602, `params._meta must have ${META}protocolVersion and ${META}clientCapabilities.`, 400)
  const mirrored = { 'MCP-Protocol-Version': declared, 'Mcp-Method': method, 'Mcp-Name': name }
  for (const [header, value] of Object.entries(mirrored)) {
    const sent = headers[header.toLowerCase()]
    const message = `The header ${header} must be ${describe(value)}, as in the body, got ${describe(sent)}.`
    if (sent !== value && value !== undefined) return failure(id, -32_020, message, 400)
  }
  return true
}

function success(id: Id, result: object, isNewest: boolean): Answer {
  const envelope = isNewest && { resultType: 'complete', _meta: { [`${META}serverInfo`]: SERVER_INFO } }
  return rpcAnswer(200, { id, result: { ...result, ...envelope } })
}

function failure(id: Id, code: number, message: string, status = 200, data?: object): Answer {
  return rpcAnswer(status, { id, error: { code, message, data } })
}

function rpcAnswer(status: number, fields: object): Answer {
  return { status, ...jsonContent(exactJson({ jsonrpc: '2.0', ...fields })) }
}
