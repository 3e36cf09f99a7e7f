// Facts about a database itself, in PostgreSQL.
import type { Facts } from '../facts.ts'
import type { Database } from './connection.ts'
import type { Pool } from './pool.ts'

export class PostgresFacts implements Facts {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  get(name: string): Promise<string | undefined> {
    return this.#pool.read((sql) => read(sql, name))
  }

  change(name: string, present: string | undefined, value: string | undefined): Promise<string | undefined> {
    return this.#pool.writeRepeatable(async (sql) => {
      if (value === undefined) await sql`DELETE FROM store_facts WHERE name = ${name} AND value = ${present ?? null}`
      else if (present === undefined)
        await sql`INSERT INTO store_facts (name, value) VALUES (${name}, ${value}) ON CONFLICT DO NOTHING`
      else await sql`UPDATE store_facts SET value = ${value} WHERE name = ${name} AND value = ${present}`
      return read(sql, name)
    })
  }
}

async function read(sql: Database, name: string): Promise<string | undefined> {
  const [fact] = await sql<{ value: string }[]>`SELECT value FROM store_facts WHERE name = ${name}`
  return fact?.value
}
