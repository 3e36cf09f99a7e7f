// The request as it goes down the pipeline, and the answer that comes up.
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { Refusal } from '../contract/errors.ts'
import type { Operation, OperationId } from '../contract/operations.ts'
import type { ApiKey } from '../store/account-store.ts'

/** A request as it is answered. */
export interface Call {
  readonly id: string
  readonly raw: IncomingMessage
  /** The client's address, also behind trusted proxies. */
  readonly ip: string
  readonly startedAt: number
  /** Undefined outside the interface. */
  readonly operation?: Operation
  /** The API key of the caller, known after the key check. */
  caller?: ApiKey | undefined
  /** The key that was revoked or has expired, so that its owner is shown the refusal. */
  refusedKey?: ApiKey | undefined
  /** Whether the client asked for a rehearsed failure (rehearse.ts), and whether that cuts the connection. */
  rehearsed?: boolean | undefined
  disconnects?: boolean | undefined
  /** Headers that a step puts on the answer, whatever that will be. */
  answerHeaders?: readonly string[] | undefined
  /** Whether the answer is for pages of its own origin alone. */
  sameOrigin?: boolean | undefined
}

/** The address that a client uses. */
export interface Origin {
  readonly protocol: string
  readonly host: string
  /** Whether a proxy that is not trusted has forwarded the request: what it says is ignored. */
  readonly untrustedProxy: boolean
}

/** What an address and method lead to. */
export interface Route {
  operation: Operation & { id: OperationId }
  /** The values of the path's parameters, by name. */
  parameters: Record<string, string>
  /** What follows the question mark. */
  query: string
}

/** A request for one of the operations, on its way down the pipeline. */
export interface OperationCall extends Call {
  readonly operation: Route['operation']
  readonly route: Route
  /** The store's version when the request arrived (answer-cache.ts). */
  readonly version: number | undefined
}

/** A request for anything but an operation: a health check, the document, a page. */
export interface PageCall extends Call, Origin {
  /** The values of the path's parameters, by name. */
  readonly parameters: Record<string, string>
  /** What follows the question mark. */
  readonly query: string
}

/** A body as it goes over the wire, one character per byte (latin1): the form that Node writes fastest, 10 % ahead of a Buffer. */
export type Bytes = string & { readonly bytes: unique symbol }

/** Headers are a flat list, name and value in turn: the form that Node writes fastest. */
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

/** A step lets the request pass, or refuses it. */
export type Step = (call: OperationCall) => Refusal | undefined | Promise<Refusal | undefined>

/** Returns whether a header that must be sent once was sent twice; of these Node keeps only the first. */
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
 * Returns whether a client takes gzip, and does not prefer the plain content (RFC 9110, 12.5.3): its own weight counts before
 * that of `*`, and a weight of 0 means no.
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
