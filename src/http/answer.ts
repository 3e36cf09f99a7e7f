// The one way out: every answer of the interface is written, logged and counted here.
import { redactKeys } from '../accounts/api-keys.ts'
import type { Usage } from '../accounts/usage.ts'
import { errorBody, ERRORS, isRefusal, type Refusal } from '../contract/errors.ts'
import { OPERATIONS } from '../contract/operations.ts'
import type { Log } from '../log.ts'
import type { ApiKey, FailedRequest } from '../store/store.ts'
import { dropRestOf } from './body.ts'
import type { Answer, Bytes, Call, Send } from './call.ts'
import { CORS_HEADERS } from './cors.ts'
import { deprecationHeaders } from './deprecation.ts'
import type { Metrics } from './metrics.ts'

const CACHE = ['Cache-Control', 'private, no-cache']
const CLOSE = ['Connection', 'close']

export interface SendParts {
  log: Log
  usage: Usage
  metrics: Metrics | undefined
  baseUrl: string | undefined
  clock: () => number
  /** Whether the service is on its way out: then each answer ends its connection. */
  isStopping: () => boolean
}

export function createSend({ log, usage, metrics, baseUrl, clock, isStopping }: SendParts): Send {
  const deprecation = new Map(OPERATIONS.map((operation) => [operation, deprecationHeaders(operation, baseUrl)]))

  return (request, response, result) => {
    const { status, headers: own, body } = isRefusal(result) ? refusalAnswer(result) : result
    const headers = ['Request-Id', request.id, ...CACHE, ...own]
    const { operation, caller } = request
    if (operation?.deprecation !== undefined) headers.push(...deprecation.get(operation)!)
    if (request.answerHeaders !== undefined) headers.push(...request.answerHeaders)
    if (request.raw.headers.origin !== undefined) headers.push(...CORS_HEADERS)
    if (isStopping()) headers.push(...CLOSE)
    // A request that broke off in its body was answered by socket-errors.ts.
    if (response.headersSent) return
    response.writeHead(status, headers).end(body, 'latin1')
    if (!request.raw.complete) dropRestOf(request.raw)

    if (caller !== undefined && operation !== undefined) {
      usage.count(caller, operation.id, status)
      if (isRefusal(result)) usage.remember(failedRequest(request, caller, operation.id, result, clock()))
    }
    metrics?.answered(request, status)
    if (log.isLevelEnabled('info')) log.info(logLine(request, status, result), 'request')
  }
}

/** The body of an answer, and the headers that tell of it. */
export function contentOf(text: string, type: string): { headers: string[]; body: Bytes } {
  const length = Buffer.byteLength(text)
  const body = (length === text.length ? text : Buffer.from(text).toString('latin1')) as Bytes
  return { headers: ['Content-Type', type, 'Content-Length', String(length)], body }
}

export function jsonContent(json: string): { headers: string[]; body: Bytes } {
  return contentOf(json, 'application/json')
}

type RefusalAnswer = Answer & { body: Bytes }

/** Those of refusals that are the same object each time, as for a missing key, need not be made again. */
const refusalAnswers = new WeakMap<Refusal, RefusalAnswer>()

export function refusalAnswer(refusal: Refusal): RefusalAnswer {
  const known = refusalAnswers.get(refusal)
  if (known !== undefined) return known
  const { code, message, headers = [] } = refusal
  const content = jsonContent(JSON.stringify(errorBody(code, message)))
  const answer = { status: ERRORS[code].status, headers: [...content.headers, ...headers], body: content.body }
  refusalAnswers.set(refusal, answer)
  return answer
}

function failedRequest({ id }: Call, key: ApiKey, operation: string, { code, message }: Refusal, at: number): FailedRequest {
  const { status } = ERRORS[code]
  return { at, accountId: key.accountId, keyId: key.id, requestId: id, operation, status, code, message: redactKeys(message) }
}

/** Never the query or a header: a key that was put in the wrong place must not end up in a log. */
function logLine(request: Call, status: number, result: Answer | Refusal): object {
  const { raw, operation, caller, startedAt } = request
  return {
    requestId: request.id,
    method: raw.method,
    path: redactKeys(raw.url?.split('?', 1)[0] ?? ''),
    status,
    ms: Math.round((performance.now() - startedAt) * 1000) / 1000,
    operation: operation?.id,
    keyId: caller?.id,
    code: isRefusal(result) ? result.code : undefined,
    address: request.ip,
  }
}
