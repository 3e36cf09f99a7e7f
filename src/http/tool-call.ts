// A call of a tool as the request for an operation that it stands for, and the operation's answer as the result of the tool.
import type { IncomingMessage } from 'node:http'
import { errorBody, Refusal } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { describe, OtherNumber } from '../contract/json.ts'
import { BASE_PATH, type Operation, type Parameter } from '../contract/operations.ts'
import { argumentName, bodySchema } from '../contract/tools.ts'
import type { Result } from './call.ts'

export type Fields = Record<string, unknown>

/** Returns the request, and the refusal of arguments that no request can carry. `outer` is the request that has the call. */
export function requestFor(operation: Operation, given: Fields, outer: IncomingMessage) {
  const { 'petstore-rehearse': rehearsal } = outer.headers
  const headers: Record<string, string> = rehearsal === undefined ? {} : { 'petstore-rehearse': String(rehearsal) }
  const body = { ...given }
  const problems: string[] = []
  const query: string[] = []
  let path = BASE_PATH + operation.path
  for (const parameter of operation.parameters) {
    const name = argumentName(parameter)
    const value = body[name]
    delete body[name]
    if (value === undefined && !parameter.required) continue
    const text = value instanceof OtherNumber ? value.source : String(value).toWellFormed()
    const violated = violatedRule(parameter, value, text)
    if (violated !== undefined) problems.push(`The argument ${name} must be ${violated}, got ${describe(value)}.`)
    else if (parameter.in === 'header') headers[parameter.name.toLowerCase()] = text.trim()
    else if (parameter.in === 'query') query.push(`${parameter.name}=${encodeURIComponent(text)}`)
    else path = path.replace(`{${parameter.name}}`, () => encodeURIComponent(text))
  }
  for (const [name, { format }] of Object.entries(bodySchema(operation).properties)) {
    const value = body[name]
    if (format !== 'int64') continue
    if (isRounded(value)) problems.push(`The argument ${name} must be ${EXACT}, got ${describe(value)}.`)
    if (typeof value === 'string') body[name] = int64FromText(value) ?? value
  }
  const content = operation.body && Buffer.from(JSON.stringify(body, exactNumber))
  if (content) Object.assign(headers, { 'content-type': 'application/json', 'content-length': `${content.length}` })
  const chunks = [content ?? null]
  const own = {
    method: operation.method,
    url: [path, ...(query.length > 0 ? [query.join('&')] : [])].join('?'),
    headers,
    rawHeaders: Object.entries(headers).flat(),
    complete: true,
    read: () => chunks.shift() ?? null,
  }
  const request = Object.create(outer, Object.getOwnPropertyDescriptors(own)) as IncomingMessage
  return { request, problem: problems.length === 0 ? undefined : new Refusal('invalid_parameter', problems.join(' ')) }
}

const EXACT = 'sent as text, since a client may have rounded a number beyond ±2^53'

/** Completes the sentence "The argument must be …"; undefined if a request can carry it. The handler checks its value. */
function violatedRule(parameter: Parameter, value: unknown, text: string): string | undefined {
  const isText = /^(?:string|number|bigint)$/.test(typeof value) || value instanceof OtherNumber
  if (!isText || (parameter.in === 'path' && text === '')) return 'text or a number'
  if (parameter.in === 'path' && isRounded(value)) return EXACT
  return parameter.in === 'header' && /[^\t\x20-\x7e\x80-\xff]/.test(text) ? 'text that a header can carry' : undefined
}

function isRounded(value: unknown): boolean {
  return typeof value === 'bigint' && !Number.isSafeInteger(Number(value))
}

// TypeScript's library does not declare it yet.
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => object }

function exactNumber(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return rawJSON(String(value))
  return value instanceof OtherNumber ? rawJSON(value.source) : value
}

/** Returns an error as text that a model can act on; else the content, as text and as data. */
export function toolResult(result: Result, { success }: Operation): object {
  const content = (text: string) => [{ type: 'text', text }]
  if (result instanceof Refusal)
    return { content: content(JSON.stringify(errorBody(result.code, result.message))), isError: true }
  const { body, headers } = result
  if (body === undefined) return { content: content(success.description) }
  const value: unknown = JSON.parse(Buffer.from(body as string, 'latin1').toString(), textIfRounded as never)
  const nextCursor = /[?&]cursor=([^&>]*)[^>]*>; rel="next"/.exec(headers.join('\n'))?.[1]
  const structuredContent = Array.isArray(value) ? { items: value, nextCursor } : value
  return { content: content(JSON.stringify(structuredContent)), structuredContent }
}

function textIfRounded(_name: string, value: unknown, { source }: { source: string }): unknown {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? source : value
}
