// Animals in SQLite.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { isSamePet, type NewPet, type Pet, type PetStatus } from '../../contract/pets.ts'
import { type ColumnValue, filterColumns, PET_COLUMNS, petOf, valuesOf } from '../pet-columns.ts'
import { searchPets } from '../search-pets.ts'
import type { Created, Idempotency, PetStore } from '../store.ts'
import { prepareAppendEvent } from './accounts.ts'
import { prepareExact, rememberStatements } from './database.ts'
import { sqliteWords } from './words.ts'
import type { Transactions } from './transactions.ts'

export const INSERT_PET = `INSERT INTO pets (${PET_COLUMNS.join()}) VALUES (${PET_COLUMNS.map(() => '?').join()})`

const COLUMNS = ['id', ...PET_COLUMNS].join()
const PURGE_AT_ONCE = 1000

export function sqlitePets(db: DatabaseSync, transactions: Transactions): PetStore {
  const statements = prepareStatements(db)
  const appendEvent = prepareAppendEvent(db)
  const words = sqliteWords(db, transactions)

  function find(id: bigint): Pet | undefined {
    const row = statements.get.get(id) as PetRow | undefined
    return row && petOf(row)
  }

  function insert(newPet: NewPet): { outcome: 'created'; pet: Pet } {
    const { lastInsertRowid } = statements.insert.run(...valuesOf(newPet))
    return { outcome: 'created', pet: { id: BigInt(lastInsertRowid), ...newPet } }
  }

  /** A replay takes only the id from the record: the same fingerprint means that the other fields are the same. */
  function insertIdempotently(newPet: NewPet, { accountId, key, fingerprint, now, validSince }: Idempotency): Created {
    const record = statements.findRecord.get(accountId, key) as IdempotencyRecord | undefined
    if (record !== undefined && record.createdAt >= validSince) {
      if (Buffer.compare(fingerprint, record.fingerprint) !== 0) return { outcome: 'mismatch' }
      return { outcome: 'replayed', pet: { id: record.petId, ...newPet } }
    }
    statements.removeRecord.run(accountId, key)
    const created = insert(newPet)
    statements.addRecord.run(accountId, key, fingerprint, created.pet.id, now)
    return created
  }

  return {
    create: (newPet, idempotency) =>
      transactions.write(() => (idempotency === undefined ? insert(newPet) : insertIdempotently(newPet, idempotency))),

    createMany: (newPets) =>
      transactions.write(() => {
        for (const newPet of newPets) insert(newPet)
      }),

    get: (id) => transactions.read(() => find(id)),

    list(query) {
      const { before, after, limit } = query
      const given = filterColumns(query)
      const conditions = given.map(({ column }) => `${column} = ?`)
      const values = given.map(({ value }): string | bigint => value)
      const place = after ?? before
      if (place !== undefined) {
        conditions.push(after === undefined ? 'id < ?' : 'id > ?')
        values.push(place)
      }
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
      const order = after === undefined ? 'DESC' : 'ASC'
      return transactions.read(() => {
        const page = statements.page(`${where} ORDER BY id ${order}`)
        const found = (page.all(...values, limit) as unknown[] as PetRow[]).map(petOf)
        return after === undefined ? found : found.toReversed()
      })
    },

    update: (id, expected, wanted, event) =>
      transactions.write(() => {
        const pet = find(id)
        if (pet === undefined) return { outcome: 'missing' }
        if (!isSamePet(pet, expected)) return { outcome: 'conflict', pet }
        statements.update.run(...valuesOf(wanted), id)
        appendEvent(event)
        return { outcome: 'updated' }
      }),

    search: (query) => searchPets(words, query),

    indexWords: () => words.indexBatch(),

    async countByStatus() {
      const rows = (await transactions.read(() => statements.count.all())) as { status: PetStatus; count: number }[]
      return Object.fromEntries(rows.map(({ status, count }) => [status, count])) as Record<PetStatus, number>
    },

    purgeIdempotencyRecords: (before) =>
      transactions.writeBookkeeping(() =>
        Number(statements.purgeIdempotencyRecords.run(before, PURGE_AT_ONCE).changes),
      ),
  }
}

/** Rows are read as arrays: objects from node:sqlite are slow to access and made a page take 75 instead of 40 µs. */
type PetRow = ColumnValue[]

interface IdempotencyRecord {
  fingerprint: Uint8Array
  petId: bigint
  createdAt: bigint
}

function prepareStatements(db: DatabaseSync) {
  const rows = (sql: string): StatementSync => {
    const statement = prepareExact(db, sql)
    statement.setReturnArrays(true)
    return statement
  }
  return {
    // With a plain `LIMIT ?`, SQLite prepares the statement again each time it is bound: a page takes 33 instead of 23 µs.
    page: rememberStatements((end) => rows(`SELECT ${COLUMNS} FROM pets ${end} LIMIT 0 + ?`)),
    insert: prepareExact(db, INSERT_PET),
    update: prepareExact(db, `UPDATE pets SET ${PET_COLUMNS.map((column) => `${column} = ?`).join()} WHERE id = ?`),
    get: rows(`SELECT ${COLUMNS} FROM pets WHERE id = ?`),
    count: db.prepare('SELECT status, count FROM pet_counts'),
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
