// Keys, usage, sessions and the audit trail, by statements that both engines understand.
import {
  type AccountStore,
  type ApiKey,
  type AuditEvent,
  type FailedRequest,
  FAILED_REQUESTS_KEPT,
  type HourlyCount,
  type KeyCalls,
  type Session,
} from './account-store.ts'
import { ACTIVE_KEYS_MOST } from '../contract/limits.ts'
import { changeWithEvent, eventStatement, plain, type Sql, type SqlValue, type Statement } from './sql.ts'

export const SELECT_KEYS = `SELECT id, account_id AS "accountId", name, environment, last_four AS "lastFour", created_at AS "createdAt",
  expires_at AS "expiresAt", last_used_at AS "lastUsedAt", revoked_at AS "revokedAt" FROM api_keys`

/** Whether a key is active at the time of the parameter. */
const activeAt = (parameter: string) => `revoked_at IS NULL AND coalesce(expires_at > ${parameter}, TRUE)`

export function accountStore(sql: Sql): AccountStore {
  const change = (event: AuditEvent, statement: Statement) => sql.transaction(() => changeWithEvent(event, statement))

  async function keys(which: string, ...values: SqlValue[]): Promise<ApiKey[]> {
    return (await sql.read(`${SELECT_KEYS} ${which}`, ...values)).map(plain) as ApiKey[]
  }

  return {
    /** Locks the account, so that its keys are created one after the other: each transaction must count the earlier keys. */
    createKey({ id, accountId, name, hash, environment, lastFour, createdAt, expiresAt }, event) {
      const countActive = `SELECT count(*) AS count FROM api_keys WHERE account_id = $1 AND ${activeAt('$2')}`
      const insert = `INSERT INTO api_keys (id, account_id, name, hash, environment, last_four, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
      return sql.transaction(function* () {
        const owner = yield [`SELECT role FROM accounts WHERE id = $1 ${sql.lock('FOR NO KEY UPDATE')}`, accountId]
        if (owner.count === 0) return 'no account'
        if (owner.rows[0]!['role'] === 'keyless') return 'no right'
        if ((yield ['SELECT 1 FROM api_keys WHERE id = $1', id]).count > 0) return 'exists'
        const active = yield [countActive, accountId, createdAt]
        if (Number(active.rows[0]!['count']) >= ACTIVE_KEYS_MOST) return 'too many'
        yield [insert, id, accountId, name, hash, environment, lastFour, createdAt, expiresAt ?? null]
        yield eventStatement(event)
        return 'created'
      })
    },

    keyByHash: async (hash) => (await keys('WHERE hash = $1', hash))[0],

    keyById: async (id) => (await keys('WHERE id = $1', id))[0],

    listKeys: (accountId) =>
      accountId === undefined
        ? keys('ORDER BY created_at DESC, id')
        : keys('WHERE account_id = $1 ORDER BY created_at DESC, id', accountId),

    pageOfKeys({ accountId, active, now, limit, after }) {
      const { createdAt, id } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
      const which = `WHERE ${active ? '' : 'NOT'} (${activeAt('$1')})
        AND (created_at < $2 OR (created_at = $2 AND id > $3)) ${accountId === undefined ? '' : 'AND account_id = $5'}
        ORDER BY created_at DESC, id LIMIT $4`
      return keys(which, now, createdAt, id, limit, ...(accountId === undefined ? [] : [accountId]))
    },

    revokeKey: (id, at, event) =>
      change(event, ['UPDATE api_keys SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL', at, id]),

    renameKey: ({ id, name: former }, name, event) =>
      change(event, ['UPDATE api_keys SET name = $1 WHERE id = $2 AND name = $3', name, id, former]),

    /**
     * Locks the accounts first, so that none is removed with its keys meanwhile, then the keys and then their counts,
     * both in the order of their keys: two instances can't deadlock.
     */
    async recordUsage(counts, lastUsed) {
      const uses = JSON.stringify(Array.from(lastUsed, ([id, at]) => ({ id, at })))
      const ids = JSON.stringify([...lastUsed.keys(), ...counts.map(({ keyId }) => keyId)].map((id) => ({ id })))
      const columns = '"keyId" TEXT, hour BIGINT, operation TEXT, status BIGINT, calls BIGINT'
      const lockAccounts = `SELECT 1 FROM accounts AS a JOIN api_keys AS k ON k.account_id = a.id
        WHERE k.id IN (SELECT id FROM ${sql.jsonTable('$1', 'used', 'id TEXT')}) ${sql.lock('FOR KEY SHARE OF a')}`
      const add = `INSERT INTO usage_counts (key_id, hour, operation, status, calls)
        SELECT k.id, c.hour, c.operation, c.status, sum(c.calls)
        FROM ${sql.jsonTable('$1', 'c', columns)} JOIN api_keys AS k ON k.id = c."keyId"
        GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
        ON CONFLICT (key_id, hour, operation, status) DO UPDATE SET calls = usage_counts.calls + excluded.calls`
      const move = `UPDATE api_keys SET last_used_at = used.at
        FROM (SELECT k.id, u.at FROM ${sql.jsonTable('$1', 'u', 'id TEXT, at BIGINT')} JOIN api_keys AS k ON k.id = u.id
          WHERE coalesce(k.last_used_at, 0) < u.at ORDER BY k.id ${sql.lock('FOR NO KEY UPDATE OF k')}) AS used
        WHERE api_keys.id = used.id`
      await sql.transaction(function* () {
        yield [lockAccounts, ids]
        yield [move, uses]
        yield [add, JSON.stringify(counts)]
      })
    },

    async usageSince(accountId, hour) {
      const select = `SELECT u.hour, u.operation, u.status, CAST(sum(u.calls) AS BIGINT) AS calls FROM api_keys AS k JOIN usage_counts AS u ON u.key_id = k.id
        WHERE k.account_id = $1 AND u.hour >= $2 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`
      return (await sql.read(select, accountId, hour)).map(plain) as HourlyCount[]
    },

    async callsSince(keyIds, hour) {
      const ids = JSON.stringify(keyIds.map((id) => ({ id })))
      const select = `SELECT key_id AS "keyId", operation, CAST(sum(calls) AS BIGINT) AS calls FROM usage_counts
        WHERE key_id IN (SELECT id FROM ${sql.jsonTable('$1', 'asked', 'id TEXT')}) AND hour >= $2 GROUP BY 1, 2`
      return (await sql.read(select, ids, hour)).map(plain) as KeyCalls[]
    },

    /**
     * Runs in one transaction, so that a retry after a failed removal adds no request twice. A retry after a lost answer to
     * COMMIT does: the console then lists the request twice.
     */
    async recordFailures(failed) {
      const requests = JSON.stringify(failed.map((request, position) => ({ ...request, position })))
      const columns = `position BIGINT, at BIGINT, "accountId" TEXT, "keyId" TEXT, "requestId" TEXT, operation TEXT, status BIGINT,
        code TEXT, message TEXT`
      const add = `INSERT INTO failed_requests (at, account_id, key_id, request_id, operation, status, code, message)
        SELECT f.at, a.id, f."keyId", f."requestId", f.operation, f.status, f.code, f.message
        FROM ${sql.jsonTable('$1', 'f', columns)} JOIN accounts AS a ON a.id = f."accountId"
        ORDER BY f.position ${sql.lock('FOR KEY SHARE OF a')}`
      // For one account at a time: for several, PostgreSQL reads the whole table. SQLite has no OFFSET without LIMIT.
      const trim = `DELETE FROM failed_requests WHERE id IN (SELECT id FROM failed_requests WHERE account_id = $1
        ORDER BY id DESC LIMIT 1000000 OFFSET ${FAILED_REQUESTS_KEPT} ${sql.lock('FOR UPDATE SKIP LOCKED')})`
      await sql.transaction(function* () {
        yield [add, requests]
        for (const accountId of new Set(failed.map((request) => request.accountId))) yield [trim, accountId]
      })
    },

    async failedRequests(accountId, limit) {
      const select = `SELECT at, account_id AS "accountId", key_id AS "keyId", request_id AS "requestId", operation, status, code, message
        FROM failed_requests WHERE account_id = $1 ORDER BY id DESC LIMIT $2`
      return (await sql.read(select, accountId, limit)).map(plain) as FailedRequest[]
    },

    /** Skips rows that another instance is removing, as does `purgeSessions`: two instances that wait could deadlock. */
    async purgeUsage(before) {
      const columns = 'key_id, hour, operation, status'
      const remove = `DELETE FROM usage_counts WHERE (${columns}) IN
        (SELECT ${columns} FROM usage_counts WHERE hour < $1 ${sql.lock('FOR UPDATE SKIP LOCKED')})`
      await sql.run([remove, before])
    },

    /** Waits, with FOR SHARE, for a password change in progress, and then compares with the new hash. */
    createSession({ tokenHash, accountId, createdAt, lastSeenAt }, passwordHash, event) {
      const insert = `INSERT INTO sessions (token_hash, account_id, created_at, last_seen_at)
        SELECT $1, id, CAST($2 AS BIGINT), CAST($3 AS BIGINT) FROM accounts
        WHERE id = $4 AND password_hash = $5 ${sql.lock('FOR SHARE')}`
      return change(event, [insert, tokenHash, createdAt, lastSeenAt, accountId, passwordHash])
    },

    async sessionByHash(tokenHash) {
      const select = `SELECT account_id AS "accountId", created_at AS "createdAt", last_seen_at AS "lastSeenAt"
        FROM sessions WHERE token_hash = $1`
      const [row] = await sql.read(select, tokenHash)
      return row && { tokenHash, ...(plain(row) as Omit<Session, 'tokenHash'>) }
    },

    async touchSession(tokenHash, lastSeenAt) {
      const update = 'UPDATE sessions SET last_seen_at = $1 WHERE token_hash = $2'
      await sql.run([update, lastSeenAt, tokenHash], { isRepeatable: true })
    },

    endSession: (tokenHash, event) => change(event, ['DELETE FROM sessions WHERE token_hash = $1', tokenHash]),

    async purgeSessions(createdBefore, seenBefore, seenAfter) {
      const remove = `DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions
        WHERE created_at < $1 OR last_seen_at < $2 OR last_seen_at > $3 ${sql.lock('FOR UPDATE SKIP LOCKED')})`
      await sql.run([remove, createdBefore, seenBefore, seenAfter], { isRepeatable: true })
    },

    async appendEvent(event) {
      await sql.run(eventStatement(event))
    },
  }
}
