// Which operation is meant, and which paths and methods exist: 404, 405 with Allow, and OPTIONS are answered from the routes.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { BASE_PATH, OPERATIONS } from '../contract/operations.ts'
import { contentOf } from './answer.ts'
import type { Answer, Route } from './call.ts'
import { preflightHeaders } from './cors.ts'

const OPERATION_PATHS = OPERATIONS.map((operation) => ({ operation, parts: (BASE_PATH + operation.path).split('/') }))

/** The operation that a request is for; `url` is in origin form. */
export function findOperation(method: string, url: string): Route | undefined {
  const mark = url.indexOf('?')
  const came = decodedParts(mark === -1 ? url : url.slice(0, mark))
  const wanted = isRead(method) ? 'GET' : method
  for (const { operation, parts } of OPERATION_PATHS) {
    if (operation.method !== wanted || !fits(parts, came)) continue
    const parameter = came[parts.findIndex(isParameter)]
    return { operation, parameter, query: mark === -1 ? '' : url.slice(mark + 1) }
  }
  return undefined
}

/** Decoded one by one: a slash that was encoded is part of a name. */
function decodedParts(path: string): string[] {
  return path.split('/').map(decodeURIComponent)
}

function isParameter(part: string): boolean {
  return part.startsWith('{') || part.startsWith(':')
}

/** A parameter takes one part of the path, and not an empty one. */
function fits(expected: readonly string[], came: readonly string[]): boolean {
  return expected.length === came.length && expected.every((part, index) => (isParameter(part) ? came[index] !== '' : came[index] === part))
}

/** HEAD is a GET whose body stays behind. */
export function isRead(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD'
}

interface KnownPath {
  parts: string[]
  methods: Set<string>
}

/** A page for people, made elsewhere: http knows no pages. */
export type NotFoundPage = (request: FastifyRequest) => { headers: Record<string, string>; type: string; body: string }

/** Knows the operations, and learns every other route as it is registered; call it before the first. */
export function createRouteTable(app: FastifyInstance, notFoundPage: NotFoundPage) {
  const paths = new Map<string, KnownPath>()

  function learn(url: string, methods: readonly string[]): void {
    const known = paths.get(url) ?? { parts: url.split('/'), methods: new Set(['OPTIONS']) }
    for (const name of methods) known.methods.add(name)
    paths.set(url, known)
  }
  for (const { path, method } of OPERATIONS) learn(BASE_PATH + path, method === 'GET' ? ['GET', 'HEAD'] : [method])
  app.addHook('onRoute', ({ url, method }) => learn(url, [method].flat()))

  function allowedMethods(path: string): string | undefined {
    const came = decodedParts(path)
    const known = paths.get(path) ?? [...paths.values()].find(({ parts }) => fits(parts, came))
    return known && [...known.methods].toSorted().join(', ')
  }

  /** The answer where no route took the request. */
  return function unrouted(request: FastifyRequest): Answer | Refusal {
    const encoded = request.raw.url?.split('?', 1)[0] ?? '/'
    // Decoded as the router does it: a slash or question mark that was encoded stays so.
    const path = decodeURI(encoded)
    const allow = path === '/*' && request.method === 'OPTIONS' ? 'GET, HEAD, OPTIONS, POST' : allowedMethods(encoded)
    if (allow === undefined && asksForPage(request, path)) {
      const { headers, type, body } = notFoundPage(request)
      const content = contentOf(body, type)
      return { status: 404, headers: [...Object.entries(headers).flat(), ...content.headers], body: content.body }
    }
    if (allow === undefined) return { code: 'unknown_path', message: `There is nothing at ${quote(path)}.` }
    if (request.method !== 'OPTIONS') {
      const message = `${request.method} is not possible at ${quote(path)}; it takes ${allow}.`
      return { code: 'method_not_allowed', message, headers: ['Allow', allow] }
    }
    const preflight = request.headers['access-control-request-method'] !== undefined
    return { status: 204, headers: ['Allow', allow, ...(preflight ? preflightHeaders(allow) : [])], body: undefined }
  }
}

/** A browser that was led astray; what calls the interface gets the Error body, whatever it says it takes. */
function asksForPage({ method, headers }: FastifyRequest, path: string): boolean {
  return isRead(method) && !path.startsWith(BASE_PATH) && /\btext\/html\b/.test(headers.accept ?? '')
}

/**
 * The request's target as path and query. A client may send the whole address (RFC 9112, 3.2.2), and a fragment is not
 * part of it. A path that can't be decoded is taken literally: then it is an animal that is not there, like any other.
 */
export function originForm(target: string): string {
  if (target.startsWith('/') && !/[%#]/.test(target)) return target
  // The router would take a target without a slash at its start, such as *, for the one behind its first character.
  const [url = ''] = target.replace(/^(?:https?:\/\/[^/?#]*)?\/?/i, '/').split('#', 1)
  const [path = '', ...query] = url.split('?')
  try {
    decodeURIComponent(path)
    return url
  } catch {
    return [path.replaceAll('%', '%25'), ...query].join('?')
  }
}
