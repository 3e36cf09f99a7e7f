// The index of the search in SQLite.
import type { DatabaseSync } from 'node:sqlite'
import { inSlices } from '../../timing.ts'
import { type ColumnValue, PET_ROW, petOf } from '../pet-columns.ts'
import { indexedWordOf, type WordIndex, wordRows, wordsOf } from '../search-pets.ts'
import { prepareRows, rememberStatements } from './database.ts'
import type { Transactions } from './transactions.ts'

/** How many animals are indexed at a time: few, because creates wait for it. */
const INDEX_AT_ONCE = 500

const BEYOND = 'id > (SELECT until_id FROM pet_words_progress)'
const NEWEST = `SELECT ${PET_ROW} FROM pets WHERE ${BEYOND} ORDER BY id DESC LIMIT ?`
const RENAMED = `SELECT ${PET_ROW} FROM pet_renames AS r JOIN pets ON pets.id = r.pet_id ORDER BY r.id DESC LIMIT ?`
const RENAMES = `
  SELECT r.id, r.pet_id, r.name, pets.name FROM pet_renames AS r LEFT JOIN pets ON pets.id = r.pet_id ORDER BY r.id LIMIT ?`
const WORDS = `
  SELECT word, pet_id, ${PET_ROW}
  FROM (SELECT word, pet_id FROM pet_words WHERE (word, pet_id) > (?, ?) AND word < ? ORDER BY word, pet_id LIMIT ?)
  LEFT JOIN pets ON pets.id = pet_id ORDER BY word, pet_id`

/** The index of the search. The triggers of migrations/0004-search.sql note renames in pet_renames. */
export function sqliteWords(db: DatabaseSync, transactions: Transactions): WordIndex {
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
