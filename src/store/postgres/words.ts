// The index of the search in PostgreSQL. The triggers of migrations/0004-search.sql note renames in pet_renames.
//
// Ids are assigned in order but committed in any order. So the chore indexes an animal as soon as it sees it, up to `until_id`,
// and reads the same ids again once the counts have passed them (pets.ts): by then no lower id can be committed any more.
// `settled_id` is how far this second pass has come. A search looks through the newest animals above `settled_id`. If there are
// more, it is not whole, even if `until_id` is above them all: one that was committed late may be among the rest.
import { INT64_MAX } from '../../contract/int64.ts'
import { type ColumnValue, PET_COLUMNS, petOf } from '../pet-columns.ts'
import { toJson } from '../records.ts'
import { indexedWordOf, type WordIndex, wordRows } from '../search-pets.ts'
import type { Database } from './connection.ts'
import { PREPARED } from './creates.ts'
import type { Pool } from './pool.ts'

/** How many animals are indexed in one transaction. */
const BATCH = 1000

const COLUMNS = ['id', ...PET_COLUMNS].map((column) => `pets.${column}`).join()

// The limits stand in the texts: PostgreSQL plans a prepared statement with a parameter for a tenth of the table. OFFSET 0 makes
// it look up each animal by its id: for some hundred it may read the whole table instead.
const newestAdded = (limit: number) => `SELECT ${COLUMNS} FROM pets WHERE id > $1 ORDER BY id DESC LIMIT ${limit}`
const newestRenamed = (limit: number) => `
  SELECT ${COLUMNS} FROM (SELECT pet_id FROM pet_renames ORDER BY id DESC LIMIT ${limit}) AS r JOIN pets ON id = pet_id`
const wordsBetween = (limit: number) => `
  SELECT word, pet_id, ${COLUMNS}
  FROM (SELECT word, pet_id FROM pet_words WHERE (word, pet_id) > ($1, $2) AND word < $3
        ORDER BY word, pet_id LIMIT ${limit}) AS found
  LEFT JOIN LATERAL (SELECT ${COLUMNS} FROM pets WHERE id = pet_id OFFSET 0) AS pets ON TRUE ORDER BY word, pet_id`

export function postgresWords(pool: Pool): WordIndex {
  return {
    unindexed: (limit) =>
      pool.read(async (sql) => {
        const [{ settledId } = { settledId: 0n }] = await sql<Pick<Progress, 'settledId'>[]>`
          SELECT settled_id AS "settledId" FROM pet_words_progress`
        const both = [await read(sql, newestAdded(limit), settledId), await read(sql, newestRenamed(limit))]
        return { pets: both.flat().map(petOf), isWhole: both.every(({ length }) => length < limit) }
      }),

    words: ({ word, id }, end, limit) =>
      pool.read(async (sql) => (await read(sql, wordsBetween(limit), word, id, end)).map(indexedWordOf)),

    async indexBatch() {
      const [waiting] = await pool.read(
        (sql) => sql<{ some: boolean }[]>`
          SELECT EXISTS (SELECT 1 FROM pet_renames) OR coalesce((SELECT max(id) FROM pets) > p.until_id, FALSE)
            OR least(p.until_id, c.until_id) > p.settled_id AS some
          FROM pet_words_progress AS p, pet_counts_progress AS c`,
      )
      return waiting!.some && pool.writeTransaction(indexBatch)
    },
  }
}

async function read(sql: Database, text: string, ...parameters: (string | bigint)[]): Promise<ColumnValue[][]> {
  const rows: unknown = await sql.unsafe(text, parameters, PREPARED).values()
  return rows as ColumnValue[][]
}

interface Progress {
  untilId: bigint
  settledId: bigint
  /** All ids up to this one were committed or never will be. */
  countedId: bigint
}

/** Indexes a batch, in one instance at a time. Resolves with whether more waits. */
async function indexBatch(sql: Database): Promise<boolean> {
  const [progress] = await sql<Progress[]>`
    SELECT until_id AS "untilId", settled_id AS "settledId",
      (SELECT until_id FROM pet_counts_progress) AS "countedId"
    FROM pet_words_progress FOR UPDATE SKIP LOCKED`
  if (progress === undefined) return false
  const renamed = await sql<{ petId: bigint; name: string; present: string | null }[]>`
    WITH gone AS (
      DELETE FROM pet_renames WHERE id IN (SELECT id FROM pet_renames ORDER BY id LIMIT ${BATCH}) RETURNING pet_id, name
    )
    SELECT pet_id AS "petId", gone.name, pets.name AS present FROM gone LEFT JOIN pets ON pets.id = pet_id`
  const { untilId, settledId, countedId } = progress
  const settled = smaller(untilId, countedId)
  const [from, to] = settledId < settled ? [settledId, settled] : [untilId, INT64_MAX]
  const pets = await sql<{ id: bigint; name: string }[]>`
    SELECT id, name FROM pets WHERE id > ${from} AND id <= ${to} ORDER BY id LIMIT ${BATCH}`
  const reached = pets.length === BATCH || to === INT64_MAX ? (pets.at(-1)?.id ?? from) : to
  const outdated = await wordRows(renamed.map(({ petId, name }) => ({ id: petId, name })))
  await sql`
    DELETE FROM pet_words WHERE (word, pet_id) IN
      (SELECT word, id FROM json_to_recordset(${toJson(outdated)}::text::json) AS gone (word TEXT, id BIGINT))`
  const present = renamed.map(({ petId, present: name }) => ({ id: petId, name: name ?? '' }))
  const added = await wordRows([...pets, ...present])
  await sql`
    INSERT INTO pet_words (word, pet_id)
    SELECT word, id FROM json_to_recordset(${toJson(added)}::text::json) AS made (word TEXT, id BIGINT)
    ON CONFLICT DO NOTHING`
  await sql`
    UPDATE pet_words_progress SET
      until_id = greatest(until_id, ${reached}), settled_id = greatest(settled_id, ${smaller(countedId, reached)})`
  return pets.length === BATCH || renamed.length === BATCH
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}
