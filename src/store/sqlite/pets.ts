// Animals in SQLite: reads and changes, the index of the search, and imports of files.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { isSamePet, type NewPet, type Pet, type PetStatus } from '../../contract/pets.ts'
import { inSlices } from '../../timing.ts'
import { type ColumnValue, filterColumns, PET_COLUMNS, petOf, valuesOf } from '../pet-columns.ts'
import { PURGE_AT_ONCE } from '../idempotency.ts'
import { indexedWordOf, searchPets, type WordIndex, wordRows, wordsOf } from '../search-pets.ts'
import type { Created, FileImport, Idempotency, ImportStore, PetStore } from '../store.ts'
import { prepareAppendEvent } from './accounts.ts'
import { prepareExact, rememberStatements } from './database.ts'
import type { Transactions } from './transactions.ts'

const INSERT_PET = `INSERT INTO pets (${PET_COLUMNS.join()}) VALUES (${PET_COLUMNS.map(() => '?').join()})`

const COLUMNS = ['id', ...PET_COLUMNS].map((column) => `pets.${column}`).join()

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
      const bound = after ?? before
      if (bound !== undefined) {
        conditions.push(after === undefined ? 'id < ?' : 'id > ?')
        values.push(bound)
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

type PetRow = ColumnValue[]

interface IdempotencyRecord {
  fingerprint: Uint8Array
  petId: bigint
  createdAt: bigint
}

/** Reads rows as arrays: objects from node:sqlite are slow to access and made a page take 75 instead of 40 µs. */
function prepareRows(db: DatabaseSync, sql: string): StatementSync {
  const statement = prepareExact(db, sql)
  statement.setReturnArrays(true)
  return statement
}

function prepareStatements(db: DatabaseSync) {
  return {
    // With a plain `LIMIT ?`, SQLite prepares the statement again each time it is bound: a page takes 33 instead of 23 µs.
    page: rememberStatements((end) => prepareRows(db, `SELECT ${COLUMNS} FROM pets ${end} LIMIT 0 + ?`)),
    insert: prepareExact(db, INSERT_PET),
    update: prepareExact(db, `UPDATE pets SET ${PET_COLUMNS.map((column) => `${column} = ?`).join()} WHERE id = ?`),
    get: prepareRows(db, `SELECT ${COLUMNS} FROM pets WHERE id = ?`),
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

/** How many animals are indexed at a time: few, because creates wait for it. */
const INDEX_AT_ONCE = 500

const BEYOND = 'id > (SELECT until_id FROM pet_words_progress)'
const NEWEST = `SELECT ${COLUMNS} FROM pets WHERE ${BEYOND} ORDER BY id DESC LIMIT ?`
const RENAMED = `SELECT ${COLUMNS} FROM pet_renames AS r JOIN pets ON pets.id = r.pet_id ORDER BY r.id DESC LIMIT ?`
const RENAMES = `
  SELECT r.id, r.pet_id, r.name, pets.name FROM pet_renames AS r LEFT JOIN pets ON pets.id = r.pet_id ORDER BY r.id LIMIT ?`
const WORDS = `
  SELECT word, pet_id, ${COLUMNS}
  FROM (SELECT word, pet_id FROM pet_words WHERE (word, pet_id) > (?, ?) AND word < ? ORDER BY word, pet_id LIMIT ?)
  LEFT JOIN pets ON pets.id = pet_id ORDER BY word, pet_id`

/** The index of the search. The triggers of migrations/0004-search.sql note renames in pet_renames. */
function sqliteWords(db: DatabaseSync, transactions: Transactions): WordIndex {
  const prepare = rememberStatements((sql) => prepareRows(db, sql))

  function all(sql: string, ...values: (string | bigint | number)[]): ColumnValue[][] {
    return prepare(sql).all(...values) as unknown[] as ColumnValue[][]
  }

  function add(word: string, id: bigint): void {
    prepare('INSERT OR IGNORE INTO pet_words (word, pet_id) VALUES (?, ?)').run(word, id)
  }

  /** `folded` has the words of most names. */
  function rename(renameId: bigint, petId: bigint, former: string, folded: Map<string, string[]>): void {
    const fold = (name: string) => folded.get(name) ?? wordsOf(name)
    const present = fold(String(all('SELECT name FROM pets WHERE id = ?', petId)[0]?.[0] ?? ''))
    const remove = prepare('DELETE FROM pet_words WHERE word = ? AND pet_id = ?')
    for (const word of fold(former)) if (!present.includes(word)) remove.run(word, petId)
    for (const word of present) add(word, petId)
    prepare('DELETE FROM pet_renames WHERE id = ?').run(renameId)
  }

  return {
    unindexed: (limit) =>
      transactions.read(() => {
        const both = [NEWEST, RENAMED].map((sql) => all(sql, limit))
        return { pets: both.flat().map(petOf), isWhole: both.every(({ length }) => length < limit) }
      }),

    words: ({ word, id }, end, limit) => transactions.read(() => all(WORDS, word, id, end, limit).map(indexedWordOf)),

    /**
     * Folds the names before the transaction: creates may share it, and would wait. Only an animal that is renamed in between
     * is folded within. Ids are committed in order, so `until_id` passes no animal that appears later.
     */
    async indexBatch() {
      const { pets, renamed } = await transactions.read(() => ({
        pets: all(`SELECT id, name FROM pets WHERE ${BEYOND} ORDER BY id LIMIT ?`, INDEX_AT_ONCE),
        renamed: all(RENAMES, INDEX_AT_ONCE),
      }))
      if (pets.length + renamed.length === 0) return false
      const rows = await wordRows(pets.map(([id, name]) => ({ id: id as bigint, name: name as string })))
      const names = new Set(renamed.flatMap(([, , former, present]) => [former as string, String(present ?? '')]))
      const folded = new Map(await inSlices([...names], (name) => [name, wordsOf(name)] as const))
      await transactions.writeBookkeeping(() => {
        for (const { word, id } of rows) add(word, id)
        const last = pets.at(-1)?.[0] as bigint | undefined
        if (last !== undefined) prepare('UPDATE pet_words_progress SET until_id = max(until_id, ?)').run(last)
        for (const [id, petId, name] of renamed) rename(id as bigint, petId as bigint, name as string, folded)
      })
      return pets.length === INDEX_AT_ONCE || renamed.length === INDEX_AT_ONCE
    },
  }
}

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
        for (const row of rows) insert.run(...valuesOf(row))
        return true
      }),
  }
}
