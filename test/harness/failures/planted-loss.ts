// A fault that drills must detect: deletes the newest animal, as if its commit had been lost.
import { DatabaseSync } from 'node:sqlite'
import connectTo from 'postgres'

const LOSE = 'DELETE FROM pets WHERE id = (SELECT max(id) FROM pets)'

export async function loseNewest(database: string): Promise<void> {
  if (database.startsWith('sqlite:')) {
    using db = new DatabaseSync(database.slice('sqlite:'.length), { timeout: 5000, enableForeignKeyConstraints: false })
    db.exec(LOSE)
    return
  }
  const sql = connectTo(database, { max: 1, target_session_attrs: 'primary', onnotice: () => {} })
  await sql.unsafe(LOSE)
  await sql.end()
}
