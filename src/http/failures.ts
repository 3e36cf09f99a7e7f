// Turns what was thrown into a refusal: the database is unavailable, or a bug of ours.
import { Refusal } from '../contract/errors.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { type Log, logRepeated } from '../log.ts'
import { StoreUnavailable } from '../store/store.ts'
import type { Call } from './call.ts'

export function refusalFor(error: unknown, request: Call, log: Log): Refusal {
  if (error instanceof StoreUnavailable) {
    logRepeated(log, 'error', { requestId: request.id, reason: error.message }, 'the database is unavailable')
    const message = 'The database is unavailable at the moment; retry shortly, a create with an Idempotency-Key.'
    return new Refusal('service_unavailable', message, ['Retry-After', String(RETRY_AFTER.unavailable)])
  }
  log.error({ requestId: request.id, error }, 'internal error')
  return new Refusal('internal_error', `Internal error of the service; report it with the request id ${request.id}.`)
}
