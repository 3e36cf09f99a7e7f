// A call of a tool as the request for an operation, and the operation's answer as the result of the tool.
import type { IncomingMessage } from 'node:http'
import { errorBody, Refusal } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { describe, exactJson, type Fields, quote } from '../contract/json.ts'
import { BASE_PATH, type Operation } from '../contract/operations.ts'
import { argumentName, bodySchema } from '../contract/tools.ts'
import type { Result } from './call.ts'

/** Returns the request for the operation, with the refusal of arguments that no request can carry. `outer` brought the call. */
export function requestFor(operation: Operation, given: Fields, outer: IncomingMessage) {
  const { host, authorization, 'petstore-rehearse': rehearsal } = outer.headers
  const headers: Fields = { host, authorization, 'petstore-rehearse': rehearsal }
  const body = { ...given }
  const query = new URLSearchParams()
  let path = BASE_PATH + operation.path
  let refusal: Refusal | undefined
  const refuse = (name: string, rule: string) => {
    const message = `The argument ${name} must be ${rule}, got ${describe(given[name])}.`
    refusal ??= new Refusal('invalid_parameter', message)
  }
  const { properties, required } = bodySchema(operation)
  const known = [...operation.parameters.map(argumentName), ...Object.keys(properties)]
  for (const [name, value] of Object.entries(given)) {
    // Not ignored as in a body: a misspelt idempotencyKey would add an animal twice.
    if (!known.includes(name)) {
      const message = `There is no argument ${quote(name)}; ${operation.id} takes ${known.join(', ')}.`
      refusal ??= new Refusal('invalid_parameter', message)
    }
    if (typeof value === 'bigint' && !Number.isSafeInteger(Number(value)))
      refuse(name, 'sent as text, since a client may have rounded a number beyond ±2^53')
  }
  for (const parameter of operation.parameters) {
    const name = argumentName(parameter)
    // Agents send null for what they leave out.
    const value: unknown = given[name] ?? undefined
    delete body[name]
    if (value === undefined && !parameter.required) continue
    if (!['string', 'number', 'bigint'].includes(typeof value) || (value === '' && parameter.in === 'path')) {
      refuse(name, 'text or an integer')
      continue
    }
    const text = String(value).toWellFormed()
    if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, () => encodeURIComponent(text))
    else if (parameter.in === 'query') query.set(parameter.name, text)
    else if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) refuse(name, 'text that a header can carry')
    else headers[parameter.name.toLowerCase()] = text.trim()
  }
  for (const [name, { format }] of Object.entries(properties)) {
    if (body[name] === null && !required.includes(name)) delete body[name]
    if (format === 'int64' && typeof body[name] === 'string') body[name] = int64FromText(body[name]) ?? body[name]
  }
  const content = Buffer.from(exactJson(body))
  Object.assign(headers, { 'content-type': 'application/json', 'content-length': `${content.length}` })
  const chunks = [content]
  const url = query.size === 0 ? path : `${path}?${query.toString()}`
  const own = { method: operation.method, url, headers, complete: true, read: () => chunks.shift() ?? null }
  return { request: Object.create(outer, Object.getOwnPropertyDescriptors(own)) as IncomingMessage, refusal }
}

/** Returns an error as text that a model can act on; else the content, as text and as data. */
export function toolResult(result: Result): object {
  const content = (data: object) => [{ type: 'text', text: JSON.stringify(data) }]
  if (result instanceof Refusal) return { content: content(errorBody(result.code, result.message)), isError: true }
  const json = Buffer.from((result.body ?? '{}') as string, 'latin1').toString()
  const value = JSON.parse(json, textIfRounded as never) as object
  const nextCursor = /[?&]cursor=([^&>]*)[^>]*>; rel="next"/.exec(result.headers.join('\n'))?.[1]
  const structuredContent = Array.isArray(value) ? { items: value as unknown[], nextCursor } : value
  return { content: content(structuredContent), structuredContent }
}

function textIfRounded(_name: string, value: unknown, { source }: { source: string }): unknown {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? source : value
}
