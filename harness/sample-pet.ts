// Animals made from the table of fields: tests that send them through a part of the service notice a field that it forgets.
import { FIELD_NAMES, type FieldName, FIELDS, type NewPet, OPTIONAL_FIELDS, type Pet } from '../src/contract/pets.ts'

/** Every field, none with its default. */
export const samplePet = madeOf(1)

/** Every field, each different from the sample's. */
export const otherPet = madeOf(0)

/** No field that may be absent. */
export const barePet = without(otherPet, OPTIONAL_FIELDS)

/** For each field, animals that differ from the sample in this field alone; also by its absence, if it may be absent. */
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

/** Returns the fields as text, as a form or a CSV file has them; an absent field is empty. */
export function asTexts(pet: NewPet): Record<FieldName, string> {
  return Object.fromEntries(FIELD_NAMES.map((name) => [name, String(pet[name] ?? '')])) as Record<FieldName, string>
}

/** Returns the animal as JSON.parse reads it, where integers are small. */
export function asJson(pet: NewPet | Pet): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(pet).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  )
}
