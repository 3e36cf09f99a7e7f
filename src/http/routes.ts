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
  const path = mark === -1 ? url : url.slice(0, mark)
  const parts = path.split('/')
  const wanted = method === 'HEAD' ? 'GET' : method
  for (const { operation, parts: expected } of OPERATION_PATHS) {
    if (operation.method !== wanted || expected.length !== parts.length) continue
    let parameter: string | undefined
    const fits = expected.every((part, index) => {
      const came = decodeURIComponent(parts[index]!)
      if (!part.startsWith('{')) return came === part
      parameter = came
      return came !== ''
    })
    if (fits) return { operation, parameter, query: mark === -1 ? '' : url.slice(mark + 1) }
  }
  return undefined
}

interface KnownPath {
  matches: RegExp
  methods: Set<string>
}

/** A page for people, made elsewhere: http knows no pages. */
export type NotFoundPage = (request: FastifyRequest) => { headers: Record<string, string>; type: string; body: string }

/** Knows the operations, and learns every other route as it is registered; call it before the first. */
export function createRouteTable(app: FastifyInstance, notFoundPage: NotFoundPage) {
  const paths = new Map<string, KnownPath>()

  function learn(url: string, methods: readonly string[]): void {
    const known = paths.get(url) ?? { matches: pathPattern(url), methods: new Set(['OPTIONS']) }
    for (const name of methods) known.methods.add(name)
    paths.set(url, known)
  }
  for (const { path, method } of OPERATIONS) learn(BASE_PATH + path.replace(/\{(\w+)\}/, ':$1'), method === 'GET' ? ['GET', 'HEAD'] : [method])
  app.addHook('onRoute', ({ url, method }) => learn(url, [method].flat()))

  function allowedMethods(path: string): string | undefined {
    const known = paths.get(path) ?? [...paths.values()].find(({ matches }) => matches.test(path))
    return known && [...known.methods].toSorted().join(', ')
  }

  /** The answer where no route took the request. */
  return function unrouted(request: FastifyRequest): Answer | Refusal {
    // Decoded as the router does it: a slash or question mark that was encoded stays so.
    const path = decodeURI(request.raw.url?.split('?', 1)[0] ?? '/')
    const allow = path === '/*' && request.method === 'OPTIONS' ? 'GET, HEAD, OPTIONS, POST' : allowedMethods(path)
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
  const isRead = method === 'GET' || method === 'HEAD'
  return isRead && !path.startsWith(BASE_PATH) && /\btext\/html\b/.test(headers.accept ?? '')
}

/** `/v1/pets/:petId` as an expression; a parameter is one part of the path, and not empty. */
function pathPattern(url: string): RegExp {
  const parts = url.split('/').map((part) => (part.startsWith(':') ? '[^/]+' : RegExp.escape(part)))
  return new RegExp(`^${parts.join('/')}$`)
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
