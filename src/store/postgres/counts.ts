// Counts animals by status without reading them all, and without a row that every create must update: `pet_counts` holds the
// counts of all animals up to `until_id`; the few above it are counted on request. `until_id` follows the ids that are settled
// (settled-ids.ts). The triggers of migrations/0001-first.sql count changes and removals up to it; records.ts counts
// what a copy writes up to it.
import { entryOf } from '../../contract/text/entry-of.ts'
import { PET_STATUSES, type PetStatus } from '../../contract/pets.ts'
import type { Database } from './pool/connection.ts'
import { lockSettled, noteNewest } from './settled-ids.ts'

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
export async function settleCounts(transaction: Database, settledMs?: number): Promise<boolean> {
  const settled = await lockSettled(transaction, settledMs)
  if (settled === undefined) return false
  const { untilId, settledId } = settled
  const reached = settledId - untilId > STEP ? untilId + BigInt(STEP) : settledId
  await transaction`
    UPDATE pet_counts SET count = pet_counts.count + added.count
    FROM (SELECT status, count(*) AS count FROM pets WHERE id > ${untilId} AND id <= ${reached} GROUP BY status) AS added
    WHERE pet_counts.status = added.status`
  await transaction`UPDATE pet_counts_progress SET until_id = ${reached}`
  if (reached < settledId) return true
  await noteNewest(transaction)
  return false
}
