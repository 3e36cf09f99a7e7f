// The operations as tools of the Model Context Protocol, derived from the table: a new operation is a tool, a removed one is not.
import { descriptionOf } from './openapi.ts'
import { isRemoved, type Operation, OPERATIONS, type Parameter } from './operations.ts'

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
  const { id, method, summary, parameters, success } = operation
  const body = bodySchema(operation)
  // Without examples: a model would send the example of an idempotency key.
  const described = parameters.map((each) => [argumentName(each), { ...each.schema, description: each.description }])
  const properties = { ...Object.fromEntries(described), ...body.properties }
  const required = [...parameters.filter((each) => each.required).map(argumentName), ...body.required]
  const description = descriptionOf(operation) + (success.headers?.includes('Link') ? PAGING_NOTE : '')
  return {
    name: id,
    title: summary,
    description: parameters.reduce((text, each) => text.replaceAll(each.name, argumentName(each)), description),
    inputSchema: withTextIntegers({ type: 'object', properties, required, additionalProperties: false }),
    outputSchema: success.content && withTextIntegers(resultSchema(success.content.schema as Schema)),
    annotations: {
      readOnlyHint: method === 'GET',
      destructiveHint: method !== 'GET' && method !== 'POST',
      // A create is idempotent only with an idempotency key, which it does not require.
      idempotentHint: method !== 'POST' && method !== 'PATCH',
      openWorldHint: false,
    },
  }
}

const PAGING_NOTE = ' As a tool it returns no header, but `nextCursor`: pass it as `cursor` for the next page.'

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
