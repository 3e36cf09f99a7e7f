// A call of a tool as the request for an operation, and the operation's answer as the result of the tool.
import type { IncomingMessage } from 'node:http'
import { errorBody, Refusal } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { describe, OtherNumber } from '../contract/json.ts'
import { BASE_PATH, type Operation } from '../contract/operations.ts'
import { argumentName, bodySchema } from '../contract/tools.ts'
import type { Result } from './call.ts'

export type Fields = Record<string, unknown>

/** Returns the request, and the refusal of arguments that no request can carry. `outer` is the request that has the call. */
export function requestFor(operation: Operation, given: Fields, outer: IncomingMessage) {
  const { 'petstore-rehearse': rehearsal } = outer.headers
  const headers: Record<string, string> = rehearsal === undefined ? {} : { 'petstore-rehearse': String(rehearsal) }
  const body = { ...given }
  const query: string[] = []
  let path = BASE_PATH + operation.path
  let problem: Refusal | undefined
  const refuse = (name: string, rule: string) => {
    const message = `The argument ${name} must be ${rule}, got ${describe(given[name])}.`
    problem ??= new Refusal('invalid_parameter', message)
  }
  for (const [name, value] of Object.entries(given))
    if (typeof value === 'bigint' && !Number.isSafeInteger(Number(value)))
      refuse(name, 'sent as text, since a client may have rounded a number beyond ±2^53')
  for (const parameter of operation.parameters) {
    const name = argumentName(parameter)
    delete body[name]
    if (given[name] === undefined && !parameter.required) continue
    const text = textOf(given[name])
    if (text === undefined || (text === '' && parameter.in === 'path')) refuse(name, 'text or a number')
    else if (parameter.in === 'query') query.push(`${parameter.name}=${encodeURIComponent(text)}`)
    else if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, () => encodeURIComponent(text))
    else if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) refuse(name, 'text that a header can carry')
    else headers[parameter.name.toLowerCase()] = text.replaceAll(/^[ \t]+|[ \t]+$/g, '')
  }
  for (const [name, { format }] of Object.entries(bodySchema(operation).properties))
    if (format === 'int64' && typeof body[name] === 'string') body[name] = int64FromText(body[name]) ?? body[name]
  const content = operation.body && Buffer.from(JSON.stringify(body, exactNumber))
  if (content) Object.assign(headers, { 'content-type': 'application/json', 'content-length': `${content.length}` })
  const chunks = [content ?? null]
  const own = {
    method: operation.method,
    url: query.length === 0 ? path : `${path}?${query.join('&')}`,
    headers,
    rawHeaders: Object.entries(headers).flat(),
    complete: true,
    read: () => chunks.shift() ?? null,
  }
  return { request: Object.create(outer, Object.getOwnPropertyDescriptors(own)) as IncomingMessage, problem }
}

/** Returns undefined for a value that is neither text nor a number. */
function textOf(value: unknown): string | undefined {
  if (value instanceof OtherNumber) return value.source
  return ['string', 'number', 'bigint'].includes(typeof value) ? String(value).toWellFormed() : undefined
}

// TypeScript's library does not declare it yet.
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => object }

function exactNumber(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' || value instanceof OtherNumber ? rawJSON(textOf(value)!) : value
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
