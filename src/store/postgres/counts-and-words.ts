// What follows the animals in the background: the counts by status, and the index of words for the search.
//
// Ids are assigned in order but committed in any order, so an animal can appear below ids that were read before. An id is settled
// once no id up to it can be committed any more. Only the counts find out which ids are: `settleCounts` moves their `until_id` to
// a `next_id` that was noted at least a minute ago, unless a transaction that writes is older than the note. The index depends on it:
//
//       settled_id            counts: until_id              words: until_id
//   ---------+-----------------------+---------------------------+------------------> ids
//    indexed | second pass: settled, | indexed as far as they    | first pass:
//    for good| read again            | were committed at the time| not read yet
//
//   first pass    reads the ids above the words' `until_id` and moves it up, so that a search finds new animals soon. Those that
//                 are settled by then need no second pass: `settled_id` moves too.
//   second pass   comes first if there is anything to do: it reads again what lies between `settled_id` and the lower one of both
//                 `until_id`, and finds the animals that were committed late.
//   copies        write animals with any ids (records.ts), so they set `settled_id` and `until_id` back to the start.
//
// A search looks through the newest animals above `settled_id`. If there are more than it looks through, it is not whole, even if
// `until_id` is above them all: one that was committed late may be among the rest. The triggers of migrations/0004-search.sql
// note renames in pet_renames; each batch of either pass also corrects the words of some of those.
import { entryOf } from '../../contract/entry-of.ts'
import { INT64_MAX } from '../../contract/int64.ts'
import { PET_STATUSES, type PetStatus } from '../../contract/pets.ts'
import { type ColumnValue, PET_ROW, petOf } from '../pet-columns.ts'
import { toJson } from '../records.ts'
import { StoreUnavailable } from '../store.ts'
import { indexedWordOf, type WordIndex, wordRows } from '../search-pets.ts'
import { type Database, inTransaction, PREPARED } from './connection.ts'
import { hasOlderWrite, isVisibleEverywhere } from './distribution.ts'
import { sqlState } from './failures.ts'
import type { Pool } from './pool.ts'

/** How many animals are indexed in one transaction. */
const BATCH = 1000

// The limits stand in the texts: PostgreSQL plans a prepared statement with a parameter for a tenth of the table. OFFSET 0 makes
// it look up each animal by its id: for some hundred it may read the whole table instead.
const newestAdded = (limit: number) => `SELECT ${PET_ROW} FROM pets WHERE id > $1 ORDER BY id DESC LIMIT ${limit}`
const newestRenamed = (limit: number) => `
  SELECT ${PET_ROW} FROM (SELECT pet_id FROM pet_renames ORDER BY id DESC LIMIT ${limit}) AS r JOIN pets ON id = pet_id`
const wordsAlone = (limit: number) => `
  SELECT word, pet_id FROM pet_words WHERE (word, pet_id) > ($1, $2) AND word < $3 ORDER BY word, pet_id LIMIT ${limit}`
const wordsBetween = (limit: number) => `
  SELECT word, pet_id, ${PET_ROW} FROM (${wordsAlone(limit)}) AS found
  LEFT JOIN LATERAL (SELECT ${PET_ROW} FROM pets WHERE id = pet_id OFFSET 0) AS pets ON TRUE ORDER BY word, pet_id`

export function postgresWords(pool: Pool): WordIndex {
  return {
    unindexed: (limit) =>
      pool.read(async (sql) => {
        const [{ settledId } = { settledId: 0n }] = await sql<{ settledId: bigint }[]>`
          SELECT settled_id AS "settledId" FROM pet_words_progress`
        const both = [await read(sql, newestAdded(limit), settledId), await read(sql, newestRenamed(limit))]
        return { pets: both.flat().map(petOf), isWhole: both.every(({ length }) => length < limit) }
      }),

    words: ({ word, id }, end, limit) =>
      pool.read(async (sql) => (await readWords(sql, limit, [word, id, end])).map(indexedWordOf)),

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

async function read(sql: Database, text: string, ...parameters: (string | bigint)[]): Promise<ColumnValue[][]> {
  const rows: unknown = await sql.unsafe(text, parameters, PREPARED).values()
  return rows as ColumnValue[][]
}

/** Citus refuses the join with animals that are distributed (0A000, not supported), so they are read apart then. */
async function readWords(sql: Database, limit: number, place: (string | bigint)[]): Promise<ColumnValue[][]> {
  try {
    return await read(sql, wordsBetween(limit), ...place)
  } catch (error) {
    if (sqlState(error) !== '0A000') throw error
  }
  const words = await read(sql, wordsAlone(limit), ...place)
  const ids = words.map(([, id]) => id)
  const byId = new Map((await readByIds(sql, PET_ROW, ids)).map((pet) => [pet[0], pet]))
  return words.map((word) => [...word, ...(byId.get(word[1]) ?? [null])])
}

async function readByIds(sql: Database, columns: string, ids: readonly unknown[]): Promise<ColumnValue[][]> {
  if (ids.length === 0) return []
  // Not prepared: hardly any text comes twice.
  const rows: unknown = await sql.unsafe(`SELECT ${columns} FROM pets WHERE id IN (${ids.join()})`).values()
  return rows as ColumnValue[][]
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
  if (renamed.length > 0 && !(await isVisibleEverywhere(sql)))
    throw new StoreUnavailable('A worker of Citus has a change that it has not committed yet.')
  const ids = renamed.map(({ id }) => id)
  const present = (await readByIds(sql, 'id, name', ids)).map(([id, name]) => ({ id, name }) as (typeof renamed)[0])
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

// Counts animals by status without reading them all, and without a row that every create must update: `pet_counts` holds the
// counts of all animals up to `until_id`; the few above it are counted on request. Not known to be settled, and so counted in
// error, are only the ids of a long manual transaction of another role, which PostgreSQL does not show to the service;
// docs/databases.md describes how to count again.

/** How old a noted `next_id` must be. Between taking an id and its first write, a transaction does not show as writing. */
export const SETTLED_MS = 60_000

/** How many ids are counted in one statement: enough for a busy minute, few enough to be fast. */
const STEP = 250_000

/** Reads `until_id` in a separate statement: the planner must know the value, as text, to see that few animals lie above it. */
export async function countPets(sql: Database): Promise<Record<PetStatus, number>> {
  const [{ untilId } = { untilId: 0n }] = await sql<{ untilId: bigint }[]>`
    SELECT until_id AS "untilId" FROM pet_counts_progress`
  const rows = await sql.unsafe<{ status: PetStatus; count: number; current: boolean }[]>(`
    SELECT status, count::float8 AS count, until_id = ${untilId} AS current FROM pet_counts, pet_counts_progress
    UNION ALL
    SELECT status, count(*)::float8, TRUE FROM pets WHERE id > ${untilId} GROUP BY status`)
  // `until_id` moved between the two statements, which can happen once a minute.
  if (!rows.every(({ current }) => current)) return countPets(sql)
  const counts: Record<string, number> = Object.fromEntries(PET_STATUSES.map((status) => [status, 0]))
  for (const { status, count } of rows) counts[status] = (entryOf(counts, status) ?? 0) + count
  return counts
}

/** Adds settled animals to the counts, in one instance at a time. Resolves with true if more animals are to be added. */
export async function settleCounts(sql: Database, settledMs = SETTLED_MS): Promise<boolean> {
  return inTransaction(sql, async (transaction) => {
    const [progress] = await transaction<{ untilId: bigint; nextId: bigint; notedAt: bigint; settled: boolean }[]>`
      SELECT until_id AS "untilId", next_id AS "nextId", next_noted_at AS "notedAt",
        next_noted_at < floor(extract(epoch FROM clock_timestamp()) * 1000) - ${settledMs} AS settled
      FROM pet_counts_progress FOR UPDATE SKIP LOCKED`
    if (progress === undefined || !progress.settled) return false
    const { untilId, nextId, notedAt } = progress
    const older = await transaction`
      SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL
        AND xact_start <= to_timestamp((${notedAt}::bigint + 1) / 1000.0)`
    if (older.length > 0 || (await hasOlderWrite(transaction, notedAt))) return false
    const reached = nextId - untilId > STEP ? untilId + BigInt(STEP) : nextId
    await transaction`
      UPDATE pet_counts SET count = pet_counts.count + added.count
      FROM (SELECT status, count(*) AS count FROM pets WHERE id > ${untilId} AND id <= ${reached} GROUP BY status) AS added
      WHERE pet_counts.status = added.status`
    await transaction`UPDATE pet_counts_progress SET until_id = ${reached}`
    if (reached < nextId) return true
    // Two statements: Citus refuses a clock in an UPDATE beside a subquery on a distributed table.
    const [{ newest } = { newest: 0n }] = await transaction<{ newest: bigint }[]>`
      SELECT coalesce(max(id), 0) AS newest FROM pets`
    await transaction`
      UPDATE pet_counts_progress SET
        next_id = greatest(until_id, ${newest}),
        next_noted_at = floor(extract(epoch FROM clock_timestamp()) * 1000)`
    return false
  })
}
