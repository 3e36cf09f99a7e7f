// Animals in PostgreSQL. Every call is one statement or shares one, so it takes one transaction and one round trip.
import type { ListQuery } from '../../contract/list-query.ts'
import { type NewPet, type Pet, PET_STATUSES, type PetStatus } from '../../contract/pets.ts'
import type { AuditEvent } from '../account-store.ts'
import type { Created, Idempotency, PetStore, Updated } from '../store.ts'
import { withEvent } from './accounts.ts'
import type { Database } from './connection.ts'
import { type Creates, insert } from './creates.ts'
import { isLockTimeout } from './failures.ts'
import type { Pool } from './pool.ts'

const PURGE_AT_ONCE = 1000

/** How long a create waits for an earlier one with the same key before it resolves with `in progress`. */
const IN_PROGRESS_WAIT_MS = 3000

export class PostgresPets implements PetStore {
  readonly #pool: Pool
  readonly #creates: Creates

  constructor(pool: Pool, creates: Creates) {
    this.#pool = pool
    this.#creates = creates
  }

  async create(newPet: NewPet, idempotency?: Idempotency): Promise<Created> {
    if (idempotency !== undefined)
      return this.#pool.writeRepeatable((sql) => insertIdempotently(sql, newPet, idempotency))
    const { name, categoryId, status } = newPet
    return { outcome: 'created', pet: { id: await this.#creates.add(newPet), name, categoryId, status } }
  }

  async createMany(newPets: readonly NewPet[]): Promise<void> {
    await this.#pool.write((sql) => insert(sql, newPets))
  }

  get(id: bigint): Promise<Pet | undefined> {
    return this.#pool.readShort(async (sql) => {
      const [pet] = await sql.unsafe<Pet[]>(BY_ID, [id], PREPARED)
      return pet
    })
  }

  list(query: ListQuery): Promise<Pet[]> {
    const { text, parameters } = pageStatement(query)
    return this.#pool.readShort(async (sql) => {
      const found = [...(await sql.unsafe<Pet[]>(text, parameters, PREPARED))]
      return query.after === undefined ? found : found.toReversed()
    })
  }

  async update(id: bigint, expected: NewPet, wanted: NewPet, event: AuditEvent): Promise<Updated> {
    const updated = await this.#pool.write((sql) =>
      withEvent(
        sql,
        event,
        sql`
        UPDATE pets SET name = ${wanted.name}, category_id = ${wanted.categoryId}, status = ${wanted.status}
        WHERE id = ${id} AND name = ${expected.name} AND category_id = ${expected.categoryId} AND status = ${expected.status}`,
      ),
    )
    if (updated) return { outcome: 'updated' }
    const pet = await this.get(id)
    return pet === undefined ? { outcome: 'missing' } : { outcome: 'conflict', pet }
  }

  countByStatus(): Promise<Record<PetStatus, number>> {
    return this.#pool.read(countPets)
  }

  purgeIdempotencyRecords(before: number): Promise<number> {
    return this.#pool.write(async (sql) => {
      const { count } = await sql`
        DELETE FROM idempotency_records WHERE (account_id, key) IN
          (SELECT account_id, key FROM idempotency_records WHERE created_at < ${before}
           ORDER BY created_at LIMIT ${PURGE_AT_ONCE} FOR UPDATE SKIP LOCKED)`
      return count
    })
  }
}

// As plain text: a statement that the driver composes of fragments costs a quarter of a page.
const PREPARED = { prepare: true }
const COLUMNS = 'id, name, category_id AS "categoryId", status'
const BY_ID = `SELECT ${COLUMNS} FROM pets WHERE id = $1`

/** The limit is part of the text, not a parameter: with an unknown limit, PostgreSQL plans every page again. */
function pageStatement({ status, before, after, limit }: ListQuery): {
  text: string
  parameters: (string | bigint)[]
} {
  const place = after ?? before
  const side = after === undefined ? '<' : '>'
  const order = after === undefined ? 'DESC' : 'ASC'
  if (status === undefined) {
    const where = place === undefined ? '' : `WHERE id ${side} $1`
    return {
      text: `SELECT ${COLUMNS} FROM pets ${where} ORDER BY id ${order} LIMIT ${limit}`,
      parameters: place === undefined ? [] : [place],
    }
  }
  // Means `status = $1`, but is worded so that only the index on status and id provides this order. For an equality,
  // PostgreSQL may scan all animals from the newest down and skip those of another status: if the animals of this status
  // are all old, that reads nearly the whole table.
  const from = after === undefined ? 'status >= $1' : 'status <= $1'
  const to = place === undefined ? 'status <= $1' : `(status, id) ${side} ($1, $2)`
  return {
    text: `SELECT ${COLUMNS} FROM pets WHERE ${from} AND ${to} ORDER BY status ${order}, id ${order} LIMIT ${limit}`,
    parameters: place === undefined ? [status] : [status, place],
  }
}

/**
 * Adds the idempotency record and the animal in one statement. Of two creates with the same key, the second waits for
 * the row of the first and finds it once that is committed. The lock timeout is set inside the statement, so it needs no
 * session and works behind PgBouncer. A replay needs only the id of the first animal: the same fingerprint means that the
 * rest is the same.
 */
async function insertIdempotently(sql: Database, newPet: NewPet, idempotency: Idempotency): Promise<Created> {
  const { name, categoryId, status } = newPet
  const { accountId, key, fingerprint, now, validSince } = idempotency
  try {
    const [made] = await sql<{ id: bigint }[]>`
      WITH claimed AS (
        INSERT INTO idempotency_records (account_id, key, fingerprint, pet_id, created_at)
        SELECT ${accountId}, ${key}, ${fingerprint}::bytea, nextval(pg_get_serial_sequence('pets', 'id')), ${now}::bigint
        WHERE set_config('lock_timeout', ${String(IN_PROGRESS_WAIT_MS)}, TRUE) IS NOT NULL
        ON CONFLICT (account_id, key) DO UPDATE
          SET fingerprint = excluded.fingerprint, pet_id = excluded.pet_id, created_at = excluded.created_at
          WHERE idempotency_records.created_at < ${validSince}
        RETURNING pet_id
      )
      INSERT INTO pets (id, name, category_id, status)
      SELECT pet_id, ${name}, ${categoryId}::bigint, ${status} FROM claimed RETURNING id`
    if (made !== undefined) return { outcome: 'created', pet: { id: made.id, name, categoryId, status } }
  } catch (error) {
    if (isLockTimeout(error)) return { outcome: 'in progress' }
    throw error
  }
  const [record] = await sql<{ fingerprint: Buffer; petId: bigint }[]>`
    SELECT fingerprint, pet_id AS "petId" FROM idempotency_records WHERE account_id = ${accountId} AND key = ${key}`
  // The record had expired and was purged between the two statements, so this create is the first one.
  if (record === undefined) return insertIdempotently(sql, newPet, idempotency)
  if (!record.fingerprint.equals(fingerprint)) return { outcome: 'mismatch' }
  return { outcome: 'replayed', pet: { id: record.petId, name, categoryId, status } }
}

// Counts animals by status without reading them all, and without a row that every create must update.
//
// `pet_counts` holds the counts of all animals up to `until_id`; the few above it are counted on request. Every minute
// `until_id` moves up to a `next_id` that was noted at least a minute ago. Ids are assigned in order but committed in any
// order: an animal below `next_id` can still appear while its transaction is open, and the statement timeout keeps ours
// from being open that long. So each animal is counted once. The exception is a transaction by hand that adds animals
// and stays open for longer; docs/databases.md describes how to count again.

/** Longer than any transaction of the service can be open. */
export const SETTLED_MS = 60_000

/** How many ids are counted in one statement: enough for a busy minute, few enough to be fast. */
const STEP = 250_000

/** Reads the id first, as a value of its own: the planner needs it to know that few animals lie above it. */
async function countPets(sql: Database): Promise<Record<PetStatus, number>> {
  const [{ untilId } = { untilId: 0n }] = await sql<
    { untilId: bigint }[]
  >`SELECT until_id AS "untilId" FROM pet_counts_progress`
  const rows = await sql<{ status: PetStatus; count: number; current: boolean }[]>`
    SELECT status, count::float8 AS count, until_id = ${untilId} AS current FROM pet_counts, pet_counts_progress
    UNION ALL
    SELECT status, count(*)::float8, TRUE FROM pets WHERE id > ${untilId} GROUP BY status`
  // `until_id` moved between the two statements, which can happen once a minute.
  if (!rows.every(({ current }) => current)) return countPets(sql)
  const counts = Object.fromEntries(PET_STATUSES.map((status) => [status, 0])) as Record<PetStatus, number>
  for (const { status, count } of rows) counts[status] += count
  return counts
}

/** Adds settled animals to the counts; of several instances, one does it. Resolves with true if more are waiting. */
export async function settleCounts(sql: Database): Promise<boolean> {
  return sql.begin(async (transaction) => {
    const [progress] = await transaction<{ untilId: bigint; nextId: bigint; settled: boolean }[]>`
      SELECT until_id AS "untilId", next_id AS "nextId",
        next_noted_at < floor(extract(epoch FROM clock_timestamp()) * 1000) - ${SETTLED_MS} AS settled
      FROM pet_counts_progress FOR UPDATE SKIP LOCKED`
    if (progress === undefined || !progress.settled) return false
    const { untilId, nextId } = progress
    const reached = nextId - untilId > STEP ? untilId + BigInt(STEP) : nextId
    await transaction`
      UPDATE pet_counts SET count = pet_counts.count + added.count
      FROM (SELECT status, count(*) AS count FROM pets WHERE id > ${untilId} AND id <= ${reached} GROUP BY status) AS added
      WHERE pet_counts.status = added.status`
    await transaction`UPDATE pet_counts_progress SET until_id = ${reached}`
    if (reached < nextId) return true
    // Two statements: Citus refuses a clock in an UPDATE beside a subquery on a distributed table.
    const [{ newest } = { newest: 0n }] = await transaction<
      { newest: bigint }[]
    >`SELECT coalesce(max(id), 0) AS newest FROM pets`
    await transaction`
      UPDATE pet_counts_progress SET
        next_id = greatest(until_id, ${newest}),
        next_noted_at = floor(extract(epoch FROM clock_timestamp()) * 1000)`
    return false
  })
}
