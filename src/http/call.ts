// The request as it goes down the pipeline, and the answer that comes up.
import type { IncomingMessage } from 'node:http'
import type { Refusal } from '../contract/errors.ts'
import type { Operation, OperationId } from '../contract/operations.ts'
import type { ApiKey } from '../store/account-store.ts'

/** A request as it is answered: Fastify's is one, and so is that of an operation. */
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

declare module 'fastify' {
  interface FastifyRequest {
    startedAt: number
  }
  interface FastifyContextConfig {
    /** A route beside the operations must declare that it needs no key. */
    public?: boolean
  }
}

/** A body as it goes over the wire, one character per byte (latin1): the form that Node writes fastest, 10 % ahead of a Buffer. */
export type Bytes = string & { readonly bytes: unique symbol }

/** Headers are a flat list, name and value in turn: the form that Node writes fastest. */
export interface Answer {
  status: number
  headers: readonly string[]
  body: Bytes | undefined
}

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
