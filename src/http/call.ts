// What a request carries with it on its way down, and what comes up.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Refusal } from '../contract/errors.ts'
import type { Operation } from '../contract/operations.ts'
import type { ApiKey } from '../store/store.ts'

/** A request as the way out sees it: Fastify's is one, and so is that of an operation. */
export interface Call {
  readonly id: string
  readonly raw: IncomingMessage
  /** The client's address, behind trusted proxies too. */
  readonly ip: string
  readonly startedAt: number
  /** Undefined outside the interface. */
  readonly operation?: Operation
  /** Whose key it came with, from the key check on. */
  caller?: ApiKey | undefined
  /** Headers that a step wants on the answer, whatever it will be. */
  answerHeaders?: readonly string[] | undefined
}

/** What an address and method lead to. */
export interface Route {
  operation: Operation
  /** What stands in the place of the path's parameter. */
  parameter: string | undefined
  /** What follows the question mark. */
  query: string
}

/** A request for one of the operations, on its way down the pipeline. */
export interface OperationCall extends Call {
  readonly operation: Operation
  readonly route: Route
  /** The store's version when it came (page-cache.ts). */
  readonly version: number | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    startedAt: number
  }
  interface FastifyContextConfig {
    /** Whoever adds a route beside the operations says that it needs no key. */
    public?: boolean
  }
}

/** A body as it goes over the wire, a character a byte (latin1): the form that Node writes fastest, 10 % before a Buffer. */
export type Bytes = string & { readonly bytes: unique symbol }

/** Headers are a flat list, name and value in turn: the form that Node writes fastest. */
export interface Answer {
  status: number
  headers: readonly string[]
  body: Bytes | undefined
}

/** A step looks at the request and lets it pass, or refuses it. */
export type Step = (call: OperationCall) => Refusal | undefined | Promise<Refusal | undefined>

/** The one way out: writes the answer, logs it and counts it. */
export type Send = (call: Call, response: ServerResponse, result: Answer | Refusal) => void

/** Whether a header that must come once came more often; Node keeps only the first of these. */
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
