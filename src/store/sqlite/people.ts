// What managers do with accounts, in SQLite: roles, and links that they pass on.
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import {
  type AccountLink,
  type AuditEvent,
  LACKS_MANAGER,
  LAST_SEEN,
  MANAGER_REMAINS,
  MAY_BE_REMOVED,
  type PeopleStore,
  type Person,
} from '../account-store.ts'
import { ACCOUNT, prepareAppendEvent } from './accounts.ts'
import { prepareExact, rememberStatements } from './database.ts'
import type { Transactions } from './transactions.ts'

export function sqlitePeople(db: DatabaseSync, transactions: Transactions): PeopleStore {
  const select = rememberStatements((text) => db.prepare(text))
  const write = rememberStatements((text) => prepareExact(db, text))
  const appendEvent = prepareAppendEvent(db)

  /** Makes a change and adds its audit event; returns false, without an event, if nothing was changed. */
  function change(event: AuditEvent, sql: string, ...values: SQLInputValue[]): boolean {
    const isChanged = Number(write(sql).run(...values).changes) > 0
    if (isChanged) appendEvent(event)
    return isChanged
  }

  return {
    async pageOfPeople({ limit, after }) {
      const page = `SELECT ${ACCOUNT}, ${LAST_SEEN} AS "lastSeenAt" FROM accounts
        WHERE (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?`
      const { createdAt, id } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
      return transactions.read(() => select(page).all(createdAt, id, limit) as unknown as Person[])
    },

    setRole: ({ id, role: expected }, role, event) =>
      transactions.write(() => {
        const update = `UPDATE accounts SET role = ?1 WHERE id = ? AND role = ? AND (?1 = 'manager' OR ${MANAGER_REMAINS})`
        const isChanged = change(event, update, role, id, expected)
        if (!isChanged || role !== 'keyless') return isChanged
        write(`INSERT INTO audit_events (at, account_id, action, via, subject)
          SELECT ?, account_id, 'key.revoked', ?, name || ' (' || id || ')' FROM api_keys
          WHERE account_id = ? AND revoked_at IS NULL ORDER BY created_at`).run(event.at, event.via, id)
        write('UPDATE api_keys SET revoked_at = ? WHERE account_id = ? AND revoked_at IS NULL').run(event.at, id)
        return true
      }),

    removeAccount: (accountId, event, role) =>
      transactions.write(() => {
        const remove = `DELETE FROM accounts WHERE id = ? AND role = coalesce(?, role) AND ${MAY_BE_REMOVED}`
        return change(event, remove, accountId, role ?? null)
      }),

    lacksManager: () => transactions.read(() => select(`SELECT ${LACKS_MANAGER} AS lacks`).get()!['lacks'] === 1),

    createLink: ({ hash, accountId, madeBy, expiresAt }, event) =>
      transactions.writeBookkeeping(() => {
        const insert = `INSERT INTO account_links (hash, account_id, made_by, expires_at)
          SELECT ?, ?, id, ? FROM accounts WHERE id = ? AND role = 'manager'`
        return change(event, insert, hash, accountId, expiresAt, madeBy)
      }),

    linkByHash(hash, now) {
      const find = `SELECT hash, account_id AS "accountId", made_by AS "madeBy", expires_at AS "expiresAt", email AS maker
        FROM account_links JOIN accounts ON id = made_by AND role = 'manager' WHERE hash = ? AND expires_at > ?`
      return transactions.read(() => select(find).get(hash, now) as (AccountLink & { maker: string }) | undefined)
    },

    async purgeLinks(before) {
      await transactions.writeBookkeeping(() => write('DELETE FROM account_links WHERE expires_at <= ?').run(before))
    },
  }
}
