// An animal in words for people: the labels of its fields, their values, and what the audit trail says of a change or a removal.
import { CategoryNames } from './category-name.ts'
import { int64FromText } from './int64.ts'
import { FIELD_NAMES, type FieldName, FIELDS, type NewPet, type PetStatus } from './pets.ts'
import { entryOf } from './text/entry-of.ts'

const NO_NAMES = new CategoryNames()

/** What people call the statuses of the interface. */
export const STATUS_WORDS: Record<PetStatus, string> = { available: 'Available', pending: 'Reserved', sold: 'Sold' }

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

export function textInWords(name: FieldName, text: string, categories = NO_NAMES): string {
  return text === '' ? '–' : (WORDS[name]?.(text, categories) ?? text)
}

type Values = Partial<Record<FieldName, string>>

/** What an event says of an animal. A newer program may say more. */
export interface PetValues {
  /** The values before, integers in digits: those that a change has replaced, or all of an animal that was removed. */
  from: Values
  /** The values after a change. */
  to?: Values
  /** The names that the numbers of categories had. */
  categories?: Record<string, string>
}

/** Returns all that an animal is. */
export function allOf(pet: NewPet, categories: CategoryNames): PetValues {
  return valuesOf(FIELD_NAMES, pet, undefined, categories)
}

/** Returns what a change of an animal changes. */
export function difference(from: NewPet, to: NewPet, categories: CategoryNames): PetValues {
  const changed = FIELD_NAMES.filter((name) => from[name] !== to[name])
  return valuesOf(changed, from, to, categories)
}

function valuesOf(fields: readonly FieldName[], from: NewPet, to: NewPet | undefined, named: CategoryNames): PetValues {
  const texts = (pet: NewPet) =>
    Object.fromEntries(fields.flatMap((name) => (pet[name] === undefined ? [] : [[name, String(pet[name])]])))
  const numbers = fields.includes('categoryId') ? [from, to].flatMap((pet) => pet?.categoryId ?? []) : []
  const names = numbers.filter((number) => named.names.has(number)).map((number) => [number, named.words(number)])
  return {
    from: texts(from),
    ...(to && { to: texts(to) }),
    ...(names.length > 0 && { categories: Object.fromEntries(names) as Record<string, string> }),
  }
}

/**
 * Describes each changed field, such as "Status: Reserved → Sold", or all that an animal was, such as `Name: "Rex"; Status: Sold; Category: 3`.
 * Quotes what people have written, such as names, so that none reads as another field; digits and statuses stay as they are.
 */
export function valuesInWords({ from, to, categories = {} }: PetValues): string {
  const quoted = (name: FieldName, value = '') => {
    const { schema } = FIELDS[name]
    const named = name === 'categoryId' ? categories[value] : undefined
    const isPlain = value === '' || 'enum' in schema || (schema.type === 'integer' && named === undefined)
    return isPlain ? textInWords(name, value) : JSON.stringify(named ?? value)
  }
  const changed = to && FIELD_NAMES.filter((name) => name in from || name in to)
  return (changed ?? SHOWN_FIELDS)
    .map((name) => `${labelOf(name)}: ${quoted(name, from[name])}${to ? ` → ${quoted(name, to[name])}` : ''}`)
    .join('; ')
}

/** Describes all that an animal is. */
export function describePet(pet: NewPet, categories: CategoryNames): string {
  return valuesInWords(allOf(pet, categories))
}
