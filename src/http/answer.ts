// Sends an answer, with the headers that every answer has, and records it in the log, the metrics and the usage counts. Whatever the
// handling of a request throws, at any step and on any port, ends here as a 500 or 503 and a log line (`Responder`).
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import type { Usage } from '../accounts/usage.ts'
import { errorBody, ERRORS, helpLink, Refusal } from '../contract/errors.ts'
import { RETRY_AFTER } from '../contract/limits.ts'
import { BASE_PATH, HEADERS, OPERATIONS } from '../contract/operations.ts'
import { redactSecrets } from '../contract/redact.ts'
import { type Log, logFault, logRepeated } from '../log.ts'
import { StoreUnavailable } from '../store/store.ts'
import { type Answer, type Arrival, type Bytes, type Call, loggedRequest, type Result } from './call.ts'
import { isLast } from './connections.ts'
import { renderErrorPage } from './error-page.ts'
import type { Html } from './html.ts'
import type { Metrics } from './metrics.ts'
import { asksForPage, deprecationHeaders } from './routes.ts'
import { SECURITY_HEADERS } from './security-headers.ts'

const REVALIDATE = 'private, no-cache'

const EXPOSED_HEADERS = Object.keys(HEADERS).filter((name) => !name.startsWith('Access-Control-') && name !== 'Vary')

/**
 * CORS: a page of any origin may read an answer, since requests are authorised by a key, never by a cookie. Only
 * answers to requests with an Origin have these headers: every header costs time on every answer.
 */
const CORS_HEADERS: readonly string[] = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  EXPOSED_HEADERS.join(', '),
  'Vary',
  'Origin',
]

/** Writes an answer and records it. */
export type Send = (call: Call, response: ServerResponse, result: Result) => void

/** While the service is stopping, each answer closes its connection. */
export function createSend(record: Recorder, baseUrl: string | undefined, isStopping: () => boolean): Send {
  const refusalAnswer = createRefusalAnswer(
    baseUrl === undefined ? '' : new URL(baseUrl).href.slice(0, -BASE_PATH.length),
  )
  const deprecation = new Map(
    OPERATIONS.map((operation) => [operation.id as string, deprecationHeaders(operation, baseUrl)]),
  )

  return (call, response, result) => {
    const isPage = result instanceof Refusal && call.showsPage === true
    const plain: Answer = isPage ? pageOf(result, call) : result instanceof Refusal ? refusalAnswer(result) : result
    const answer = call.present === undefined ? plain : call.present(result)
    const { status, headers: own, body, cache = REVALIDATE } = answer
    const headers = ['Request-Id', call.id, 'Cache-Control', cache, ...own]
    const { operation } = call
    if (operation?.deprecation !== undefined) headers.push(...deprecation.get(operation.id)!)
    if (call.answerHeaders !== undefined) headers.push(...call.answerHeaders)
    if (call.request.headers.origin !== undefined && call.sameOrigin !== true && !isPage) headers.push(...CORS_HEADERS)
    // The body broke off, and socket-errors.ts has answered the request.
    if (response.headersSent) return
    if ((isStopping() || isLast(call.request)) && !own.includes('Connection')) headers.push('Connection', 'close')
    if (call.disconnects) response.destroy()
    else if (body instanceof Readable) pipeline(body, response.writeHead(status, headers), () => undefined)
    else response.writeHead(status, headers).end(body, 'latin1')
    record(call, plain.status, result instanceof Refusal ? result : undefined)
  }
}

/** Returns a refusal as a page. The console has added the security headers already if it has refused the request. */
function pageOf(refusal: Refusal, { id, answerHeaders }: Pick<Call, 'id' | 'answerHeaders'>): RefusalAnswer {
  const { headers, body } = htmlContent(renderErrorPage(refusal, id))
  const security = answerHeaders === undefined ? Object.entries(SECURITY_HEADERS).flat() : []
  return { status: ERRORS[refusal.code].status, headers: [...headers, ...refusal.headers, ...security], body }
}

export interface Responder {
  /** Sends the result of `work`, or an error answer if anything throws. */
  respond: (call: Call, response: ServerResponse, work: () => Result | Promise<Result>) => void
  /** Calls `serve` with a request that has just arrived, and sends an error answer if it throws or rejects. */
  guard: (arrival: Arrival, serve: (arrival: Arrival) => unknown) => void
}

export function createResponder(send: Send, log: Log): Responder {
  function respond(call: Call, response: ServerResponse, work: () => Result | Promise<Result>): void {
    const failed = (error: unknown) => fail(call, response, error)
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

  function guard(arrival: Arrival, serve: (arrival: Arrival) => unknown): void {
    const failed = (error: unknown) => {
      const { request, response, at } = arrival
      const call = {
        id: randomUUID(),
        request,
        ip: request.socket.remoteAddress ?? '',
        startedAt: at,
        showsPage: asksForPage(request),
      }
      fail(call, response, error)
    }
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

  return { respond, guard }
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

/** Renders relative links, for answers that are sent without a configuration. */
export const refusalAnswer = createRefusalAnswer()

export function closingHeaders(id: string): string[] {
  return ['Request-Id', id, 'Cache-Control', REVALIDATE, 'Connection', 'close']
}

/** Writes a refusal with no other headers than these, as the last answer of its connection. */
export function writeRefusal(response: ServerResponse, refusal: Refusal, id: string, showsPage = false): void {
  const { status, headers, body } = showsPage ? pageOf(refusal, { id }) : refusalAnswer(refusal)
  response.writeHead(status, [...headers, ...closingHeaders(id)]).end(body, 'latin1')
}

/** Returns a text as the body of an answer, and the headers that describe it. */
export function contentOf(text: string, type: string): { headers: string[]; body: Bytes } {
  const length = Buffer.byteLength(text)
  const body = (length === text.length ? text : Buffer.from(text).toString('latin1')) as Bytes
  return { headers: ['Content-Type', type, 'Content-Length', String(length)], body }
}

export function htmlContent({ text }: Html): { headers: string[]; body: Bytes } {
  return contentOf(text, 'text/html; charset=utf-8')
}

export function jsonContent(json: string): { headers: string[]; body: Bytes } {
  return contentOf(json, 'application/json')
}

type RefusalAnswer = Answer & { body: Bytes }

/**
 * Creates a function that renders refusals, each with a link to the documentation of its code; `root` is the public address, if
 * configured. A refusal that is the same object each time, such as for a missing key, is rendered once.
 */
function createRefusalAnswer(root = ''): (refusal: Refusal) => RefusalAnswer {
  const rendered = new WeakMap<Refusal, RefusalAnswer>()
  return (refusal) => {
    const known = rendered.get(refusal)
    if (known !== undefined) return known
    const { code, message, headers } = refusal
    const content = jsonContent(JSON.stringify(errorBody(code, message)))
    const answer = {
      status: ERRORS[code].status,
      headers: [...content.headers, ...headers, 'Link', helpLink(code, root)],
      body: content.body,
    }
    rendered.set(refusal, answer)
    return answer
  }
}

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
    const seconds = startedAt === undefined ? undefined : (performance.now() - startedAt) / 1000
    metrics?.answered(operation, status, seconds, rehearsed)
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
const PATH_KEPT = 100

function requestLine(request: IncomingMessage): string {
  const { method, path } = loggedRequest(request)
  return `${method} ${path.length > PATH_KEPT ? `${path.slice(0, PATH_KEPT)}…` : path}`
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

/** Only a version after 00 may have further fields. */
const TRACEPARENT = /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-[\da-f]([\da-f])(?:-|$)/

/** Parses a traceparent header (W3C Trace Context). Returns undefined if it is missing or malformed. */
export function parseTraceparent(header: string | string[] | undefined) {
  const [, traceId, spanId, flags] = (typeof header === 'string' && TRACEPARENT.exec(header)) || []
  return traceId === undefined ? undefined : { traceId, spanId, isSampled: parseInt(flags!, 16) % 2 === 1 }
}
