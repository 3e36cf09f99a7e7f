// What a file would add by its plan, counted row by row; the plan as it is frozen when that begins; and the rows that are left out.
import { setImmediate } from 'node:timers/promises'
import { UPLOAD_ROWS } from '../../contract/limits.ts'
import { csvCells, DELIMITERS } from '../../contract/pet-csv.ts'
import type { FieldName, NewPet, Pet } from '../../contract/pets.ts'
import type { Target } from '../../pet-files/guess-columns.ts'
import { FileRefused } from '../../pet-files/pet-file.ts'
import { COUNTED_MOST } from '../../store/pet-counts.ts'
import type { Store } from '../../store/store.ts'
import type { Upload } from '../../store/uploads.ts'
import { inSlices } from '../../timing.ts'
import { count } from '../every-page/times.ts'
import type { MemberVisit } from '../every-page/visit.ts'
import { namesOf } from './import-columns.ts'
import { readRows, type Start } from './import-file.ts'
import { fieldOf, type FileRow, type FrozenPlan, LEAVE, type Meaning, type Plan, readRow } from './import-plan.ts'

/** How many values may be unknown: a column of something else has more. */
const UNKNOWN_MOST = 100
const LINES_SHOWN = 5
/** How many bad rows a page shows. */
export const BAD_SHOWN = 25

/** A value that the store does not know, and what becomes of its rows. */
export interface Unknown extends Meaning {
  field: FieldName
  /** The first of its lines, and how many rows have it. */
  lines: number[]
  rows: number
  /** A category with nearly this name. */
  similar?: string | undefined
}

export class Checked {
  /** How many rows can be added, are bad, and are left out because of what was chosen for their values. */
  ready = 0
  bad = 0
  left = 0
  badRows: FileRow[] = []
  unknown = new Map<string, Unknown>()
  /** The names of categories that will be created, by their keys. */
  created = new Map<string, string>()
  /** The numbers of the other categories by key. */
  numbers: Record<string, string> = {}
  /** All numbers of its rows: none of them may become a new category. */
  used = new Set<bigint>()
  /** How many rows are like animals in the shop, one animal for each, and their lines: the first and the last one of each run. */
  similar = 0
  similarLines: number[] = []

  /** Whether a column is something else: then the rest of the file was not read. */
  get hasWrongColumn(): boolean {
    return this.unknown.size > UNKNOWN_MOST
  }

  get leftOut(): number {
    return this.bad + this.left
  }

  /** How many rows are added by what was chosen for those that are like animals in the shop. */
  total({ similar }: Pick<Plan, 'similar'>): number {
    return similar === 'others' ? this.ready - this.similar : this.ready
  }

  /** `shop` counts the animals that are here by `textOf`. */
  add(row: FileRow, shop: Map<string, number>, textOf: (pet: NewPet) => string, from: number): void {
    const { line, pet, problems, meanings } = row
    for (const [field, meaning] of Object.entries(meanings)) {
      if (meaning.choice === undefined || problems.length > 0) continue
      const value = this.unknown.get(meaning.key) ?? { ...meaning, field: field as FieldName, lines: [], rows: 0 }
      if (value.lines.length < LINES_SHOWN) value.lines.push(line)
      value.rows += 1
      this.unknown.set(meaning.key, value)
    }
    if (pet === undefined && problems.length === 0) this.left += 1
    else if (pet === undefined) {
      if (this.bad >= from && this.badRows.length < BAD_SHOWN) this.badRows.push(row)
      this.bad += 1
    } else {
      this.ready += 1
      const { key, text, value } = meanings.categoryId!
      if (typeof value !== 'bigint') this.created.set(key, this.created.get(key) ?? text)
      else {
        this.used.add(value)
        this.numbers[key] = String(value)
        const like = shop.get(textOf(pet)) ?? 0
        if (like > 0) this.#addSimilar(line)
        shop.set(textOf(pet), like - 1)
      }
    }
  }

  #addSimilar(line: number): void {
    this.similar += 1
    if (this.similarLines.at(-1) === line - 1) this.similarLines.pop()
    else this.similarLines.push(line)
    this.similarLines.push(line)
  }
}

/** `from` is how many bad rows come before those of the page. */
export async function checkFile(
  { store, categories }: MemberVisit,
  upload: Upload,
  start: Pick<Start, 'plan' | 'rows'>,
  from: number,
  left: AbortSignal,
): Promise<Checked> {
  const { plan } = start
  // An animal of our own download may have been sold since.
  const isOwn = namesOf(start).includes('id')
  const textOf = ({ name, categoryId, status }: NewPet) => JSON.stringify([name, `${categoryId}`, isOwn || status])
  const shop = await countShop(store.pets, textOf, left)
  const checked = new Checked()
  const read = (line: number, fields: readonly Buffer[]) => readRow(plan, line, fields, categories)
  for await (const rows of readRows(store.uploads, upload, plan, read, left)) {
    for (const row of rows) checked.add(row, shop, textOf, from)
    if (checked.ready + checked.leftOut > UPLOAD_ROWS)
      throw new FileRefused(`The file has more than ${count(UPLOAD_ROWS)} rows.`)
    if (checked.hasWrongColumn) return checked
  }
  if (checked.ready + checked.leftOut === 0)
    throw new FileRefused('The file has no rows below the names of its columns.')
  const named = checked.unknown.values().filter(({ field }) => field === 'categoryId')
  await inSlices([...named], (each) => (each.similar = categories.nearest(each.text)), left)
  return checked
}

/** How many animals are read at a time. */
const READ_AT_ONCE = 500

/** Counts equal animals; none if the shop has too many. */
async function countShop(
  pets: Store['pets'],
  textOf: (pet: Pet) => string,
  left: AbortSignal,
): Promise<Map<string, number>> {
  const shop = new Map<string, number>()
  const counts = Object.values(await pets.countByStatus())
  if (counts.reduce((sum, each) => sum + each) > COUNTED_MOST) return shop
  let some: Pet[] = []
  do {
    const last = some.at(-1)
    some = await pets.list({ limit: READ_AT_ONCE, ...(last && { before: last.id }) })
    for (const pet of some) shop.set(textOf(pet), (shop.get(textOf(pet)) ?? 0) + 1)
    left.throwIfAborted()
    await setImmediate()
  } while (some.length === READ_AT_ONCE && shop.size <= COUNTED_MOST)
  return shop
}

/** `created` has the numbers of the new categories by key. */
export function frozen(plan: Plan, checked: Checked, created: Readonly<Record<string, string>>): FrozenPlan {
  const [skipped, { leftOut, numbers }] = [plan.similar === 'others' ? checked.similarLines : [], checked]
  return { ...plan, choices: { ...plan.choices, ...numbers, ...created }, skipped, total: checked.total(plan), leftOut }
}

/** Yields the animals of a frozen plan. */
export function petsOf({ store }: MemberVisit, upload: Upload, plan: FrozenPlan, left: AbortSignal) {
  let run = 0
  function isSkipped(line: number): boolean {
    while (plan.skipped[run + 1]! < line) run += 2
    return plan.skipped[run]! <= line
  }
  const read = (line: number, fields: readonly Buffer[]) => {
    const { pet } = readRow(plan, line, fields)
    return pet === undefined || isSkipped(line) ? undefined : { line, pet }
  }
  return readRows(store.uploads, upload, plan, read, left)
}

const WHY = 'Why it was left out'

/** Resolves with a file of the rows that are left out, which can be corrected and brought in: each with why, and its cells, by our names. */
export async function leftOutFile(
  { store, categories }: MemberVisit,
  upload: Upload,
  { plan, rows, begun }: Start & { begun: boolean },
  left: AbortSignal,
): Promise<string[]> {
  const delimiter = plan.delimiter === DELIMITERS.semicolon ? plan.delimiter : DELIMITERS.comma
  const line = (cells: readonly string[]) => `${csvCells(cells, delimiter)}\n`
  const named = rows.find((row) => row.line === plan.header)?.cells ?? []
  // A file that came back has the column already.
  const own = named[0] === WHY ? 1 : 0
  const names = plan.columns.map((target, index) => target || (named[index] ?? ''))
  const texts = [`\uFEFF${line([WHY, ...names.slice(own)])}`]
  const read = (number: number, fields: readonly Buffer[]) => {
    const { pet, problems, meanings } = readRow(plan, number, fields, begun ? undefined : categories)
    const chosen = Object.values(meanings).filter(({ choice }) => choice === LEAVE)
    const why = [...problems.map(({ message }) => message), ...chosen.map(({ text }) => `${text} was left out`)]
    const corrected = (target: Target | '' = '') => (target === '' ? undefined : plan.cells[number]?.[fieldOf(target)])
    const cells = fields.map((field, index) => corrected(plan.columns[index]) ?? String(field))
    return pet === undefined ? line([why.join('. '), ...cells.slice(own)]) : undefined
  }
  for await (const lines of readRows(store.uploads, upload, plan, read, left)) texts.push(lines.join(''))
  return texts
}
