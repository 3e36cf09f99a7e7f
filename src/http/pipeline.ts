// The path of a request for an operation, in order: route, request id, framing, key, removal, rate, content, handler, answer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Refusal } from '../contract/errors.ts'
import type { Log } from '../log.ts'
import type { ApiKey } from '../store/account-store.ts'
import type { Send } from './answer.ts'
import { type AnswerCache, type CachedAnswer, unlessKnown } from './answer-cache.ts'
import type { Answer, OperationCall, Route, Step } from './call.ts'
import { refusalFor } from './failures.ts'
import { checkFraming } from './framing.ts'
import type { Handlers } from './handlers.ts'
import { requestId } from './request-id.ts'
import { findOperation, isRead, originForm } from './routes.ts'

export interface PipelineParts {
  cache: AnswerCache
  admit: Step
  handlers: Handlers
  send: Send
  log: Log
  clientAddress: (raw: IncomingMessage) => string
}

type Result = Answer | Refusal

/** A request, its response, and when it arrived. */
export interface Arrival {
  raw: IncomingMessage
  response: ServerResponse
  at: number
}

/** The pipeline returns false if the request is not for an operation. */
export function createPipeline({ cache, admit, handlers, send, log, clientAddress }: PipelineParts) {
  /** Returns no promise if no step has to wait: a cached answer costs none. */
  function resultOf(call: OperationCall, cached: CachedAnswer | undefined): Result | Promise<Result> {
    const verdict = checkFraming(call) ?? admit(call)
    if (verdict instanceof Promise) return verdict.then((refusal) => refusal ?? contentOf(call, cached))
    return verdict ?? contentOf(call, cached)
  }

  function contentOf(call: OperationCall, cached: CachedAnswer | undefined): Answer | Promise<Result> {
    return cached === undefined ? handlers[call.operation.id](call) : unlessKnown(call, cached)
  }

  return ({ raw, response, at }: Arrival): boolean => {
    const cached = isRead(raw.method) ? cache.find(raw.url!) : undefined
    if (cached === undefined) raw.url = originForm(raw.url!)
    const route = cached?.route ?? findOperation(raw.method!, raw.url!)
    if (route === undefined) return false

    const call = new PipelineCall(raw, route, at, cache.version, clientAddress)
    const failed = (error: unknown) => send(call, response, refusalFor(error, call, log))
    const answer = (result: Result) => {
      try {
        send(call, response, result)
      } catch (error) {
        failed(error)
      }
    }
    try {
      const result = resultOf(call, cached)
      if (result instanceof Promise) result.then(answer, failed)
      else queueMicrotask(() => answer(result))
    } catch (error) {
      failed(error)
    }
    return true
  }
}

class PipelineCall implements OperationCall {
  readonly id: string
  readonly raw: IncomingMessage
  readonly route: Route
  readonly operation: Route['operation']
  readonly version: number | undefined
  readonly startedAt: number
  readonly #clientAddress: (raw: IncomingMessage) => string
  caller: ApiKey | undefined
  refusedKey: ApiKey | undefined
  answerHeaders: readonly string[] | undefined
  rehearsed: boolean | undefined
  disconnects: boolean | undefined

  constructor(
    raw: IncomingMessage,
    route: Route,
    at: number,
    version: number | undefined,
    clientAddress: PipelineParts['clientAddress'],
  ) {
    this.id = requestId(raw)
    this.raw = raw
    this.route = route
    this.operation = route.operation
    this.version = version
    this.startedAt = at
    this.#clientAddress = clientAddress
  }

  get ip(): string {
    return this.#clientAddress(this.raw)
  }
}
