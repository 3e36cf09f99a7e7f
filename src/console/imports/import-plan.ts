// The plan of a file: how its rows become animals. It is saved with the file, step by step, and frozen with its import.
import { hash } from 'node:crypto'
import { CategoryNames, categoryNameProblem } from '../../contract/category-name.ts'
import { FieldProblem, InvalidFields } from '../../contract/errors.ts'
import { int64FromText } from '../../contract/int64.ts'
import { CATEGORY } from '../../contract/pet-csv.ts'
import { FIELD_NAMES, type FieldName, FIELDS, type NewPet, PET_STATUSES } from '../../contract/pets.ts'
import { foldName } from '../../contract/text/fold-name.ts'
import { type Guess, statusFromCell, type Target } from '../../pet-files/guess-columns.ts'
import type { Encoding } from '../../pet-files/pet-file.ts'
import { readAnimal } from '../animals/animal-form.ts'

/** The texts of a row by field. */
export type Texts = Partial<Record<FieldName, string>>

export interface Plan extends Guess {
  encoding: Encoding
  /** What becomes of values by key: CREATE, LEAVE, a status or the number of a category. A frozen plan has all that are not digits. */
  choices: Readonly<Record<string, string>>
  /** Corrected cells, by line. */
  cells: Readonly<Record<string, Texts>>
  /** Which rows are added if some are like animals in the shop; undefined until somebody has chosen. */
  similar?: 'all' | 'others'
}

/** Its rows depend on nothing else but the file: they are the same whoever goes on with the import, and when. */
export interface FrozenPlan extends Plan {
  /** The lines of rows that are not added: the first and the last one of each run. */
  skipped: readonly number[]
  total: number
  leftOut: number
}

export const CREATE = 'create'
export const LEAVE = 'leave'
const DIGITS = /^-?\d{1,19}$/

/** Returns whether a choice is one for this field. */
export function isChoice(field: FieldName, choice = ''): boolean {
  if (choice === LEAVE) return true
  if (field === 'status') return PET_STATUSES.some((status) => status === choice)
  return choice === CREATE || DIGITS.test(choice)
}

/** Tells a plan as this release writes it from one of a later release, and from a damaged one. */
const sealOf = (json: string) => hash('sha256', `plan 1 ${json}`).slice(0, 16)

export function written(plan: Partial<Plan>): string {
  const json = JSON.stringify(plan)
  return sealOf(json) + json
}

/** Returns what was saved; nothing if it is not what this release writes. */
export function readPlan(text = ''): Partial<FrozenPlan> {
  const [seal, json] = [text.slice(0, 16), text.slice(16)]
  return seal === sealOf(json) ? (JSON.parse(json) as Partial<FrozenPlan>) : {}
}

/** What a cell of a category or status means. */
export interface Meaning {
  /** A short key, which also names its input. */
  key: string
  text: string
  /** Undefined for a new category, and for what is left out. */
  value?: bigint | string
  /** What becomes of a value that the store does not know; undefined for one that it knows. */
  choice?: string
  problem?: string
}

export interface FileRow {
  line: number
  texts: Texts
  /** Undefined for a row that is not added. A new category has the number 0. */
  pet?: NewPet
  meanings: Partial<Record<FieldName, Meaning>>
  /** What is wrong with it; nothing if it is left out because of what was chosen for its category or status. */
  problems: readonly FieldProblem[]
}

/** The field of a column: a category is a name or a number. */
export function fieldOf(target: Target): FieldName {
  return target === CATEGORY ? 'categoryId' : target
}

const NOT_ONE = 'This row has more cells than the others. Is one of them divided in two?'
const NO_NAMES = new CategoryNames()

/** Reads a row, by a frozen plan without the categories that there are now. */
export function readRow(plan: Plan, line: number, fields: readonly Buffer[], categories = NO_NAMES): FileRow {
  const corrected = plan.cells[line]
  const texts = Object.fromEntries(FIELD_NAMES.map((name) => [name, ''])) as Record<FieldName, string>
  for (const [index, target] of plan.columns.entries()) {
    const cell = fields[index]?.toString() ?? ''
    // The name of a category counts before its number.
    if (target !== '' && cell.trim() !== '' && (target === CATEGORY || texts[fieldOf(target)] === ''))
      texts[fieldOf(target)] = cell
  }
  Object.assign(texts, corrected)
  const problems: FieldProblem[] = []
  const isWider = fields.some((field, index) => index >= plan.columns.length && field.toString().trim() !== '')
  if (isWider && corrected === undefined) problems.push(new FieldProblem('', NOT_ONE))
  if (texts.name.includes('\uFFFD') && corrected === undefined)
    problems.push(new FieldProblem('name', 'Some letters were not saved well. Enter it again'))
  const [category, status] = [texts.categoryId.trim(), texts.status.trim()]
  const meanings: FileRow['meanings'] = {}
  if (category !== '') meanings.categoryId = categoryOf(category, plan, categories)
  if (status !== '') meanings.status = statusOf(status.slice(0, LOOKED_AT), plan)
  const problem = meanings.categoryId?.problem
  if (problem !== undefined) problems.push(new FieldProblem('categoryId', problem))
  const placeholders: Texts = { categoryId: '0', status: '' }
  const pet = readAnimal(
    (name) => String(meanings[name] ? (meanings[name].value ?? placeholders[name]) : texts[name]),
    NO_NAMES,
  )
  if (pet instanceof InvalidFields) problems.push(...pet.problems)
  const isLeft = Object.values(meanings).some(({ choice }) => choice === LEAVE)
  return { line, texts, meanings, problems, ...(problems.length === 0 && !isLeft && { pet: pet as NewPet }) }
}

const keyOf = (field: FieldName, folded: string) => hash('sha256', `${field} ${folded}`).slice(0, 16)

/** How much of the text of a status counts. */
const LOOKED_AT = 100

function statusOf(text: string, { choices }: Plan): Meaning {
  const value = statusFromCell(text)
  const key = keyOf('status', foldName(text))
  if (FIELDS.status.check(value)) return { key, text, value }
  const choice = isChoice('status', choices[key]) ? choices[key]! : LEAVE
  return { key, text, choice, ...(choice !== LEAVE && { value: choice }) }
}

function categoryOf(text: string, { choices }: Plan, categories: CategoryNames): Meaning {
  const digits = int64FromText(text)
  const problem = digits === undefined ? categoryNameProblem(text) : undefined
  if (problem !== undefined) return { key: '', text, problem }
  const key = keyOf('categoryId', digits === undefined ? foldName(text) : String(digits))
  const known = digits ?? categories.numberOf(text)
  if (known !== undefined && categories.names.has(known)) return { key, text, value: known }
  const chosen = isChoice('categoryId', choices[key]) ? choices[key]! : CREATE
  // The category that was to be used may have gone since; a frozen plan has only numbers.
  const isGone = categories !== NO_NAMES && DIGITS.test(chosen) && !categories.names.has(BigInt(chosen))
  const choice = isGone ? CREATE : chosen
  const value = int64FromText(choice) ?? known
  return { key, text, choice, ...(choice !== LEAVE && value !== undefined && { value }) }
}
