// Reads the rows of a file of animals, in CSV or JSON Lines, from chunks of any size.
import { isUtf8 } from 'node:buffer'
import { CsvError, parse } from 'csv-parse'
import type { CategoryNames } from '../contract/category-name.ts'
import { Problem } from '../contract/errors.ts'
import { describe, type JsonSource, parseJson } from '../contract/json.ts'
import { BODY_LIMIT, kibibytes } from '../contract/limits.ts'
import { CATEGORY, CSV_COLUMNS, FREE_TEXT } from '../contract/pet-csv.ts'
import {
  type FieldName,
  fieldFromText,
  FIELD_NAMES,
  FIELDS,
  type NewPet,
  NewPetSchema,
  parseNewPet,
} from '../contract/pets.ts'
import { CommandFailed } from './command.ts'

/** A row of a file: an animal, or the problem with it. */
export type Row = { line: number; pet: NewPet } | { line: number; problem: string }

export interface CsvDialect {
  delimiter: string
  /** The column of each field: '' if the header has no name for it, undefined if the column is ignored. */
  columns: readonly (string | undefined)[]
  /** The names of the ignored columns, for a message. */
  ignored: readonly string[]
  /** The number of the header's first line: 2 after a `sep=` line, else 1. */
  headerLine: number
}

export const REQUIRED: readonly string[] = NewPetSchema.required
/** Includes `id`, so that an export can be imported; its values are ignored, because the store assigns new ids. */
export const OPTIONAL: readonly string[] = CSV_COLUMNS.filter((column) => ![...REQUIRED, CATEGORY].includes(column))

/** The most bytes that a row may have before the import gives up: bounds the memory. */
const LONGEST_ROW = 1024 * 1024

export const ROW_ENDS = ['\r\n', '\n']
const NEW_LINE = '\n'.charCodeAt(0)

/**
 * Reads CSV. Values stay text until `fieldFromText` parses them, so that no int64 is rounded. Throws `CommandFailed` after a
 * broken quote, because the start of the next row is then unknown.
 */
export async function* readCsv(
  chunks: AsyncIterable<Buffer>,
  { delimiter, columns, headerLine }: CsvDialect,
  categories: CategoryNames,
): AsyncGenerator<Row[]> {
  let isHeader = true
  let rows: Row[] = []
  let line = headerLine
  let bytesSinceRow = 0
  const parser = parse({
    delimiter,
    encoding: null,
    record_delimiter: ROW_ENDS,
    from_line: headerLine,
    relax_column_count: true,
    // Returns null, so that no record goes through the stream, which is slow. Without an encoding, fields are buffers.
    on_record(record) {
      const fields = record as unknown as Buffer[]
      if (!isHeader && !isBlank(fields)) rows.push(readRow(line, columns, fields, categories))
      isHeader = false
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
      if (bytesSinceRow > LONGEST_ROW + chunk.length)
        throw unreadable(line, `the row has no end within ${LONGEST_ROW} bytes; is a quote not closed?`)
      yield rows
      rows = []
    }
    await feed(undefined)
    yield rows
  } catch (error) {
    throw error instanceof CsvError ? unreadable(line, explain(error)) : error
  }
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
  const values = given.map((name) => [name, fieldFromText(name, texts[name]!)])
  return parseNamed({ ...Object.fromEntries(values), [CATEGORY]: category }, categories)
}

/** Parses an animal whose category may be named. A number beside a name counts, unless the name is that of another number. */
function parseNamed(values: unknown, categories: CategoryNames, source?: JsonSource): NewPet | Problem {
  const { categoryId, [CATEGORY]: name } = { ...(values as Record<string, unknown>) }
  if (typeof name !== 'string' || name.trim() === '') return parseNewPet(values, source)
  const named = categories.numberOf(name)
  if (categoryId === undefined && named === undefined) return new Problem(categories.unknown(name))
  if (typeof categoryId === 'bigint' && named !== undefined && named !== categoryId)
    return new Problem(`categoryId is ${categories.words(categoryId)}, but category is ${categories.words(named)}.`)
  return parseNewPet({ ...(values as object), categoryId: categoryId ?? named }, source)
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

function unreadable(line: number, reason: string): CommandFailed {
  return new CommandFailed(
    `line ${line}: ${reason}. Where the next row starts is unclear from here on, so nothing was written, and --skip-bad does not help.`,
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
