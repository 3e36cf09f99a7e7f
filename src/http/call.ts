// The types of a request as the pipeline and the pages see it, and of its answer.
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { Refusal } from '../contract/errors.ts'
import type { Operation, OperationId } from '../contract/operations.ts'
import type { ApiKey } from '../store/account-store.ts'

/** A request that is being answered. */
export interface Call {
  readonly id: string
  readonly raw: IncomingMessage
  /** The client's address: behind trusted proxies, the one that they forward. */
  readonly ip: string
  readonly startedAt: number
  /** Undefined if the request is not for an operation. */
  readonly operation?: Operation
  /** The API key of the caller, known after the key check. */
  caller?: ApiKey | undefined
  /** A revoked or expired key that was refused. Its owner sees the refusal in the console. */
  refusedKey?: ApiKey | undefined
  /** Whether the client asked for a rehearsed failure (rehearse.ts), and whether that failure cuts the connection. */
  rehearsed?: boolean | undefined
  disconnects?: boolean | undefined
  /** Headers that a step adds to any answer. */
  answerHeaders?: readonly string[] | undefined
  /** Whether only pages of the same origin may read the answer: it gets no CORS headers. */
  sameOrigin?: boolean | undefined
}

/** The address that a client uses. */
export interface Origin {
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

/** A request for an operation. */
export interface OperationCall extends Call {
  readonly operation: Route['operation']
  readonly route: Route
  /** The store's version when the request arrived (answer-cache.ts). */
  readonly version: number | undefined
}

/** A request that is not for an operation: a health check, the OpenAPI document, a page of the console. */
export interface PageCall extends Call, Origin {
  /** The values of the path's parameters, by name. */
  readonly parameters: Record<string, string>
  /** What follows the question mark. */
  readonly query: string
}

/** A body as a string with one character per byte (latin1). Node writes it 10 % faster than a Buffer. */
export type Bytes = string & { readonly bytes: unique symbol }

/** Headers are a flat list of names and values, in turn, which Node writes fastest. */
export interface Answer {
  status: number
  headers: readonly string[]
  /** A stream is sent as it comes; if it fails, the connection is cut. */
  body: Bytes | Buffer | Readable | undefined
  /** Its Cache-Control, unless it must be revalidated each time. */
  cache?: string
}

export type Result = Answer | Refusal

export type Handler = (call: OperationCall) => Promise<Result>

/** Returns a refusal, or undefined to let the request pass. */
export type Step = (call: OperationCall) => Refusal | undefined | Promise<Refusal | undefined>

/** Returns whether a header was sent twice. Of a header that may be sent once, Node keeps only the first. */
export function cameTwice(request: Call, name: string): boolean {
  const { rawHeaders } = request.raw
  let seen = false
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index]!
    if (header.length !== name.length || header.toLowerCase() !== name) continue
    if (seen) return true
    seen = true
  }
  return false
}

/**
 * Returns whether a client accepts gzip and does not prefer the plain content (RFC 9110, 12.5.3). The weight of gzip takes
 * precedence over that of `*`, and a weight of 0 means not accepted.
 */
export function takesGzip({ raw }: Call): boolean {
  const accepted = raw.headers['accept-encoding'] ?? ''
  const weights = new Map<string, number>()
  for (const entry of accepted.toLowerCase().split(',')) {
    const [coding = '', ...parameters] = entry.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    weights.set(coding.replace(/^x-/, ''), weight === undefined ? 1 : Number(weight.slice(2)))
  }
  const gzip = weights.get('gzip') ?? weights.get('*') ?? 0
  return gzip > 0 && gzip >= (weights.get('identity') ?? 0)
}
