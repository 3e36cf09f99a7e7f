// Animals in SQLite.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { ListQuery } from '../../contract/list-query.ts'
import { isSamePet, type NewPet, type Pet, type PetStatus } from '../../contract/pets.ts'
import type { AuditEvent } from '../account-store.ts'
import { type ColumnValue, filterColumns, PET_COLUMNS, petOf, valuesOf } from '../pet-columns.ts'
import type { Created, FoundPets, Idempotency, PetSearch, PetStore, Updated } from '../store.ts'
import { searchPets } from '../search-pets.ts'
import { prepareAppendEvent } from './accounts.ts'
import { SqliteWords } from './words.ts'
import type { Writer } from './writer.ts'

export const INSERT_PET = `INSERT INTO pets (${PET_COLUMNS.join()}) VALUES (${PET_COLUMNS.map(() => '?').join()})`

const COLUMNS = ['id', ...PET_COLUMNS].join()
const PURGE_AT_ONCE = 1000

export class SqlitePets implements PetStore {
  readonly #writer: Writer
  readonly #statements: ReturnType<typeof prepareStatements>

  readonly #appendEvent: (event: AuditEvent) => void
  readonly #words: SqliteWords

  constructor(db: DatabaseSync, writer: Writer) {
    this.#writer = writer
    this.#words = new SqliteWords(db, writer)
    this.#appendEvent = prepareAppendEvent(db)
    this.#statements = prepareStatements(db)
  }

  create(newPet: NewPet, idempotency?: Idempotency): Promise<Created> {
    return this.#writer.write(() =>
      idempotency === undefined ? this.#insert(newPet) : this.#insertIdempotently(newPet, idempotency),
    )
  }

  createMany(newPets: readonly NewPet[]): Promise<void> {
    return this.#writer.write(() => {
      for (const newPet of newPets) this.#insert(newPet)
    })
  }

  get(id: bigint): Promise<Pet | undefined> {
    return this.#writer.read(() => {
      const row = this.#statements.get.get(id) as PetRow | undefined
      return row && petOf(row)
    })
  }

  list(query: ListQuery): Promise<Pet[]> {
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
    return this.#writer.read(() => {
      const page = this.#statements.page(`${where} ORDER BY id ${order}`)
      const found = (page.all(...values, limit) as unknown[] as PetRow[]).map(petOf)
      return after === undefined ? found : found.toReversed()
    })
  }

  update(id: bigint, expected: NewPet, wanted: NewPet, event: AuditEvent): Promise<Updated> {
    return this.#writer.write(() => {
      const row = this.#statements.get.get(id) as PetRow | undefined
      if (row === undefined) return { outcome: 'missing' }
      const pet = petOf(row)
      if (!isSamePet(pet, expected)) return { outcome: 'conflict', pet }
      this.#statements.update.run(...valuesOf(wanted), id)
      this.#appendEvent(event)
      return { outcome: 'updated' }
    })
  }

  search(query: PetSearch): Promise<FoundPets> {
    return searchPets(this.#words, query)
  }

  indexWords(): Promise<boolean> {
    return this.#words.index()
  }

  async countByStatus(): Promise<Record<PetStatus, number>> {
    const rows = (await this.#writer.read(() => this.#statements.count.all())) as { status: PetStatus; count: number }[]
    return Object.fromEntries(rows.map(({ status, count }) => [status, count])) as Record<PetStatus, number>
  }

  purgeIdempotencyRecords(before: number): Promise<number> {
    return this.#writer.writeBookkeeping(() =>
      Number(this.#statements.purgeIdempotencyRecords.run(before, PURGE_AT_ONCE).changes),
    )
  }

  #insert(newPet: NewPet): Created {
    const { lastInsertRowid } = this.#statements.insert.run(...valuesOf(newPet))
    return { outcome: 'created', pet: { id: BigInt(lastInsertRowid), ...newPet } }
  }

  /** A replay takes only the id from the record: the same fingerprint means that the other fields are the same. */
  #insertIdempotently(newPet: NewPet, idempotency: Idempotency): Created {
    const { findRecord, removeRecord, addRecord } = this.#statements
    const record = findRecord.get(idempotency.accountId, idempotency.key) as IdempotencyRecord | undefined
    if (record !== undefined && record.createdAt >= idempotency.validSince) {
      if (Buffer.compare(idempotency.fingerprint, record.fingerprint) !== 0) return { outcome: 'mismatch' }
      return { outcome: 'replayed', pet: { id: record.petId, ...newPet } }
    }
    removeRecord.run(idempotency.accountId, idempotency.key)
    const created = this.#insert(newPet)
    if (created.outcome === 'created') {
      addRecord.run(idempotency.accountId, idempotency.key, idempotency.fingerprint, created.pet.id, idempotency.now)
    }
    return created
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
  const exact = (sql: string): StatementSync => {
    const statement = db.prepare(sql)
    statement.setReadBigInts(true)
    return statement
  }
  const rows = (sql: string): StatementSync => {
    const statement = exact(sql)
    statement.setReturnArrays(true)
    return statement
  }
  // With a plain `LIMIT ?`, SQLite prepares the statement again each time it is bound: a page takes 33 instead of 23 µs.
  const preparePage = (end: string) => rows(`SELECT ${COLUMNS} FROM pets ${end} LIMIT 0 + ?`)
  /** By condition and order; there are few. */
  const pages = new Map<string, StatementSync>()
  return {
    page(end: string): StatementSync {
      const known = pages.get(end) ?? preparePage(end)
      pages.set(end, known)
      return known
    },
    insert: exact(INSERT_PET),
    update: exact(`UPDATE pets SET ${PET_COLUMNS.map((column) => `${column} = ?`).join()} WHERE id = ?`),
    get: rows(`SELECT ${COLUMNS} FROM pets WHERE id = ?`),
    count: db.prepare('SELECT status, count FROM pet_counts'),
    findRecord: exact(
      'SELECT fingerprint, pet_id AS "petId", created_at AS "createdAt" FROM idempotency_records WHERE account_id = ? AND key = ?',
    ),
    removeRecord: exact('DELETE FROM idempotency_records WHERE account_id = ? AND key = ?'),
    addRecord: exact(
      'INSERT INTO idempotency_records (account_id, key, fingerprint, pet_id, created_at) VALUES (?, ?, ?, ?, ?)',
    ),
    purgeIdempotencyRecords: db.prepare(
      `DELETE FROM idempotency_records WHERE (account_id, key) IN
         (SELECT account_id, key FROM idempotency_records WHERE created_at < ? ORDER BY created_at LIMIT ?)`,
    ),
  }
}
