// Animals in SQLite: reads and changes.
import type { DatabaseSync } from 'node:sqlite'
import { isSamePet, type NewPet, type Pet } from '../../contract/pets.ts'
import {
  type Addition,
  ADDITION_ROW,
  additionOf,
  type ColumnValue,
  NEW_COLUMNS,
  newValuesOf,
  PET_COLUMNS,
  PET_ROW,
  petOf,
  valuesOf,
} from '../pet-columns.ts'
import type { AuditEvent } from '../account-store.ts'
import { PURGE_AT_ONCE } from '../idempotency.ts'
import { mergeChanges, pagesOfChanges } from '../pet-changes.ts'
import { COUNT_IN_CATEGORY, countsOf, listOf, type Page, pagesOfList } from '../pet-list.ts'
import { searchPets } from '../search-pets.ts'
import type { Created, Idempotency, NotWritten, PetStore } from '../store.ts'
import { prepareAppendEvent } from './accounts.ts'
import { prepareExact, prepareRows, rememberStatements, rowsOf } from './database.ts'
import type { Transactions } from './transactions.ts'
import { sqliteWords } from './words.ts'

export const INSERT_PET = `INSERT INTO pets (${NEW_COLUMNS.join()}) VALUES (${NEW_COLUMNS.map(() => '?').join()})`

export function sqlitePets(db: DatabaseSync, transactions: Transactions): PetStore {
  const statements = prepareStatements(db)
  const appendEvent = prepareAppendEvent(db)
  const words = sqliteWords(db, transactions)
  const rows = rowsOf(db)

  function find(id: bigint): Pet | undefined {
    const row = statements.get.get(id) as PetRow | undefined
    return row && petOf(row)
  }

  function readPage(page: Page): PetRow[] {
    const { text, values } = sqlitePage(page)
    return statements.page(text).all(...values, page.limit) as unknown[] as PetRow[]
  }

  function insert(newPet: NewPet, addition?: Addition): { outcome: 'created'; pet: Pet } {
    const { lastInsertRowid } = statements.insert.run(...newValuesOf(newPet, addition))
    return { outcome: 'created', pet: { id: BigInt(lastInsertRowid), ...newPet } }
  }

  /** A replay takes only the id from the record: the same fingerprint means that the other fields are the same. */
  function insertIdempotently(newPet: NewPet, idempotency: Idempotency, addition?: Addition): Created {
    const { accountId, key, fingerprint, now, validSince } = idempotency
    const record = statements.findRecord.get(accountId, key) as IdempotencyRecord | undefined
    if (record !== undefined && record.createdAt >= validSince) {
      if (Buffer.compare(fingerprint, record.fingerprint) !== 0) return { outcome: 'mismatch' }
      return { outcome: 'replayed', pet: { id: record.petId, ...newPet } }
    }
    statements.removeRecord.run(accountId, key)
    const created = insert(newPet, addition)
    statements.addRecord.run(accountId, key, fingerprint, created.pet.id, now)
    return created
  }

  /** Writes with its audit event, and returns undefined, if the animal equals `expected`. */
  function writeIfSame(id: bigint, expected: NewPet, event: AuditEvent, write: () => void): NotWritten | undefined {
    const pet = find(id)
    if (pet === undefined) return { outcome: 'missing' }
    if (!isSamePet(pet, expected)) return { outcome: 'conflict', pet }
    write()
    appendEvent(event)
    return undefined
  }

  return {
    create: (newPet, idempotency, addition) =>
      transactions.write(() =>
        idempotency === undefined ? insert(newPet, addition) : insertIdempotently(newPet, idempotency, addition),
      ),

    createMany: (newPets, addition) =>
      transactions.write(() => {
        for (const newPet of newPets) insert(newPet, addition)
      }),

    get: (id) => transactions.read(() => find(id)),

    addition: (id) =>
      transactions.read(() => additionOf(rows(`SELECT ${ADDITION_ROW} FROM pets WHERE id = $1`, [id])[0])),

    list: (query) => transactions.read(() => listOf(pagesOfList(query).flatMap(readPage), query)),

    changes: (query) =>
      transactions.read(() => {
        const [added, events] = pagesOfChanges(query)
        return mergeChanges(readPage(added), readPage(events), query)
      }),

    update: (id, expected, wanted, event) =>
      transactions.write(() => {
        const write = () => statements.update.run(...valuesOf(wanted), id)
        return writeIfSame(id, expected, event, write) ?? { outcome: 'updated' }
      }),

    remove: (id, expected, event) =>
      transactions.write(
        () => writeIfSame(id, expected, event, () => statements.remove.run(id)) ?? { outcome: 'removed' },
      ),

    search: (query) => searchPets(words, query),

    indexWords: () => words.indexBatch(),

    countByStatus: () => transactions.read(() => countsOf(rows('SELECT status, count FROM pet_counts', []))),

    countInCategory: (categoryId) => transactions.read(() => countsOf(rows(COUNT_IN_CATEGORY, [categoryId]))),

    purgeIdempotencyRecords: (before) =>
      transactions.writeBookkeeping(() =>
        Number(statements.purgeIdempotencyRecords.run(before, PURGE_AT_ONCE).changes),
      ),
  }
}

/** Renders the statement of a page; the limit is its last parameter. */
export function sqlitePage({ select, index, where, filters, others = [], before, after }: Page) {
  const equal = [...filters, ...others]
  const conditions = equal.map(({ column }) => `${column} = ?`)
  const values = equal.map(({ value }): string | bigint => value)
  const bound = after ?? before
  if (where !== undefined) conditions.push(where)
  if (bound !== undefined) {
    conditions.push(after === undefined ? 'id < ?' : 'id > ?')
    values.push(bound)
  }
  const from = index === undefined ? select : `${select} INDEXED BY ${index}`
  const all = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  // With a plain `LIMIT ?`, SQLite prepares the statement again each time it is bound: a page takes 33 instead of 23 µs.
  return { text: `${from} ${all} ORDER BY id ${after === undefined ? 'DESC' : 'ASC'} LIMIT 0 + ?`, values }
}

type PetRow = ColumnValue[]

interface IdempotencyRecord {
  fingerprint: Uint8Array
  petId: bigint
  createdAt: bigint
}

function prepareStatements(db: DatabaseSync) {
  return {
    page: rememberStatements((sql) => prepareRows(db, sql)),
    insert: prepareExact(db, INSERT_PET),
    update: prepareExact(db, `UPDATE pets SET ${PET_COLUMNS.map((column) => `${column} = ?`).join()} WHERE id = ?`),
    remove: prepareExact(db, 'DELETE FROM pets WHERE id = ?'),
    get: prepareRows(db, `SELECT ${PET_ROW} FROM pets WHERE id = ?`),
    findRecord: prepareExact(
      db,
      'SELECT fingerprint, pet_id AS "petId", created_at AS "createdAt" FROM idempotency_records WHERE account_id = ? AND key = ?',
    ),
    removeRecord: prepareExact(db, 'DELETE FROM idempotency_records WHERE account_id = ? AND key = ?'),
    addRecord: prepareExact(
      db,
      'INSERT INTO idempotency_records (account_id, key, fingerprint, pet_id, created_at) VALUES (?, ?, ?, ?, ?)',
    ),
    purgeIdempotencyRecords: prepareExact(
      db,
      `DELETE FROM idempotency_records WHERE (account_id, key) IN
         (SELECT account_id, key FROM idempotency_records WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    ),
  }
}
