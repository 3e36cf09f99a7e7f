// Writes src/contract.ts, the client's view of the contract, from openapi.json. Run by `npm run openapi`.
import { readFileSync, writeFileSync } from 'node:fs'

interface Schema {
  $ref?: string
  type?: string
  format?: string
  enum?: string[]
  examples?: string[]
  maximum?: number
  description?: string
  required?: string[]
  properties?: Record<string, Schema>
}

interface Operation {
  operationId: string
  deprecated?: boolean
  'x-repeat': string
  parameters: { name: string; in: string; description: string; schema: Schema }[]
  requestBody?: { content: { 'application/json': { schema: Schema } } }
}

interface Document {
  servers: { variables: Record<string, { default: string }> }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

const OPENAPI = new URL('../openapi.json', import.meta.url)
const CONTRACT = new URL('src/contract.ts', import.meta.url)

/** What the service fills in where it was left out, so that every answer has it. */
const FILLED_IN: Record<string, readonly string[]> = { Pet: ['status'] }

export function renderContract(openapi = readFileSync(OPENAPI, 'utf8')): string {
  const { servers, paths, components } = JSON.parse(openapi) as Document
  const { Error: ErrorSchema, ...others } = components.schemas
  const named = Object.entries(others)
  const [address] = Object.values(servers[0]!.variables)
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )
  const queryOf = ({ parameters }: Operation) => parameters.filter((parameter) => parameter.in === 'query')
  const limit = queryOf(operations.find(({ operationId }) => operationId === 'listPets')!).find(
    ({ name }) => name === 'limit',
  )!.schema
  const sent = new Set(
    operations.map(({ requestBody }) => nameOf(requestBody?.content['application/json'].schema ?? {})),
  )
  const isAlways = (name: string, field: string) =>
    others[name]!.required!.includes(field) || FILLED_IN[name]?.includes(field) === true
  const objects = named.filter(([, { properties }]) => properties !== undefined)
  return [
    '// The contract as the client sees it. Written by `npm run openapi` of the service; changes made here are lost.',
    '',
    '/** How every base address ends. */',
    `export const BASE_PATH = '${new URL(address!.default).pathname}'`,
    '',
    '/** `repeat`: whether a request may be sent again whose answer did not arrive. */',
    'export const OPERATIONS = {',
    ...operations.map(
      ({ operationId, method, path, 'x-repeat': repeat }) =>
        `  ${operationId}: { method: '${method}', path: '${path}', repeat: '${repeat}' },`,
    ),
    '} as const',
    '',
    'export type OperationId = keyof typeof OPERATIONS',
    '',
    '/** The largest page that can be asked for. */',
    `export const MAX_LIMIT = ${limit.maximum}`,
    ...named.flatMap(([name, { description, enum: values }]) =>
      values === undefined ? [] : ['', `/** ${description} */`, `export type ${name} = ${union(values, ' ')}`],
    ),
    ...operations.flatMap((operation) =>
      queryOf(operation).length === 0 ? [] : ['', ...interfaceOfQuery(operation.operationId, queryOf(operation))],
    ),
    ...objects.flatMap(([name, schema]) => [
      '',
      ...interfaceOf(name, schema, sent.has(name) ? 'number | bigint' : 'bigint', (field) => isAlways(name, field)),
    ]),
    '',
    '/** How each field goes over the wire, and whether it is always there. */',
    'export const FIELDS = {',
    ...objects.flatMap(([name, { properties }]) => [
      `  ${name}: {`,
      ...Object.entries(properties!).map(
        ([field, schema]) => `    ${field}: { type: '${wireType(field, schema)}', always: ${isAlways(name, field)} },`,
      ),
      '  },',
    ]),
    `} as const satisfies { [S in keyof Schemas]: Record<keyof Schemas[S], object> }`,
    '',
    'export interface Schemas {',
    ...objects.map(([name]) => `  ${name}: ${name}`),
    '}',
    '',
    '/** The codes of the errors that the service answers with; codes may be added. */',
    `export type ErrorCode =\n  | ${union(ErrorSchema!.properties!['code']!.examples!, '\n  ')}`,
    '',
  ].join('\n')
}

function interfaceOfQuery(operationId: string, query: Operation['parameters']): string[] {
  return [
    `/** What ${operationId} can be asked for. */`,
    `export interface ${operationId.replace(/^./, (letter) => letter.toUpperCase())}Query {`,
    ...query.flatMap(({ name, description, schema }) =>
      lineOf(`${name}?`, description, `${typeOf(schema, 'number | bigint')} | undefined`),
    ),
    '}',
  ]
}

function nameOf({ $ref = '' }: Schema): string {
  return $ref.replace('#/components/schemas/', '')
}

function interfaceOf(name: string, schema: Schema, int64: string, isRequired: (field: string) => boolean): string[] {
  const fields = Object.entries(schema.properties!).flatMap(([key, property]) => {
    const type = typeOf(property, int64)
    return isRequired(key)
      ? lineOf(key, property.description, type)
      : lineOf(`${key}?`, property.description, `${type} | undefined`)
  })
  return [`/** ${schema.description} */`, `export interface ${name} {`, ...fields, '}']
}

function lineOf(name: string, description: string | undefined, type: string): string[] {
  return [...(description === undefined ? [] : [`  /** ${description} */`]), `  ${name}: ${type}`]
}

function typeOf({ $ref, type, format }: Schema, int64: string): string {
  if ($ref !== undefined) return nameOf({ $ref })
  if (type === 'integer') return format === 'int64' ? int64 : 'number'
  if (type === 'string') return 'string'
  throw new Error(`The client has no type for ${type}.`)
}

/** The JavaScript type of a field in a parsed answer, where every integer is a bigint. */
function wireType(name: string, { $ref, type, format }: Schema): string {
  if ($ref !== undefined || type === 'string') return 'string'
  if (type === 'integer' && format === 'int64') return 'bigint'
  throw new Error(
    `The client can't read the field ${name}, ${type} of format ${format}: an integer needs the format int64.`,
  )
}

function union(values: readonly string[], separator: string): string {
  return values.map((value) => `'${value}'`).join(`${separator}| `)
}

if (import.meta.main) writeFileSync(CONTRACT, renderContract())
