// The way of a request for an operation, in order: route, request id, framing, key, removal, rate, content, handler, answer.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Refusal } from '../contract/errors.ts'
import type { Operation } from '../contract/operations.ts'
import type { Log } from '../log.ts'
import type { ApiKey } from '../store/store.ts'
import type { Answer, OperationCall, Route, Send, Step } from './call.ts'
import { unlessKnown } from './conditional.ts'
import { refusalFor } from './failures.ts'
import { checkFraming } from './framing.ts'
import type { Page, PageCache } from './page-cache.ts'
import type { Handlers } from './pets.ts'
import { requestId } from './request-id.ts'
import { findOperation, isRead, originForm } from './routes.ts'

export interface PipelineParts {
  pages: PageCache
  admit: Step
  handlers: Handlers
  send: Send
  log: Log
  clientAddress: (raw: IncomingMessage) => string
}

type Result = Answer | Refusal

/** A request, its answer to be, and when it came. */
export interface Arrival {
  raw: IncomingMessage
  response: ServerResponse
  at: number
}

/** What it gives tells whether it has taken the request: the others are not for an operation. */
export function createPipeline({ pages, admit, handlers, send, log, clientAddress }: PipelineParts) {
  /** Not a promise where nobody has to wait: a kept page costs none then. */
  function resultOf(call: OperationCall, page: Page | undefined): Result | Promise<Result> {
    const verdict = checkFraming(call) ?? admit(call)
    if (verdict instanceof Promise) return verdict.then((refusal) => refusal ?? contentOf(call, page))
    return verdict ?? contentOf(call, page)
  }

  function contentOf(call: OperationCall, page: Page | undefined): Answer | Promise<Result> {
    return page === undefined ? handlers[call.operation.id](call) : unlessKnown(call, page)
  }

  return ({ raw, response, at }: Arrival): boolean => {
    const page = isRead(raw.method) ? pages.find(raw.url!) : undefined
    if (page === undefined) raw.url = originForm(raw.url!)
    const route = page?.route ?? findOperation(raw.method!, raw.url!)
    if (route === undefined) return false

    const call = new PipelineCall(raw, route, at, pages.version, clientAddress)
    const failed = (error: unknown) => send(call, response, refusalFor(error, call, log))
    const answer = (result: Result) => {
      try {
        send(call, response, result)
      } catch (error) {
        failed(error)
      }
    }
    try {
      const result = resultOf(call, page)
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
  readonly operation: Operation
  readonly version: number | undefined
  readonly startedAt: number
  readonly #clientAddress: (raw: IncomingMessage) => string
  caller: ApiKey | undefined
  answerHeaders: readonly string[] | undefined

  constructor(raw: IncomingMessage, route: Route, at: number, version: number | undefined, clientAddress: PipelineParts['clientAddress']) {
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
