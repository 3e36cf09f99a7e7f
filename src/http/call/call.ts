// A request as the pipeline and the pages see it, and its answer: their types, the request's id and trace, and what is logged of a request.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Refusal } from '../../contract/errors.ts'
import type { Operation, OperationId } from '../../contract/operations.ts'
import { redactSecrets } from '../../contract/text/redact.ts'
import type { ApiKey } from '../../store/account-store.ts'
import type { ClientAddress, Origin } from './client-address.ts'

export interface Call {
  readonly id: string
  readonly request: IncomingMessage
  /** The client's address: behind trusted proxies, the one that they forward. */
  readonly ip: string
  /** Undefined if it is unknown when the request arrived. */
  readonly startedAt?: number | undefined
  /** Undefined if the request is not for an operation. */
  readonly operation?: Operation | undefined
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
  /** Whether a refusal is shown as a page (answers/content.ts), not as an Error body. */
  showsPage?: boolean | undefined
  /** Renders the result of an operation for another protocol (mcp.ts). The result itself is recorded. */
  present?: ((result: Result) => Answer) | undefined
}

/** The operation that a method and URL match. */
export interface Route {
  operation: Operation & { id: OperationId }
  /** The values of the path's parameters, by name. */
  parameters: Record<string, string>
  /** What follows the question mark. */
  query: string
}

export interface Arrival {
  request: IncomingMessage
  response: ServerResponse
  at: number
}

export class OperationCall implements Call {
  readonly id: string
  readonly request: IncomingMessage
  readonly route: Route
  readonly operation: Route['operation']
  readonly startedAt: number
  readonly #clientAddress: ClientAddress
  caller: ApiKey | undefined
  refusedKey: ApiKey | undefined
  answerHeaders: readonly string[] | undefined
  rehearsed: boolean | undefined
  disconnects: boolean | undefined

  constructor({ request, at }: Arrival, route: Route, clientAddress: ClientAddress) {
    this.id = requestId(request)
    this.request = request
    this.route = route
    this.operation = route.operation
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

const SANE_ID = /^[\w.:/+=-]{1,128}$/

/** Returns the id for the answer and the log line. A well-formed id from the client is kept, so that traces continue. */
export function requestId(request: IncomingMessage): string {
  const incoming = request.headers['request-id']
  return typeof incoming === 'string' && SANE_ID.test(incoming) && redactSecrets(incoming) === incoming
    ? incoming
    : randomUUID()
}

/** The form of W3C Trace Context. Only a version after 00 may have further fields. */
const TRACEPARENT = /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-[\da-f]([\da-f])(?:-|$)/

/** Parses a traceparent header, by which a request takes part in the trace of its client. Returns undefined if it is missing or malformed. */
export function parseTraceparent(header: string | string[] | undefined) {
  const [, traceId, spanId, flags] = (typeof header === 'string' && TRACEPARENT.exec(header)) || []
  return traceId === undefined ? undefined : { traceId, spanId, isSampled: parseInt(flags!, 16) % 2 === 1 }
}

/** Returns what is logged of a request. Leaves out the query and the headers: a key sent in the wrong place must not be logged. */
export function loggedRequest({ method, url }: IncomingMessage): { method: string; path: string } {
  return { method: method!, path: redactSecrets(url!.split('?', 1)[0]!) }
}

/** Returns whether the browser says that a page of another origin caused the request. Over plain HTTP it may not say so. */
export function isFromOtherSite({ request }: Call): boolean {
  const site = request.headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin' && site !== 'none'
}
