// Which route a request is for, and which paths and methods exist: 404, 405 with Allow, and OPTIONS come from here.
import type { ServerResponse } from 'node:http'
import { Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { BASE_PATH, OPERATIONS } from '../contract/operations.ts'
import type { Answer, Call, PageCall, Result, Route } from './call.ts'
import { PREFLIGHT_HEADERS } from './cors.ts'

/** A route beside the operations, which all need a key. */
export interface PageRoute {
  method: 'GET' | 'POST'
  /** A part in braces is a parameter. */
  path: string
  /** Who may ask: anyone, or visitors who are signed in to the console, which checks that. */
  access: 'public' | 'session'
  /** `response` shows when the client has left, or has its answer; the answer itself is what this returns. */
  answer: (call: PageCall, response: ServerResponse) => Result | Promise<Result>
}

/** The console as http knows it. */
export interface Pages {
  routes: readonly PageRoute[]
  /** Returns what a browser is shown for an unknown address outside the interface. */
  notFound: (call: PageCall) => Promise<Answer>
}

export type Table<R> = readonly (R & { method: string; parts: readonly string[] })[]

export function tableOf<R extends { method: string; path: string }>(routes: readonly R[]): Table<R> {
  return routes.map((route) => ({ ...route, parts: route.path.split('/') }))
}

const OPERATION_TABLE = tableOf(
  OPERATIONS.map((operation) => ({ operation, method: operation.method, path: BASE_PATH + operation.path })),
)

const OPERATION_ADDRESSES = new Intl.ListFormat('en').format(new Set(OPERATION_TABLE.map(({ path }) => path)))

/** Returns the operation that a request is for; `url` is in origin form. */
export function findOperation(method: string, url: string): Route | undefined {
  const found = findRoute(OPERATION_TABLE, method, url)
  return found && { operation: found.route.operation, parameters: found.parameters, query: found.query }
}

/** Returns the first route that fits, and what the address tells it; `url` is in origin form. */
export function findRoute<R>(table: Table<R>, method: string, url: string) {
  const mark = url.indexOf('?')
  const came = decodedParts(mark === -1 ? url : url.slice(0, mark))
  const wanted = isRead(method) ? 'GET' : method
  const route = table.find((candidate) => candidate.method === wanted && fits(candidate.parts, came))
  if (route === undefined) return undefined
  return { route, parameters: parametersOf(route.parts, came), query: mark === -1 ? '' : url.slice(mark + 1) }
}

/** Takes the values of `{name}` from their places in the path. */
function parametersOf(parts: readonly string[], came: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    parts.flatMap((part, index) => (isParameter(part) ? [[part.slice(1, -1), came[index]!]] : [])),
  )
}

/** Decodes part by part: an encoded slash belongs to its part. */
function decodedParts(path: string): string[] {
  return path.split('/').map(decodeURIComponent)
}

function isParameter(part: string): boolean {
  return part.startsWith('{')
}

/** A parameter matches one part of the path, and not an empty one. */
function fits(expected: readonly string[], came: readonly string[]): boolean {
  return (
    expected.length === came.length &&
    expected.every((part, index) => (isParameter(part) ? came[index] !== '' : came[index] === part))
  )
}

/** HEAD is a GET without the body. */
export function isRead(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** What a method of the interface is served under: HEAD comes with GET. */
function methodsOf(method: string): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

/** `Allow` for the server as a whole, as in `OPTIONS *`. */
export const ALL_METHODS = allowHeader(['OPTIONS', ...OPERATIONS.flatMap(({ method }) => methodsOf(method))])

function allowHeader(methods: Iterable<string>): string {
  return [...new Set(methods)].toSorted().join(', ')
}

/** Returns the answer for a request that is for no operation and no route of the table. */
export function unrouted(
  call: PageCall,
  table: Table<PageRoute>,
  notFound: Pages['notFound'],
): Result | Promise<Answer> {
  const { method = '', url = '/' } = call.raw
  const encoded = url.split('?', 1)[0]!
  // An encoded slash or question mark stays encoded.
  const path = decodeURI(encoded)
  const allow = path === '/*' && method === 'OPTIONS' ? ALL_METHODS : allowedMethods(encoded, table)
  if (allow === undefined && asksForPage(call, path)) return notFound(call)
  if (isPreflight(call) && (allow !== undefined || isBelowBase(path))) {
    return {
      status: 204,
      headers: [...(allow === undefined ? [] : ['Allow', allow]), ...PREFLIGHT_HEADERS],
      body: undefined,
    }
  }
  if (allow === undefined) {
    const near = nearestPath(encoded)
    const hint = near === undefined ? '; the' : `; did you mean ${near}? The`
    return new Refusal(
      'unknown_path',
      `There is nothing at ${quote(path)}${hint} operations are at ${OPERATION_ADDRESSES}.`,
    )
  }
  if (method !== 'OPTIONS') {
    const message = `${method} is not allowed at ${quote(path)}; allowed are ${allow}.`
    return new Refusal('method_not_allowed', message, ['Allow', allow])
  }
  return { status: 204, headers: ['Allow', allow], body: undefined }
}

function allowedMethods(path: string, table: Table<PageRoute>): string | undefined {
  const came = decodedParts(path)
  const fitting = [...OPERATION_TABLE, ...table].filter(({ parts }) => fits(parts, came))
  if (fitting.length === 0) return undefined
  return allowHeader(['OPTIONS', ...fitting.flatMap(({ method }) => methodsOf(method))])
}

/** A browser asks before it sends a page's request. */
function isPreflight({ raw: { method, headers } }: Call): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
}

function isBelowBase(path: string): boolean {
  return path === BASE_PATH || path.startsWith(`${BASE_PATH}/`)
}

/** Returns the address that was probably meant: without the base path, with a slash at the end, or the base path alone. */
function nearestPath(path: string): string | undefined {
  const trimmed = path.endsWith('/') ? path.slice(0, -1) : path
  if (trimmed === BASE_PATH) return BASE_PATH + OPERATIONS[0]!.path
  return [trimmed, BASE_PATH + trimmed].find((candidate) =>
    OPERATION_TABLE.some(({ parts }) => fits(parts, decodedParts(candidate))),
  )
}

/** A browser at a wrong address; a caller of the interface gets the Error body, whatever it accepts. */
function asksForPage({ raw: { method, headers } }: Call, path: string): boolean {
  return isRead(method) && !path.startsWith(BASE_PATH) && /\btext\/html\b/.test(headers.accept ?? '')
}

/**
 * Returns the request's target as path and query. A client may send the whole address (RFC 9112, 3.2.2), and a fragment is
 * not part of it. A path that cannot be decoded is taken literally: it is then an animal that does not exist, like any other.
 */
export function originForm(target: string): string {
  if (target.startsWith('/') && !/[%#]/.test(target)) return target
  // Without a slash at its start, as in *, the first character of the target would be dropped.
  const [url = ''] = target.replace(/^(?:https?:\/\/[^/?#]*)?\/?/i, '/').split('#', 1)
  const [path = '', ...query] = url.split('?')
  try {
    decodeURIComponent(path)
    return url
  } catch {
    return [path.replaceAll('%', '%25'), ...query].join('?')
  }
}
