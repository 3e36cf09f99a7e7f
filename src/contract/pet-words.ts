// An animal in words for people: the labels of its fields, their values, and what the audit trail says of a change or a removal.
import type { CategoryNames } from './category-name.ts'
import { int64FromText } from './int64.ts'
import { FIELD_NAMES, type FieldName, FIELDS, type NewPet, type PetStatus } from './pets.ts'
import { entryOf } from './text/entry-of.ts'

export const STATUS_WORDS: Record<PetStatus, string> = { available: 'Available', pending: 'Pending', sold: 'Sold' }

/** How the values of a field are worded; those of the others are shown as they are. */
const WORDS: Partial<Record<FieldName, (value: string, categories: CategoryNames) => string>> = {
  categoryId: categoryWords,
  status: (status) => entryOf(STATUS_WORDS, status) ?? status,
}

export function categoryWords(text: string, categories: CategoryNames): string {
  const number = int64FromText(text)
  return number === undefined ? text : categories.words(number)
}

/** Name and status first, then the rest: the order in which an animal is shown. */
export const SHOWN_FIELDS: readonly FieldName[] = [...new Set<FieldName>(['name', 'status', ...FIELD_NAMES])]

export function labelOf(name: FieldName): string {
  return FIELDS[name].label
}

/** Returns the value of a field as its input has it, empty if it is absent. */
export function fieldText(newPet: NewPet, name: FieldName): string {
  return String(newPet[name] ?? '')
}

/** Returns the value of a field as people read it, such as "Sold" or "Cats". */
export function inWords(newPet: NewPet, name: FieldName, categories: CategoryNames): string {
  return textInWords(name, fieldText(newPet, name), categories)
}

export function textInWords(name: FieldName, text: string, categories: CategoryNames): string {
  return text === '' ? '–' : (WORDS[name]?.(text, categories) ?? text)
}

/** Quotes what people have written, such as names, so that none reads as another field; digits and statuses stay as they are. */
function quoted(pet: NewPet, name: FieldName, categories: CategoryNames): string {
  const [{ schema }, words] = [FIELDS[name], inWords(pet, name, categories)]
  const isNumber = schema.type === 'integer' && words === String(pet[name])
  return pet[name] === undefined || isNumber || 'enum' in schema ? words : JSON.stringify(words)
}

/** Describes all that an animal is, such as `Name: "Rex"; Status: Sold; Category: 3`. */
export function describePet(pet: NewPet, categories: CategoryNames): string {
  return SHOWN_FIELDS.map((name) => `${labelOf(name)}: ${quoted(pet, name, categories)}`).join('; ')
}

/** Describes each changed field, such as "Status: Pending → Sold"; returns an empty text if there is none. */
export function difference(from: NewPet, to: NewPet, categories: CategoryNames): string {
  return FIELD_NAMES.filter((name) => from[name] !== to[name])
    .map((name) => `${labelOf(name)}: ${quoted(from, name, categories)} → ${quoted(to, name, categories)}`)
    .join('; ')
}
