// Animals as CSV: what an export and a download write, and an import reads.
import type { Pet } from './pets.ts'

/** The columns in the order in which they are written. */
export const CSV_COLUMNS = ['id', 'name', 'categoryId', 'status'] as const

export const CSV_HEADER = CSV_COLUMNS.join()

/** The name is always quoted, and kept exactly as it is. */
export function csvLine(pet: Pet): string {
  return CSV_COLUMNS.map((column) => (column === 'name' ? `"${pet.name.replaceAll('"', '""')}"` : pet[column])).join()
}
