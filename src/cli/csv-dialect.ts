// Recognises the dialect of a CSV file from its first lines: the delimiter, and the meaning of the columns.
import { CsvError, parse } from 'csv-parse/sync'
import { entryOf } from '../contract/entry-of.ts'
import { quote } from '../contract/json.ts'
import { CommandFailed, type Option, UsageError } from './command.ts'
import { CATEGORY, CSV_COLUMNS, DELIMITERS } from '../contract/pet-csv.ts'
import { type CsvDialect, explain, OPTIONAL, REQUIRED, ROW_ENDS } from './pet-rows.ts'

export const DELIMITER_OPTION: Option = {
  value: 'DELIMITER',
  meaning: `What separates the fields of CSV: ${Object.keys(DELIMITERS).join(', ')} or any one character; by default as recognised`,
  choices: Object.keys(DELIMITERS),
}

export function delimiterOf(flag: string | undefined): string | undefined {
  const named = flag === undefined ? undefined : entryOf<string>(DELIMITERS, flag)
  if (flag === undefined || named !== undefined) return named
  if (/^[^"\r\n]$/u.test(flag)) return flag
  throw new UsageError(
    `--delimiter must be ${Object.keys(DELIMITERS).join(', ')} or one character other than a quote, got ${quote(flag)}.`,
  )
}

/** Returns the plural of the delimiter's name, such as "semicolons", for a summary. */
export function delimiterWords(delimiter: string): string {
  const [name] = Object.entries(DELIMITERS).find(([, candidate]) => candidate === delimiter) ?? []
  return name === undefined ? quote(delimiter) : `${name}s`
}

/** A first line such as `sep=;`, which tells Excel the delimiter. */
const SEP_LINE = /^("?)sep=([^"\r\n])\1\r?\n/iu

export interface CsvOptions {
  delimiter?: string | undefined
  /** Ignores the columns that an animal does not have, instead of refusing the file. */
  ignoreColumns?: boolean | undefined
}

/**
 * Recognises the dialect from the start of a file. The delimiter is the one in the options, else that of a `sep=` line, else
 * the one that splits the header into most known columns. Throws `CommandFailed` for a header that lacks a required column, or
 * has a column that would be lost.
 */
export function recogniseCsv(start: Buffer, { delimiter: chosen, ignoreColumns }: CsvOptions = {}): CsvDialect {
  const text = start.toString()
  const [sepLine = '', , declared] = SEP_LINE.exec(text) ?? []
  const headerLine = sepLine === '' ? 1 : 2
  const header = text.slice(sepLine.length)
  const delimiter = chosen ?? declared ?? likelyDelimiter(header)
  const names = readHeader(header, delimiter, headerLine)
  if (names.some((name) => /\r(?!\n)/.test(name)))
    throw wrongHeader(
      headerLine,
      'lines end with CR alone. Save the file with LF or CR LF, as all CSV but that of old Macs',
    )
  const columns = names.map((name) => columnOf(name) ?? (name.trim() === '' && !ignoreColumns ? '' : undefined))

  const isNamed = columns.includes(CATEGORY)
  const missing = REQUIRED.filter((column) => !columns.includes(column) && !(column === 'categoryId' && isNamed))
  if (missing.length > 0) {
    const read = names.length === 0 ? 'nothing' : quote(names.join(delimiter))
    throw wrongHeader(
      headerLine,
      `the header has no column ${missing.join(' and ')}; got ${read}, read with ${delimiterWords(delimiter)} (--delimiter names another delimiter)`,
    )
  }
  const twice = columns.find((column, index) => column && columns.indexOf(column) < index)
  if (twice !== undefined) throw wrongHeader(headerLine, `the header has the column ${twice} twice`)
  const ignored = names
    .map((name, index) => (name.trim() === '' ? `column ${index + 1} (no name)` : quote(name)))
    .filter((_name, index) => columns[index] === undefined)
  if (ignored.length > 0 && !ignoreColumns) {
    throw wrongHeader(
      headerLine,
      `the header has columns that animals do not have: ${ignored.join(', ')}. Remove them, or add --ignore-columns to leave them out`,
    )
  }
  return { delimiter, columns, ignored, headerLine }
}

/** Returns the first of the delimiters that split the header into most known columns. */
function likelyDelimiter(header: string): string {
  const [line = ''] = header.split('\n', 1)
  const found = (delimiter: string) => line.split(delimiter).filter((name) => columnOf(name.replaceAll('"', ''))).length
  return Object.values(DELIMITERS).toSorted((a, b) => found(b) - found(a))[0]!
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

function wrongHeader(line: number, reason: string): CommandFailed {
  return new CommandFailed(
    `line ${line}: ${reason}. The columns are ${REQUIRED.join(' and ')} or ${CATEGORY}, and optionally ${OPTIONAL.join(' and ')}. Nothing was written.`,
  )
}
