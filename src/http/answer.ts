// Sends an answer, with the headers that every answer has, and passes it to the recorder.
import type { ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { errorBody, ERRORS, helpLink, Refusal } from '../contract/errors.ts'
import { HEADERS } from '../contract/response-headers.ts'
import { BASE_PATH, OPERATIONS } from '../contract/operations.ts'
import type { Answer, Bytes, Call, Result } from './call.ts'
import { isLast } from './connections.ts'
import { deprecationHeaders } from './deprecation.ts'
import type { Recorder } from './record.ts'

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

  return (request, response, result) => {
    const answer: Answer = result instanceof Refusal ? refusalAnswer(result) : result
    const { status, headers: own, body, cache = REVALIDATE } = answer
    const headers = ['Request-Id', request.id, 'Cache-Control', cache, ...own]
    const { operation } = request
    if (operation?.deprecation !== undefined) headers.push(...deprecation.get(operation.id)!)
    if (request.answerHeaders !== undefined) headers.push(...request.answerHeaders)
    if (request.raw.headers.origin !== undefined && request.sameOrigin !== true) headers.push(...CORS_HEADERS)
    // The body broke off, and socket-errors.ts has answered the request.
    if (response.headersSent) return
    if ((isStopping() || isLast(request.raw)) && !own.includes('Connection')) headers.push('Connection', 'close')
    if (request.disconnects) response.destroy()
    else if (body instanceof Readable) pipeline(body, response.writeHead(status, headers), () => undefined)
    else response.writeHead(status, headers).end(body, 'latin1')
    record(request, status, result instanceof Refusal ? result : undefined)
  }
}

/** Returns a text as the body of an answer, and the headers that describe it. */
export function contentOf(text: string, type: string): { headers: string[]; body: Bytes } {
  const length = Buffer.byteLength(text)
  const body = (length === text.length ? text : Buffer.from(text).toString('latin1')) as Bytes
  return { headers: ['Content-Type', type, 'Content-Length', String(length)], body }
}

export function jsonContent(json: string): { headers: string[]; body: Bytes } {
  return contentOf(json, 'application/json')
}

type RefusalAnswer = Answer & { body: Bytes }

/**
 * Creates a function that renders refusals, each with a link to the documentation of its code; `root` is the public address, if
 * configured. A refusal that is the same object each time, such as for a missing key, is rendered once.
 */
export function createRefusalAnswer(root = ''): (refusal: Refusal) => RefusalAnswer {
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
