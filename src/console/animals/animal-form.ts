// The fields of an animal in a form, and messages about invalid values for the people who fill it in.
import { type CategoryNames, categoryNameProblem } from '../../contract/category-name.ts'
import { INT64_MAX, INT64_MIN, int64FromJsonNumber } from '../../contract/int64.ts'
import { NAME_MAX_LENGTH } from '../../contract/limits.ts'
import {
  checkField,
  DEFAULT_STATUS,
  FIELD_LIST,
  type FieldName,
  FIELDS,
  type NewPet,
  PET_STATUSES,
} from '../../contract/pets.ts'
import { categoryWords, fieldText, labelOf, STATUS_WORDS } from '../../contract/pet-words.ts'
import { FieldProblem, InvalidFields } from '../../contract/errors.ts'
import { addCategory } from '../../store/category-store.ts'
import { authorOf } from './animal-history.ts'
import { choice, field, type FieldParts } from '../every-page/forms.ts'
import { html, type Html, isolated } from '../../http/html/html.ts'
import type { MemberVisit } from '../every-page/visit.ts'

const STATUS_OPTIONS = PET_STATUSES.map((status) => [status, STATUS_WORDS[status]] as const)

interface Categories {
  categories: CategoryNames
  /** The categories to choose from (`suggestedCategories`). */
  suggested: readonly bigint[]
}

interface ShownField {
  input: (parts: FieldParts & Categories) => Html
  problem: (typed: string, categories: CategoryNames) => string
}

const SHOWN: Record<FieldName, ShownField> = {
  name: {
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
    input: ({ categories, suggested, value = '', ...parts }) =>
      field({
        ...parts,
        value: categoryWords(value, categories),
        hint: 'A name, or a number such as 3.',
        suggestions: suggested.map((number) => categories.words(number)),
        offers: parts.problems.some((problem) => problem.field === parts.name) && categoryOffers(value, categories),
      }),
    problem: (typed, categories) => {
      if (typed.trim() === '') return 'Enter a category'
      if (/^\s*-?\d+\s*$/.test(typed)) return `Category must be from ${INT64_MIN} to ${INT64_MAX}`
      return `${categories.unknown(typed)} Enter a name of the list, or a whole number such as 3 or -3`
    },
  },
  status: {
    input: ({ value = '', ...parts }) => {
      // A status of a newer program can be kept.
      const isOther = value !== '' && !Object.hasOwn(STATUS_WORDS, value)
      const options = isOther ? [...STATUS_OPTIONS, [value, value] as const] : STATUS_OPTIONS
      return choice({ ...parts, value: value || DEFAULT_STATUS, options })
    },
    problem: () => `Choose one of ${Object.values(STATUS_WORDS).join(', ')}`,
  },
}

/** Renders what can be pressed beside a category that nobody has named: the one that was meant, or a new one. */
function categoryOffers(typed: string, categories: CategoryNames): Html | false {
  const [name, near] = [typed.trim(), categories.nearest(typed)]
  const isNew = categories.numberOf(name) === undefined && categoryNameProblem(name) === undefined
  if (near === undefined && !isNew) return false
  return html`${near !== undefined && html`<button class="button quiet" name="use" value="${near}"><span>Use ${isolated(near)}</span></button>`}
    ${isNew && html`<button class="button quiet" name="create" value="yes"><span>Create the category “${isolated(name)}”</span></button>`}`
}

/** Does what was pressed there, before the form is read. Resolves with the problem if the category can't be created. */
export async function settleCategory(visit: MemberVisit): Promise<InvalidFields | undefined> {
  const { form, store, categories } = visit
  if (form.has('use')) form.set('categoryId', form.get('use')!)
  const name = form.get('categoryId')?.trim() ?? ''
  if (!form.has('create') || categories.numberOf(name) !== undefined) return undefined
  const added = await addCategory(store, name, '', authorOf(visit))
  visit.categories = await store.categories.names()
  return added instanceof FieldProblem ? new InvalidFields([new FieldProblem('categoryId', added.message)]) : undefined
}

/** `value` returns what was typed into a field, or what it starts with. */
export interface AnimalFieldParts extends Pick<FieldParts, 'problems' | 'focus'>, Categories {
  value: (name: FieldName) => string
}

/** How many of the newest animals tell which categories are in use. */
const LOOKED_AT = 300

/** Resolves with the named categories, those in use first. */
export async function suggestedCategories({ store, categories }: MemberVisit): Promise<bigint[]> {
  const used = new Set((await store.pets.list({ limit: LOOKED_AT })).map(({ categoryId }) => categoryId))
  return [...categories.names.keys()].toSorted((one, other) => Number(used.has(other)) - Number(used.has(one)))
}

export function animalField(name: FieldName, { value, ...parts }: AnimalFieldParts, label = labelOf(name)): Html {
  return SHOWN[name].input({ name, label, value: value(name), ...parts })
}

/**
 * Reads the fields with the checks of the API, so that both accept the same animals. An empty field counts as absent. A field that
 * has the text of `stored` is not checked: what is stored stays, also if a newer program allowed it.
 */
export function readAnimal(
  typed: (name: FieldName) => string,
  categories: CategoryNames,
  stored?: NewPet,
): NewPet | InvalidFields {
  const newPet: Record<string, unknown> = {}
  const problems: FieldProblem[] = []
  for (const entry of FIELD_LIST) {
    const { name } = entry
    const text = typed(name)
    const isStored = stored !== undefined && text === fieldText(stored, name)
    const value = isStored ? stored[name] : checkField(entry, readField(name, text, categories))
    if (value instanceof FieldProblem) problems.push(new FieldProblem(name, SHOWN[name].problem(text, categories)))
    else if (value !== undefined) newPet[name] = value
  }
  return problems.length === 0 ? (newPet as NewPet) : new InvalidFields(problems)
}

export function readField(name: FieldName, text: string, categories: CategoryNames): string | bigint | undefined {
  if (FIELDS[name].schema.type !== 'integer') return text || undefined
  const chosen = name === 'categoryId' ? categories.numberOf(text) : undefined
  return chosen ?? int64FromJsonNumber(text.trim()) ?? (text.trim() || undefined)
}
