// Reads animals from CSV. Values stay text until our own rules have read them, so that an int64 is never rounded.
import { isUtf8 } from 'node:buffer'
import { CsvError, parse } from 'csv-parse'
import { int64FromText } from '../contract/int64.ts'
import { describe, quote } from '../contract/json.ts'
import { type NewPet, parseNewPet } from '../contract/pets.ts'
import { Refused } from '../contract/errors.ts'
import { CommandFailed } from './command.ts'
import type { Row } from './pet-file.ts'

const REQUIRED = ['name', 'categoryId']
/** `id` is read and ignored, so that an export can be imported; the store assigns new ids. */
const COLUMNS = new Set(['id', ...REQUIRED, 'status'])

/** A row without an end within this many bytes is not read further: memory stays bounded. */
const LONGEST_ROW = 1024 * 1024

const NEW_LINE = '\n'.charCodeAt(0)

/** Throws `CommandFailed` for a wrong header, and where a broken quote makes it unclear where the next row starts. */
export async function* readCsv(chunks: AsyncIterable<Buffer>): AsyncGenerator<Row[]> {
  let columns: readonly string[] | undefined
  let rows: Row[] = []
  let line = 1
  let bytesSinceRow = 0
  const parser = parse({
    encoding: null,
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
    // Returns nothing, so that no record takes the slow way through the stream. Without an encoding, fields are bytes.
    on_record(record) {
      const fields = record as unknown as Buffer[]
      if (columns === undefined) columns = readHeader(fields)
      else if (!isBlank(fields)) rows.push(readRow(line, columns, fields))
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
  if (columns === undefined) throw wrongHeader('nothing')
}

function readHeader(fields: readonly Buffer[]): readonly string[] {
  const columns = fields.map((field) => field.toString())
  const known = columns.every((column) => COLUMNS.has(column)) && new Set(columns).size === columns.length
  if (known && REQUIRED.every((column) => columns.includes(column))) return columns
  throw wrongHeader(quote(columns.join()))
}

function wrongHeader(got: string): CommandFailed {
  return new CommandFailed(
    `line 1: the header must name the columns, separated by commas: ${REQUIRED.join(' and ')}, and optionally id and status; got ${got}. Nothing was written.`,
  )
}

function readRow(line: number, columns: readonly string[], fields: readonly Buffer[]): Row {
  if (fields.length !== columns.length) {
    return {
      line,
      problem: `The row has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'}, the header has ${columns.length}.`,
    }
  }
  const broken = columns.find((_column, index) => !isUtf8(fields[index]!))
  if (broken !== undefined) return { line, problem: `${broken} is not valid UTF-8.` }
  const pet = parseCsvPet(Object.fromEntries(columns.map((column, index) => [column, fields[index]!.toString()])))
  return pet instanceof Refused ? { line, problem: pet.message } : { line, pet }
}

/** An empty status is one that was left out. */
function parseCsvPet({ name, categoryId = '', status }: Record<string, string>): NewPet | Refused {
  return parseNewPet({ name, categoryId: int64FromText(categoryId) ?? categoryId, ...(status ? { status } : {}) })
}

function isBlank([only, ...others]: readonly Buffer[]): boolean {
  return others.length === 0 && only?.length === 0
}

/** A quoted field may go over several lines. */
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

function explain({ code, message }: CsvError): string {
  return EXPLANATIONS[code] ?? describe(message)
}

function unreadable(line: number, reason: string): CommandFailed {
  return new CommandFailed(
    `line ${line}: ${reason}. Where the next row starts is unclear from here on, so nothing was written, and --skip-bad does not help.`,
  )
}
