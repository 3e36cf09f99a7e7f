// The port for imports of files: how far each has come.
import type { NewPet } from '../contract/pets.ts'
import type { Author } from './account-store.ts'
import { insertPets, NewRow } from './pet-writes.ts'
import { plain, type Sql, type SqlValue } from './sql.ts'

/** The progress of the import of a file; the import is finished when all rows are done. */
export interface FileImport {
  /** SHA-256 of the file, in hexadecimal. */
  hash: string
  /** Where the file was read from. */
  file: string
  rowsDone: number
  /** For an import with a plan, always as many as are done: neither a command nor release 1.0.0, which do not know the plan, goes on. */
  rowsTotal: number
  updatedAt: number
  /** Which rows of the file are added, and as what: a text of the console (import-plan.ts). Undefined for the import of a command. */
  plan?: string
  /** The batch of its animals. */
  batchId?: number
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
  /** Begins an import with a plan, as a batch of `total` animals. Resolves with false if the file has a record already, or the account was removed. */
  beginPlanned(file: Pick<FileImport, 'hash' | 'file'>, plan: string, total: number, by: Author): Promise<boolean>
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
      'SELECT hash, file, rows_done AS "rowsDone", rows_total AS "rowsTotal", updated_at AS "updatedAt", plan, batch_id AS "batchId" FROM imports'
    return (await sql.read(`${select} WHERE ${which}`, ...values)).map(plain) as FileImport[]
  }

  return {
    find: async (hash) => (await imports('hash = $1', hash))[0],

    unfinished() {
      const later =
        'SELECT 1 FROM imports AS later WHERE later.file = imports.file AND later.updated_at > imports.updated_at'
      return imports(`rows_done < rows_total AND NOT EXISTS (${later}) ORDER BY updated_at`)
    },

    async begin({ hash, file, rowsTotal }, now, again) {
      const insert = `INSERT INTO imports (hash, file, rows_done, rows_total, updated_at) VALUES ($1, $2, 0, $3, $4)
        ON CONFLICT (hash) DO UPDATE
          SET file = excluded.file, rows_done = 0, rows_total = excluded.rows_total, updated_at = excluded.updated_at,
            plan = NULL, batch_id = NULL
          WHERE (imports.rows_done >= imports.rows_total OR imports.rows_total <> excluded.rows_total) AND $5 = 1`
      return (await sql.run([insert, hash, file, rowsTotal, now, Number(again)])) === 1
    },

    beginPlanned({ hash, file }, plan, total, { accountId, at, via }) {
      const begin = `INSERT INTO imports (hash, file, rows_done, rows_total, updated_at, plan)
        SELECT $1, $2, 0, 0, CAST($3 AS BIGINT), $4 FROM accounts WHERE id = $5 ON CONFLICT (hash) DO NOTHING`
      const batch = `INSERT INTO batches (at, account_id, via, action, data, total) VALUES ($1, $2, $3, 'imported', $4, $5) RETURNING id`
      return sql.transaction(function* () {
        if ((yield [begin, hash, file, at, plan, accountId]).count === 0) return false
        const [made] = (yield [batch, at, accountId, via, JSON.stringify({ file, hash }), total]).rows
        yield ['UPDATE imports SET batch_id = $1 WHERE hash = $2', made!['id'] as bigint, hash]
        return true
      })
    },

    addRows({ hash, rowsDone, rowsTotal }, rows, now, by, batchId) {
      // Locked before the import, in the order of its Undo.
      const isOpen = `SELECT 1 FROM batches WHERE id = $1 AND undone_by IS NULL ${sql.lock('FOR UPDATE')}`
      const advance = `UPDATE imports SET rows_done = $1, rows_total = CASE WHEN plan IS NULL THEN rows_total ELSE $1 END, updated_at = $2
        WHERE hash = $3 AND rows_done = $4 AND rows_total = $5
        AND (CAST($6 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM accounts WHERE id = $6))`
      const countAdded = 'UPDATE batches SET done = done + $1, changed = changed + $1 WHERE id = $2'
      return sql.transaction(function* () {
        if (batchId !== undefined && (yield [isOpen, batchId]).count === 0) return false
        const values = [rowsDone + rows.length, now, hash, rowsDone, rowsTotal, by ?? null]
        if ((yield [advance, ...values]).count === 0) return false
        const added = rows.map((newPet) => new NewRow(newPet, { at: now, by }))
        yield* insertPets(added, batchId)
        if (batchId !== undefined) yield [countAdded, rows.length, batchId]
        return true
      })
    },
  }
}
