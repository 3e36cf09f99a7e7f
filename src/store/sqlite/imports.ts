// Imports of files in SQLite.
import type { DatabaseSync } from 'node:sqlite'
import type { NewPet } from '../../contract/pets.ts'
import { valuesOf } from '../pet-columns.ts'
import type { FileImport, ImportStore } from '../store.ts'
import { INSERT_PET } from './pets.ts'
import type { Writer } from './writer.ts'

export class SqliteImports implements ImportStore {
  readonly #writer: Writer
  readonly #statements: ReturnType<typeof prepareStatements>

  constructor(db: DatabaseSync, writer: Writer) {
    this.#writer = writer
    this.#statements = prepareStatements(db)
  }

  find(hash: string): Promise<FileImport | undefined> {
    return this.#writer.read(() => this.#statements.find.get(hash) as FileImport | undefined)
  }

  unfinished(): Promise<FileImport[]> {
    return this.#writer.read(() => this.#statements.unfinished.all() as unknown as FileImport[])
  }

  begin(
    { hash, file, rowsTotal }: Pick<FileImport, 'hash' | 'file' | 'rowsTotal'>,
    now: number,
    again: boolean,
  ): Promise<boolean> {
    return this.#writer.writeBookkeeping(
      () => this.#statements.begin.run(hash, file, rowsTotal, now, Number(again)).changes === 1,
    )
  }

  addRows(hash: string, rowsDone: number, rows: readonly NewPet[], now: number): Promise<boolean> {
    const { advance, insert } = this.#statements
    return this.#writer.write(() => {
      if (advance.run(rowsDone + rows.length, now, hash, rowsDone).changes === 0) return false
      for (const row of rows) insert.run(...valuesOf(row))
      return true
    })
  }

  async abandon(hash: string): Promise<void> {
    await this.#writer.writeBookkeeping(() => this.#statements.abandon.run(hash))
  }
}

function prepareStatements(db: DatabaseSync) {
  const select =
    'SELECT hash, file, rows_done AS "rowsDone", rows_total AS "rowsTotal", updated_at AS "updatedAt" FROM imports'
  const insert = db.prepare(INSERT_PET)
  // node:sqlite also returns the row's id, and throws if it must convert one above 2⁵³ to a number.
  insert.setReadBigInts(true)
  return {
    insert,
    find: db.prepare(`${select} WHERE hash = ?`),
    unfinished: db.prepare(`${select} WHERE rows_done < rows_total ORDER BY updated_at`),
    begin: db.prepare(
      `INSERT INTO imports (hash, file, rows_done, rows_total, updated_at) VALUES (?, ?, 0, ?, ?)
       ON CONFLICT (hash) DO UPDATE SET file = excluded.file, rows_done = 0, updated_at = excluded.updated_at
         WHERE imports.rows_done = imports.rows_total AND ?`,
    ),
    advance: db.prepare('UPDATE imports SET rows_done = ?, updated_at = ? WHERE hash = ? AND rows_done = ?'),
    abandon: db.prepare('DELETE FROM imports WHERE hash = ? AND rows_done < rows_total'),
  }
}
