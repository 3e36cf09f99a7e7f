// Imports of files: how far each has come. Part of the port; both engines implement it.
import type { NewPet } from '../contract/pets.ts'

/** The import of a file, as far as it has come; finished when all rows are done. */
export interface FileImport {
  /** SHA-256 of the file, in hexadecimal. */
  hash: string
  /** Where the file was read from. */
  file: string
  rowsDone: number
  rowsTotal: number
  updatedAt: number
}

/** "False" below is what the promise resolves with. */
export interface ImportStore {
  /** Undefined if no import of this file was begun. */
  find(hash: string): Promise<FileImport | undefined>
  /** Those that were begun and not finished, oldest first. */
  unfinished(): Promise<FileImport[]>
  /**
   * Records that an import begins, before its first row. False if there is a record of this file already, unless that
   * import is finished and `again` asks for another.
   */
  begin(file: Pick<FileImport, 'hash' | 'file' | 'rowsTotal'>, now: number, again: boolean): Promise<boolean>
  /**
   * Adds the rows that follow the first `rowsDone` of a file, and records in the same transaction that they are done. False,
   * and nothing is added, if the import is not at `rowsDone`, because another process has gone on with it.
   */
  addRows(hash: string, rowsDone: number, rows: readonly NewPet[], now: number): Promise<boolean>
  /** Forgets an unfinished import; its rows stay. */
  abandon(hash: string): Promise<void>
}
