// Inserts the animals that arrive in one turn of the event loop with one statement, so one round trip and one commit.
import { FIELD_LIST, type NewPet } from '../../contract/pets.ts'
import { COLUMN_TYPES, PET_COLUMNS, valuesOf } from '../pet-columns.ts'
import { gatherTurns } from '../../timing.ts'
import { toJson } from '../records.ts'
import type { CommitStats } from '../store.ts'
import type { Database } from './connection.ts'
import { isBadRow } from './failures.ts'
import type { Pool } from './pool.ts'

/** PostgreSQL's names of the column types. */
export const SQL_TYPES = { text: 'TEXT', integer: 'BIGINT' } as const

interface Job extends PromiseWithResolvers<bigint> {
  newPet: NewPet
}

export class Creates {
  readonly #pool: Pool
  readonly #queue = gatherTurns<Job>((batch) => void this.#insertAll(batch))

  readonly commits: CommitStats = { commits: 0, writes: 0 }

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /** Resolves with the animal's id once it is committed. */
  add(newPet: NewPet): Promise<bigint> {
    const job: Job = { newPet, ...Promise.withResolvers<bigint>() }
    this.#queue(job)
    return job.promise
  }

  async #insertAll(batch: readonly Job[]): Promise<void> {
    const newPets = batch.map(({ newPet }) => newPet)
    try {
      const ids = await this.#pool.write((sql) => insert(sql, newPets))
      this.commits.commits += 1
      this.commits.writes += batch.length
      for (const [index, job] of batch.entries()) job.resolve(ids[index]!)
    } catch (error) {
      // One bad row must not fail the others, so each is inserted alone. After any other error the batch may be stored.
      if (batch.length > 1 && isBadRow(error)) await Promise.all(batch.map((job) => this.#insertAll([job])))
      else for (const job of batch) job.reject(error)
    }
  }
}

/** Prepares statements given as text. Composing one from fragments in the driver takes a quarter of the time of a page. */
export const PREPARED = { prepare: true }
const COLUMNS = PET_COLUMNS.join()
const INSERT_ONE = `INSERT INTO pets (${COLUMNS}) VALUES (${PET_COLUMNS.map((_, index) => `$${index + 1}`).join()}) RETURNING id`
const JSON_COLUMNS = FIELD_LIST.map(({ name, column }) => `"${name}" ${SQL_TYPES[COLUMN_TYPES[column]!]}`).join()

/** Assigns the ids before the insert, to know the id of each animal. Rows as JSON need no array types of the driver. */
const INSERT_MANY = `
  WITH made AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('pets', 'id')) AS id, ${COLUMNS}, place
    FROM ROWS FROM (json_to_recordset($1::text::json) AS (${JSON_COLUMNS}))
    WITH ORDINALITY AS pet (${COLUMNS}, place)
  ), stored AS (
    INSERT INTO pets (id, ${COLUMNS}) SELECT id, ${COLUMNS} FROM made
  )
  SELECT id FROM made ORDER BY place`

/** Inserts these animals; resolves with their ids in the same order. */
export async function insert(sql: Database, newPets: readonly NewPet[]): Promise<bigint[]> {
  const [text, values] = newPets.length === 1 ? [INSERT_ONE, valuesOf(newPets[0]!)] : [INSERT_MANY, [toJson(newPets)]]
  const rows = await sql.unsafe<{ id: bigint }[]>(text, values, PREPARED)
  return rows.map(({ id }) => id)
}
