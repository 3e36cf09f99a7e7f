// The fields of an animal in a form, and messages about invalid values for the people who fill it in.
import { entryOf } from '../contract/entry-of.ts'
import { INT64_MAX, INT64_MIN, int64FromJsonNumber } from '../contract/int64.ts'
import { PAGE_SIZE, NAME_MAX_LENGTH } from '../contract/limits.ts'
import {
  checkField,
  DEFAULT_STATUS,
  FIELD_LIST,
  FIELD_NAMES,
  type FieldName,
  FIELDS,
  type NewPet,
  PET_STATUSES,
  type PetStatus,
} from '../contract/pets.ts'
import { FieldProblem, InvalidFields } from '../contract/errors.ts'
import type { Store } from '../store/store.ts'
import { choice, field, type FieldParts } from './forms.ts'
import type { Html } from '../http/html.ts'

export const STATUS_WORDS: Record<PetStatus, string> = { available: 'Available', pending: 'Pending', sold: 'Sold' }

const STATUS_OPTIONS = PET_STATUSES.map((status) => [status, STATUS_WORDS[status]] as const)

interface ShownField {
  label: string
  /** Renders the input. `categories` are suggested for the category, but any number can be typed. */
  input: (parts: FieldParts & { categories: readonly bigint[] }) => Html
  /** Says why what was typed is invalid. */
  problem: (typed: string) => string
  /** Returns the words for a value; without it, the value is shown as it is. */
  words?: (value: string) => string
}

const SHOWN: Record<FieldName, ShownField> = {
  name: {
    label: 'Name',
    input: field,
    problem: (typed) => {
      if (typed.trim() === '') return 'Enter a name'
      const { length } = [...typed]
      return length > NAME_MAX_LENGTH
        ? `The name must have at most ${NAME_MAX_LENGTH} characters, got ${length}`
        : 'The name has the character U+0000, which cannot be stored. Remove it'
    },
  },
  categoryId: {
    label: 'Category',
    input: ({ categories, ...parts }) =>
      field({
        ...parts,
        hint: 'The number of its category, such as 3.',
        numeric: true,
        suggestions: categories.map(String),
      }),
    problem: (typed) => {
      if (typed.trim() === '') return 'Enter a category'
      return /^\s*-?\d+\s*$/.test(typed)
        ? `Category must be from ${INT64_MIN} to ${INT64_MAX}`
        : 'Category must be a whole number in digits, such as 3 or -3'
    },
  },
  status: {
    label: 'Status',
    input: ({ value = '', ...parts }) => {
      // A status of a newer program can be kept.
      const isOther = value !== '' && !Object.hasOwn(STATUS_WORDS, value)
      const options = isOther ? [...STATUS_OPTIONS, [value, value] as const] : STATUS_OPTIONS
      return choice({ ...parts, value: value || DEFAULT_STATUS, options })
    },
    problem: () => 'Choose one of the listed statuses',
    words: (status) => entryOf(STATUS_WORDS, status) ?? status,
  },
}

/** `value` returns what was typed into a field, or what it starts with. */
export interface AnimalFieldParts extends Pick<FieldParts, 'problems' | 'focus'> {
  value: (name: FieldName) => string
  categories: readonly bigint[]
}

export function animalField(name: FieldName, { value, ...parts }: AnimalFieldParts, label = SHOWN[name].label): Html {
  return SHOWN[name].input({ name, label, value: value(name), ...parts })
}

/**
 * Reads the fields with the checks of the API, so that both accept the same animals. An empty field counts as absent. A field that
 * has the text of `stored` is not checked: what is stored stays, also if a newer program allowed it.
 */
export function readAnimal(typed: (name: FieldName) => string, stored?: NewPet): NewPet | InvalidFields {
  const newPet: Record<string, unknown> = {}
  const problems: FieldProblem[] = []
  for (const entry of FIELD_LIST) {
    const { name } = entry
    const text = typed(name)
    const isStored = stored !== undefined && text === fieldText(stored, name)
    const value = isStored ? stored[name] : checkField(entry, readField(name, text))
    if (value instanceof FieldProblem) problems.push(new FieldProblem(name, SHOWN[name].problem(text)))
    else if (value !== undefined) newPet[name] = value
  }
  return problems.length === 0 ? (newPet as NewPet) : new InvalidFields(problems)
}

export function readField(name: FieldName, text: string): string | bigint | undefined {
  if (FIELDS[name].schema.type !== 'integer') return text || undefined
  return int64FromJsonNumber(text.trim()) ?? (text.trim() || undefined)
}

/** Returns the value of a field as its input has it, empty if it is absent. */
export function fieldText(newPet: NewPet, name: FieldName): string {
  return String(newPet[name] ?? '')
}

/** Name and status first, then the rest: the order in which an animal is shown. */
export const SHOWN_FIELDS: readonly FieldName[] = [...new Set<FieldName>(['name', 'status', ...FIELD_NAMES])]

export function labelOf(name: FieldName): string {
  return SHOWN[name].label
}

/** Returns the value of a field as people read it, such as "Sold". */
export function inWords(newPet: NewPet, name: FieldName): string {
  return textInWords(name, fieldText(newPet, name))
}

export function textInWords(name: FieldName, text: string): string {
  const { words = String } = SHOWN[name]
  return text === '' ? '–' : words(text)
}

/** Returns the categories of the newest animals, to suggest them: the store has no records of categories. */
export async function categoriesInUse({ pets }: Store): Promise<bigint[]> {
  const newest = await pets.list({ limit: PAGE_SIZE.maximum })
  return [...new Set(newest.map(({ categoryId }) => categoryId))].toSorted((a, b) => (a < b ? -1 : 1))
}
