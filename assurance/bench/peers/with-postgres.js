// PostgreSQL by postgres, which prepares statements by itself.
import postgres from 'postgres'

export function open(address) {
  const sql = postgres(address, {
    max: 10,
    types: { bigint: { to: 20, from: [20], serialize: String, parse: Number } },
  })
  return statementsOf(sql)
}

/** Bun's own client has the same interface. */
export function statementsOf(sql) {
  // Part of the text: with an unknown limit, PostgreSQL plans each page again.
  const literal = (limit) => sql.unsafe(String(Number(limit)))
  return {
    insert: async (name, categoryId, status) =>
      (
        await sql`INSERT INTO pets (name, "categoryId", status) VALUES (${name}, ${categoryId}, ${status}) RETURNING *`
      )[0],
    page: (before, limit) => sql`SELECT * FROM pets WHERE id < ${before} ORDER BY id DESC LIMIT ${literal(limit)}`,
    pageOfStatus: (status, before, limit) =>
      sql`SELECT * FROM pets WHERE status = ${status} AND id < ${before} ORDER BY id DESC LIMIT ${literal(limit)}`,
    one: async (id) => (await sql`SELECT * FROM pets WHERE id = ${id}`)[0],
  }
}
