// The Model Context Protocol at /mcp (Streamable HTTP, without sessions and streams): lists the operations as tools and calls them.
// A request of the newest revision describes itself in its `_meta`; clients of the earlier one initialize first, which needs no state.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Config, ownBaseUrl } from '../config.ts'
import { Refusal } from '../contract/errors.ts'
import { describe, OtherNumber, quote } from '../contract/json.ts'
import { OPERATIONS, VERSION } from '../contract/operations.ts'
import { toolsAt } from '../contract/tools.ts'
import { jsonContent } from './answer.ts'
import type { Operations } from './app.ts'
import { checkBodySize, checkJsonHeaders, parseJsonBody, readBody } from './body.ts'
import type { Answer, PageCall, Result } from './call.ts'
import { isOwnName } from './reach.ts'
import type { PageRoute } from './routes.ts'
import { type Fields, requestFor, toolResult } from './tool-call.ts'

const [NEWEST, EARLIER] = ['2026-07-28', '2025-11-25']
const REVISIONS: readonly unknown[] = [NEWEST, EARLIER]

const META = 'io.modelcontextprotocol/'
const SERVER_INFO = { name: 'petstore', title: 'Petstore', version: VERSION }
const ABOUT = {
  capabilities: { tools: {} },
  instructions:
    'The animals of a pet store. Errors have a code and a message that says what to change. Give each animal that you add an ' +
    'idempotencyKey of its own, and repeat a failed call with the same one: it adds nothing twice.',
}
const CACHEABLE = { ttlMs: 300_000, cacheScope: 'public' }

/** A request; without an id, a notification or an answer, to which there is nothing to say. */
interface Message {
  id?: string | bigint
  method: string
  params: Fields
}

export function createMcp(config: Config, { authenticate, runWithin, clock }: Operations) {
  /** Returns undefined if the revision does not have the method. */
  function resultOf(method: string, isNewest: boolean): object | undefined {
    if (method === 'tools/list') return { tools: toolsAt(clock()), ...(isNewest && CACHEABLE) }
    if (isNewest)
      return method === 'server/discover' ? { supportedVersions: REVISIONS, ...ABOUT, ...CACHEABLE } : undefined
    if (method === 'initialize') return { protocolVersion: EARLIER, serverInfo: SERVER_INFO, ...ABOUT }
    return method === 'ping' ? {} : undefined
  }

  /** Runs the operation. Whatever its result is, also an error that is thrown, `present` makes it the result of the tool. */
  async function callTool(call: PageCall, response: ServerResponse, { id, params }: Message, isNewest: boolean) {
    const { name, arguments: given = {} } = params
    const operation = OPERATIONS.find((each) => each.id === name)
    if (operation === undefined) return failure(id, -32_602, `Unknown tool: ${describe(name)}.`)
    if (!isObject(given)) return failure(id, -32_602, `arguments must be an object, got ${describe(given)}.`)
    const present = (result: Result) => success(id, toolResult(result, operation), isNewest)
    Object.assign(call, { operation, present })
    const { request, problem } = requestFor(operation, given, call.request)
    return runWithin(call, { request, response, at: call.startedAt }, problem)
  }

  async function answer(call: PageCall, response: ServerResponse): Promise<Result> {
    const refusal = (await authenticate(call)) ?? checkJsonHeaders(call) ?? checkBodySize(call.request)
    const bytes = refusal ?? (await readBody(call.request))
    if (bytes instanceof Refusal) return bytes
    const json = parseJsonBody(bytes)
    if (json instanceof Refusal) return failure(undefined, -32_700, json.message, 400)
    const message = readMessage(json.value)
    if ('status' in message) return message
    const { id, method } = message
    if (id === undefined) return { status: 202, headers: ['Content-Length', '0'], body: undefined }
    const isNewest = readRevision(message, call.request)
    if (typeof isNewest !== 'boolean') return isNewest
    if (method === 'tools/call') return callTool(call, response, message, isNewest)
    const result = resultOf(method, isNewest)
    if (result !== undefined) return success(id, result, isNewest)
    return failure(id, -32_601, `This revision of the protocol has no method ${quote(method)}.`, isNewest ? 404 : 200)
  }

  const route: PageRoute = { method: 'POST', path: '/mcp', access: 'public', answer }
  return { route, checkOrigin: createOriginCheck(config, route.path) }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof OtherNumber)
}

function readMessage(value: unknown): Message | Answer {
  const { id, jsonrpc, method, params = {}, result, error } = isObject(value) ? value : {}
  const isId = typeof id === 'string' || typeof id === 'bigint'
  const invalid = (message: string) => failure(isId ? id : undefined, -32_600, message, 400)
  if (jsonrpc !== '2.0') return invalid('The body must be one message of JSON-RPC 2.0; batches are not supported.')
  if (method === undefined && (result !== undefined || error !== undefined)) return { method: '', params: {} }
  if (typeof method !== 'string') return invalid(`The method must be text, got ${describe(method)}.`)
  if (!isObject(params)) return invalid(`params must be an object, got ${describe(params)}.`)
  if (id === undefined || isId) return { ...(isId && { id }), method, params }
  return invalid(`The id must be text or an int64, got ${describe(id)}.`)
}

/** Returns whether a request follows the newest revision; an error if it follows none, or if its headers differ from its body. */
function readRevision({ id, method, params }: Message, { headers }: IncomingMessage): boolean | Answer {
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const { [`${META}protocolVersion`]: declared, [`${META}clientCapabilities`]: capabilities } = meta
  const requested = declared ?? headers['mcp-protocol-version']
  if (requested === undefined || requested === EARLIER) return false
  if (requested !== NEWEST) {
    const data = { supported: REVISIONS, requested: typeof requested === 'string' ? requested : describe(requested) }
    return failure(id, -32_022, `Supported revisions: ${REVISIONS.join(', ')}.`, 400, data)
  }
  const required = `params._meta must have ${META}protocolVersion and ${META}clientCapabilities.`
  if (declared === undefined || !isObject(capabilities)) return failure(id, -32_602, required, 400)
  const named = method === 'tools/call' && { 'Mcp-Name': params['name'] }
  const mirrored = { 'MCP-Protocol-Version': declared, 'Mcp-Method': method, ...named }
  for (const [name, value] of Object.entries(mirrored)) {
    const sent = headers[name.toLowerCase()]
    const message = `The header ${name} must be ${describe(value)}, as in the body, got ${describe(sent)}.`
    if (sent !== value) return failure(id, -32_020, message, 400)
  }
  return true
}

function success(id: Message['id'], result: object, isNewest: boolean): Answer {
  const envelope = isNewest && { resultType: 'complete', _meta: { [`${META}serverInfo`]: SERVER_INFO } }
  return rpcAnswer(200, id, { result: { ...result, ...envelope } })
}

function failure(id: Message['id'], code: number, message: string, status = 200, data?: object): Answer {
  return rpcAnswer(status, id, { error: { code, message, data } })
}

function rpcAnswer(status: number, id: Message['id'], outcome: object): Answer {
  const idField = id === undefined ? '' : `"id":${typeof id === 'bigint' ? id : JSON.stringify(id)},`
  return { status, ...jsonContent(`{"jsonrpc":"2.0",${idField}${JSON.stringify(outcome).slice(1)}`) }
}

const LOOPBACK = /^https?:\/\/(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/

/**
 * Creates a check that refuses pages of other sites at this path, as DNS rebinding would bring them. Own are the base address, the browser's
 * own machine, and the address that was called if it is an IP address: a name could be the attacker's.
 */
function createOriginCheck(config: Config, path: string): (call: PageCall) => Refusal | undefined {
  const base = ownBaseUrl(config)
  const own = base && new URL(base).origin
  return (call) => {
    const { protocol, host, request } = call
    const { origin } = request.headers
    if (origin === undefined || decodeURI(request.url!.split('?', 1)[0]!) !== path) return undefined
    if (origin === own || LOOPBACK.test(origin) || (origin === `${protocol}://${host}` && isOwnName(host)))
      return undefined
    call.sameOrigin = true
    return new Refusal('foreign_origin', `Pages of ${quote(origin)} may not call ${path}.`)
  }
}
