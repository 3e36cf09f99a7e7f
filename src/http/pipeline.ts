// Serves an operation, in order: route, request id, framing, key, removal, rehearsal, rate limit, body headers, handler, answer.
import type { ServerResponse } from 'node:http'
import { Refusal } from '../contract/errors.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { type Log, logRepeated } from '../log.ts'
import { StoreUnavailable } from '../store/store.ts'
import type { Send } from './answer.ts'
import { type AnswerCache, answerOrNotModified, type CachedAnswer } from './answer-cache.ts'
import {
  type Arrival,
  type Call,
  checkFraming,
  type ClientAddress,
  OperationCall,
  type Result,
  type Step,
} from './call.ts'
import type { Handlers } from './handlers.ts'
import { findOperation, isRead, originForm } from './routes.ts'

export interface PipelineParts {
  cache: AnswerCache
  /** The checks before the handler, in order (app.ts). The first refusal is the result. */
  steps: readonly Step[]
  handlers: Handlers
  send: Send
  log: Log
  clientAddress: ClientAddress
}

/** Creates a function that serves a request. It returns false if the request is not for an operation. */
export function createPipeline({ cache, steps, handlers, send, log, clientAddress }: PipelineParts) {
  const respond = createRespond(send, log)

  /** Returns no promise if no step has to wait, so that a cached answer costs none. */
  function resultOf(call: OperationCall, cached: CachedAnswer | undefined): Result | Promise<Result> {
    const verdict = checkFraming(call) ?? runSteps(steps, call)
    if (verdict instanceof Promise) return verdict.then((refusal) => refusal ?? contentOf(call, cached))
    return verdict ?? contentOf(call, cached)
  }

  function contentOf(call: OperationCall, cached: CachedAnswer | undefined): Result | Promise<Result> {
    if (cached === undefined) return handlers[call.operation.id](call)
    cache.lookups.hits += 1
    return answerOrNotModified(call, cached)
  }

  return (arrival: Arrival): boolean => {
    const { raw, response } = arrival
    const cached = isRead(raw.method) ? cache.find(raw.url!) : undefined
    if (cached === undefined) raw.url = originForm(raw.url!)
    const route = cached?.route ?? findOperation(raw.method!, raw.url!)
    if (route === undefined) return false

    const call = new OperationCall(arrival, route, cache.version, clientAddress)
    respond(call, response, () => resultOf(call, cached))
    return true
  }
}

/** Runs the steps until one refuses. Returns a promise only if a step does. */
function runSteps(steps: readonly Step[], call: OperationCall, first = 0): ReturnType<Step> {
  for (let index = first; index < steps.length; index += 1) {
    const verdict = steps[index]!(call)
    if (verdict instanceof Promise) return verdict.then((refusal) => refusal ?? runSteps(steps, call, index + 1))
    if (verdict !== undefined) return verdict
  }
  return undefined
}

/** Creates a function that sends the result of `work`, or a 500 or 503 if `work` throws. */
export function createRespond(send: Send, log: Log) {
  return (call: Call, response: ServerResponse, work: () => Result | Promise<Result>): void => {
    const failed = (error: unknown) => send(call, response, refusalFor(error, call, log))
    const answer = (result: Result) => {
      try {
        send(call, response, result)
      } catch (error) {
        failed(error)
      }
    }
    try {
      const result = work()
      if (result instanceof Promise) result.then(answer, failed)
      else queueMicrotask(() => answer(result))
    } catch (error) {
      failed(error)
    }
  }
}

/** Turns an error into a refusal: 503 if the database is unavailable, else 500 for a bug of the service. */
function refusalFor(error: unknown, { id }: Call, log: Log): Refusal {
  if (error instanceof StoreUnavailable) {
    logRepeated(log, 'error', { requestId: id, reason: error.message }, 'the database is unavailable')
    const message = 'The database is unavailable at the moment; retry shortly, a create with an Idempotency-Key.'
    return new Refusal('service_unavailable', message, ['Retry-After', String(RETRY_AFTER.unavailable)])
  }
  log.error({ requestId: id, error }, 'internal error')
  return new Refusal('internal_error', `Internal error of the service; report it with the request id ${id}.`)
}
