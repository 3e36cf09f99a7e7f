// Serves an operation, in order: route, request id, framing, key, removal, rehearsal, rate limit, body headers, handler, answer.
import type { Responder } from './answer.ts'
import { type AnswerCache, answerOrNotModified, type CachedAnswer } from './answer-cache.ts'
import { type Arrival, checkFraming, type ClientAddress, OperationCall, type Result, type Step } from './call.ts'
import type { Handlers } from './handlers.ts'
import { findOperation, isRead, originForm } from './routes.ts'

export interface PipelineParts {
  cache: AnswerCache
  /** The checks before the handler, in order (app.ts). The first refusal is the result. */
  steps: readonly Step[]
  handlers: Handlers
  respond: Responder['respond']
  clientAddress: ClientAddress
}

/** Creates a function that serves a request. It returns false if the request is not for an operation. */
export function createPipeline({ cache, steps, handlers, respond, clientAddress }: PipelineParts) {
  /** Returns no promise if no step has to wait, so that a cached answer costs none. */
  function resultOf(call: OperationCall, cached: CachedAnswer | undefined): Result | Promise<Result> {
    const verdict = checkFraming(call) ?? runSteps(steps, call)
    if (verdict instanceof Promise) return verdict.then((refusal) => refusal ?? handle(call, cached))
    return verdict ?? handle(call, cached)
  }

  function handle(call: OperationCall, cached: CachedAnswer | undefined): Result | Promise<Result> {
    if (cached === undefined) return handlers[call.operation.id](call)
    cache.lookups.hits += 1
    return answerOrNotModified(call, cached)
  }

  return (arrival: Arrival): boolean => {
    const { request, response } = arrival
    const cached = isRead(request.method) ? cache.find(request.url!) : undefined
    if (cached === undefined) request.url = originForm(request.url!)
    const route = cached?.route ?? findOperation(request.method!, request.url!)
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
