// Recognises the dialect of a CSV file from its first lines: the delimiter, and the meaning of the columns.
import { CsvError, parse } from 'csv-parse/sync'
import { quote } from '../contract/json.ts'
import { ADDED, CATEGORY, CSV_COLUMNS, DELIMITERS } from '../contract/pet-csv.ts'
import { FileRefused } from './pet-file.ts'
import { type CsvDialect, explain, OPTIONAL, REQUIRED, ROW_ENDS } from './pet-rows.ts'

/** Returns the plural of the delimiter's name, such as "semicolons", for a summary. */
export function delimiterWords(delimiter: string): string {
  const [name] = Object.entries(DELIMITERS).find(([, candidate]) => candidate === delimiter) ?? []
  return name === undefined ? quote(delimiter) : `${name}s`
}

/** A first line such as `sep=;`, which tells Excel the delimiter. */
export const SEP_LINE = /^("?)sep=([^"\r\n])\1\r?\n/iu

/** Looking at a header without end would stop a service. */
const COLUMNS_MOST = 1000
const LOOKED_AT = 1000

/**
 * Recognises the dialect from the start of a file. The delimiter is that of a `sep=` line, else the likely one. Throws
 * `FileRefused` for a header that lacks a required column, or that has an unknown one, unless `ignoreColumns` is set.
 */
export function recogniseCsv(start: Buffer, { ignoreColumns } = { ignoreColumns: false }): CsvDialect {
  const text = start.toString()
  const [sepLine = '', , declared] = SEP_LINE.exec(text) ?? []
  const headerLine = sepLine === '' ? 1 : 2
  const header = text.slice(sepLine.length)
  const delimiter = declared ?? likelyDelimiter(header)
  const names = readHeader(header, delimiter, headerLine)
  if (names.length > COLUMNS_MOST) throw wrongHeader(headerLine, `the header has more than ${COLUMNS_MOST} columns`)
  const columns = names.map((name) => columnOf(name) ?? (name.trim() === '' && !ignoreColumns ? '' : undefined))

  const isNamed = columns.includes(CATEGORY)
  const missing = REQUIRED.filter((column) => !columns.includes(column) && !(column === 'categoryId' && isNamed))
  if (missing.length > 0) {
    const read = names.length === 0 ? 'nothing' : quote(names.join(delimiter))
    const hint = names.length === 1 ? ' as one column (a first line such as sep=| names another delimiter)' : ''
    throw wrongHeader(headerLine, `the header has no column ${missing.join(' and ')}; got ${read}${hint}`)
  }
  const twice = columns.find((column, index) => column && columns.indexOf(column) < index)
  if (twice !== undefined) throw wrongHeader(headerLine, `the header has the column ${twice} twice`)
  const ignored = names
    .map((name, index) => (name.trim() === '' ? `column ${index + 1} (no name)` : quote(name)))
    .filter((name, index) => columns[index] === undefined && name !== quote(ADDED))
  if (ignored.length > 0 && !ignoreColumns) {
    throw wrongHeader(
      headerLine,
      `the header has columns that animals do not have: ${ignored.join(', ')}. Remove them, or add --ignore-columns to leave them out`,
    )
  }
  return { delimiter, columns, ignored, headerLine }
}

/** Returns the first of the delimiters that split the header into most known columns, or else into most columns. */
function likelyDelimiter(header: string): string {
  const [line = ''] = header.slice(0, LOOKED_AT).split('\n', 1)
  const columns = (delimiter: string) => line.split(delimiter).length
  const known = (delimiter: string) => line.split(delimiter).filter((name) => columnOf(name.replaceAll('"', ''))).length
  return Object.values(DELIMITERS).toSorted((a, b) => known(b) - known(a) || columns(b) - columns(a))[0]!
}

function columnOf(name: string): string | undefined {
  const sought = name.trim().toLowerCase()
  return CSV_COLUMNS.find((column) => column.toLowerCase() === sought)
}

function readHeader(text: string, delimiter: string, line: number): readonly string[] {
  try {
    return parse(text, { delimiter, record_delimiter: ROW_ENDS, to: 1 })[0] ?? []
  } catch (error) {
    throw error instanceof CsvError ? wrongHeader(line, explain(error)) : error
  }
}

function wrongHeader(line: number, reason: string): FileRefused {
  return new FileRefused(
    `line ${line}: ${reason}. The columns are ${REQUIRED.join(' and ')} or ${CATEGORY}, and optionally ${OPTIONAL.join(' and ')}. Nothing was written.`,
  )
}
