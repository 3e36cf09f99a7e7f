// Records each answer in the log, the metrics and the usage counts: of operations, health checks, the console, and requests that
// the HTTP parser refused.
import type { Usage } from '../accounts/usage.ts'
import type { Refusal } from '../contract/errors.ts'
import { redactSecrets } from '../contract/redact.ts'
import { type Log, logFault } from '../log.ts'
import { type Call, loggedRequest } from './call.ts'
import type { Metrics } from './metrics.ts'

/** A request that was answered. One that the HTTP parser refused has only an id and an address. */
export type Answered = Pick<Call, 'id'> & Partial<Omit<Call, 'ip'>> & { readonly ip?: string | undefined }

/** Records an answer. Never throws: the answer has been sent, and some callers have no request to answer. */
export type Recorder = (call: Answered, status: number, refusal?: Refusal) => void

export function createRecorder(log: Log, usage: Usage, metrics: Metrics | undefined, clock: () => number): Recorder {
  function record(call: Answered, status: number, refusal?: Refusal): void {
    const { id, operation, caller, startedAt, rehearsed } = call
    if (operation !== undefined) {
      if (caller !== undefined) usage.count(caller, operation.id, status)
      const key = caller ?? call.refusedKey
      if (key !== undefined && refusal !== undefined) {
        const { code, message } = refusal
        const failed = { requestId: id, operation: operation.id, status, code, message: redactSecrets(message) }
        usage.remember({ at: clock(), accountId: key.accountId, keyId: key.id, ...failed })
      }
    }
    const seconds = startedAt === undefined ? undefined : (performance.now() - startedAt) / 1000
    metrics?.answered(operation, status, seconds, rehearsed)
    if (log.isLevelEnabled('info')) log.info(logLine(call, status, refusal), 'request')
  }

  return (call, status, refusal) => {
    try {
      record(call, status, refusal)
    } catch (error) {
      logFault(log, { requestId: call.id, error }, 'an answer could not be recorded')
    }
  }
}

function logLine(
  { id, request, startedAt, operation, caller, ip, rehearsed }: Answered,
  status: number,
  refusal: Refusal | undefined,
): object {
  return {
    requestId: id,
    ...(request && loggedRequest(request)),
    status,
    ms: startedAt === undefined ? undefined : Math.round((performance.now() - startedAt) * 1000) / 1000,
    operation: operation?.id,
    keyId: caller?.id,
    code: refusal?.code,
    rehearsed,
    traceId: traceId(request?.headers['traceparent']),
    address: ip,
  }
}

/** Returns the trace id of a traceparent header (W3C Trace Context), or undefined if the header is malformed. */
function traceId(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== 'string') return undefined
  return /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-|$)/.exec(traceparent)?.[1]
}
