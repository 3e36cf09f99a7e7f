// Accounts, keys, usage and the audit trail in SQLite.
import type { DatabaseSync, SQLInputValue, StatementResultingChanges } from 'node:sqlite'
import {
  type AccountStore,
  ACTIVE_KEYS_MOST,
  asEvent,
  asKey,
  type AuditEvent,
  type RecordedEvent,
  CHANGES_OF_PET,
  type EventRow,
  FAILED_REQUESTS_KEPT,
  idInSubject,
  type KeyRow,
  type Session,
} from '../account-store.ts'
import { prepareExact, rememberStatements } from './database.ts'
import type { Transactions } from './transactions.ts'

const KEY = `id, account_id AS "accountId", name, environment, last_four AS "lastFour", created_at AS "createdAt",
  expires_at AS "expiresAt", revoked_at AS "revokedAt", last_used_at AS "lastUsedAt"`

/** Whether a key is active at the time that is bound to the parameter. */
const ACTIVE = 'revoked_at IS NULL AND coalesce(expires_at > ?, TRUE)'

export function sqliteAccounts(db: DatabaseSync, transactions: Transactions): AccountStore {
  const select = rememberStatements((text) => db.prepare(text))
  const write = rememberStatements((text) => prepareExact(db, text))
  const appendEvent = prepareAppendEvent(db)

  /** Returns work that makes a change and adds its audit event. It returns false, and adds no event, if nothing was changed. */
  const withEvent = (event: AuditEvent, change: () => StatementResultingChanges) => (): boolean => {
    if (Number(change().changes) === 0) return false
    appendEvent(event)
    return true
  }

  function first<T>(sql: string, ...values: SQLInputValue[]): Promise<T | undefined> {
    return transactions.read(() => select(sql).get(...values) as T | undefined)
  }

  function rows<T>(sql: string, ...values: SQLInputValue[]): Promise<T[]> {
    return transactions.read(() => select(sql).all(...values) as unknown as T[])
  }

  async function keys(which: string, ...values: SQLInputValue[]) {
    return (await rows<KeyRow>(`SELECT ${KEY} FROM api_keys ${which}`, ...values)).map(asKey)
  }

  async function events(which: string, ...values: SQLInputValue[]): Promise<RecordedEvent[]> {
    const found = await rows<EventRow>(
      `SELECT at, account_id AS "accountId", action, via, subject, detail
       FROM audit_events WHERE ${which} = ? ORDER BY id DESC LIMIT ?`,
      ...values,
    )
    return found.map(asEvent)
  }

  return {
    createKey({ id, accountId, name, hash, environment, lastFour, createdAt, expiresAt }, event) {
      const countActive = `SELECT count(*) AS active FROM api_keys WHERE account_id = ? AND ${ACTIVE}`
      const insert = `INSERT INTO api_keys (id, account_id, name, hash, environment, last_four, created_at, expires_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
      return transactions.write(() => {
        const owner = select('SELECT role FROM accounts WHERE id = ?').get(accountId)
        if (owner === undefined) return 'no account'
        if (owner['role'] === 'keyless') return 'no right'
        if (select('SELECT 1 FROM api_keys WHERE id = ?').get(id) !== undefined) return 'exists'
        const { active } = select(countActive).get(accountId, createdAt) as { active: number }
        if (active >= ACTIVE_KEYS_MOST) return 'too many'
        write(insert).run(id, accountId, name, hash, environment, lastFour, createdAt, expiresAt ?? null)
        appendEvent(event)
        return 'created'
      })
    },

    keyByHash: async (hash) => (await keys('WHERE hash = ?', hash))[0],

    keyById: async (id) => (await keys('WHERE id = ?', id))[0],

    listKeys: (accountId) =>
      accountId === undefined
        ? keys('ORDER BY created_at DESC, id')
        : keys('WHERE account_id = ? ORDER BY created_at DESC, id', accountId),

    pageOfKeys({ accountId, active, now, limit, after }) {
      const { createdAt, id } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
      const which = `WHERE account_id = ? AND ${active ? ACTIVE : `NOT (${ACTIVE})`}
        AND (created_at < ? OR (created_at = ? AND id > ?)) ORDER BY created_at DESC, id LIMIT ?`
      return keys(which, accountId, now, createdAt, createdAt, id, limit)
    },

    revokeKey(id, at, event) {
      const update = 'UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'
      return transactions.write(withEvent(event, () => write(update).run(at, id)))
    },

    renameKey: (id, name, event) =>
      transactions.write(withEvent(event, () => write('UPDATE api_keys SET name = ? WHERE id = ?').run(name, id))),

    recordUsage: (counts, lastUsed) =>
      transactions.writeBookkeeping(() => {
        const add = write(
          `INSERT INTO usage_counts (key_id, hour, operation, status, calls)
           SELECT id, ?, ?, ?, ? FROM api_keys WHERE id = ?
           ON CONFLICT DO UPDATE SET calls = calls + excluded.calls`,
        )
        for (const { keyId, hour, operation, status, calls } of counts) add.run(hour, operation, status, calls, keyId)
        const move = write('UPDATE api_keys SET last_used_at = ? WHERE id = ? AND coalesce(last_used_at, 0) < ?')
        for (const [keyId, at] of lastUsed) move.run(at, keyId, at)
      }),

    usageSince: (accountId, hour) =>
      rows(
        `SELECT u.hour, u.operation, u.status, sum(u.calls) AS calls
         FROM api_keys k JOIN usage_counts u ON u.key_id = k.id
         WHERE k.account_id = ? AND u.hour >= ?
         GROUP BY u.hour, u.operation, u.status ORDER BY u.hour, u.operation, u.status`,
        accountId,
        hour,
      ),

    callsSince: (keyIds, hour, bucketMs) =>
      rows(
        `SELECT key_id AS "keyId", hour - hour % ? AS hour, operation, status, sum(calls) AS calls FROM usage_counts
         WHERE key_id IN (SELECT value FROM json_each(?)) AND hour >= ? GROUP BY 1, 2, 3, 4`,
        bucketMs,
        JSON.stringify(keyIds),
        hour,
      ),

    recordFailures: (failed) =>
      transactions.writeBookkeeping(() => {
        const add = write(
          `INSERT INTO failed_requests (at, key_id, request_id, operation, status, code, message, account_id)
           SELECT ?, ?, ?, ?, ?, ?, ?, id FROM accounts WHERE id = ?`,
        )
        for (const { at, keyId, requestId, operation, status, code, message, accountId } of failed)
          add.run(at, keyId, requestId, operation, status, code, message, accountId)
        const trim = write(
          `DELETE FROM failed_requests WHERE account_id = ? AND id <=
             (SELECT id FROM failed_requests WHERE account_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
        )
        for (const accountId of new Set(failed.map((request) => request.accountId)))
          trim.run(accountId, accountId, FAILED_REQUESTS_KEPT)
      }),

    failedRequests: (accountId, limit) =>
      rows(
        `SELECT at, account_id AS "accountId", key_id AS "keyId", request_id AS "requestId", operation, status, code, message
         FROM failed_requests WHERE account_id = ? ORDER BY id DESC LIMIT ?`,
        accountId,
        limit,
      ),

    async purgeUsage(before) {
      await transactions.writeBookkeeping(() => write('DELETE FROM usage_counts WHERE hour < ?').run(before))
    },

    createSession({ tokenHash, accountId, createdAt, lastSeenAt }, passwordHash, event) {
      const insert = `INSERT INTO sessions (token_hash, account_id, created_at, last_seen_at)
        SELECT ?, id, ?, ? FROM accounts WHERE id = ? AND password_hash = ?`
      const values = [tokenHash, createdAt, lastSeenAt, accountId, passwordHash]
      return transactions.writeBookkeeping(withEvent(event, () => write(insert).run(...values)))
    },

    async sessionByHash(tokenHash) {
      const row = await first<Omit<Session, 'tokenHash'>>(
        `SELECT account_id AS "accountId", created_at AS "createdAt", last_seen_at AS "lastSeenAt"
         FROM sessions WHERE token_hash = ?`,
        tokenHash,
      )
      return row && { ...row, tokenHash }
    },

    async touchSession(tokenHash, lastSeenAt) {
      const update = 'UPDATE sessions SET last_seen_at = ? WHERE token_hash = ?'
      await transactions.writeBookkeeping(() => write(update).run(lastSeenAt, tokenHash))
    },

    endSession: (tokenHash, event) =>
      transactions.writeBookkeeping(
        withEvent(event, () => write('DELETE FROM sessions WHERE token_hash = ?').run(tokenHash)),
      ),

    async purgeSessions(createdBefore, seenBefore, seenAfter) {
      const remove = 'DELETE FROM sessions WHERE created_at < ? OR last_seen_at < ? OR last_seen_at > ?'
      await transactions.writeBookkeeping(() => write(remove).run(createdBefore, seenBefore, seenAfter))
    },

    appendEvent: (event) => transactions.writeBookkeeping(() => appendEvent(event)),

    auditTrail: (accountId, limit) => events('account_id', accountId, limit),

    changesOf: (petId, limit) => events(CHANGES_OF_PET, idInSubject(petId), limit),
  }
}

/** Returns a function that adds an event, to be called inside the transaction of the change that the event describes. */
export function prepareAppendEvent(db: DatabaseSync): (event: AuditEvent) => void {
  const insert = prepareExact(
    db,
    'INSERT INTO audit_events (at, account_id, action, via, subject, detail) VALUES (?, ?, ?, ?, ?, ?)',
  )
  return ({ at, accountId, action, via, subject, detail }) => {
    insert.run(at, accountId, action, via, subject, detail ?? null)
  }
}
