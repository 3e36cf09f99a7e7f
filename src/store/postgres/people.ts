// People in PostgreSQL.
import { peopleStore, type PeopleStore, type Statement } from '../people-store.ts'
import { insertEvent } from './accounts.ts'
import type { Pool } from './pool.ts'

export function postgresPeople(pool: Pool): PeopleStore {
  return peopleStore(
    // There may be many accounts.
    (text, values) => pool.rows(text, values, false),
    (event, first, ...others) =>
      pool.writeTransaction(async (sql) => {
        const run = ([text, ...values]: Statement) => sql.unsafe(text, values)
        // Each sees what the one before has left: the managers that remain, and a link that was used.
        await sql`SELECT pg_advisory_xact_lock(hashtext('petstore people'))`
        if ((await run(first)).count === 0) return false
        for (const statement of others) await run(statement)
        await insertEvent(sql, event)
        return true
      }),
  )
}
