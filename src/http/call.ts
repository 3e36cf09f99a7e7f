// A request as the pipeline and the pages see it, and its answer: their types, the request's id, the check of its framing, the
// address of its client, and whether the client accepts gzip or prefers HTML.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import proxyAddr from '@fastify/proxy-addr'
import { Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import type { Operation, OperationId } from '../contract/operations.ts'
import { redactSecrets } from '../contract/redact.ts'
import type { ApiKey } from '../store/account-store.ts'

/** A request that is being answered. */
export interface Call {
  readonly id: string
  readonly request: IncomingMessage
  /** The client's address: behind trusted proxies, the one that they forward. */
  readonly ip: string
  readonly startedAt: number
  /** Undefined if the request is not for an operation. */
  readonly operation?: Operation
  /** The path of the route of a page, such as `/animals/{id}`. */
  readonly page?: string | undefined
  /** The API key of the caller, known after the key check. */
  caller?: ApiKey | undefined
  /** A revoked or expired key that was refused. Its owner sees the refusal in the console. */
  refusedKey?: ApiKey | undefined
  /** Whether the client asked for a rehearsed failure (rehearse.ts), and whether this failure cuts the connection. */
  rehearsed?: boolean | undefined
  disconnects?: boolean | undefined
  /** Headers that a step adds to any answer. */
  answerHeaders?: readonly string[] | undefined
  /** Whether only pages of the same origin may read the answer: it gets no CORS headers. */
  sameOrigin?: boolean | undefined
  /** Whether a refusal is shown as a page (error-page.ts), not as an Error body. */
  showsPage?: boolean | undefined
  /** Renders the result of an operation for another protocol (mcp.ts). The result itself is recorded. */
  present?: ((result: Result) => Answer) | undefined
}

/** The address of the service that a client uses. */
interface Origin {
  readonly protocol: string
  readonly host: string
  /** Whether an untrusted proxy forwarded the request. Its forwarding headers are ignored. */
  readonly untrustedProxy: boolean
}

/** The operation that a method and URL match. */
export interface Route {
  operation: Operation & { id: OperationId }
  /** The values of the path's parameters, by name. */
  parameters: Record<string, string>
  /** What follows the question mark. */
  query: string
}

/** A request, its response, and when the request arrived. */
export interface Arrival {
  request: IncomingMessage
  response: ServerResponse
  at: number
}

/** A request for an operation. */
export class OperationCall implements Call {
  readonly id: string
  readonly request: IncomingMessage
  readonly route: Route
  readonly operation: Route['operation']
  /** The store's version when the request arrived (answer-cache.ts). */
  readonly version: number | undefined
  readonly startedAt: number
  readonly #clientAddress: ClientAddress
  caller: ApiKey | undefined
  refusedKey: ApiKey | undefined
  answerHeaders: readonly string[] | undefined
  rehearsed: boolean | undefined
  disconnects: boolean | undefined

  constructor({ request, at }: Arrival, route: Route, version: number | undefined, clientAddress: ClientAddress) {
    this.id = requestId(request)
    this.request = request
    this.route = route
    this.operation = route.operation
    this.version = version
    this.startedAt = at
    this.#clientAddress = clientAddress
  }

  get ip(): string {
    return this.#clientAddress(this.request)
  }
}

/** A request that is not for an operation: a health check, the OpenAPI document, a page of the console. */
export type PageCall = Call & Origin & Omit<Route, 'operation'>

/** A body as a string with one character per byte (latin1). Node writes it 10 % faster than a Buffer. */
export type Bytes = string & { readonly bytes: unique symbol }

export interface Answer {
  status: number
  /** Names and values in turn, in one list, which Node writes fastest. */
  headers: readonly string[]
  /** A stream is sent while it is read; if it fails, the connection is cut. */
  body: Bytes | Buffer | Readable | undefined
  /** The Cache-Control header. Without it the answer must be revalidated before each use. */
  cache?: string
}

export type Result = Answer | Refusal

export type Handler = (call: OperationCall) => Promise<Result>

/** Returns a refusal, or undefined to let the request pass. */
export type Step = (call: OperationCall) => Refusal | undefined | Promise<Refusal | undefined>

/** Returns whether a header was sent twice. Node keeps only the first value of a header that may be sent once. */
export function cameTwice(call: Call, name: string): boolean {
  const { rawHeaders } = call.request
  let seen = false
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index]!
    if (header.length !== name.length || header.toLowerCase() !== name) continue
    if (seen) return true
    seen = true
  }
  return false
}

const SANE_ID = /^[\w.:/+=-]{1,128}$/

/** Returns the id for the answer and the log line. A well-formed id from the client is kept, so that traces continue. */
export function requestId(request: IncomingMessage): string {
  const incoming = request.headers['request-id']
  return typeof incoming === 'string' && SANE_ID.test(incoming) && redactSecrets(incoming) === incoming
    ? incoming
    : randomUUID()
}

/** Returns what is logged of a request. Leaves out the query and the headers: a key sent in the wrong place must not be logged. */
export function loggedRequest({ method, url }: IncomingMessage): { method: string; path: string } {
  return { method: method!, path: redactSecrets(url!.split('?', 1)[0]!) }
}

const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/

/** Refuses a request that breaks a rule of HTTP which Node does not check. */
export function checkFraming(call: Call): Refusal | undefined {
  const { httpVersion, httpVersionMajor, headers } = call.request
  const { host, 'transfer-encoding': coding = 'chunked' } = headers
  if (httpVersionMajor !== 1) return malformed(`The request must be HTTP/1.1, got HTTP/${httpVersion}.`)
  if (host === undefined && httpVersion !== '1.0') return malformed('The Host header is missing.')
  if (host !== undefined && !HOST.test(host)) return malformed(`The Host header is not a host name: ${quote(host)}.`)
  if (cameTwice(call, 'host')) return malformed('The Host header was sent twice.')
  if (!/^chunked$/i.test(coding)) return malformed(`The only Transfer-Encoding is chunked, got ${quote(coding)}.`)
  return undefined
}

function malformed(message: string): Refusal {
  return new Refusal('malformed_request', message, ['Connection', 'close'])
}

/** Returns the address of the client, also behind trusted proxies. It is empty if the client has disconnected. */
type ClientAddress = (request: IncomingMessage) => string

export function createClientAddress(trustProxy: string[] | false): ClientAddress {
  if (trustProxy === false) return ({ socket }) => socket.remoteAddress ?? ''
  const trusted = proxyAddr.compile(trustProxy)
  const trustedWithPort = (address: string | undefined, hop: number) => trusted(withoutPort(address), hop)
  return (request) => withoutPort(proxyAddr(request, trustedWithPort))
}

/** Some proxies append the client's port, as in 192.0.2.7:4711 or [2001:db8::7]:4711, which differs with each connection. */
function withoutPort(address = ''): string {
  return address.replace(/^(?:(\d+(?:\.\d+){3}):\d+|\[([^\]]*)\](?::\d+)?)$/, '$1$2')
}

/** Creates a function that returns the origin of a request: as a trusted proxy forwards it, or else from the Host header. */
export function createOrigin(trustProxy: string[] | false): (request: IncomingMessage) => Origin {
  const trusted = trustProxy === false ? () => false : proxyAddr.compile(trustProxy)
  return ({ headers, socket }) => {
    const isTrusted = trusted(socket.remoteAddress ?? '', 0)
    const forwarded = (name: string) => (isTrusted ? lastOf(headers[name]) : undefined)
    return {
      protocol: forwarded('x-forwarded-proto') ?? 'http',
      host: forwarded('x-forwarded-host') ?? headers.host ?? '',
      untrustedProxy: Boolean(headers['x-forwarded-for']) && !isTrusted,
    }
  }
}

/** Returns the last value of a list in a header: the one that the nearest proxy has appended. */
function lastOf(list: string | string[] | undefined): string | undefined {
  const last = String(list ?? '')
    .split(',')
    .at(-1)!
  return last.trim() || undefined
}

/**
 * Returns whether a client accepts gzip and does not prefer the plain content (RFC 9110, 12.5.3). The weight of gzip takes
 * precedence over that of `*`, and a weight of 0 means not accepted. Only the OpenAPI document and the files of the console
 * are compressed; the answers of operations are small.
 */
export function acceptsGzip({ request }: Call): boolean {
  const weights = weightsOf(request.headers['accept-encoding']?.replaceAll(/\bx-/gi, ''))
  const gzip = weights.get('gzip') ?? weights.get('*') ?? 0
  return gzip > 0 && gzip >= (weights.get('identity') ?? 0)
}

/**
 * Returns whether a client prefers HTML to JSON (RFC 9110, 12.5.1): browsers name it, programs that take anything do not. The most
 * specific range counts, and a weight of 0 means not accepted.
 */
export function prefersHtml({ headers }: IncomingMessage): boolean {
  const { accept } = headers
  // Most programs, and the answers to them, need no more than this.
  if (accept === undefined || !/html|text\/\*/i.test(accept)) return false
  const weights = weightsOf(accept)
  const any = weights.get('*/*') ?? 0
  const html = weights.get('text/html') ?? weights.get('application/xhtml+xml') ?? weights.get('text/*') ?? 0
  return html > 0 && html >= (weights.get('application/json') ?? weights.get('application/*') ?? any)
}

/** Returns the weight of each entry of a list such as `gzip;q=0.5, *`, in lower case. */
function weightsOf(list = ''): Map<string, number> {
  const weights = new Map<string, number>()
  for (const entry of list.toLowerCase().split(',')) {
    const [value = '', ...parameters] = entry.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    weights.set(value, weight === undefined ? 1 : Number(weight.slice(2)))
  }
  return weights
}
