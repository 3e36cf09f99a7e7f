// Sample animals made from the table of fields. Tests that send them through a part of the service fail if it drops a field.
import {
  FIELD_NAMES,
  type FieldName,
  FIELDS,
  type NewPet,
  OPTIONAL_FIELDS,
  type Pet,
} from '../../../src/contract/pets.ts'

/** Has every field, none with its default value. */
export const samplePet = madeOf(1)

/** Has every field, each with a value that differs from the sample's. */
export const otherPet = madeOf(0)

/** Has no optional field. */
export const barePet = without(otherPet, OPTIONAL_FIELDS)

/** For each field, an animal that differs from the sample only in this field; for an optional field, another one without it. */
export const variants: readonly { field: FieldName; pet: NewPet }[] = FIELD_NAMES.flatMap((field) => [
  { field, pet: { ...samplePet, [field]: otherPet[field] } },
  ...(OPTIONAL_FIELDS.includes(field) ? [{ field, pet: without(samplePet, [field]) }] : []),
])

function madeOf(which: 0 | 1): Required<NewPet> {
  return Object.fromEntries(
    FIELD_NAMES.map((name) => {
      const { type, examples } = FIELDS[name].schema
      return [name, type === 'integer' ? BigInt(examples[which]) : examples[which]]
    }),
  ) as Required<NewPet>
}

function without(pet: NewPet, fields: readonly FieldName[]): NewPet {
  return Object.fromEntries(Object.entries(pet).filter(([name]) => !fields.includes(name as FieldName))) as NewPet
}

/** Returns the fields as texts, as in a form or a CSV file; an absent field is the empty string. */
export function asTexts(pet: NewPet): Record<FieldName, string> {
  return Object.fromEntries(FIELD_NAMES.map((name) => [name, String(pet[name] ?? '')])) as Record<FieldName, string>
}

/** Returns the animal as JSON.parse would, with numbers instead of bigints; only for small integers. */
export function asJson(pet: NewPet | Pet): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(pet).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  )
}
