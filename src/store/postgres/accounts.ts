// Accounts, keys, usage and the audit trail in PostgreSQL.
import type { Fragment } from 'postgres'
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
} from '../account-store.ts'
import type { Database } from './connection.ts'
import type { Pool } from './pool.ts'

type Part = (sql: Database) => Fragment

/** Times are read as float8, which is exact for milliseconds and becomes a plain number. */
const apiKey: Part = (sql) => sql`
  id, account_id AS "accountId", name, environment, last_four AS "lastFour", created_at::float8 AS "createdAt",
  expires_at::float8 AS "expiresAt", revoked_at::float8 AS "revokedAt", last_used_at::float8 AS "lastUsedAt"`

/** PostgreSQL can neither store text with U+0000 nor compare with it, so a look-up by such text finds nothing. */
const isUnknownText = (text: string): boolean => text.includes('\0')

const active = (sql: Database, now: number): Fragment => sql`revoked_at IS NULL AND coalesce(expires_at > ${now}, TRUE)`

export function postgresAccounts(pool: Pool): AccountStore {
  /** Makes a change and adds its audit event; resolves with false, without an event, if nothing was changed. */
  const change = (event: AuditEvent, part: Part) => pool.write((sql) => withEvent(sql, event, part(sql)))

  function rows<T>(select: Part): Promise<T[]> {
    return pool.read(async (sql) => [...(await (select(sql) as unknown as Promise<T[]>))])
  }

  async function first<T>(select: Part): Promise<T | undefined> {
    return (await rows<T>(select))[0]
  }

  async function keys(which: Part) {
    return (await rows<KeyRow>((sql) => sql`SELECT ${apiKey(sql)} FROM api_keys ${which(sql)}`)).map(asKey)
  }

  async function events(which: Part, limit: number): Promise<RecordedEvent[]> {
    const found = await rows<EventRow>(
      (sql) => sql`
      SELECT at::float8 AS at, account_id AS "accountId", action, via, subject, detail
      FROM audit_events WHERE ${which(sql)} ORDER BY id DESC LIMIT ${limit}`,
    )
    return found.map(asEvent)
  }

  return {
    /** Locks the account, so that its keys are created one after the other: each transaction must count the earlier keys. */
    createKey: ({ id, accountId, name, hash, environment, lastFour, createdAt, expiresAt }, event) =>
      pool.writeTransaction(async (sql) => {
        const [owner] = await sql`SELECT role FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`
        if (owner === undefined) return 'no account'
        if (owner['role'] === 'keyless') return 'no right'
        const [present] = await sql<{ exists: boolean; active: number }[]>`
          SELECT EXISTS (SELECT FROM api_keys WHERE id = ${id}) AS exists, count(*)::float8 AS active
          FROM api_keys WHERE account_id = ${accountId} AND ${active(sql, createdAt)}`
        if (present!.exists) return 'exists'
        if (present!.active >= ACTIVE_KEYS_MOST) return 'too many'
        const insert = sql`
          INSERT INTO api_keys (id, account_id, name, hash, environment, last_four, created_at, expires_at)
          VALUES (${id}, ${accountId}, ${name}, ${hash}, ${environment}, ${lastFour}, ${createdAt}, ${expiresAt ?? null})`
        await withEvent(sql, event, insert)
        return 'created'
      }),

    keyByHash: async (hash) => (await keys((sql) => sql`WHERE hash = ${hash}`))[0],

    async keyById(id) {
      if (isUnknownText(id)) return undefined
      return (await keys((sql) => sql`WHERE id = ${id}`))[0]
    },

    listKeys: (accountId) =>
      keys((sql) => {
        const ofAccount = accountId === undefined ? sql`` : sql`WHERE account_id = ${accountId}`
        return sql`${ofAccount} ORDER BY created_at DESC, id`
      }),

    pageOfKeys({ accountId, active: isActive, now, limit, after }) {
      const { createdAt, id } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
      return keys(
        (sql) => sql`
        WHERE account_id = ${accountId} AND ${isActive ? active(sql, now) : sql`NOT (${active(sql, now)})`}
          AND (created_at < ${createdAt} OR (created_at = ${createdAt} AND id > ${id}))
        ORDER BY created_at DESC, id LIMIT ${limit}`,
      )
    },

    revokeKey: (id, at, event) =>
      change(event, (sql) => sql`UPDATE api_keys SET revoked_at = ${at} WHERE id = ${id} AND revoked_at IS NULL`),

    renameKey: (id, name, event) => change(event, (sql) => sql`UPDATE api_keys SET name = ${name} WHERE id = ${id}`),

    /**
     * Locks the accounts first, so that none is removed with its keys meanwhile, then rows in the order of their keys, so
     * that two instances can't deadlock.
     */
    async recordUsage(counts, lastUsed) {
      const uses = Array.from(lastUsed, ([id, at]) => ({ id, at }))
      const ids = JSON.stringify([...lastUsed.keys(), ...counts.map(({ keyId }) => keyId)])
      await pool.write(
        (sql) => sql`
        WITH present AS MATERIALIZED (
          SELECT k.id FROM api_keys k JOIN accounts a ON a.id = k.account_id
          WHERE k.id IN (SELECT json_array_elements_text(${ids}::text::json)) FOR KEY SHARE OF a
        ), counted AS (
          INSERT INTO usage_counts (key_id, hour, operation, status, calls)
          SELECT k.id, c.hour, c.operation, c.status, sum(c.calls)
          FROM json_to_recordset(${JSON.stringify(counts)}::text::json)
            AS c ("keyId" TEXT, hour BIGINT, operation TEXT, status INTEGER, calls BIGINT)
          JOIN present k ON k.id = c."keyId"
          GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
          ON CONFLICT (key_id, hour, operation, status) DO UPDATE SET calls = usage_counts.calls + excluded.calls
        )
        UPDATE api_keys SET last_used_at = used.at
        FROM (
          SELECT k.id, u.at FROM present JOIN api_keys k USING (id)
          JOIN json_to_recordset(${JSON.stringify(uses)}::text::json) AS u (id TEXT, at BIGINT) ON u.id = k.id
          WHERE coalesce(k.last_used_at, 0) < u.at ORDER BY k.id FOR NO KEY UPDATE OF k
        ) AS used
        WHERE api_keys.id = used.id`,
      )
    },

    usageSince: (accountId, hour) =>
      rows(
        (sql) => sql`
        SELECT u.hour::float8 AS hour, u.operation, u.status, sum(u.calls)::float8 AS calls
        FROM usage_counts u JOIN api_keys k ON k.id = u.key_id
        WHERE k.account_id = ${accountId} AND u.hour >= ${hour}
        GROUP BY u.hour, u.operation, u.status ORDER BY u.hour, u.operation, u.status`,
      ),

    callsSince: (keyIds, hour, bucketMs) =>
      rows(
        (sql) => sql`
        SELECT key_id AS "keyId", (hour - hour % ${bucketMs})::float8 AS hour, operation, status, sum(calls)::float8 AS calls
        FROM usage_counts
        WHERE key_id IN (SELECT json_array_elements_text(${JSON.stringify(keyIds)}::text::json)) AND hour >= ${hour}
        GROUP BY 1, 2, 3, 4`,
      ),

    /**
     * Runs in one transaction, so that a retry after a failed removal adds no request twice. A retry after a lost answer to
     * COMMIT does: the console then lists the request twice.
     */
    recordFailures(failed) {
      const requests = JSON.stringify(failed.map((request, position) => ({ ...request, position })))
      const accountIds = JSON.stringify(Array.from(new Set(failed.map(({ accountId }) => accountId))))
      return pool.writeTransaction(async (sql) => {
        await sql`
          INSERT INTO failed_requests (at, account_id, key_id, request_id, operation, status, code, message)
          SELECT f.at, a.id, f."keyId", f."requestId", f.operation, f.status, f.code, f.message
          FROM json_to_recordset(${requests}::text::json) AS f (position INTEGER, at BIGINT, "accountId" TEXT, "keyId" TEXT,
            "requestId" TEXT, operation TEXT, status INTEGER, code TEXT, message TEXT)
          JOIN accounts a ON a.id = f."accountId" ORDER BY f.position FOR KEY SHARE OF a`
        await sql`
          DELETE FROM failed_requests WHERE id IN (
            SELECT surplus.id FROM json_array_elements_text(${accountIds}::text::json) AS a (id)
            CROSS JOIN LATERAL (
              SELECT id FROM failed_requests WHERE account_id = a.id
              ORDER BY id DESC OFFSET ${FAILED_REQUESTS_KEPT} FOR UPDATE SKIP LOCKED) AS surplus)`
      })
    },

    failedRequests: (accountId, limit) =>
      rows(
        (sql) => sql`
        SELECT at::float8 AS at, account_id AS "accountId", key_id AS "keyId", request_id AS "requestId", operation, status, code, message
        FROM failed_requests WHERE account_id = ${accountId} ORDER BY id DESC LIMIT ${limit}`,
      ),

    /** Skips rows that another instance is removing, as does `purgeSessions`: two instances that wait could deadlock. */
    async purgeUsage(before) {
      await pool.write(
        (sql) => sql`
        DELETE FROM usage_counts WHERE (key_id, hour, operation, status) IN
          (SELECT key_id, hour, operation, status FROM usage_counts WHERE hour < ${before} FOR UPDATE SKIP LOCKED)`,
      )
    },

    /** Waits, with FOR SHARE, for a password change in progress, and then compares with the new hash. */
    createSession: ({ tokenHash, accountId, createdAt, lastSeenAt }, passwordHash, event) =>
      change(
        event,
        (sql) => sql`
        INSERT INTO sessions (token_hash, account_id, created_at, last_seen_at)
        SELECT ${tokenHash}::bytea, id, ${createdAt}::bigint, ${lastSeenAt}::bigint
        FROM accounts WHERE id = ${accountId} AND password_hash = ${passwordHash} FOR SHARE`,
      ),

    sessionByHash: (tokenHash) =>
      first(
        (sql) => sql`
        SELECT token_hash AS "tokenHash", account_id AS "accountId",
          created_at::float8 AS "createdAt", last_seen_at::float8 AS "lastSeenAt"
        FROM sessions WHERE token_hash = ${tokenHash}`,
      ),

    async touchSession(tokenHash, lastSeenAt) {
      await pool.writeRepeatable(
        (sql) => sql`UPDATE sessions SET last_seen_at = ${lastSeenAt} WHERE token_hash = ${tokenHash}`,
      )
    },

    endSession: (tokenHash, event) => change(event, (sql) => sql`DELETE FROM sessions WHERE token_hash = ${tokenHash}`),

    async purgeSessions(createdBefore, seenBefore, seenAfter) {
      await pool.writeRepeatable(
        (sql) => sql`
        DELETE FROM sessions WHERE token_hash IN
          (SELECT token_hash FROM sessions WHERE created_at < ${createdBefore} OR last_seen_at < ${seenBefore}
             OR last_seen_at > ${seenAfter} FOR UPDATE SKIP LOCKED)`,
      )
    },

    async appendEvent(event) {
      await pool.write((sql) => insertEvent(sql, event))
    },

    auditTrail: (accountId, limit) => events((sql) => sql`account_id = ${accountId}`, limit),

    changesOf: (petId, limit) => events((sql) => sql`${sql.unsafe(CHANGES_OF_PET)} = ${idInSubject(petId)}`, limit),
  }
}

/** Makes a change and adds its audit event in one statement; resolves with false, without an event, if nothing was changed. */
export async function withEvent(sql: Database, event: AuditEvent, change: Fragment): Promise<boolean> {
  const { count } = await sql`WITH changed AS (${change} RETURNING 1) ${insertEvent(sql, event)} FROM changed`
  return count > 0
}

/** Ends in a SELECT, so that the caller can append a FROM. */
export function insertEvent(sql: Database, { at, accountId, action, via, subject, detail }: AuditEvent) {
  return sql`
    INSERT INTO audit_events (at, account_id, action, via, subject, detail)
    SELECT ${at}::bigint, ${accountId}, ${action}, ${via}, ${subject}, ${detail ?? null}::text`
}
