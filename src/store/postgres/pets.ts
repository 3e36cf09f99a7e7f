// Animals in PostgreSQL. A call takes one statement, or a part of one, and so one transaction and one round trip; a
// replay, a conflicting update and a count take two, and a search and a step of its index several.
import { entryOf } from '../../contract/entry-of.ts'
import type { ListQuery } from '../../contract/list-query.ts'
import { type NewPet, type Pet, PET_STATUSES, type PetStatus } from '../../contract/pets.ts'
import { type ColumnValue, COLUMN_TYPES, filterColumns, PET_COLUMNS, petOf, valuesOf } from '../pet-columns.ts'
import { searchPets } from '../search-pets.ts'
import type { Created, Idempotency, PetStore } from '../store.ts'
import { withEvent } from './accounts.ts'
import { type Database, inTransaction } from './connection.ts'
import { type Creates, insert, PREPARED, SQL_TYPES } from './creates.ts'
import { isLockTimeout } from './failures.ts'
import type { Pool } from './pool.ts'
import { postgresWords } from './words.ts'

const PURGE_AT_ONCE = 1000

/** How long a create waits for an earlier create with the same idempotency key before it resolves with `in progress`. */
const IN_PROGRESS_WAIT_MS = 3000

export function postgresPets(pool: Pool, creates: Creates): PetStore {
  const words = postgresWords(pool)

  function get(id: bigint): Promise<Pet | undefined> {
    return pool.readShort(async (sql) => {
      const [row] = await sql.unsafe(BY_ID, [id], PREPARED).values()
      return row && petOf(row as ColumnValue[])
    })
  }

  return {
    async create(newPet, idempotency) {
      if (idempotency !== undefined) return pool.writeRepeatable((sql) => insertIdempotently(sql, newPet, idempotency))
      return { outcome: 'created', pet: { id: await creates.add(newPet), ...newPet } }
    },

    async createMany(newPets) {
      await pool.write((sql) => insert(sql, newPets))
    },

    get,

    list(query) {
      const { text, parameters } = pageStatement(query)
      return pool.readShort(async (sql) => {
        const rows = await sql.unsafe(text, parameters, PREPARED).values()
        const found = (rows as unknown as ColumnValue[][]).map(petOf)
        return query.after === undefined ? found : found.toReversed()
      })
    },

    async update(id, expected, wanted, event) {
      const [before, after] = [valuesOf(expected), valuesOf(wanted)]
      const isUpdated = await pool.write((sql) => {
        const values = Object.fromEntries(PET_COLUMNS.map((column, index) => [column, after[index]!]))
        const isSame = PET_COLUMNS.map(
          (column, index) => sql`AND ${sql(column)} IS NOT DISTINCT FROM ${before[index]!}`,
        )
        return withEvent(sql, event, sql`UPDATE pets SET ${sql(values)} WHERE id = ${id} ${isSame}`)
      })
      if (isUpdated) return { outcome: 'updated' }
      const pet = await get(id)
      return pet === undefined ? { outcome: 'missing' } : { outcome: 'conflict', pet }
    },

    search: (query) => searchPets(words, query),

    indexWords: () => words.indexBatch(),

    countByStatus: () => pool.read(countPets),

    async purgeIdempotencyRecords(before) {
      const { count } = await pool.write(
        (sql) => sql`
        DELETE FROM idempotency_records WHERE (account_id, key) IN
          (SELECT account_id, key FROM idempotency_records WHERE created_at < ${before}
           ORDER BY created_at LIMIT ${PURGE_AT_ONCE} FOR UPDATE SKIP LOCKED)`,
      )
      return count
    },
  }
}

const COLUMNS = ['id', ...PET_COLUMNS].join()
const BY_ID = `SELECT ${COLUMNS} FROM pets WHERE id = $1`

/**
 * Renders `first = … AND others = … ORDER BY id`, but words the first filter so that only the index on its column and
 * the id provides this order. For an equality, PostgreSQL may scan all animals from the newest down and skip the others:
 * if the animals of one status are all old, that reads nearly the whole table. The limit is part of the text, not a
 * parameter: with an unknown limit, PostgreSQL plans every page again.
 */
function pageStatement(query: ListQuery): { text: string; parameters: (string | bigint)[] } {
  const { after, limit } = query
  const place = after ?? query.before
  const [side, order] = after === undefined ? ['<', 'DESC'] : ['>', 'ASC']
  const [first, ...others] = filterColumns(query)
  const parameters = [first, ...others].flatMap((filter) => (filter === undefined ? [] : [filter.value]))
  if (place !== undefined) parameters.push(place)
  const last = `$${parameters.length}`
  const equal = others.map(({ column }, index) => `${column} = $${index + 2}`)
  const beyond = place === undefined ? [] : [`id ${side} ${last}`]
  if (first === undefined) return { text: page(beyond, `id ${order}`, limit), parameters }
  const { column } = first
  const from = `${column} ${after === undefined ? '>=' : '<='} $1`
  const to = place === undefined ? `${column} <= $1` : `(${column}, id) ${side} ($1, ${last})`
  return { text: page([from, to, ...equal], `${column} ${order}, id ${order}`, limit), parameters }
}

function page(conditions: readonly string[], order: string, limit: number): string {
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  return `SELECT ${COLUMNS} FROM pets ${where} ORDER BY ${order} LIMIT ${limit}`
}

/** The parameters are the idempotency record, `validSince`, then the values of the animal. */
const INSERT_IDEMPOTENTLY = `
  WITH claimed AS (
    INSERT INTO idempotency_records (account_id, key, fingerprint, pet_id, created_at)
    SELECT $1, $2, $3::bytea, nextval(pg_get_serial_sequence('pets', 'id')), $4::bigint
    WHERE set_config('lock_timeout', '${IN_PROGRESS_WAIT_MS}', TRUE) IS NOT NULL
    ON CONFLICT (account_id, key) DO UPDATE
      SET fingerprint = excluded.fingerprint, pet_id = excluded.pet_id, created_at = excluded.created_at
      WHERE idempotency_records.created_at < $5
    RETURNING pet_id
  )
  INSERT INTO pets (${COLUMNS})
  SELECT pet_id, ${PET_COLUMNS.map((column, index) => `$${index + 6}::${SQL_TYPES[COLUMN_TYPES[column]!]}`).join()} FROM claimed
  RETURNING id`

/**
 * Adds the idempotency record and the animal in one statement. Of two creates with the same key, the second waits for
 * the first to commit and then finds its record. The lock timeout is set inside the statement, so it needs no session and
 * works behind PgBouncer. A replay takes only the id from the record: the same fingerprint means that the other fields are
 * the same.
 */
async function insertIdempotently(sql: Database, newPet: NewPet, idempotency: Idempotency): Promise<Created> {
  const { accountId, key, fingerprint, now, validSince } = idempotency
  try {
    const parameters = [accountId, key, fingerprint, now, validSince, ...valuesOf(newPet)]
    const [made] = await sql.unsafe<{ id: bigint }[]>(INSERT_IDEMPOTENTLY, parameters, PREPARED)
    if (made !== undefined) return { outcome: 'created', pet: { id: made.id, ...newPet } }
  } catch (error) {
    if (isLockTimeout(error)) return { outcome: 'in progress' }
    throw error
  }
  const [record] = await sql<{ fingerprint: Buffer; petId: bigint }[]>`
    SELECT fingerprint, pet_id AS "petId" FROM idempotency_records WHERE account_id = ${accountId} AND key = ${key}`
  // The record had expired and was purged between the two statements, so this create is the first one.
  if (record === undefined) return insertIdempotently(sql, newPet, idempotency)
  if (!record.fingerprint.equals(fingerprint)) return { outcome: 'mismatch' }
  return { outcome: 'replayed', pet: { id: record.petId, ...newPet } }
}

// Counts animals by status without reading them all, and without a row that every create must update.
//
// `pet_counts` holds the counts of all animals up to `until_id`; the few above it are counted on request. Every minute
// `until_id` moves up to a `next_id` that was noted at least a minute ago. Ids are assigned in order but committed in any
// order: an animal below `next_id` can still appear while its transaction is open, for over a minute if the statement timeout
// is long or a synchronous standby is lost. So `until_id` stays while a transaction that writes is older than the note, and
// each animal is counted once. The exception is a long manual transaction of another role, which PostgreSQL does not show to
// the service; docs/databases.md describes how to count again.

/** How old a noted `next_id` must be. Between taking an id and its first write, a transaction does not show as writing. */
export const SETTLED_MS = 60_000

/** How many ids are counted in one statement: enough for a busy minute, few enough to be fast. */
const STEP = 250_000

/** Reads `until_id` in a separate statement: the planner must know the value to see that few animals lie above it. */
async function countPets(sql: Database): Promise<Record<PetStatus, number>> {
  const [{ untilId } = { untilId: 0n }] = await sql<{ untilId: bigint }[]>`
    SELECT until_id AS "untilId" FROM pet_counts_progress`
  const rows = await sql<{ status: PetStatus; count: number; current: boolean }[]>`
    SELECT status, count::float8 AS count, until_id = ${untilId} AS current FROM pet_counts, pet_counts_progress
    UNION ALL
    SELECT status, count(*)::float8, TRUE FROM pets WHERE id > ${untilId} GROUP BY status`
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
    if (older.length > 0) return false
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
