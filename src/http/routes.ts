// Which operation a request is for, and which paths and methods exist: 404, 405 with Allow, and OPTIONS come from here.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { BASE_PATH, OPERATIONS } from '../contract/operations.ts'
import { contentOf } from './answer.ts'
import type { Answer, Route } from './call.ts'
import { PREFLIGHT_HEADERS } from './cors.ts'

const OPERATION_PATHS = OPERATIONS.map((operation) => ({ operation, parts: (BASE_PATH + operation.path).split('/') }))

const OPERATION_ADDRESSES = new Intl.ListFormat('en').format(new Set(OPERATIONS.map(({ path }) => BASE_PATH + path)))

/** Returns the operation that a request is for; `url` is in origin form. */
export function findOperation(method: string, url: string): Route | undefined {
  const mark = url.indexOf('?')
  const came = decodedParts(mark === -1 ? url : url.slice(0, mark))
  const wanted = isRead(method) ? 'GET' : method
  for (const { operation, parts } of OPERATION_PATHS) {
    if (operation.method !== wanted || !fits(parts, came)) continue
    return { operation, parameters: parametersOf(parts, came), query: mark === -1 ? '' : url.slice(mark + 1) }
  }
  return undefined
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
  return part.startsWith('{') || part.startsWith(':')
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

interface KnownPath {
  parts: string[]
  methods: Set<string>
}

/** A page for people, made elsewhere: http knows no pages. */
export type NotFoundPage = (request: FastifyRequest) => { headers: Record<string, string>; type: string; body: string }

/** Knows the operations, and learns every other route when it is registered; call it before the first. */
export function createRouteTable(app: FastifyInstance, notFoundPage: NotFoundPage) {
  const paths = new Map<string, KnownPath>()

  function learn(url: string, methods: readonly string[]): void {
    const known = paths.get(url) ?? { parts: url.split('/'), methods: new Set(['OPTIONS']) }
    for (const name of methods) known.methods.add(name)
    paths.set(url, known)
  }
  for (const { path, method } of OPERATIONS) learn(BASE_PATH + path, methodsOf(method))
  app.addHook('onRoute', ({ url, method }) => learn(url, [method].flat()))

  function allowedMethods(path: string): string | undefined {
    const came = decodedParts(path)
    const known = paths.get(path) ?? [...paths.values()].find(({ parts }) => fits(parts, came))
    return known && allowHeader(known.methods)
  }

  /** Returns the answer for a request that no route took. */
  return function unrouted(request: FastifyRequest): Answer | Refusal {
    const encoded = request.raw.url?.split('?', 1)[0] ?? '/'
    // Decoded as the router does it: an encoded slash or question mark stays encoded.
    const path = decodeURI(encoded)
    const allow = path === '/*' && request.method === 'OPTIONS' ? ALL_METHODS : allowedMethods(encoded)
    if (allow === undefined && asksForPage(request, path)) {
      const { headers, type, body } = notFoundPage(request)
      const content = contentOf(body, type)
      return { status: 404, headers: [...Object.entries(headers).flat(), ...content.headers], body: content.body }
    }
    if (isPreflight(request) && (allow !== undefined || isBelowBase(path))) {
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
    if (request.method !== 'OPTIONS') {
      const message = `${request.method} is not allowed at ${quote(path)}; allowed are ${allow}.`
      return new Refusal('method_not_allowed', message, ['Allow', allow])
    }
    return { status: 204, headers: ['Allow', allow], body: undefined }
  }
}

/** A browser asks before it sends a page's request. */
function isPreflight({ method, headers }: FastifyRequest): boolean {
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
    OPERATION_PATHS.some(({ parts }) => fits(parts, decodedParts(candidate))),
  )
}

/** A browser at a wrong address; a caller of the interface gets the Error body, whatever it accepts. */
function asksForPage({ method, headers }: FastifyRequest, path: string): boolean {
  return isRead(method) && !path.startsWith(BASE_PATH) && /\btext\/html\b/.test(headers.accept ?? '')
}

/**
 * Returns the request's target as path and query. A client may send the whole address (RFC 9112, 3.2.2), and a fragment is
 * not part of it. A path that cannot be decoded is taken literally: it is then an animal that does not exist, like any other.
 */
export function originForm(target: string): string {
  if (target.startsWith('/') && !/[%#]/.test(target)) return target
  // Without a slash at its start, as in *, the router would drop the first character of the target.
  const [url = ''] = target.replace(/^(?:https?:\/\/[^/?#]*)?\/?/i, '/').split('#', 1)
  const [path = '', ...query] = url.split('?')
  try {
    decodeURIComponent(path)
    return url
  } catch {
    return [path.replaceAll('%', '%25'), ...query].join('?')
  }
}
