// Animals in SQLite: list, create, and the index of the search.
import type { DatabaseSync } from 'node:sqlite'
import { FIELD_LIST, OPTIONAL_FIELDS, type Pet, type RenderedPets } from '../../contract/pets.ts'
import { type ColumnValue, PET_ROW, petOf } from '../pet-columns.ts'
import { mergeChanges, pagesOfChanges } from '../pet-changes.ts'
import { countsOf, listOf, type Page, pageOf, pagesOfList, type PetList, SELECT_PETS } from '../pet-list.ts'
import { INSERT_PETS, NEW_COLUMNS, NewRow } from '../pet-writes.ts'
import { indexedWordOf, type WordIndex, wordRows, wordsOf } from '../search-pets.ts'
import { sharedPets } from '../shared-pets.ts'
import type { Sql } from '../sql.ts'
import type { Idempotency } from '../idempotency.ts'
import type { Created, PetStore } from '../store.ts'
import { prepareExact, prepareRows, rememberStatements } from './database.ts'
import type { Transactions } from './transactions/transactions.ts'

/** How many rows a statement inserts. Of 16 creates in a batch, each takes 8 µs by one statement, and 13 µs alone; 64 are no faster. */
const INSERTED_AT_ONCE = [16, 1]
const NEW_ROW = `(${NEW_COLUMNS.map(() => '?').join()})`

/** Returns a function that inserts animals, and returns each with its id. */
function prepareInsert(db: DatabaseSync): (rows: readonly NewRow[]) => { outcome: 'created'; pet: Pet }[] {
  const statements = INSERTED_AT_ONCE.map((count) => {
    const values = Array.from({ length: count }, () => NEW_ROW).join()
    return { count, statement: prepareExact(db, `${INSERT_PETS} VALUES ${values}`) }
  })
  return (rows) => {
    const created: { outcome: 'created'; pet: Pet }[] = []
    while (created.length < rows.length) {
      const { count, statement } = statements.find((each) => each.count <= rows.length - created.length)!
      const batch = rows.slice(created.length, created.length + count)
      const { lastInsertRowid } = statement.run(...batch.flatMap((row) => row.values()))
      // The ids of a statement are consecutive.
      let id = BigInt(lastInsertRowid) - BigInt(count)
      for (const { newPet } of batch) created.push({ outcome: 'created', pet: { id: (id += 1n), ...newPet } })
    }
    return created
  }
}

export function sqlitePets(db: DatabaseSync, transactions: Transactions, sql: Sql): PetStore {
  const insert = prepareInsert(db)
  const byId = prepareRows(db, `${SELECT_PETS} WHERE id = ?`)
  const findRecord = prepareExact(db, FIND_RECORD)
  const keepRecord = prepareExact(db, KEEP_RECORD)
  const preparePage = rememberStatements((text) => prepareRows(db, text))

  const get: PetStore['get'] = (id) =>
    transactions.read(() => {
      const row = byId.get(id) as ColumnValue[] | undefined
      return row && petOf(row)
    })

  function readPage(page: Page): ColumnValue[][] {
    const { text, values } = sqlitePage(page)
    return preparePage(text).all(...values, page.limit) as unknown[] as ColumnValue[][]
  }

  /** One string for all animals: as many strings as animals take twice as long. */
  function readRendered(page: Page): RenderedPets {
    const { text, values } = sqlitePage(page)
    const row = preparePage(`SELECT group_concat(json), count(*) FROM (${text})`).get(...values, page.limit)
    const [json, count] = row as unknown as [string | null, bigint]
    return { json: json ?? '', count: Number(count) }
  }

  /** A replay takes only the id from the record: the same fingerprint means that the other fields are the same. */
  function insertIdempotently(row: NewRow, idempotency: Idempotency): Created {
    const { accountId, key, fingerprint, now, validSince } = idempotency
    const record = findRecord.get(accountId, key, validSince) as { fingerprint: Uint8Array; petId: bigint } | undefined
    if (record !== undefined) {
      if (Buffer.compare(fingerprint, record.fingerprint) !== 0) return { outcome: 'mismatch' }
      return { outcome: 'replayed', pet: { id: record.petId, ...row.newPet } }
    }
    const created = insert([row])[0]!
    keepRecord.run(accountId, key, fingerprint, created.pet.id, now)
    return created
  }

  return {
    async create(newPet, idempotency, addition) {
      const row = new NewRow(newPet, addition)
      if (idempotency === undefined) return transactions.writeTogether<NewRow, Created>(row, insert)
      return transactions.write(() => insertIdempotently(row, idempotency))
    },

    createMany: (newPets, addition) =>
      transactions.write(() => void insert(newPets.map((newPet) => new NewRow(newPet, addition)))),

    get,

    ...sharedPets(sql, get, sqliteWords(db, transactions)),

    list: ((query: PetList, as?: 'json') =>
      transactions.read(() => {
        if (as === 'json') return readRendered(pageOf(query, SELECT_JSON))
        const pages = pagesOfList(query)
        return listOf(query, pages, pages.flatMap(readPage).map(petOf))
      })) as PetStore['list'],

    changes: (query) =>
      transactions.read(() => {
        const [added, events] = pagesOfChanges(query)
        return mergeChanges(readPage(added), readPage(events), query)
      }),

    /** Triggers of migrations/0001-first.sql keep the counts, in the transaction of each animal. */
    countByStatus: async () => countsOf(await sql.read('SELECT status, count FROM pet_counts')),

    settleCounts: () => Promise.resolve(false),
  }
}

const PET_OBJECT = `json_object('id', id, ${FIELD_LIST.map(({ name, column }) => `'${name}', ${column}`).join()})`

/** The bytes of `renderPet` (test/store/rendered-animals.test.ts). json_patch leaves out the NULL of an absent field. */
const SELECT_JSON = `SELECT ${OPTIONAL_FIELDS.length === 0 ? PET_OBJECT : `json_patch('{}', ${PET_OBJECT})`} AS json FROM pets`

/** Renders the statement of a page; the limit is its last parameter. */
export function sqlitePage({ select, where = 'TRUE', filters, before, after }: Page) {
  const values = filters.map(({ value }): string | bigint => value)
  const conditions = [
    where,
    ...filters.map(({ column, isRare }) => (isRare ? `likelihood(${column} = ?, 1e-6)` : `${column} = ?`)),
  ]
  const bound = after ?? before
  if (bound !== undefined) {
    conditions.push(after === undefined ? 'id < ?' : 'id > ?')
    values.push(bound)
  }
  const order = after === undefined ? 'DESC' : 'ASC'
  // With a plain `LIMIT ?`, SQLite prepares the statement again each time it is bound: a page takes 33 instead of 23 µs.
  return { text: `${select} WHERE ${conditions.join(' AND ')} ORDER BY id ${order} LIMIT 0 + ?`, values }
}

const FIND_RECORD = `
  SELECT fingerprint, pet_id AS "petId" FROM idempotency_records WHERE account_id = ? AND key = ? AND created_at >= ?`
/** Replaces a record that has expired. */
const KEEP_RECORD = `
  INSERT OR REPLACE INTO idempotency_records (account_id, key, fingerprint, pet_id, created_at) VALUES (?, ?, ?, ?, ?)`

/** How many animals are indexed at a time, and how many of those that were renamed: few, because creates wait for it. */
const INDEX_AT_ONCE = 500
const RENAMED_AT_ONCE = 25

const BEYOND = 'id > (SELECT until_id FROM pet_words_progress)'
const NEWEST = `${SELECT_PETS} WHERE ${BEYOND} ORDER BY id DESC LIMIT ?`
const RENAMED = `SELECT ${PET_ROW} FROM pet_renames AS r JOIN pets ON pets.id = r.pet_id ORDER BY r.id DESC LIMIT ?`
const RENAMES = 'SELECT id, pet_id, name FROM pet_renames ORDER BY id LIMIT ?'
const WORDS = `
  SELECT word, pet_id, ${PET_ROW}
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

  function rename(petId: bigint, former: string): void {
    const present = wordsOf(String(all('SELECT name FROM pets WHERE id = ?', petId)[0]?.[0] ?? ''))
    const remove = prepare('DELETE FROM pet_words WHERE word = ? AND pet_id = ?')
    for (const word of wordsOf(former)) if (!present.includes(word)) remove.run(word, petId)
    for (const word of present) add(word, petId)
  }

  return {
    unindexed: (limit) =>
      transactions.read(() => {
        const both = [NEWEST, RENAMED].map((sql) => all(sql, limit))
        return { pets: both.flat().map(petOf), isWhole: both.every(({ length }) => length < limit) }
      }),

    words: ({ word, id }, end, limit) => transactions.read(() => all(WORDS, word, id, end, limit).map(indexedWordOf)),

    /**
     * Folds the names of new animals before the transaction: creates may share it, and would wait. Ids are committed in order, so
     * `until_id` passes no animal that appears later.
     */
    async indexBatch() {
      const { pets, renamed } = await transactions.read(() => ({
        pets: all(`SELECT id, name FROM pets WHERE ${BEYOND} ORDER BY id LIMIT ?`, INDEX_AT_ONCE),
        renamed: all(RENAMES, RENAMED_AT_ONCE),
      }))
      if (pets.length + renamed.length === 0) return false
      const rows = await wordRows(pets.map(([id, name]) => ({ id: id as bigint, name: name as string })))
      await transactions.write(() => {
        for (const { word, id } of rows) add(word, id)
        const last = pets.at(-1)?.[0] as bigint | undefined
        if (last !== undefined) prepare('UPDATE pet_words_progress SET until_id = max(until_id, ?)').run(last)
        for (const [id, petId, former] of renamed) {
          rename(petId as bigint, former as string)
          prepare('DELETE FROM pet_renames WHERE id = ?').run(id as bigint)
        }
      })
      return pets.length === INDEX_AT_ONCE || renamed.length === RENAMED_AT_ONCE
    },
  }
}
