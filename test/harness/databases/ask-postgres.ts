// Runs one statement on a PostgreSQL server, on a new connection.
import connectTo from 'postgres'

export async function askPostgres(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const sql = connectTo(url, { max: 1, onnotice: () => {} })
  try {
    return await sql.unsafe(statement)
  } finally {
    await sql.end({ timeout: 1 })
  }
}
