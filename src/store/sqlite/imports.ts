// Imports of files in SQLite.
import type { DatabaseSync } from 'node:sqlite'
import type { FileImport, ImportStore } from '../imports.ts'
import { newValuesOf } from '../pet-columns.ts'
import { prepareExact } from './database.ts'
import { INSERT_PET } from './pets.ts'
import type { Transactions } from './transactions.ts'

const SELECT_IMPORT =
  'SELECT hash, file, rows_done AS "rowsDone", rows_total AS "rowsTotal", updated_at AS "updatedAt" FROM imports'

export function sqliteImports(db: DatabaseSync, transactions: Transactions): ImportStore {
  const find = db.prepare(`${SELECT_IMPORT} WHERE hash = ?`)
  const unfinished = db.prepare(
    `${SELECT_IMPORT} WHERE rows_done < rows_total AND NOT EXISTS (
       SELECT 1 FROM imports AS later WHERE later.file = imports.file AND later.updated_at > imports.updated_at
     ) ORDER BY updated_at`,
  )
  const begin = prepareExact(
    db,
    `INSERT INTO imports (hash, file, rows_done, rows_total, updated_at) VALUES (?, ?, 0, ?, ?)
     ON CONFLICT (hash) DO UPDATE
       SET file = excluded.file, rows_done = 0, rows_total = excluded.rows_total, updated_at = excluded.updated_at
       WHERE (imports.rows_done >= imports.rows_total OR imports.rows_total <> excluded.rows_total) AND ?`,
  )
  const advance = prepareExact(
    db,
    'UPDATE imports SET rows_done = ?, updated_at = ? WHERE hash = ? AND rows_done = ? AND rows_total = ?',
  )
  const insert = prepareExact(db, INSERT_PET)

  return {
    find: (hash) => transactions.read(() => find.get(hash) as FileImport | undefined),

    unfinished: () => transactions.read(() => unfinished.all() as unknown as FileImport[]),

    begin: ({ hash, file, rowsTotal }, now, again) =>
      transactions.writeBookkeeping(() => Number(begin.run(hash, file, rowsTotal, now, Number(again)).changes) === 1),

    addRows: ({ hash, rowsDone, rowsTotal }, rows, now) =>
      transactions.write(() => {
        const { changes } = advance.run(rowsDone + rows.length, now, hash, rowsDone, rowsTotal)
        if (Number(changes) === 0) return false
        for (const row of rows) insert.run(...newValuesOf(row, { at: now, by: undefined }))
        return true
      }),
  }
}
