// Answers a request with the result of its work. Whatever the handling of a request throws, at any step and on any port, ends here as a
// 500 or 503 and a log line.
import type { ServerResponse } from 'node:http'
import { Refusal } from '../../contract/errors.ts'
import { RETRY_AFTER } from '../../contract/limits.ts'
import { type Log, logFault, logRepeated } from '../../log.ts'
import { StoreUnavailable } from '../../store/store.ts'
import type { Arrival, Call, Result } from '../call/call.ts'
import { strayCall } from '../call/routes.ts'
import { type Send, writeRefusal } from './send.ts'

export interface Responder {
  /** Sends the result of `work`, or an error answer if anything throws. */
  respond: (call: Call, response: ServerResponse, work: () => Result | Promise<Result>) => Promise<void>
  /** Calls `serve` with a request that has just arrived, and sends an error answer if it throws or rejects. */
  catchStray: (arrival: Arrival, serve: (arrival: Arrival) => unknown) => void
}

export function createResponder(send: Send, log: Log): Responder {
  async function respond(call: Call, response: ServerResponse, work: () => Result | Promise<Result>): Promise<void> {
    try {
      send(call, response, await work())
    } catch (error) {
      fail(call, response, error)
    }
  }

  function catchStray(arrival: Arrival, serve: (arrival: Arrival) => unknown): void {
    const failed = (error: unknown) => fail(strayCall(arrival.request, arrival.at), arrival.response, error)
    try {
      const served = serve(arrival)
      if (served instanceof Promise) served.catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  function fail(call: Call, response: ServerResponse, error: unknown): void {
    try {
      send(call, response, refusalFor(error, call, log))
    } catch (second) {
      logFault(log, { requestId: call.id, error: second }, 'an error could not be answered in the usual way')
      if (response.headersSent) response.destroy()
      else writeRefusal(response, internalError(call.id), call.id, call.showsPage)
    }
  }

  return { respond, catchStray }
}

/** Turns an error into a refusal: 503 if the database is unavailable, else 500 for a bug of the service. */
function refusalFor(error: unknown, { id }: Call, log: Log): Refusal {
  if (error instanceof StoreUnavailable) {
    logRepeated(log, 'error', { requestId: id, reason: error.message }, 'the database is unavailable')
    const message = 'The database is unavailable at the moment; retry shortly, a create with an Idempotency-Key.'
    return new Refusal('service_unavailable', message, ['Retry-After', String(RETRY_AFTER.unavailable)])
  }
  logFault(log, { requestId: id, error }, 'internal error')
  return internalError(id)
}

function internalError(id: string): Refusal {
  return new Refusal('internal_error', `Internal error of the service; report it with the request id ${id}.`)
}
