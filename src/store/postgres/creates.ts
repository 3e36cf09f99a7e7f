// Creates that arrive in one turn of the event loop share one statement, so one round trip and one commit.
import type { NewPet } from '../../contract/pets.ts'
import { gatherTurns } from '../turns.ts'
import { toJson } from '../records.ts'
import type { CommitStats } from '../store.ts'
import type { Database } from './connection.ts'
import { isBadRow } from './failures.ts'
import type { Pool } from './pool.ts'

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
    try {
      const ids = await this.#pool.write((sql) =>
        insert(
          sql,
          batch.map(({ newPet }) => newPet),
        ),
      )
      this.commits.commits += 1
      this.commits.writes += batch.length
      for (const [index, job] of batch.entries()) job.resolve(ids[index]!)
    } catch (error) {
      // One bad row must not fail its neighbours, so each is tried alone. After any other error some may be stored.
      if (batch.length > 1 && isBadRow(error)) await this.#insertSingly(batch)
      else for (const job of batch) job.reject(error)
    }
  }

  async #insertSingly(batch: readonly Job[]): Promise<void> {
    await Promise.all(
      batch.map(({ newPet, resolve, reject }) =>
        this.#pool.write((sql) => insert(sql, [newPet])).then(([id]) => resolve(id!), reject),
      ),
    )
  }
}

/** Resolves with the ids of these animals, in their order. */
export async function insert(sql: Database, newPets: readonly NewPet[]): Promise<bigint[]> {
  const rows = newPets.length === 1 ? await insertOne(sql, newPets[0]!) : await insertMany(sql, newPets)
  return rows.map(({ id }) => id)
}

function insertOne(sql: Database, { name, categoryId, status }: NewPet) {
  return sql<{ id: bigint }[]>`
    INSERT INTO pets (name, category_id, status) VALUES (${name}, ${categoryId}, ${status}) RETURNING id`
}

/** Draws the ids before the insert, so that it is known which animal got which. JSON needs no array types of the driver. */
function insertMany(sql: Database, newPets: readonly NewPet[]) {
  return sql<{ id: bigint }[]>`
    WITH made AS MATERIALIZED (
      SELECT nextval(pg_get_serial_sequence('pets', 'id')) AS id, name, category_id, status, place
      FROM ROWS FROM (json_to_recordset(${toJson(newPets)}::text::json) AS (name TEXT, "categoryId" BIGINT, status TEXT))
      WITH ORDINALITY AS pet (name, category_id, status, place)
    ), stored AS (
      INSERT INTO pets (id, name, category_id, status) SELECT id, name, category_id, status FROM made
    )
    SELECT id FROM made ORDER BY place`
}
