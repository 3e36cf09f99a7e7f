// The port for imports of files: how far each has come.
import type { NewPet } from '../contract/pets.ts'
import { insertPets, NewRow } from './pet-writes.ts'
import { plain, type Sql, type SqlValue } from './sql.ts'

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
   * Resolves with an import of another content that may have added the same rows: the newest one from a file of this name, else the newest
   * one after `since`; with undefined if there is none.
   */
  findSimilar(of: Pick<FileImport, 'hash' | 'file'>, since: number): Promise<FileImport | undefined>
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
   * or begun it anew. The rows of an account `by` are added only while it exists, those of a batch only until that is taken back.
   */
  addRows(
    progress: Pick<FileImport, 'hash' | 'rowsDone' | 'rowsTotal'>,
    rows: readonly NewPet[],
    now: number,
    by?: string,
    batchId?: bigint,
  ): Promise<boolean>
}

export function importStore(sql: Sql): ImportStore {
  async function imports(which: string, ...values: SqlValue[]): Promise<FileImport[]> {
    const select =
      'SELECT hash, file, rows_done AS "rowsDone", rows_total AS "rowsTotal", updated_at AS "updatedAt" FROM imports'
    return (await sql.read(`${select} WHERE ${which}`, ...values)).map(plain) as FileImport[]
  }

  return {
    find: async (hash) => (await imports('hash = $1', hash))[0],

    async findSimilar({ hash, file }, since) {
      const which = '(file = $1 OR updated_at > $2) AND hash <> $3 AND rows_done > 0'
      return (await imports(`${which} ORDER BY file = $1 DESC, updated_at DESC LIMIT 1`, file, since, hash))[0]
    },

    unfinished() {
      const later =
        'SELECT 1 FROM imports AS later WHERE later.file = imports.file AND later.updated_at > imports.updated_at'
      return imports(`rows_done < rows_total AND NOT EXISTS (${later}) ORDER BY updated_at`)
    },

    async begin({ hash, file, rowsTotal }, now, again) {
      const insert = `INSERT INTO imports (hash, file, rows_done, rows_total, updated_at) VALUES ($1, $2, 0, $3, $4)
        ON CONFLICT (hash) DO UPDATE
          SET file = excluded.file, rows_done = 0, rows_total = excluded.rows_total, updated_at = excluded.updated_at
          WHERE (imports.rows_done >= imports.rows_total OR imports.rows_total <> excluded.rows_total) AND $5 = 1`
      return (await sql.run([insert, hash, file, rowsTotal, now, Number(again)])) === 1
    },

    addRows({ hash, rowsDone, rowsTotal }, rows, now, by, batchId) {
      const advance = `UPDATE imports SET rows_done = $1, updated_at = $2 WHERE hash = $3 AND rows_done = $4 AND rows_total = $5
        AND (CAST($6 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = $6))`
      const isOpen = `SELECT 1 FROM batches WHERE id = $1 AND undone_by IS NULL ${sql.lock('FOR UPDATE')}`
      const countAdded = 'UPDATE batches SET done = done + $1, changed = changed + $1 WHERE id = $2'
      return sql.transaction(function* () {
        const values = [rowsDone + rows.length, now, hash, rowsDone, rowsTotal, by ?? null]
        if (batchId !== undefined && (yield [isOpen, batchId]).count === 0) return false
        if ((yield [advance, ...values]).count === 0) return false
        yield* insertPets(
          rows.map((newPet) => new NewRow(newPet, { at: now, by })),
          batchId,
        )
        if (batchId !== undefined) yield [countAdded, rows.length, batchId]
        return true
      })
    },
  }
}
