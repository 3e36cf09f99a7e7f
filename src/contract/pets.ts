// The animals of the interface (spec, section 2): schemas as OpenAPI shows them, types made from them, the parsing of a
// NewPet with its messages, and the bytes of a Pet.
import type { XStatic } from 'typebox/schema'
import { INT64_MAX, INT64_MIN, int64Schema, type WithInt64 } from './int64.ts'
import { describe, type JsonSource, OtherNumber } from './json.ts'
import { NAME_MAX_LENGTH } from './limits.ts'
import { FieldProblem, InvalidFields } from './errors.ts'

export const PET_STATUSES = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof PET_STATUSES)[number]

export const DEFAULT_STATUS: PetStatus = 'available'

/** Its parts never overlap, so no name makes it backtrack: `[^\u0000]*` at its start would take quadratic time. */
const NAME_PATTERN = String.raw`^\s*[^\s\u0000][^\u0000]*$`

export const PetStatusSchema = {
  title: 'PetStatus',
  type: 'string',
  enum: PET_STATUSES,
  description: 'Availability of the animal',
} as const

const fields = {
  name: {
    type: 'string',
    minLength: 1,
    maxLength: NAME_MAX_LENGTH,
    pattern: NAME_PATTERN,
    description: "The animal's name, kept exactly as sent",
    examples: ['Rex'],
  },
  categoryId: { ...int64Schema, description: 'Identifier of the category the animal belongs to', examples: [3] },
  status: PetStatusSchema,
} as const

export const NewPetSchema = {
  title: 'NewPet',
  type: 'object',
  description: `An animal to add; without a status it is ${DEFAULT_STATUS}`,
  required: ['name', 'categoryId'],
  properties: fields,
} as const

export const PetSchema = {
  title: 'Pet',
  type: 'object',
  description: 'An animal of the store',
  required: ['id', 'name', 'categoryId'],
  properties: {
    id: { ...int64Schema, description: 'Unique identifier, assigned by the service on creation', examples: [42] },
    ...fields,
  },
} as const

/** An animal as it is stored and answered: its status is never left open. */
export type Pet = Required<WithInt64<XStatic<typeof PetSchema>>>

/** An animal to add, with its default filled in. */
export type NewPet = Omit<Pet, 'id'>

/** For each field: whether a value is one, and what completes the sentence "<field> must be …". */
const RULES: { [Field in keyof NewPet]: { check: (value: unknown) => value is NewPet[Field]; expected: string } } = {
  name: {
    check: isName,
    expected: `a string of 1 to ${NAME_MAX_LENGTH} characters, not all of them white space, without U+0000 or lone surrogates`,
  },
  categoryId: {
    // The parser makes a bigint of what is an int64, and of nothing else.
    check: (value) => typeof value === 'bigint',
    expected: `an integer from ${INT64_MIN} to ${INT64_MAX}`,
  },
  status: { check: isPetStatus, expected: `one of ${PET_STATUSES.join(', ')}` },
}

const namePattern = new RegExp(NAME_PATTERN)

function isName(value: unknown): value is string {
  // Characters are code points: a string has at least half as many as UTF-16 units.
  if (typeof value !== 'string' || value.length > 2 * NAME_MAX_LENGTH) return false
  if (value.length > NAME_MAX_LENGTH && [...value].length > NAME_MAX_LENGTH) return false
  return namePattern.test(value) && value.isWellFormed()
}

export function isPetStatus(value: unknown): value is PetStatus {
  return PET_STATUSES.includes(value as PetStatus)
}

/** Takes what `parseJson` returns; returns the fields of a NewPet and nothing else, or every problem that it has. */
export function parseNewPet(body: unknown, source: JsonSource = 'body'): NewPet | InvalidFields {
  if (typeof body !== 'object' || body === null || Array.isArray(body) || body instanceof OtherNumber) {
    return new InvalidFields([new FieldProblem('', `The ${source} must be a JSON object, got ${describe(body)}.`)])
  }
  const { name, categoryId, status = DEFAULT_STATUS } = body as Record<string, unknown>
  if (RULES.name.check(name) && RULES.categoryId.check(categoryId) && RULES.status.check(status)) {
    return { name, categoryId, status }
  }
  const sent = { name, categoryId, status }
  const problems = Object.entries(sent).flatMap(([field, value]) => {
    const { check, expected } = RULES[field as keyof NewPet]
    if (check(value)) return []
    const message =
      value === undefined
        ? `${field} is missing: it must be ${expected}.`
        : `${field} must be ${expected}, got ${describe(value)}.`
    return [new FieldProblem(field, message)]
  })
  return new InvalidFields(problems)
}

/** By hand, since it prints int64 digit for digit and is the quickest; the OpenAPI tests hold it to the schema. */
export function renderPet({ id, name, categoryId, status }: Pet): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}`
}

export function renderPets(pets: readonly Pet[]): string {
  return `[${pets.map(renderPet).join(',')}]`
}
