// The animals of the interface (spec, section 2): one schema each gives the type, the check and the OpenAPI schema.
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { INT64_MAX, INT64_MIN, int64Schema } from './int64.ts'
import { describe, OtherNumber } from './json.ts'

export const NAME_MAX_LENGTH = 255

export const PET_STATUSES = ['available', 'pending', 'sold'] as const
export type PetStatus = (typeof PET_STATUSES)[number]

export const DEFAULT_STATUS: PetStatus = 'available'

export function isPetStatus(value: unknown): value is PetStatus {
  return PET_STATUSES.includes(value as PetStatus)
}

export const PetStatusSchema = Type.Enum(PET_STATUSES, { type: 'string', description: 'Availability of the animal' })

const fields = {
  name: Type.Refine(
    Type.String({
      description: "The animal's name, kept exactly as sent",
      minLength: 1,
      maxLength: NAME_MAX_LENGTH,
      pattern: String.raw`^[^\u0000]*[^\s\u0000][^\u0000]*$`,
      examples: ['Rex'],
    }),
    (text) => text.isWellFormed(),
  ),
  categoryId: int64Schema({ description: 'Identifier of the category the animal belongs to', examples: [3] }),
  status: Type.Optional(Type.Enum(PET_STATUSES, { ...PetStatusSchema, default: DEFAULT_STATUS })),
}

export const NewPetSchema = Type.Object(fields, { description: 'An animal to add' })

export const PetSchema = Type.Object(
  {
    id: int64Schema({ description: 'Unique identifier, assigned by the service on creation', examples: [42] }),
    ...fields,
  },
  { description: 'An animal of the store' },
)

/** An animal as it is stored and answered: its status is never left open. */
export type Pet = Required<Type.Static<typeof PetSchema>>

/** An animal to add, with its default filled in. */
export type NewPet = Omit<Pet, 'id'>

/** What is wrong with one field; the message is a whole sentence. */
export interface FieldProblem {
  field: string
  message: string
}

/** Completes the sentence "<field> must be …" of an error message. */
const EXPECTED: Record<keyof NewPet, string> = {
  name: `a string of 1 to ${NAME_MAX_LENGTH} characters, not all of them white space, without U+0000 or lone surrogates`,
  categoryId: `an integer from ${INT64_MIN} to ${INT64_MAX}`,
  status: `one of ${PET_STATUSES.join(', ')}`,
}

const newPetCheck = Compile(NewPetSchema)
const fieldChecks = Object.entries(NewPetSchema.properties).map(([field, schema]) => ({
  field,
  expects: EXPECTED[field as keyof NewPet],
  required: NewPetSchema.required.includes(field as never),
  check: Compile(schema),
}))

/** The parsing of a NewPet: its fields and nothing else, or every problem it has. Takes what `parseJson` gives. */
export function parseNewPet(body: unknown): { newPet: NewPet } | { problems: FieldProblem[] } {
  if (newPetCheck.Check(body)) {
    const { name, categoryId, status = DEFAULT_STATUS } = body
    return { newPet: { name, categoryId, status } }
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body) || body instanceof OtherNumber) {
    return { problems: [{ field: '', message: `The body must be a JSON object, got ${describe(body)}.` }] }
  }
  const sent = new Map(Object.entries(body))
  const problems = fieldChecks.flatMap(({ field, expects, required, check }) => {
    const value = sent.get(field)
    if (value === undefined) return required ? [{ field, message: `${field} is missing: it must be ${expects}.` }] : []
    return check.Check(value) ? [] : [{ field, message: `${field} must be ${expects}, got ${describe(value)}.` }]
  })
  return { problems }
}
