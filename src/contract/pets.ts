// The animals of the interface (spec, section 2): the table of their fields, the schemas and types that are derived from it,
// and the functions that parse a NewPet and render a Pet.
import type { XStatic } from 'typebox/schema'
import { INT64_MAX, INT64_MIN, int64FromText, int64Schema } from './int64.ts'
import { describe, isObject, type JsonSource } from './json.ts'
import { NAME_MAX_LENGTH } from './limits.ts'
import { FieldProblem, InvalidFields } from './errors.ts'

export const PET_STATUSES = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof PET_STATUSES)[number]

export const DEFAULT_STATUS: PetStatus = 'available'

/**
 * The parts never overlap, so the pattern does not backtrack: with `[^\u0000]*` at its start it would take quadratic time.
 * It has `[^\S]` for `\s`, for which tools that make up a value choose control characters.
 */
const NAME_PATTERN = String.raw`^[^\S]*[^\s\u0000][^\u0000]*$`

const PetStatusSchema = {
  title: 'PetStatus',
  type: 'string',
  enum: PET_STATUSES,
  description: 'Availability of the animal',
  examples: ['available', 'sold'],
} as const

interface Field {
  /** The two examples differ, and the second is not the default, because tests send both through every part of the service. */
  schema: ({ type: 'string' } | typeof int64Schema) & {
    examples: readonly [unknown, unknown]
    [keyword: string]: unknown
  }
  required: boolean
  /** The value of a field that a NewPet omits. A field that is neither required nor has a default may be absent. */
  default?: unknown
  check: (value: unknown) => boolean
  /** Completes the sentence "<field> must be …". */
  expected: string
  /** The name of the column, the same in every engine. */
  column: string
  /** What people call it. */
  label: string
}

/**
 * The fields of a NewPet, in the order of the columns of every CSV file and database table. Schemas, types, parsing, columns,
 * files and filters read this table. Append a new field at the end, like its column.
 */
export const FIELDS = {
  name: {
    schema: {
      type: 'string',
      minLength: 1,
      maxLength: NAME_MAX_LENGTH,
      pattern: NAME_PATTERN,
      description: "The animal's name, kept exactly as sent",
      examples: ['Rex', 'Mittens'],
    },
    required: true,
    check: (value) => isName(value),
    expected: `a string of 1 to ${NAME_MAX_LENGTH} characters, not all of them white space, without U+0000 or lone surrogates`,
    column: 'name',
    label: 'Name',
  },
  categoryId: {
    schema: { ...int64Schema, description: 'Identifier of the category the animal belongs to', examples: [3, 7] },
    required: true,
    // The JSON parser turns every int64 into a bigint, and no other value.
    check: (value) => typeof value === 'bigint',
    expected: `an integer from ${INT64_MIN} to ${INT64_MAX}`,
    column: 'category_id',
    label: 'Category',
  },
  status: {
    schema: PetStatusSchema,
    required: false,
    default: DEFAULT_STATUS,
    check: (value) => PET_STATUSES.includes(value as PetStatus),
    expected: `one of ${PET_STATUSES.join(', ')}`,
    column: 'status',
    label: 'Status',
  },
} as const satisfies Record<string, Field>

type Fields = typeof FIELDS
export type FieldName = keyof Fields
type OptionalField = {
  [F in FieldName]: Fields[F] extends { required: true } | { default: unknown } ? never : F
}[FieldName]
type ValueOf<F extends FieldName> = Fields[F]['schema'] extends { type: 'integer' }
  ? bigint
  : XStatic<Fields[F]['schema']>

/** An animal to add, with its defaults filled in. An absent optional field has no key. */
export type NewPet = { [F in Exclude<FieldName, OptionalField>]: ValueOf<F> } & { [F in OptionalField]?: ValueOf<F> }

/** An animal as it is stored and returned. */
export type Pet = NewPet & { id: bigint }

/** The table as a list, for loops. */
export const FIELD_LIST: readonly (Field & { name: FieldName })[] = Object.entries(FIELDS).map(([name, field]) => ({
  name: name as FieldName,
  ...field,
}))

export const FIELD_NAMES: readonly FieldName[] = FIELD_LIST.map(({ name }) => name)

export const OPTIONAL_FIELDS: readonly FieldName[] = FIELD_LIST.filter(
  (field) => !field.required && field.default === undefined,
).map(({ name }) => name)

const required = FIELD_LIST.filter((field) => field.required).map(({ name }) => name)
const properties = Object.fromEntries(FIELD_LIST.map(({ name, schema }) => [name, schema])) as {
  [F in FieldName]: Fields[F]['schema']
}

/** The fields of an animal that are 64-bit integers, for the documentation. */
export const INT64_FIELDS: readonly string[] = [
  'id',
  ...FIELD_LIST.filter(({ schema }) => schema.type === 'integer').map(({ name }) => name),
]

export const NewPetSchema = {
  title: 'NewPet',
  type: 'object',
  description: `An animal to add; without a status it is ${DEFAULT_STATUS}`,
  required,
  properties,
} as const

export const PetSchema = {
  title: 'Pet',
  type: 'object',
  description: 'An animal of the store',
  required: ['id', ...required],
  properties: {
    id: { ...int64Schema, description: 'Unique identifier, assigned by the service on creation', examples: [42] },
    ...properties,
  },
} as const

/** Returns a NewPet, as plain JSON values, from the first or second example of each field. */
export function exampleNewPet(which: 0 | 1): Record<string, unknown> {
  return Object.fromEntries(FIELD_LIST.map(({ name, schema }) => [name, schema.examples[which]]))
}

const namePattern = new RegExp(NAME_PATTERN)

export function isName(value: unknown, most = NAME_MAX_LENGTH): value is string {
  // Length counts code points; a string has at least half as many as UTF-16 units.
  if (typeof value !== 'string' || value.length > 2 * most) return false
  if (value.length > most && [...value].length > most) return false
  return namePattern.test(value) && value.isWellFormed()
}

/** Takes a value from `parseJson`; returns a NewPet without unknown fields, or all problems of the fields. */
export function parseNewPet(body: unknown, source: JsonSource = 'body'): NewPet | InvalidFields {
  if (!isObject(body)) {
    return new InvalidFields([new FieldProblem('', `The ${source} must be a JSON object, got ${describe(body)}.`)])
  }
  const newPet: Record<string, unknown> = {}
  const problems: FieldProblem[] = []
  for (const field of FIELD_LIST) {
    const value = checkField(field, body[field.name])
    if (value instanceof FieldProblem) problems.push(value)
    else if (value !== undefined) newPet[field.name] = value
  }
  return problems.length === 0 ? (newPet as NewPet) : new InvalidFields(problems)
}

/** Returns the value to store, which is the default or undefined if none was sent; returns a `FieldProblem` for an invalid one. */
export function checkField(field: (typeof FIELD_LIST)[number], sent: unknown): unknown {
  const { name, check, expected } = field
  const value = sent === undefined ? field.default : sent
  if (check(value)) return value
  if (value !== undefined) return new FieldProblem(name, `${name} must be ${expected}, got ${describe(value)}.`)
  return field.required ? new FieldProblem(name, `${name} is missing: it must be ${expected}.`) : undefined
}

/** Reads a field from the text of a file or query. Returns text that is not an int64 unchanged, for a message to quote. */
export function fieldFromText(name: FieldName, text: string): string | bigint {
  return FIELDS[name].schema.type === 'integer' ? (int64FromText(text) ?? text) : text
}

export function isSamePet(one: NewPet, other: NewPet): boolean {
  return FIELD_NAMES.every((name) => one[name] === other[name])
}

/**
 * Composes the JSON, because JSON.stringify can't print a bigint and is slower; integers may be text. The OpenAPI tests check it against
 * the schema.
 */
export function renderPet(pet: Pet): string {
  const { id, name, categoryId, status } = pet
  const always = `"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"`
  return OPTIONAL_FIELDS.length === 0 ? `{${always}}` : `{${always}${renderOptional(pet)}}`
}

function renderOptional(pet: Pet): string {
  return OPTIONAL_FIELDS.map((name) => {
    const value: string | bigint | undefined = pet[name]
    if (value === undefined) return ''
    return `,"${name}":${FIELDS[name].schema.type === 'integer' ? value : JSON.stringify(value)}`
  }).join('')
}

/** Animals as `renderPet` renders them, with commas between them. */
export interface RenderedPets {
  json: string
  count: number
}

const RENDERED_START = '{"id":'

/** Returns where the last of these animals starts. A name can't contain what is looked for: its quotes are escaped. */
export function lastRendered(json: string): number {
  return json.lastIndexOf(RENDERED_START)
}

/** Returns the id of the rendered animal that starts at `index`. */
export function idOfRendered(json: string, index: number): bigint {
  return BigInt(json.slice(index + RENDERED_START.length, json.indexOf(',', index)))
}
