// Records an answer: in the log, the metrics, the usage counts and, for the owner of the key, among the failed requests.
import type { IncomingMessage } from 'node:http'
import type { Usage } from '../../accounts/usage.ts'
import type { Refusal } from '../../contract/errors.ts'
import { redactSecrets } from '../../contract/text/redact.ts'
import { type Log, logFault } from '../../log.ts'
import { type Call, loggedRequest, parseTraceparent } from '../call/call.ts'
import type { Metrics } from '../metrics.ts'

/** A request that was answered. One that the HTTP parser refused has only an id and an address. */
export type Answered = Pick<Call, 'id'> & Partial<Omit<Call, 'ip'>> & { readonly ip?: string | undefined }

/** Records an answer. Never throws: the answer has been sent, and some callers have no request to answer. */
export type Recorder = (call: Answered, status: number, refusal?: Refusal) => void

export function createRecorder(
  log: Log,
  usage: Usage,
  metrics: Metrics | undefined,
  clock: () => number,
  trace?: Recorder,
): Recorder {
  function record(call: Answered, status: number, refusal?: Refusal): void {
    const { id, operation, caller, startedAt, rehearsed } = call
    if (operation !== undefined && caller !== undefined) usage.count(caller, operation.id, status)
    const key = caller ?? call.refusedKey
    if (key !== undefined && refusal !== undefined) {
      const { code, message } = refusal
      const name = operation?.id ?? requestLine(call.request!)
      const failed = { requestId: id, operation: name, status, code, message: redactSecrets(message) }
      usage.remember({ at: clock(), accountId: key.accountId, keyId: key.id, ...failed })
    }
    metrics?.answered(operation, status, startedAt && (performance.now() - startedAt) / 1000, rehearsed)
    trace?.(call, status, refusal)
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

/** What is kept of the address of a failed request that was for no operation. */
const FAILED_PATH_KEPT = 100

function requestLine(request: IncomingMessage): string {
  const { method, path } = loggedRequest(request)
  return `${method} ${path.length > FAILED_PATH_KEPT ? `${path.slice(0, FAILED_PATH_KEPT)}…` : path}`
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
    traceId: parseTraceparent(request?.headers['traceparent'])?.traceId,
    address: ip,
  }
}
