// What was thrown becomes a refusal: a store that is away, or our own fault.
import type { Refusal } from '../contract/errors.ts'
import type { Log } from '../log.ts'
import { StoreUnavailable } from '../store/store.ts'
import type { Call } from './call.ts'

const RETRY_AFTER_SECONDS = 2

export function refusalFor(error: unknown, request: Call, log: Log): Refusal {
  if (error instanceof StoreUnavailable) {
    log.error({ requestId: request.id, error }, 'the store is not available')
    const message = 'The database is not available at the moment; try again shortly, a create with an Idempotency-Key.'
    return { code: 'store_unavailable', message, headers: ['Retry-After', String(RETRY_AFTER_SECONDS)] }
  }
  log.error({ requestId: request.id, error }, 'a fault of the service')
  return { code: 'internal_error', message: `A fault of the service; report it with the request id ${request.id}.` }
}
