// Runs on the bare PostgreSQL driver what the operations need, in its simplest form: one statement for each request.
// The service puts the limit of a page into the text, and inserts the animals that arrive together with one statement.
import postgres from 'postgres'

export type DriverWork = 'list-20' | 'list-cold' | 'get' | 'create'

export interface Driver {
  run: Record<DriverWork, () => Promise<unknown>>
  end(): Promise<void>
}

/** Opens the driver. Reads int8 as a number, which is cheapest. */
export function openDriver(url: string, poolSize: number): Driver {
  const bigint = { to: 20, from: [20], serialize: String, parse: Number }
  const sql = postgres(url, { max: poolSize, fetch_types: false, types: { bigint }, onnotice: () => {} })
  let below = 2_000_000
  return {
    run: {
      'list-20': () =>
        sql`SELECT id, name, category_id AS "categoryId", status FROM pets WHERE TRUE ORDER BY id DESC LIMIT ${21}`,
      'list-cold': () => {
        below += 1
        return sql`SELECT id, name, category_id AS "categoryId", status FROM pets WHERE id < ${below} ORDER BY id DESC LIMIT ${21}`
      },
      get: () => sql`SELECT id, name, category_id AS "categoryId", status FROM pets WHERE id = ${500}`,
      create: () =>
        sql`INSERT INTO pets (name, category_id, status) VALUES (${'Rex the Brave'}, ${3}, ${'available'}) RETURNING id`,
    },
    end: () => sql.end(),
  }
}
