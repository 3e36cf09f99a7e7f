// The operations as tools, derived from their table: a new operation is a tool, a removed one is not. A call of a tool is the request
// for an operation, and the operation's answer the result of the tool.
import type { IncomingMessage } from 'node:http'
import { errorBody, Refusal } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import { describe, exactJson, type Fields, quote } from '../../contract/json.ts'
import { descriptionOf } from '../../contract/openapi.ts'
import { BASE_PATH, isRemoved, type Operation, OPERATIONS, type Parameter } from '../../contract/operations.ts'
import type { Result } from '../call/call.ts'

type Schema = Record<string, unknown>

export function toolsAt(now: number): object[] {
  return OPERATIONS.filter((operation) => !isRemoved(operation, now)).map(toolOf)
}

/** Returns the argument for a parameter, such as idempotencyKey for Idempotency-Key. */
export function argumentName({ name }: Parameter): string {
  return name.replace(/^[A-Z]/, (letter) => letter.toLowerCase()).replaceAll('-', '')
}

/** Returns the schema of the body, whose fields are arguments too. */
export function bodySchema({ body }: Operation): { properties: Record<string, Schema>; required: readonly string[] } {
  return { properties: {}, required: [], ...body?.schema }
}

function toolOf(operation: Operation): object {
  const { id, method, repeat, summary, parameters, success } = operation
  const body = bodySchema(operation)
  // Without examples: a model would send the example of an idempotency key.
  const described = parameters.map((each) => [
    argumentName(each),
    { ...each.schema, description: asTools(each.description) },
  ])
  const properties = { ...Object.fromEntries(described), ...body.properties }
  const required = [...parameters.filter((each) => each.required).map(argumentName), ...body.required]
  const description = asTools(descriptionOf(operation))
  return {
    name: id,
    title: summary,
    description: parameters.reduce((text, each) => text.replaceAll(each.name, argumentName(each)), description),
    inputSchema: withTextIntegers({ type: 'object', properties, required, additionalProperties: false }),
    outputSchema: success.content && withTextIntegers(resultSchema(success.content.schema as Schema)),
    annotations: {
      readOnlyHint: repeat === 'safe',
      destructiveHint: repeat !== 'safe' && method !== 'POST',
      // Not `with key`: a tool does not require the key.
      idempotentHint: repeat === 'safe' || repeat === 'idempotent',
      openWorldHint: false,
    },
  }
}

/** Replaces what only HTTP has: methods with paths, and the header that leads to the next page. */
function asTools(description: string): string {
  return OPERATIONS.reduce(
    (text, { id, method, path }) => text.replaceAll(`\`${method} ${path}\``, `\`${id}\``),
    description,
  )
    .replaceAll('the `Link` header', '`nextCursor`')
    .replace('holds the address of the next page (`rel="next"`)', 'is the `cursor` of the next page')
}

/** A list becomes a field, because before the revision 2026-07-28 a result must be an object. */
function resultSchema(schema: Schema): Schema {
  if (schema['type'] !== 'array') return schema
  return { type: 'object', properties: { items: schema, nextCursor: { type: 'string' } }, required: ['items'] }
}

const INTEGER = { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
const DIGITS = { type: 'string', pattern: '^(?:0|-?[1-9][0-9]{0,18})$' }

/** Lets an int64 be text: most clients round a number beyond ±2^53. */
function withTextIntegers(schema: Schema): object {
  return JSON.parse(JSON.stringify(schema), (_name, part: Schema | null) => {
    if (part?.['format'] !== 'int64') return part
    const { type: _type, format: _format, ...rest } = part
    return { ...rest, anyOf: [INTEGER, DIGITS] }
  }) as object
}

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
  // The operation gets a request of its own, which inherits from the outer one: method, address, headers and body are those of the
  // arguments; what it asks of the connection, such as the client's address, is answered by the outer request.
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
