// The index of words for the search, which a chore keeps, in two passes (drawn in settled-ids.ts):
//
//   first pass    reads the ids above the words' `until_id` and moves it up, so that a search finds new animals soon. Those that
//                 are settled by then need no second pass: `settled_id` moves too.
//   second pass   comes first if there is anything to do: it reads again what lies between `settled_id` and the lower one of both
//                 `until_id`, and finds the animals that were committed late.
//   copies        write animals with any ids (records.ts), so they set `settled_id` and `until_id` back to the start.
//
// A search looks through the newest animals above `settled_id`. If there are more than it looks through, it is not whole, even if
// `until_id` is above them all: one that was committed late may be among the rest. The triggers of migrations/0001-first.sql
// note renames in pet_renames; each batch of either pass also corrects the words of some of those.
import { INT64_MAX } from '../../contract/int64.ts'
import type { Pet } from '../../contract/pets.ts'
import { PET_ROW, petOf } from '../pet-columns.ts'
import { SELECT_PETS } from '../pet-list.ts'
import { toJson } from '../records.ts'
import { type WordIndex, wordRows } from '../search-pets.ts'
import type { Place } from '../store.ts'
import { type Database, PREPARED, readRows } from './pool/connection.ts'
import type { Pool } from './pool.ts'
import { requireVisible } from './settled-ids.ts'

/** How many animals are indexed in one transaction. */
const BATCH = 1000

// The limits stand in the texts: PostgreSQL plans a prepared statement with a parameter for a tenth of the table.
const newestAdded = (limit: number) => `${SELECT_PETS} WHERE id > $1 ORDER BY id DESC LIMIT ${limit}`
const newestRenamed = (limit: number) => `
  SELECT ${PET_ROW} FROM (SELECT pet_id FROM pet_renames ORDER BY id DESC LIMIT ${limit}) AS r JOIN pets ON id = pet_id`
const wordsAfter = (limit: number) => `
  SELECT word, pet_id AS id FROM pet_words WHERE (word, pet_id) > ($1, $2) AND word < $3 ORDER BY word, pet_id LIMIT ${limit}`
/** Apart from their words: Citus refuses to join these with animals that are distributed. */
export const BY_IDS = `${SELECT_PETS} WHERE id = ANY($1::text::bigint[])`

export function postgresWords(pool: Pool): WordIndex {
  return {
    unindexed: (limit) =>
      pool.read(async (sql) => {
        const [{ settledId } = { settledId: 0n }] = await sql<{ settledId: bigint }[]>`
          SELECT settled_id AS "settledId" FROM pet_words_progress`
        const both = [await readRows(sql, newestAdded(limit), settledId), await readRows(sql, newestRenamed(limit))]
        return { pets: both.flat().map(petOf), isWhole: both.every(({ length }) => length < limit) }
      }),

    words: (after, end, limit) =>
      pool.read(async (sql) => {
        const places = await sql.unsafe<Place[]>(wordsAfter(limit), [after.word, after.id, end], PREPARED)
        const pets = new Map((await readByIds(sql, places)).map((pet) => [pet.id, pet]))
        return places.map((place) => ({ place, pet: pets.get(place.id) }))
      }),

    /** Asks first whether a pass or a rename waits: a transaction that writes nothing would cost more. */
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

async function readByIds(sql: Database, found: readonly { id: bigint }[]): Promise<Pet[]> {
  if (found.length === 0) return []
  return (await readRows(sql, BY_IDS, `{${found.map(({ id }) => id).join()}}`)).map(petOf)
}

/** How far the index is. */
interface Progress {
  untilId: bigint
  settledId: bigint
  /** The counts' `until_id`. */
  countedId: bigint
}

/** Chooses the next pass: the ids above `from` up to `to`. */
function nextPass({ untilId, settledId, countedId }: Progress): { from: bigint; to: bigint; isSecond: boolean } {
  const settledNow = smaller(untilId, countedId)
  const isSecond = settledId < settledNow
  return isSecond ? { from: settledId, to: settledNow, isSecond } : { from: untilId, to: INT64_MAX, isSecond }
}

/** Indexes a batch of a pass and of the renames, in one instance at a time. Resolves with whether more waits. */
async function indexBatch(sql: Database): Promise<boolean> {
  const [progress] = await sql<Progress[]>`
    SELECT until_id AS "untilId", settled_id AS "settledId",
      (SELECT until_id FROM pet_counts_progress) AS "countedId"
    FROM pet_words_progress FOR UPDATE SKIP LOCKED`
  if (progress === undefined) return false
  // Before the animals are read: the former name of one that is renamed in between would be added and never removed.
  const renamed = await sql<{ id: bigint; name: string }[]>`
    DELETE FROM pet_renames WHERE id IN (SELECT id FROM pet_renames ORDER BY id LIMIT ${BATCH}) RETURNING pet_id AS id, name`
  if (renamed.length > 0) await requireVisible(sql)
  const present = await readByIds(sql, renamed)
  const { from, to, isSecond } = nextPass(progress)
  const pets = await sql<{ id: bigint; name: string }[]>`
    SELECT id, name FROM pets WHERE id > ${from} AND id <= ${to} ORDER BY id LIMIT ${BATCH}`
  const reached = isSecond && pets.length < BATCH ? to : (pets.at(-1)?.id ?? from)
  const outdated = await wordRows(renamed)
  await sql`
    DELETE FROM pet_words WHERE (word, pet_id) IN
      (SELECT word, id FROM json_to_recordset(${toJson(outdated)}::text::json) AS gone (word TEXT, id BIGINT))`
  const added = await wordRows([...pets, ...present])
  await sql`
    INSERT INTO pet_words (word, pet_id)
    SELECT word, id FROM json_to_recordset(${toJson(added)}::text::json) AS made (word TEXT, id BIGINT)
    ON CONFLICT DO NOTHING`
  await sql`
    UPDATE pet_words_progress SET until_id = greatest(until_id, ${reached}),
      settled_id = greatest(settled_id, ${smaller(progress.countedId, reached)})`
  return pets.length === BATCH || renamed.length === BATCH
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}
