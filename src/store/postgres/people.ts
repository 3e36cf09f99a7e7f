// What managers do with accounts, in PostgreSQL: roles, and links that they pass on.
import {
  type AccountLink,
  LACKS_MANAGER,
  LAST_SEEN,
  MANAGER_REMAINS,
  MAY_BE_REMOVED,
  type PeopleStore,
  type Person,
} from '../account-store.ts'
import { account, withEvent } from './accounts.ts'
import type { Database } from './connection.ts'
import type { Pool } from './pool.ts'

/** Makes changes of managers wait for each other, so that each counts those that the one before has left. */
async function lockManagers(sql: Database): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtext('petstore managers'))`
}

export function postgresPeople(pool: Pool): PeopleStore {
  return {
    async pageOfPeople({ limit, after }) {
      const { createdAt, id } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
      const found = await pool.read(
        (sql) => sql<Person[]>`
        SELECT ${account(sql)}, ${sql.unsafe(LAST_SEEN)}::float8 AS "lastSeenAt" FROM accounts
        WHERE (created_at, id) < (${createdAt}, ${id}) ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
      )
      return [...found]
    },

    setRole: ({ id, role: expected }, role, event) =>
      pool.writeTransaction(async (sql) => {
        await lockManagers(sql)
        const update = sql`
          UPDATE accounts SET role = ${role}
          WHERE id = ${id} AND role = ${expected} AND (${role} = 'manager' OR ${sql.unsafe(MANAGER_REMAINS)})`
        const isChanged = await withEvent(sql, event, update)
        if (!isChanged || role !== 'keyless') return isChanged
        await sql`
          WITH revoked AS (
            UPDATE api_keys SET revoked_at = ${event.at} WHERE account_id = ${id} AND revoked_at IS NULL RETURNING *)
          INSERT INTO audit_events (at, account_id, action, via, subject)
          SELECT revoked_at, account_id, 'key.revoked', ${event.via}, name || ' (' || id || ')' FROM revoked ORDER BY created_at`
        return true
      }),

    removeAccount: (accountId, event, role) =>
      pool.writeTransaction(async (sql) => {
        await lockManagers(sql)
        const remove = sql`
          DELETE FROM accounts WHERE id = ${accountId} AND role = coalesce(${role ?? null}, role) AND ${sql.unsafe(MAY_BE_REMOVED)}`
        return withEvent(sql, event, remove)
      }),

    async lacksManager() {
      const [row] = await pool.read((sql) => sql<{ lacks: boolean }[]>`SELECT ${sql.unsafe(LACKS_MANAGER)} AS lacks`)
      return row!.lacks
    },

    createLink: ({ hash, accountId, madeBy, expiresAt }, event) =>
      pool.write((sql) =>
        withEvent(
          sql,
          event,
          sql`
          INSERT INTO account_links (hash, account_id, made_by, expires_at)
          SELECT ${hash}, ${accountId}, id, ${expiresAt}::bigint FROM accounts WHERE id = ${madeBy} AND role = 'manager'`,
        ),
      ),

    async linkByHash(hash, now) {
      const [found] = await pool.read(
        (sql) => sql<(AccountLink & { maker: string })[]>`
        SELECT hash, account_id AS "accountId", made_by AS "madeBy", expires_at::float8 AS "expiresAt", email AS maker
        FROM account_links JOIN accounts ON id = made_by AND role = 'manager'
        WHERE hash = ${hash} AND expires_at > ${now}`,
      )
      return found && { ...found }
    },

    async purgeLinks(before) {
      await pool.writeRepeatable((sql) => sql`DELETE FROM account_links WHERE expires_at <= ${before}`)
    },
  }
}
