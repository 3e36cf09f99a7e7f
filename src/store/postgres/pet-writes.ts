// Changes and removals of animals that nobody else has changed since.
import type { NewPet, Pet } from '../../contract/pets.ts'
import type { AuditEvent } from '../account-store.ts'
import { PET_COLUMNS, valuesOf } from '../pet-columns.ts'
import { toJson } from '../records.ts'
import type { NotWritten, PetStore } from '../store.ts'
import { insertEvent, withEvent } from './accounts.ts'
import type { Database } from './connection.ts'
import { followChanges, HAS_TRIGGERS } from './distribution.ts'
import type { Pool } from './pool.ts'

/**
 * Writes the animal as `after`, or removes it, with the audit event, if it equals `expected`. Resolves with undefined then. A store may
 * have been opened before the animals were distributed, so the statement itself looks whether the triggers do their work.
 */
export async function writeIfSame(
  pool: Pool,
  get: PetStore['get'],
  { id, ...expected }: Pet,
  after: NewPet | undefined,
  event: AuditEvent,
): Promise<NotWritten | undefined> {
  const entries = (pet: NewPet) => PET_COLUMNS.map((column, index) => [column, valuesOf(pet)[index]!] as const)
  const change = (sql: Database) => {
    const isSame = entries(expected).map(([column, value]) => sql`AND ${sql(column)} IS NOT DISTINCT FROM ${value}`)
    const write = after ? sql`UPDATE pets SET ${sql(Object.fromEntries(entries(after)))}` : sql`DELETE FROM pets`
    return sql`${write} WHERE id = ${id} ${isSame}`
  }
  if (await pool.write((sql) => withEvent(sql, event, sql`${change(sql)} AND ${sql.unsafe(HAS_TRIGGERS)}`)))
    return undefined
  const pet = await get(id)
  if (pet === undefined) return { outcome: 'missing' }
  if (toJson(valuesOf(pet)) !== toJson(valuesOf(expected))) return { outcome: 'conflict', pet }
  const isWritten = await pool.writeTransaction(async (sql) => {
    const { count } = await sql`${change(sql)} AND NOT ${sql.unsafe(HAS_TRIGGERS)}`
    if (count === 0) return false
    await followChanges(sql, [{ id, ...expected }], after)
    await insertEvent(sql, event)
    return true
  })
  // If not, the animal was changed and changed back in between.
  return isWritten ? undefined : writeIfSame(pool, get, { id, ...expected }, after, event)
}
