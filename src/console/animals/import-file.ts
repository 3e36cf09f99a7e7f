// A file that a person brings in: keeps it in the store in parts, and reads it back in slices, between which other requests are served.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { CategoryNames, categoryNameProblem } from '../../contract/category-name.ts'
import { InvalidFields } from '../../contract/errors.ts'
import { quote } from '../../contract/json.ts'
import { UPLOAD_ROWS } from '../../contract/limits.ts'
import { CATEGORY } from '../../contract/pet-csv.ts'
import type { FieldName, NewPet } from '../../contract/pets.ts'
import { foldName } from '../../contract/text/fold-name.ts'
import { recogniseCsv } from '../../pet-files/csv-dialect.ts'
import { encodingOf, FileRefused, textOf } from '../../pet-files/pet-file.ts'
import { fieldFromCell, readCsv, type Row, type Unnamed } from '../../pet-files/pet-rows.ts'
import type { Upload, UploadStore } from '../../store/uploads.ts'
import { count } from '../every-page/times.ts'
import { readAnimal } from './animal-form.ts'

/** How much is read in one turn of the event loop: a row with more or fewer fields than the header takes longest, 20 µs and more. */
const SLICE = { bytes: 2 * 1024, lines: 50 }
const NEW_LINE = 10

/** Bounds what one row takes, such as thousands of fields, and what empty lines take. */
const BOUNDS = { longestRow: 8 * 1024, mostLines: 5 * UPLOAD_ROWS }

/** For how many times as long as a step took a file rests. */
const REST = { times: 5, mostMs: 50 }

let lastStep: Promise<void> = Promise.resolve()

/**
 * Resolves when a file may go on after a step: other requests are served first. The files that have rested get a turn of the event loop
 * each, so that one waits for at most a step of each other. Rejects when the client has left.
 */
async function rest(stepMs: number, left: AbortSignal): Promise<void> {
  await setTimeout(Math.min(REST.times * stepMs, REST.mostMs), undefined, { signal: left }).catch(() => undefined)
  left.throwIfAborted()
  await (lastStep = lastStep.then(() => setImmediate()))
}

/** The file was removed: after its time, for newer ones, or with its account. */
export const GONE = new FileRefused('This file is no longer here. Choose it again: no row is added twice')

/** Keeps the content of a file that was begun. */
export async function keepFile(
  uploads: UploadStore,
  id: string,
  parts: AsyncIterable<Buffer>,
  left: AbortSignal,
): Promise<void> {
  const hash = createHash('sha256')
  let size = 0
  let number = 0
  for await (const part of parts) {
    const began = performance.now()
    hash.update(part)
    size += part.length
    await uploads.append(id, number, part)
    number += 1
    await rest(performance.now() - began, left)
  }
  await uploads.complete(id, size, hash.digest('hex'))
}

/** The time of a step includes the work on its slice. */
async function* slicesOf(uploads: UploadStore, { id, size }: Upload, left: AbortSignal): AsyncGenerator<Buffer> {
  let unread = size
  for (let number = 0; unread > 0; number += 1) {
    const part = await uploads.part(id, number)
    if (part === undefined) throw GONE
    unread -= part.length
    for (let from = 0; from < part.length;) {
      const began = performance.now()
      const slice = sliceOf(part, from)
      yield slice
      from += slice.length
      await rest(performance.now() - began, left)
    }
  }
}

function sliceOf(part: Uint8Array, from: number): Buffer {
  let end = from
  for (let lines = 0; end < from + SLICE.bytes && lines < SLICE.lines; end += 1) if (part[end] === NEW_LINE) lines += 1
  return Buffer.from(part.subarray(from, end))
}

/** How many new categories a file may bring: a column of something else has more. */
const NEW_CATEGORIES = 50
const FIRST_SHOWN = 10
const PROBLEMS_SHOWN = 100

/** Suggests no similar name: each row of a file would look for one. */
function withoutHints(categories: CategoryNames): CategoryNames {
  const numberOf = (text: string) => categories.numberOf(text)
  const unknown = (name: string) => `No category is named ${quote(name.trim())}.`
  return Object.assign(new CategoryNames(), { names: categories.names, numberOf, unknown })
}

/** What a file would add. */
export interface Checked {
  upload: Upload
  /** How many rows can be added, and how many more if the new categories are created. */
  ready: number
  withNew: number
  bad: number
  /** With the name of its new category, if it has one. */
  first: { pet: NewPet; category?: string }[]
  /** The first of the bad rows. */
  problems: { line: number; problem: string }[]
  newCategories: string[]
  /** The numbers of categories that its rows have: none of them may become a new category. */
  numbers: ReadonlySet<bigint>
  /** The first columns that animals do not have. */
  ignored: readonly string[]
  /** Reads the rows again. */
  rows: (categories: CategoryNames) => AsyncGenerator<Row[]>
}

/** Returns the animal if its category can be created. */
function withNewCategory(unnamed?: Unnamed): Unnamed | undefined {
  if (unnamed === undefined || categoryNameProblem(unnamed.category) !== undefined) return undefined
  return { ...unnamed, category: unnamed.category.trim() }
}

/** Returns the problem of a row in the words of the form for one animal, if a field is wrong. */
function inFormWords({ problem, texts }: Extract<Row, { problem: string }>, categories: CategoryNames): string {
  if (texts === undefined) return problem
  const { [CATEGORY]: named = '' } = texts
  // A category that could be created is not what is wrong.
  const category = categoryNameProblem(named) === undefined ? '0' : named
  const typed = (name: FieldName) =>
    name === 'categoryId' && named.trim() !== '' ? category : String(fieldFromCell(name, texts[name] ?? ''))
  const read = readAnimal(typed, categories)
  return read instanceof InvalidFields ? `${read.problems.map(({ message }) => message).join('. ')}.` : problem
}

/** Throws `FileRefused`, and the reason of `left` when that aborts. */
export async function checkFile(
  uploads: UploadStore,
  upload: Upload,
  categories: CategoryNames,
  left: AbortSignal,
): Promise<Checked> {
  const start = Buffer.from((await uploads.part(upload.id, 0)) ?? []).subarray(0, BOUNDS.longestRow)
  const encoding = encodingOf(start, 'The file')
  const { value: header = start } = await textOf(Readable.from([start]), encoding).next()
  const dialect = recogniseCsv(header, { ignoreColumns: true })
  const rows: Checked['rows'] = (named) =>
    readCsv(textOf(slicesOf(uploads, upload, left), encoding), dialect, withoutHints(named), BOUNDS)
  const known = withoutHints(categories)
  const [first, problems]: [Checked['first'], Checked['problems']] = [[], []]
  const gathered = new Map<string, string>()
  const numbers = new Set<bigint>()
  let [ready, withNew, bad] = [0, 0, 0]
  for await (const some of rows(categories)) {
    for (const row of some) {
      const good = 'pet' in row ? { pet: row.pet } : withNewCategory(row.unnamed)
      if (good && first.length < FIRST_SHOWN) first.push(good)
      if ('pet' in row) {
        ready += 1
        numbers.add(row.pet.categoryId)
      } else if (good && 'category' in good) {
        withNew += 1
        const key = foldName(good.category)
        if (!gathered.has(key)) gathered.set(key, good.category)
      } else {
        bad += 1
        if (problems.length < PROBLEMS_SHOWN) problems.push({ line: row.line, problem: inFormWords(row, known) })
      }
    }
    if (ready + withNew + bad > UPLOAD_ROWS) throw new FileRefused(`The file has more than ${count(UPLOAD_ROWS)} rows.`)
    if (gathered.size > NEW_CATEGORIES)
      throw new FileRefused(`The file has more than ${NEW_CATEGORIES} new categories. Add the right ones first.`)
  }
  if (ready + withNew + bad === 0) throw new FileRefused('The file has a header, but no rows.')
  const ignored = dialect.ignored.slice(0, FIRST_SHOWN)
  const newCategories = [...gathered.values()]
  return { upload, ready, withNew, bad, first, problems, newCategories, numbers, ignored, rows }
}
