// The fields of an animal in a form, and what is wrong with them in the words of the people who fill it in.
import { INT64_MAX, INT64_MIN, int64FromJsonNumber } from '../contract/int64.ts'
import { LIMIT, NAME_MAX_LENGTH } from '../contract/limits.ts'
import { DEFAULT_STATUS, type NewPet, parseNewPet, PET_STATUSES, type PetStatus } from '../contract/pets.ts'
import { FieldProblem, InvalidFields } from '../contract/errors.ts'
import type { Store } from '../store/store.ts'
import { choice, field, type Problems } from './forms.ts'
import { html, type Html } from './html.ts'

export const STATUS_WORDS: Record<PetStatus, string> = { available: 'Available', pending: 'Pending', sold: 'Sold' }

const STATUS_OPTIONS = PET_STATUSES.map((status) => [status, STATUS_WORDS[status]] as const)

/** `typed` gives what was typed into a field, or what it starts with; `categories` are offered beside the free number. */
export function animalFields(typed: (name: string) => string, problems: Problems, categories: readonly bigint[]): Html {
  return html`
    ${field({ name: 'name', label: 'Name', value: typed('name'), problems })}
    ${field({
      name: 'categoryId',
      label: 'Category',
      hint: 'The number of its category, such as 3.',
      numeric: true,
      value: typed('categoryId'),
      suggestions: categories.map(String),
      problems,
    })}
    ${choice({ name: 'status', label: 'Status', value: typed('status') || DEFAULT_STATUS, options: STATUS_OPTIONS, problems })}`
}

/** Reads the fields with the API's own checks, so that both accept the same animals. */
export function readAnimal(typed: URLSearchParams): NewPet | InvalidFields {
  const text = (name: string) => typed.get(name) || undefined
  const category = typed.get('categoryId')?.trim() ?? ''
  const parsed = parseNewPet({
    name: text('name'),
    categoryId: int64FromJsonNumber(category) ?? (category || undefined),
    status: text('status'),
  })
  if (!(parsed instanceof InvalidFields)) return parsed
  return new InvalidFields(
    parsed.problems.map(({ field: name }) => new FieldProblem(name, inPlainWords(name, typed.get(name) ?? ''))),
  )
}

function inPlainWords(name: string, value: string): string {
  switch (name) {
    case 'name':
      if (value.trim() === '') return 'Enter a name'
      return value.length > NAME_MAX_LENGTH
        ? `The name must have at most ${NAME_MAX_LENGTH} characters`
        : 'The name has a character that cannot be stored'
    case 'categoryId':
      if (value.trim() === '') return 'Enter a category'
      return /^\s*[+-]?\d+\s*$/.test(value)
        ? `Category must be from ${INT64_MIN} to ${INT64_MAX}`
        : 'Category must be a whole number, like 3'
    default:
      return 'Choose one of the listed statuses'
  }
}

/** Returns categories to choose from: no records of them exist, so those of the newest animals are offered. */
export async function categoriesInUse({ pets }: Store): Promise<bigint[]> {
  const newest = await pets.list({ limit: LIMIT.maximum })
  return [...new Set(newest.map(({ categoryId }) => categoryId))].toSorted((a, b) => (a < b ? -1 : 1))
}
