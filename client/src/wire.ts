// What is on the wire: bodies as JSON, and answers from JSON, with exact integers both ways, by the fields of each schema.
import { FIELDS, type Schemas } from './contract.ts'
import type { Json } from './exact-json.ts'

type Fields = Record<string, { type: 'string' | 'bigint'; always: boolean }>

/** Renders a body without JSON.stringify, which refuses a bigint. Leaves out absent fields, and those that the schema does not have. */
export function render<S extends keyof Schemas>(schema: S, body: Schemas[S]): string {
  const parts = Object.entries(FIELDS[schema] as Fields).flatMap(([name, { type, always }]) => {
    const value: unknown = body[name as keyof Schemas[S]]
    if (value === undefined && !always) return []
    const json = type === 'bigint' ? String(exactInteger(name, value as bigint)) : JSON.stringify(value)
    return json === undefined ? [] : [`"${name}":${json}`]
  })
  return `{${parts.join(',')}}`
}

/** Returns the value as a bigint. Throws a TypeError for a number that is not a safe integer: the caller may have rounded it. */
export function exactInteger(name: string, value: number | bigint): bigint {
  if (typeof value === 'bigint') return value
  if (Number.isSafeInteger(value)) return BigInt(value)
  throw new TypeError(
    `${name} must be a bigint or a safe integer, got ${typeof value === 'number' ? `the number ${value}` : typeof value}.`,
  )
}

/** Returns undefined for a value of another schema. Drops fields that this version of the client does not know. */
export function parse<S extends keyof Schemas>(schema: S, value: Json | undefined): Schemas[S] | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const parsed: Record<string, Json> = {}
  for (const [name, { type, always }] of Object.entries(FIELDS[schema] as Fields)) {
    const field = value[name]
    if (field === undefined && !always) continue
    // Checks only the type: a later version of the service may have more statuses.
    if (typeof field !== type) return undefined
    parsed[name] = field!
  }
  return parsed as object as Schemas[S]
}

export function parseList<S extends keyof Schemas>(schema: S, value: Json | undefined): Schemas[S][] | undefined {
  if (!Array.isArray(value)) return undefined
  const parsed = value.map((each) => parse(schema, each))
  return parsed.every((each) => each !== undefined) ? parsed : undefined
}
