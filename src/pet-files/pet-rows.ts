// Reads the rows of a file of animals, in CSV or JSON Lines, from chunks of any size.
import { isUtf8 } from 'node:buffer'
import { CsvError, parse } from 'csv-parse'
import type { CategoryNames } from '../contract/category-name.ts'
import { Problem } from '../contract/errors.ts'
import { describe, type JsonSource, parseJson } from '../contract/json.ts'
import { BODY_LIMIT, kibibytes } from '../contract/limits.ts'
import { CATEGORY, CSV_COLUMNS, FREE_TEXT } from '../contract/pet-csv.ts'
import { textInWords } from '../contract/pet-words.ts'
import {
  type FieldName,
  fieldFromText,
  FIELD_NAMES,
  FIELDS,
  type NewPet,
  NewPetSchema,
  parseNewPet,
} from '../contract/pets.ts'
import { FileRefused } from './pet-file.ts'

/** A row of a file: an animal, or the problem with it. */
export type Row = { line: number; pet: NewPet } | { line: number; problem: string }

export interface CsvDialect extends CsvForm {
  /** The column of each field: '' if the header has no name for it, undefined if the column is ignored. */
  columns: readonly (string | undefined)[]
  /** The names of the ignored columns, for a message. */
  ignored: readonly string[]
}

export const REQUIRED: readonly string[] = NewPetSchema.required
/** Includes `id`, so that an export can be imported; its values are ignored, because the store assigns new ids. */
export const OPTIONAL: readonly string[] = CSV_COLUMNS.filter((column) => ![...REQUIRED, CATEGORY].includes(column))

/** The most bytes that a row may have before the import gives up: bounds the memory. A service also bounds the lines. */
const BOUNDS = { longestRow: 1024 * 1024, mostLines: Infinity }

export const ROW_ENDS = ['\r\n', '\n']
const NEW_LINE = '\n'.charCodeAt(0)

/** How a CSV file is divided into rows. */
export interface CsvForm {
  delimiter: string
  /** The number of the first line that is read: 2 after a `sep=` line, else 1. */
  headerLine: number
  /** Whether a quote in the middle of a field is a character like others, as in cells that were pasted. */
  hasPlainQuotes?: boolean
}

/**
 * Divides CSV into rows, and yields what `of` makes of each: of the line on which it starts, and its fields. Throws `FileRefused` after a
 * broken quote, because the start of the next row is then unknown.
 */
export async function* divideCsv<T>(
  chunks: AsyncIterable<Buffer>,
  { delimiter, headerLine, hasPlainQuotes = false }: CsvForm,
  of: (line: number, fields: readonly Buffer[]) => T | undefined,
  { longestRow, mostLines } = BOUNDS,
): AsyncGenerator<T[]> {
  let rows: T[] = []
  let line = headerLine
  let bytesSinceRow = 0
  const parser = parse({
    delimiter,
    encoding: null,
    record_delimiter: ROW_ENDS,
    from_line: headerLine,
    relax_column_count: true,
    relax_quotes: hasPlainQuotes,
    // Returns null, so that no record goes through the stream, which is slow. Without an encoding, fields are buffers.
    on_record(record) {
      const fields = record as unknown as Buffer[]
      const row = of(line, fields)
      if (row !== undefined) rows.push(row)
      line += 1 + newLinesIn(fields)
      bytesSinceRow = 0
      return null
    },
  })
  const feed = (chunk: Buffer | undefined) =>
    new Promise<void>((resolve, reject) => {
      parser.once('error', reject)
      const done = () => {
        parser.removeListener('error', reject)
        resolve()
      }
      if (chunk === undefined) parser.resume().once('end', done).end()
      else parser.write(chunk, (error) => (error ? reject(error) : done()))
    })
  try {
    for await (const chunk of chunks) {
      bytesSinceRow += chunk.length
      await feed(chunk)
      if (bytesSinceRow > longestRow + chunk.length)
        throw unreadable(line, `the row has no end within ${longestRow} bytes; is a quote not closed?`)
      if (line > mostLines) throw new FileRefused(`The file has more than ${mostLines} lines.`)
      yield rows
      rows = []
    }
    await feed(undefined)
    yield rows
  } catch (error) {
    throw error instanceof CsvError ? unreadable(line, explain(error)) : error
  }
}

/** Reads the animals of CSV. Values stay text until `fieldFromText` parses them, so that no int64 is rounded. */
export function readCsv(
  chunks: AsyncIterable<Buffer>,
  dialect: CsvDialect,
  categories: CategoryNames,
  bounds = BOUNDS,
): AsyncGenerator<Row[]> {
  let isHeader = true
  const rowOfFields = (line: number, fields: readonly Buffer[]) => {
    const isRow = !isHeader && !isBlank(fields)
    isHeader = false
    return isRow ? readRow(line, dialect.columns, fields, categories) : undefined
  }
  return divideCsv(chunks, dialect, rowOfFields, bounds)
}

function readRow(
  line: number,
  columns: CsvDialect['columns'],
  fields: readonly Buffer[],
  categories: CategoryNames,
): Row {
  if (fields.length !== columns.length) {
    return {
      line,
      problem: `The row has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'}, the header has ${columns.length}.`,
    }
  }
  const texts: Record<string, string> = {}
  for (const [index, column] of columns.entries()) {
    const field = fields[index]!
    if (column === undefined) continue
    if (column === '' && field.length > 0)
      return { line, problem: `Column ${index + 1} has a value, but no name in the header.` }
    if (!isUtf8(field)) return { line, problem: `${column} is not valid UTF-8; save the file as UTF-8.` }
    texts[column] = FREE_TEXT.has(column) ? field.toString() : field.toString().trim()
  }
  return rowOf(line, parseCsvPet(texts, categories))
}

function rowOf(line: number, pet: NewPet | Problem): Row {
  return pet instanceof Problem ? { line, problem: pet.message } : { line, pet }
}

/** Treats an empty field that is not required as absent. */
function parseCsvPet(texts: Record<string, string>, categories: CategoryNames): NewPet | Problem {
  const { [CATEGORY]: category = '' } = texts
  const isOptional = (name: FieldName) => !FIELDS[name].required || (name === 'categoryId' && category.trim() !== '')
  const given = FIELD_NAMES.filter((name) => name in texts && (texts[name] !== '' || !isOptional(name)))
  const values = given.map((name) => [name, fieldFromCell(name, texts[name]!)])
  return parseNamed({ ...Object.fromEntries(values), [CATEGORY]: category }, categories)
}

/** Reads a choice as the interface or the console has it, in any case: people write Reserved, as they see it. */
export function fieldFromCell(name: FieldName, text: string): string | bigint {
  const { schema } = FIELDS[name]
  const word = text.toLowerCase()
  const isMeant = (value: string) => value === word || textInWords(name, value).toLowerCase() === word
  const choice = 'enum' in schema ? schema.enum.find(isMeant) : undefined
  return choice ?? fieldFromText(name, text)
}

/** Parses an animal whose category may be named. A number beside a name counts, unless the name is that of another number. */
function parseNamed(values: unknown, categories: CategoryNames, source?: JsonSource): NewPet | Problem {
  const { categoryId, [CATEGORY]: name } = { ...(values as Record<string, unknown>) }
  if (typeof name !== 'string' || name.trim() === '') return parseNewPet(values, source)
  const named = categories.numberOf(name)
  if (typeof categoryId === 'bigint' && named !== undefined && named !== categoryId)
    return new Problem(`categoryId is ${categories.words(categoryId)}, but category is ${categories.words(named)}.`)
  const isUnknown = categoryId === undefined && named === undefined
  const pet = parseNewPet({ ...(values as object), categoryId: isUnknown ? 0n : (categoryId ?? named) }, source)
  // Creating the category does not help a row with another problem.
  return isUnknown && !(pet instanceof Problem) ? new Problem(`${categories.unknown(name)} ${HOW_TO_ADD}`) : pet
}

/** Whether the row has no values: spreadsheets write empty rows as delimiters alone. */
function isBlank(fields: readonly Buffer[]): boolean {
  return fields.every((field) => field.length === 0)
}

/** Counts the line feeds in quoted fields, which may span lines. */
function newLinesIn(fields: readonly Buffer[]): number {
  let count = 0
  for (const field of fields) {
    for (let at = field.indexOf(NEW_LINE); at >= 0; at = field.indexOf(NEW_LINE, at + 1)) count += 1
  }
  return count
}

const HOW_TO_ADD = 'Add it under Categories in the console, or with the command category create.'

const EXPLANATIONS: Record<string, string> = {
  CSV_INVALID_CLOSING_QUOTE:
    'after the closing quote of a field comes more text; inside a quoted field, write a quote twice',
  INVALID_OPENING_QUOTE:
    'a field has a quote but does not start with one; put the whole field in quotes, and write the quote twice',
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed until the end of the file',
}

export function explain({ code, message }: CsvError): string {
  return EXPLANATIONS[code] ?? describe(message)
}

function unreadable(line: number, reason: string): FileRefused {
  return new FileRefused(
    `line ${line}: ${reason}. Where the next row starts is unclear from here on, so nothing was written (--skip-bad does not help).`,
  )
}

/** Reads JSON Lines: one JSON object a line, as the body of a create. */
export async function* readJsonLines(chunks: AsyncIterable<Buffer>, categories: CategoryNames): AsyncGenerator<Row[]> {
  let line = 1
  /** The start of a line that continues in the next chunk, cut to one byte more than the longest line. */
  let rest = Buffer.alloc(0)
  for await (const chunk of chunks) {
    const rows: Row[] = []
    let from = 0
    for (let end = chunk.indexOf(NEW_LINE); end >= 0; end = chunk.indexOf(NEW_LINE, from)) {
      rows.push(...readLine(line, join(rest, chunk.subarray(from, end)), categories))
      rest = Buffer.alloc(0)
      from = end + 1
      line += 1
    }
    rest = join(rest, chunk.subarray(from))
    yield rows
  }
  yield readLine(line, rest, categories)
}

function join(start: Buffer, more: Buffer): Buffer<ArrayBuffer> {
  return Buffer.concat([start, more.subarray(0, BODY_LIMIT + 1)]).subarray(0, BODY_LIMIT + 1)
}

/** Returns no row for a blank line. */
function readLine(line: number, bytes: Buffer, categories: CategoryNames): Row[] {
  if (bytes.length > BODY_LIMIT) return [{ line, problem: `The line is larger than ${kibibytes(BODY_LIMIT)}.` }]
  if (bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)) return []
  const json = parseJson(bytes, 'line')
  return [rowOf(line, json instanceof Problem ? json : parseNamed(json.value, categories, 'line'))]
}

/** Yields the animals of the valid rows in batches of `size`, without the first `skip` of them. */
export async function* batchesAfter(
  skip: number,
  size: number,
  source: AsyncIterable<Row[]>,
): AsyncGenerator<NewPet[]> {
  let toSkip = skip
  let waiting: NewPet[] = []
  for await (const rows of source) {
    const pets = rows.flatMap((row) => ('pet' in row ? [row.pet] : []))
    waiting = waiting.concat(pets.slice(toSkip))
    toSkip = Math.max(0, toSkip - pets.length)
    while (waiting.length >= size) yield waiting.splice(0, size)
  }
  if (waiting.length > 0) yield waiting
}
