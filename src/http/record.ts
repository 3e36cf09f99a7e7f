// Records each answer in the log, the metrics and the usage counts: of operations, health checks, the console, and requests that
// the HTTP parser refused.
import type { IncomingHttpHeaders } from 'node:http'
import type { Usage } from '../accounts/usage.ts'
import { ERRORS, type Refusal } from '../contract/errors.ts'
import type { Operation } from '../contract/operations.ts'
import { redactSecrets } from '../contract/redact.ts'
import type { Log } from '../log.ts'
import type { ApiKey, FailedRequest } from '../store/account-store.ts'
import type { Metrics } from './metrics.ts'

/** A request that was answered. One that the HTTP parser refused has no method, URL or start time. */
export interface Answered {
  readonly id: string
  readonly ip?: string | undefined
  readonly raw?: { method?: string | undefined; url?: string | undefined; headers?: IncomingHttpHeaders }
  readonly startedAt?: number
  readonly operation?: Operation
  readonly caller?: ApiKey | undefined
  readonly refusedKey?: ApiKey | undefined
  readonly rehearsed?: boolean | undefined
}

export type Recorder = (request: Answered, status: number, refusal?: Refusal) => void

export interface RecorderParts {
  log: Log
  usage: Usage
  metrics: Metrics | undefined
  clock: () => number
}

export function createRecorder({ log, usage, metrics, clock }: RecorderParts): Recorder {
  return (request, status, refusal) => {
    const { operation, caller, refusedKey, startedAt } = request
    if (operation !== undefined) {
      if (caller !== undefined) usage.count(caller, operation.id, status)
      const owner = caller ?? refusedKey
      if (owner !== undefined && refusal !== undefined)
        usage.remember(failedRequest(request.id, owner, operation, refusal, clock()))
    }
    metrics?.answered(
      operation,
      status,
      startedAt === undefined ? undefined : (performance.now() - startedAt) / 1000,
      request.rehearsed,
    )
    if (log.isLevelEnabled('info')) log.info(logLine(request, status, refusal), 'request')
  }
}

function failedRequest(
  requestId: string,
  key: ApiKey,
  operation: Operation,
  { code, message }: Refusal,
  at: number,
): FailedRequest {
  const { status } = ERRORS[code]
  return {
    at,
    accountId: key.accountId,
    keyId: key.id,
    requestId,
    operation: operation.id,
    status,
    code,
    message: redactSecrets(message),
  }
}

/** Returns the fields of a log line. Leaves out the query and the headers: a key sent in the wrong place must not be logged. */
function logLine(
  { id, raw, startedAt, operation, caller, ip, rehearsed }: Answered,
  status: number,
  refusal: Refusal | undefined,
): object {
  return {
    requestId: id,
    method: raw?.method,
    path: raw?.url === undefined ? undefined : redactSecrets(raw.url.split('?', 1)[0]!),
    status,
    ms: startedAt === undefined ? undefined : Math.round((performance.now() - startedAt) * 1000) / 1000,
    operation: operation?.id,
    keyId: caller?.id,
    code: refusal?.code,
    rehearsed,
    traceId: traceId(raw?.headers?.['traceparent']),
    address: ip,
  }
}

/** Returns the trace id of a traceparent header (W3C Trace Context), or undefined if the header is malformed. */
function traceId(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== 'string') return undefined
  return /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-|$)/.exec(traceparent)?.[1]
}
