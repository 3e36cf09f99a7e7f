// What a request carries with it on its way down, and what comes up.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Refusal } from '../contract/errors.ts'
import type { Operation } from '../contract/operations.ts'
import type { ApiKey } from '../store/store.ts'

/** A request as the steps see it: Fastify's is one, and so is that of the fast lane. */
export interface Call extends CallState {
  readonly id: string
  readonly raw: IncomingMessage
  /** The client's address, behind trusted proxies too. */
  readonly ip: string
}

interface CallState {
  /** The operation that the route belongs to; undefined outside the interface. */
  operation: Operation | undefined
  /** Whose key it came with, from the key check on. */
  caller: ApiKey | undefined
  /** Headers that a step wants on the answer, whatever it will be. */
  answerHeaders: readonly string[] | undefined
  /** The store's version when it came (page-cache.ts). */
  version: number | undefined
  startedAt: number
}

declare module 'fastify' {
  interface FastifyRequest extends CallState {}
  interface FastifyContextConfig {
    /** A route opts out of the key check, never in. */
    public?: boolean
    operation?: Operation
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
export type Step = (call: Call) => Refusal | undefined | Promise<Refusal | undefined>

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
