// Finds the route of a request. If there is none, makes the answer: 404, 405 with Allow, or OPTIONS. An operation that is deprecated
// says so in every answer (RFC 9745, RFC 8594), and answers 410 from its removal date on.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Refusal } from '../../contract/errors.ts'
import { quote } from '../../contract/json.ts'
import { BASE_PATH, isRemoved, type Operation, OPERATIONS } from '../../contract/operations.ts'
import { type Answer, type Call, type PageCall, requestId, type Result, type Route } from './call.ts'

/**
 * CORS: a preflight allows everything, so that a page gets the real answer, such as a 404 or 405, and not only "Failed to
 * fetch". `*` never covers Authorization.
 */
const PREFLIGHT_HEADERS: readonly string[] = [
  'Access-Control-Allow-Methods',
  '*',
  'Access-Control-Allow-Headers',
  '*, Authorization',
  'Access-Control-Max-Age',
  '7200',
]

/** A route that is not an operation: a health check, the OpenAPI document or a page of the console. */
export interface PageRoute {
  method: 'GET' | 'POST'
  /** A part in braces is a parameter. */
  path: string
  /** Who may send the request: anyone, or only visitors who are signed in to the console. The console checks that. */
  access: 'public' | 'session'
  /** Returns the answer. `response` only shows when the client has disconnected or received its answer. */
  answer: (call: PageCall, response: ServerResponse) => Result | Promise<Result>
}

/** The routes of the console. */
export interface Pages {
  routes: readonly PageRoute[]
  /** Returns what a browser is shown for an unknown address outside the API. */
  notFound: (call: PageCall) => Promise<Answer>
}

export type Table<R> = readonly (R & { method: string; pattern: RegExp; names: readonly string[] })[]

const PARAMETER = /\{(\w+)\}/g

/** A parameter matches one part of the path, which must not be empty. */
export function tableOf<R extends { method: string; path: string }>(routes: readonly R[]): Table<R> {
  const sourceOf = (path: string) => path.replaceAll('.', String.raw`\.`).replaceAll(PARAMETER, '([^/]+)')
  return routes.map((route) => ({
    ...route,
    pattern: new RegExp(`^${sourceOf(route.path)}$`),
    names: Array.from(route.path.matchAll(PARAMETER), ([, name]) => name!),
  }))
}

const OPERATION_TABLE = tableOf(
  OPERATIONS.map((operation) => ({ operation, method: operation.method, path: BASE_PATH + operation.path })),
)

const OPERATION_ADDRESSES = [...new Set(OPERATION_TABLE.map(({ path }) => path))].join(' and ')

/** Returns the operation that a request is for; `url` is in origin form. */
export function findOperation(method: string, url: string): Route | undefined {
  const found = findRoute(OPERATION_TABLE, method, url)
  return found && { operation: found.route.operation, parameters: found.parameters, query: found.query }
}

/** Returns the first route that matches, with its path parameters and the query; `url` is in origin form. */
export function findRoute<R>(table: Table<R>, method: string, url: string) {
  const mark = url.indexOf('?')
  const path = normalForm(mark === -1 ? url : url.slice(0, mark))
  const wanted = isRead(method) ? 'GET' : method
  for (const route of table) {
    const match = route.method === wanted ? route.pattern.exec(path) : null
    if (match === null) continue
    const parameters: Record<string, string> = {}
    for (const name of route.names) parameters[name] = decodePart(match[1 + route.names.indexOf(name)]!)
    return { route, parameters, query: mark === -1 ? '' : url.slice(mark + 1) }
  }
  return undefined
}

/** Decodes what needs no encoding, part by part: an encoded slash does not separate parts. */
function normalForm(path: string): string {
  const normalPart = (part: string) => encodeURIComponent(decodePart(part).toWellFormed())
  return path.includes('%') ? path.split('/').map(normalPart).join('/') : path
}

function decodePart(part: string): string {
  return part.includes('%') ? decodeURIComponent(part) : part
}

/** Returns whether the method only reads. HEAD is a GET without the body. */
export function isRead(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** Returns the `Allow` header of these routes: one for GET also accepts HEAD. */
function allowHeader(routes: readonly { method: string }[]): string {
  const methods = routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  return [...new Set(['OPTIONS', ...methods])].toSorted().join(', ')
}

/** The `Allow` header of the server as a whole, for `OPTIONS *`. */
export const ALL_METHODS = allowHeader(OPERATIONS)

/** Returns the answer for a request that is for no operation and no route of the table. */
export function unrouted(call: PageCall, table: Table<PageRoute>, { notFound }: Pages): Result | Promise<Answer> {
  const { method = '', url = '/' } = call.request
  const encoded = url.split('?', 1)[0]!
  const path = pathOf(call.request)
  const allow = path === '/*' && method === 'OPTIONS' ? ALL_METHODS : allowedMethods(encoded, table)
  if (allow === undefined && call.showsPage) return notFound(call)
  if (method === 'OPTIONS' && (allow !== undefined || (isPreflight(call) && isBelowBase(path)))) {
    const headers = allow === undefined ? [] : ['Allow', allow]
    if (isPreflight(call)) headers.push(...PREFLIGHT_HEADERS)
    return { status: 204, headers, body: undefined }
  }
  if (allow === undefined) {
    return new Refusal(
      'unknown_path',
      `There is nothing at ${quote(path)}; the operations are at ${OPERATION_ADDRESSES}.`,
    )
  }
  return methodNotAllowed(method, path, allow)
}

export function methodNotAllowed(method: string, path: string, allow: string): Refusal {
  const message = `${method} is not allowed at ${quote(path)}; allowed are ${allow}.`
  return new Refusal('method_not_allowed', message, ['Allow', allow])
}

function allowedMethods(path: string, table: Table<PageRoute>): string | undefined {
  const matching = [...OPERATION_TABLE, ...table].filter(({ pattern }) => pattern.test(normalForm(path)))
  return matching.length === 0 ? undefined : allowHeader(matching)
}

/** Returns whether this is a CORS preflight: a browser sends one before a page's cross-origin request. */
function isPreflight({ request: { method, headers } }: Call): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
}

function isBelowBase(path: string): boolean {
  return path === BASE_PATH || path.startsWith(`${BASE_PATH}/`)
}

/** The paths outside the API that programs ask, whose answers are JSON. */
const FOR_PROGRAMS: ReadonlySet<string> = new Set(['/livez', '/readyz', '/openapi.json', '/mcp'])

const HTML_OR_JSON = /\b(?:text\/html|application\/json)\b/i

/** Returns whether a client prefers HTML to JSON: browsers name it, programs name JSON first or take anything. */
export function prefersHtml({ headers }: IncomingMessage): boolean {
  return HTML_OR_JSON.exec(headers.accept ?? '')?.[0].toLowerCase() === 'text/html'
}

/** Returns whether a refusal of the request is shown as a page. The API, and other paths for programs, answer with an Error body. */
export function asksForPage(request: IncomingMessage): boolean {
  if (!prefersHtml(request)) return false
  const path = pathOf(request)
  return !isBelowBase(path) && !FOR_PROGRAMS.has(path)
}

/** Returns the path, with an encoded slash or question mark left encoded. */
function pathOf({ url }: IncomingMessage): string {
  return decodeURI(originForm(url!).split('?', 1)[0]!)
}

/** Returns the call of a request that is answered outside the usual path: its body broke off, or serving it threw. */
export function strayCall(request: IncomingMessage, startedAt?: number): Call {
  const { operation } = findOperation(request.method!, originForm(request.url!)) ?? {}
  const ip = request.socket.remoteAddress ?? ''
  const sameOrigin = !isBelowBase(pathOf(request))
  return { id: requestId(request), request, ip, startedAt, operation, sameOrigin, showsPage: asksForPage(request) }
}

/**
 * Returns the request target in origin form: path and query. A client may send an absolute URL (RFC 9112, 3.2.2); a fragment is
 * dropped. A path that cannot be decoded is taken literally, so it names an animal that does not exist.
 */
export function originForm(target: string): string {
  if (target.startsWith('/') && !/[%#]/.test(target)) return target
  // Makes the target start with a slash: `*` becomes `/*`.
  const [url = ''] = target.replace(/^(?:https?:\/\/[^/?#]*)?\/?/i, '/').split('#', 1)
  const [path = '', ...query] = url.split('?')
  try {
    decodeURIComponent(path)
    return url
  } catch {
    return [path.replaceAll('%', '%25'), ...query].join('?')
  }
}

/** Returns the headers that mark an operation as deprecated. The links are relative if no `baseUrl` is configured. */
export function deprecationHeaders(operation: Operation, baseUrl: string | undefined): readonly string[] {
  if (operation.deprecation === undefined) return []
  const { since, sunset, documentation, successor } = operation.deprecation
  const base = baseUrl ?? BASE_PATH
  const root = base.slice(0, -BASE_PATH.length)
  return [
    'Deprecation',
    `@${since / 1000}`,
    'Sunset',
    new Date(sunset).toUTCString(),
    'Link',
    `<${root}${documentation}>; rel="deprecation"; type="text/html", <${base}${successor}>; rel="successor-version"`,
  ]
}

export function createRemovedCheck(clock: () => number) {
  return ({ operation }: Call): Refusal | undefined => {
    if (operation === undefined || !isRemoved(operation, clock())) return undefined
    const { sunset, successor } = operation.deprecation!
    const message = `${operation.id} was removed on ${new Date(sunset).toISOString().slice(0, 10)}. Use GET ${BASE_PATH}${successor} instead.`
    return new Refusal('operation_removed', message)
  }
}
