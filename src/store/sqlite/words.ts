// The index of the search in SQLite.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Pet } from '../../contract/pets.ts'
import { type ColumnValue, PET_COLUMNS, petOf } from '../pet-columns.ts'
import type { IndexedWord, WordIndex } from '../search-pets.ts'
import { type Place, wordRows, wordsOf } from '../words.ts'
import type { Writer } from './writer.ts'

/** How many animals are indexed at a time: few, because creates wait for it. */
const BATCH = 500

export class SqliteWords implements WordIndex {
  readonly #db: DatabaseSync
  readonly #writer: Writer
  #prepared: ReturnType<typeof prepareStatements> | undefined

  constructor(db: DatabaseSync, writer: Writer) {
    this.#db = db
    this.#writer = writer
  }

  /** Prepared at first use: most commands never search. */
  get #statements(): ReturnType<typeof prepareStatements> {
    return (this.#prepared ??= prepareStatements(this.#db))
  }

  unindexed(limit: number): Promise<{ pets: Pet[]; isWhole: boolean }> {
    return this.#writer.read(() => {
      const both = [this.#statements.newest, this.#statements.renamed].map((statement) => all(statement, limit))
      return { pets: both.flat().map(petOf), isWhole: both.every(({ length }) => length < limit) }
    })
  }

  words({ word, id }: Place, end: string, limit: number): Promise<IndexedWord[]> {
    return this.#writer.read(() =>
      all(this.#statements.words, word, id, end, limit).map(([found, petId, ...row]) => ({
        place: { word: found as string, id: petId as bigint },
        pet: row[0] === null ? undefined : petOf(row),
      })),
    )
  }

  /** Folds the names before the transaction, which creates may share. Ids are assigned and committed in the same order. */
  async index(): Promise<boolean> {
    const { next, renames, add, advance } = this.#statements
    const [pets, renamed] = await this.#writer.read(() => [all(next, BATCH), all(renames, BATCH)] as const)
    const rows = wordRows(pets.map(([id, name]) => ({ id: id as bigint, name: name as string })))
    if (pets.length + renamed.length === 0) return false
    await this.#writer.writeBookkeeping(() => {
      for (const { word, id } of rows) add.run(word, id)
      if (pets.length > 0) advance.run(pets.at(-1)![0]!)
      for (const [id, petId, name] of renamed) this.#rename(id as bigint, petId as bigint, name as string)
    })
    return pets.length === BATCH || renamed.length === BATCH
  }

  #rename(id: bigint, petId: bigint, former: string): void {
    const { name, add, remove, forget } = this.#statements
    const present = wordsOf(String(all(name, petId)[0]?.[0] ?? ''))
    for (const word of wordsOf(former)) if (!present.includes(word)) remove.run(word, petId)
    for (const word of present) add.run(word, petId)
    forget.run(id)
  }
}

function all(statement: StatementSync, ...values: ColumnValue[] | [...ColumnValue[], number]): ColumnValue[][] {
  return statement.all(...values) as unknown[] as ColumnValue[][]
}

function prepareStatements(db: DatabaseSync) {
  const prepare = (sql: string): StatementSync => {
    const statement = db.prepare(sql)
    statement.setReadBigInts(true)
    statement.setReturnArrays(true)
    return statement
  }
  const columns = ['id', ...PET_COLUMNS].map((column) => `pets.${column}`).join()
  const beyond = 'id > (SELECT until_id FROM pet_words_progress)'
  return {
    newest: prepare(`SELECT ${columns} FROM pets WHERE ${beyond} ORDER BY id DESC LIMIT ?`),
    renamed: prepare(
      `SELECT ${columns} FROM pet_renames AS r JOIN pets ON pets.id = r.pet_id ORDER BY r.id DESC LIMIT ?`,
    ),
    words: prepare(`
      SELECT word, pet_id, ${columns}
      FROM (SELECT word, pet_id FROM pet_words WHERE (word, pet_id) > (?, ?) AND word < ? ORDER BY word, pet_id LIMIT ?)
      LEFT JOIN pets ON pets.id = pet_id ORDER BY word, pet_id`),
    next: prepare(`SELECT id, name FROM pets WHERE ${beyond} ORDER BY id LIMIT ?`),
    renames: prepare('SELECT id, pet_id, name FROM pet_renames ORDER BY id LIMIT ?'),
    name: prepare('SELECT name FROM pets WHERE id = ?'),
    add: prepare('INSERT OR IGNORE INTO pet_words (word, pet_id) VALUES (?, ?)'),
    advance: prepare('UPDATE pet_words_progress SET until_id = max(until_id, ?)'),
    remove: prepare('DELETE FROM pet_words WHERE word = ? AND pet_id = ?'),
    forget: prepare('DELETE FROM pet_renames WHERE id = ?'),
  }
}
