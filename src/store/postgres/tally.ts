// Counts animals by status without reading them all, and without a row that every create must update.
//
// `pet_counts` holds the counts of all animals up to `until_id`; the few above it are counted on request. Every minute
// `until_id` moves up to a `next_id` that was noted at least a minute ago. Ids are assigned in order but committed in any
// order: an animal below `next_id` can still appear while its transaction is open, and the statement timeout keeps ours
// from being open that long. So each animal is counted once. The exception is a transaction by hand that adds animals
// and stays open for longer; docs/databases.md describes how to count again.
import { PET_STATUSES, type PetStatus } from '../../contract/pets.ts'
import type { Database } from './connection.ts'

/** Longer than any transaction of the service can be open. */
export const SETTLED_MS = 60_000

/** How many ids are counted in one statement: enough for a busy minute, few enough to be fast. */
const STEP = 250_000

/** Reads the id first, as a value of its own: the planner needs it to know that few animals lie above it. */
export async function countPets(sql: Database): Promise<Record<PetStatus, number>> {
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
