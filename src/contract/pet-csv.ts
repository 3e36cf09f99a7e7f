// The CSV of animals: the columns of every file, and the rows that an export and a download write.
import { FIELD_NAMES, FIELDS, type Pet } from './pets.ts'

/** The columns in the order in which they are written. */
export const CSV_COLUMNS = ['id', ...FIELD_NAMES] as const

export const CSV_HEADER = CSV_COLUMNS.join()

/** The fields that may contain a comma, a quote or a line break: quoted unless absent, and kept exactly as they are. */
export const FREE_TEXT: ReadonlySet<string> = new Set(
  FIELD_NAMES.filter((name) => FIELDS[name].schema.type === 'string' && !('enum' in FIELDS[name].schema)),
)

/** Renders one row; an absent field is empty. */
export function csvLine(pet: Pet): string {
  return CSV_COLUMNS.map((column) => {
    const text = String(pet[column] ?? '')
    return text !== '' && FREE_TEXT.has(column) ? `"${text.replaceAll('"', '""')}"` : text
  }).join()
}
