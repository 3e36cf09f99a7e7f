// What was thrown becomes a refusal: the framework's complaints about a body, a store that is away, or our own fault.
import type { Refusal } from '../contract/errors.ts'
import { quote } from '../contract/json.ts'
import { BODY_LIMIT } from '../contract/operations.ts'
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
  const ofBody = bodyRefusal((error as { code?: string }).code, request)
  if (ofBody !== undefined) return ofBody
  log.error({ requestId: request.id, error }, 'a fault of the service')
  return { code: 'internal_error', message: `A fault of the service; report it with the request id ${request.id}.` }
}

function bodyRefusal(code: string | undefined, request: Call): Refusal | undefined {
  switch (code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return { code: 'unsupported_content_type', message: contentTypeMessage(request) }
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return { code: 'body_too_large', message: `The body may have at most ${BODY_LIMIT} bytes.` }
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'ECONNRESET':
      return { code: 'malformed_request', message: 'The body ended before the length that Content-Length announced.' }
    default:
      return undefined
  }
}

function contentTypeMessage(request: Call): string {
  const came = request.raw.headers['content-type']
  return `The body must come with Content-Type: application/json, got ${came ? quote(came) : 'none'}.`
}
