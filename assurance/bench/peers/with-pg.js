// PostgreSQL by pg, with named statements, which the server prepares once for each connection.
import { Pool, types } from 'pg'

export function open(connectionString) {
  types.setTypeParser(types.builtins.INT8, Number)
  const pool = new Pool({ connectionString, max: 10 })
  const rows =
    (name, text) =>
    async (...values) =>
      (await pool.query({ name, text, values })).rows
  const row =
    (name, text) =>
    async (...values) =>
      (await pool.query({ name, text, values })).rows[0]
  // The limit is part of the text: with an unknown limit, PostgreSQL plans each page again.
  const page = (limit) => rows(`page${limit}`, `SELECT * FROM pets WHERE id < $1 ORDER BY id DESC LIMIT ${limit}`)
  const pageOfStatus = (limit) =>
    rows(`status${limit}`, `SELECT * FROM pets WHERE status = $1 AND id < $2 ORDER BY id DESC LIMIT ${limit}`)
  return {
    insert: row('insert', 'INSERT INTO pets (name, "categoryId", status) VALUES ($1, $2, $3) RETURNING *'),
    page: (before, limit) => page(limit)(before),
    pageOfStatus: (status, before, limit) => pageOfStatus(limit)(status, before),
    one: row('one', 'SELECT * FROM pets WHERE id = $1'),
  }
}
