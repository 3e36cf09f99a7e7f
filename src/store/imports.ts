// The port for imports of files: how far each has come.
import type { NewPet } from '../contract/pets.ts'

/** The progress of the import of a file; the import is finished when all rows are done. */
export interface FileImport {
  /** SHA-256 of the file, in hexadecimal. */
  hash: string
  /** Where the file was read from. */
  file: string
  rowsDone: number
  rowsTotal: number
  updatedAt: number
}

export interface ImportStore {
  /** Resolves with undefined if no import of this file was begun. */
  find(hash: string): Promise<FileImport | undefined>
  /**
   * Lists the imports that were begun and not finished, oldest first. Leaves out those of a file that was imported later
   * with another content.
   */
  unfinished(): Promise<FileImport[]>
  /**
   * Records the start of an import, before its first row. Resolves with false if the file has a record already, unless `again`
   * is true and that import is finished or has another `rowsTotal`.
   */
  begin(file: Pick<FileImport, 'hash' | 'file' | 'rowsTotal'>, now: number, again: boolean): Promise<boolean>
  /**
   * Adds the rows that follow the first `rowsDone` of a file, and records them as done in the same transaction. Resolves with
   * false, and nothing is added, if the import is not at `rowsDone` of `rowsTotal`, because another process has continued it
   * or begun it anew.
   */
  addRows(
    progress: Pick<FileImport, 'hash' | 'rowsDone' | 'rowsTotal'>,
    rows: readonly NewPet[],
    now: number,
  ): Promise<boolean>
}
