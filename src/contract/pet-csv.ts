// The CSV of animals: the columns of every file, and the one writer of an export and a download.
import { CategoryNames } from './category-name.ts'
import { FIELD_NAMES, FIELDS, type Pet } from './pets.ts'

/** The column, or member of an object, with the name of the category. */
export const CATEGORY = 'category'

/** The column with the time when an animal was added, which the console's download has. Files that are read have it left out. */
export const ADDED = 'added (UTC)'

export const CSV_COLUMNS = ['id', ...FIELD_NAMES, CATEGORY] as const

/**
 * What may separate the fields of a file that is written; a file that is read is recognised by them. Excel opens a file with commas
 * in one column where the list separator of the system is a semicolon. If a header fits several, the first of them wins.
 */
export const DELIMITERS = { comma: ',', semicolon: ';', tab: '\t' } as const
export type DelimiterName = keyof typeof DELIMITERS
type Delimiter = (typeof DELIMITERS)[DelimiterName]

/** The fields that may contain a delimiter, a quote or a line break: quoted unless absent, and kept exactly as they are. */
export const FREE_TEXT: ReadonlySet<string> = new Set([
  ...FIELD_NAMES.filter((name) => FIELDS[name].schema.type === 'string' && !('enum' in FIELDS[name].schema)),
  CATEGORY,
])

/**
 * Renders a file, batch by batch. It starts with a byte order mark, by which spreadsheets recognise UTF-8. With `additionsOf`, it has the
 * times when animals were added.
 */
export async function* renderCsv(
  batches: AsyncIterable<readonly Pet[]>,
  categories: CategoryNames,
  delimiter: Delimiter = ',',
  additionsOf?: (ids: readonly bigint[]) => Promise<ReadonlyMap<bigint, { at: number }>>,
): AsyncGenerator<string> {
  yield `\uFEFF${[...CSV_COLUMNS, ...(additionsOf ? [ADDED] : [])].join(delimiter)}\n`
  for await (const batch of batches) {
    const additions = await additionsOf?.(batch.map(({ id }) => id))
    const time = (at?: number) => (at === undefined ? '' : new Date(at).toISOString().slice(0, 16).replace('T', ' '))
    const line = (pet: Pet) =>
      csvLine(pet, delimiter, categories) + (additions ? delimiter + time(additions.get(pet.id)?.at) : '')
    yield batch.map((pet) => `${line(pet)}\n`).join('')
  }
}

/** Renders a row of any cells. */
export function csvCells(cells: readonly string[], delimiter: string): string {
  return cells.map((text) => (/["\r\n,;\t]/.test(text) ? quoted(text) : text)).join(delimiter)
}

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

/** Renders one row; an absent field is empty. */
export function csvLine(pet: Pet, delimiter: Delimiter = ',', categories = new CategoryNames()): string {
  return CSV_COLUMNS.map((column) => {
    const text = String((column === CATEGORY ? categories.names.get(pet.categoryId) : pet[column]) ?? '')
    const isQuoted = text !== '' && (FREE_TEXT.has(column) || /["\r\n,;\t]/.test(text))
    return isQuoted ? quoted(text) : text
  }).join(delimiter)
}
