// Sends an answer with the headers that every answer has; routes.ts makes those of a deprecated operation.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { Refusal } from '../../contract/errors.ts'
import { BASE_PATH, HEADERS, OPERATIONS } from '../../contract/operations.ts'
import type { Answer, Call, Result } from '../call/call.ts'
import { deprecationHeaders } from '../call/routes.ts'
import { createRefusalAnswer, pageOf, REFERRER_POLICY, refusalAnswer } from './content.ts'
import type { Recorder } from './recorder.ts'

const REVALIDATE = 'private, no-cache'
/** A browser must not take an answer for another type than it says, such as JSON with a name in it for a page. */
const NO_SNIFF = ['X-Content-Type-Options', 'nosniff'] as const

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

/** While the service is stopping, answers close their connections (lifecycle.ts). */
export function createSend(
  record: Recorder,
  baseUrl: string | undefined,
  lifecycle: { readonly closesConnections: boolean },
): Send {
  const renderRefusal = createRefusalAnswer(
    baseUrl === undefined ? '' : new URL(baseUrl).href.slice(0, -BASE_PATH.length),
  )
  const deprecation = new Map(
    OPERATIONS.map((operation) => [operation.id as string, deprecationHeaders(operation, baseUrl)]),
  )

  return (call, response, result) => {
    const isPage = result instanceof Refusal && call.showsPage === true
    const plain: Answer = isPage ? pageOf(result, call) : result instanceof Refusal ? renderRefusal(result) : result
    const answer = call.present === undefined ? plain : call.present(result)
    const { status, headers: own, body, cache = REVALIDATE } = answer
    const headers = ['Request-Id', call.id, 'Cache-Control', cache, ...NO_SNIFF, ...own]
    const { operation } = call
    if (operation?.deprecation !== undefined) headers.push(...deprecation.get(operation.id)!)
    if (call.answerHeaders !== undefined) headers.push(...call.answerHeaders)
    else if (operation === undefined && !isPage) headers.push(...REFERRER_POLICY)
    if (call.request.headers.origin !== undefined && call.sameOrigin !== true && !isPage) headers.push(...CORS_HEADERS)
    // The body broke off, and socket-errors.ts has answered the request.
    if (response.headersSent) return
    const isLast = lifecycle.closesConnections || mustBeLast(call.request)
    if (isLast && !own.includes('Connection')) headers.push('Connection', 'close')
    if (call.disconnects) response.destroy()
    else if (body instanceof Readable) pipeline(body, response.writeHead(status, headers), () => undefined)
    else response.writeHead(status, headers).end(body, 'latin1')
    record(call, plain.status, result instanceof Refusal ? result : undefined)
  }
}

/**
 * Returns whether the answer to this request must end its connection. The request has not arrived completely, and if a proxy reused the
 * connection, its next client would wait for the rest of the body; or it offers an upgrade, and Node drops what came behind it.
 */
function mustBeLast({ complete, httpVersionMinor, headers }: IncomingMessage): boolean {
  // RFC 9112, section 6.1: an HTTP/1.0 client may have forwarded the framing without understanding it.
  if (headers.upgrade !== undefined) return true
  return !complete || (httpVersionMinor === 0 && headers['transfer-encoding'] !== undefined)
}

export function closingHeaders(id: string): string[] {
  return ['Request-Id', id, 'Cache-Control', REVALIDATE, ...NO_SNIFF, 'Connection', 'close']
}

/** Writes a refusal with no other headers than these, as the last answer of its connection. */
export function writeRefusal(response: ServerResponse, refusal: Refusal, id: string, showsPage = false): void {
  const { status, headers, body } = showsPage ? pageOf(refusal, { id }) : refusalAnswer(refusal)
  const cors = showsPage || response.req.headers.origin === undefined ? [] : CORS_HEADERS
  response.writeHead(status, [...headers, ...closingHeaders(id), ...cors]).end(body, 'latin1')
}
