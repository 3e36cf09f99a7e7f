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
}

interface Document {
  servers: { variables: Record<string, { default: string }> }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<'PetStatus' | 'NewPet' | 'Pet' | 'Error', Schema> }
}

const OPENAPI = new URL('../openapi.json', import.meta.url)
const CONTRACT = new URL('src/contract.ts', import.meta.url)

export function renderContract(openapi = readFileSync(OPENAPI, 'utf8')): string {
  const { servers, paths, components } = JSON.parse(openapi) as Document
  const { PetStatus, NewPet, Pet, Error: ErrorSchema } = components.schemas
  const [address] = Object.values(servers[0]!.variables)
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )
  const query = operations
    .find(({ operationId }) => operationId === 'listPets')!
    .parameters.filter((parameter) => parameter.in === 'query')
  const limit = query.find(({ name }) => name === 'limit')!.schema
  // The service fills in a status that was left out.
  const alwaysSent = new Set([...Pet.required!, 'status'])
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
    '',
    `/** ${PetStatus.description} */`,
    `export type PetStatus = ${union(PetStatus.enum!, ' ')}`,
    '',
    '/** What listPets can be asked for. */',
    'export interface ListPetsQuery {',
    ...query.flatMap(({ name, description, schema }) =>
      field(`${name}?`, description, `${typeOf(schema, 'number | bigint')} | undefined`),
    ),
    '}',
    '',
    ...interfaceOf('NewPet', NewPet, 'number | bigint', (name) => NewPet.required!.includes(name)),
    '',
    ...interfaceOf('Pet', Pet, 'bigint', (name) => alwaysSent.has(name)),
    '',
    '/** How each field of an animal goes over the wire, and whether the service always sends it. */',
    'export const PET_FIELDS = {',
    ...Object.entries(Pet.properties!).map(
      ([name, schema]) => `  ${name}: { type: '${wireType(name, schema)}', always: ${alwaysSent.has(name)} },`,
    ),
    '} as const satisfies Record<keyof Pet, object>',
    '',
    '/** The codes of the errors that the service answers with; codes may be added. */',
    `export type ErrorCode =\n  | ${union(ErrorSchema.properties!['code']!.examples!, '\n  ')}`,
    '',
  ].join('\n')
}

function interfaceOf(name: string, schema: Schema, int64: string, isRequired: (field: string) => boolean): string[] {
  const fields = Object.entries(schema.properties!).flatMap(([key, property]) => {
    const type = typeOf(property, int64)
    return isRequired(key)
      ? field(key, property.description, type)
      : field(`${key}?`, property.description, `${type} | undefined`)
  })
  return [`/** ${schema.description} */`, `export interface ${name} {`, ...fields, '}']
}

function field(name: string, description: string | undefined, type: string): string[] {
  return [...(description === undefined ? [] : [`  /** ${description} */`]), `  ${name}: ${type}`]
}

function typeOf({ $ref, type, format }: Schema, int64: string): string {
  if ($ref !== undefined) return $ref.replace('#/components/schemas/', '')
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
