// Accounts, keys, usage and the audit trail in PostgreSQL.
import type { Fragment } from 'postgres'
import {
  type Account,
  type AccountStore,
  ACTIVE_KEYS_MOST,
  type ApiKey,
  asEvent,
  asKey,
  type AuditEvent,
  CHANGES_OF_PET,
  type EventRow,
  FAILED_REQUESTS_KEPT,
  foldEmail,
  idInSubject,
  type KeyRow,
} from '../account-store.ts'
import type { FailedRequest, HourlyCount, KeyCalls, KeyQuery, Session, UsageCount } from '../account-store.ts'
import type { Database } from './connection.ts'
import type { Pool } from './pool.ts'

/** Times are read as float8, which is exact for milliseconds and becomes a plain number. */
const account = (sql: Database): Fragment =>
  sql`id, email, password_hash AS "passwordHash", created_at::float8 AS "createdAt"`
const apiKey = (sql: Database): Fragment => sql`
  id, account_id AS "accountId", name, environment, last_four AS "lastFour", created_at::float8 AS "createdAt",
  expires_at::float8 AS "expiresAt", revoked_at::float8 AS "revokedAt", last_used_at::float8 AS "lastUsedAt"`

/** PostgreSQL can neither store text with U+0000 nor compare with it, so a look-up by such text finds nothing. */
const isUnknownText = (text: string): boolean => text.includes('\0')

const active = (sql: Database, now: number): Fragment => sql`revoked_at IS NULL AND coalesce(expires_at > ${now}, TRUE)`

export class PostgresAccounts implements AccountStore {
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  createAccount({ id, email, passwordHash, createdAt }: Account, event: AuditEvent): Promise<boolean> {
    return this.#change(
      event,
      (sql) => sql`
      INSERT INTO accounts (id, email, email_folded, password_hash, created_at)
      VALUES (${id}, ${email}, ${foldEmail(email)}, ${passwordHash}, ${createdAt}) ON CONFLICT (email_folded) DO NOTHING`,
    )
  }

  async accountByEmail(email: string): Promise<Account | undefined> {
    if (isUnknownText(email)) return undefined
    return this.#first((sql) => sql`SELECT ${account(sql)} FROM accounts WHERE email_folded = ${foldEmail(email)}`)
  }

  accountById(id: string): Promise<Account | undefined> {
    return this.#first((sql) => sql`SELECT ${account(sql)} FROM accounts WHERE id = ${id}`)
  }

  listAccounts(): Promise<Account[]> {
    return this.#rows((sql) => sql`SELECT ${account(sql)} FROM accounts ORDER BY created_at, id`)
  }

  /** Runs two statements: only the second one sees a session that was created while the first waited for the account's row. */
  setPassword(accountId: string, passwordHash: string, event: AuditEvent, instead?: string): Promise<boolean> {
    return this.#transaction(async (sql) => {
      const changed = await withEvent(
        sql,
        event,
        sql`
        UPDATE accounts SET password_hash = ${passwordHash}
        WHERE id = ${accountId} AND password_hash = coalesce(${instead ?? null}, password_hash)`,
      )
      if (changed) await sql`DELETE FROM sessions WHERE account_id = ${accountId}`
      return changed
    })
  }

  removeAccount(accountId: string, event: AuditEvent): Promise<boolean> {
    return this.#change(event, (sql) => sql`DELETE FROM accounts WHERE id = ${accountId}`)
  }

  /** Locks the account, so that its keys are created one after the other: each transaction must count the earlier keys. */
  createKey(key: ApiKey & { hash: Buffer }, event: AuditEvent): Promise<'created' | 'exists' | 'too many'> {
    const { id, accountId, name, hash, environment, lastFour, createdAt, expiresAt } = key
    return this.#transaction(async (sql) => {
      await sql`SELECT 1 FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`
      const [present] = await sql<{ exists: boolean; active: number }[]>`
        SELECT EXISTS (SELECT FROM api_keys WHERE id = ${id}) AS exists, count(*)::float8 AS active
        FROM api_keys WHERE account_id = ${accountId} AND ${active(sql, createdAt)}`
      if (present!.exists) return 'exists'
      if (present!.active >= ACTIVE_KEYS_MOST) return 'too many'
      await withEvent(
        sql,
        event,
        sql`
        INSERT INTO api_keys (id, account_id, name, hash, environment, last_four, created_at, expires_at)
        VALUES (${id}, ${accountId}, ${name}, ${hash}, ${environment}, ${lastFour}, ${createdAt}, ${expiresAt ?? null})`,
      )
      return 'created'
    })
  }

  keyByHash(hash: Buffer): Promise<ApiKey | undefined> {
    return this.#first<KeyRow>((sql) => sql`SELECT ${apiKey(sql)} FROM api_keys WHERE hash = ${hash}`).then(asKey)
  }

  async keyById(id: string): Promise<ApiKey | undefined> {
    if (isUnknownText(id)) return undefined
    return this.#first<KeyRow>((sql) => sql`SELECT ${apiKey(sql)} FROM api_keys WHERE id = ${id}`).then(asKey)
  }

  async listKeys(accountId?: string): Promise<ApiKey[]> {
    const rows = await this.#rows<KeyRow>((sql) => {
      const ofAccount = accountId === undefined ? sql`` : sql`WHERE account_id = ${accountId}`
      return sql`SELECT ${apiKey(sql)} FROM api_keys ${ofAccount} ORDER BY created_at DESC, id`
    })
    return rows.map((row) => asKey(row)!)
  }

  async pageOfKeys({ accountId, active: isActive, now, limit, after }: KeyQuery): Promise<ApiKey[]> {
    const { createdAt, id } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
    const rows = await this.#rows<KeyRow>(
      (sql) => sql`
      SELECT ${apiKey(sql)} FROM api_keys
      WHERE account_id = ${accountId} AND ${isActive ? active(sql, now) : sql`NOT (${active(sql, now)})`}
        AND (created_at < ${createdAt} OR (created_at = ${createdAt} AND id > ${id}))
      ORDER BY created_at DESC, id LIMIT ${limit}`,
    )
    return rows.map((row) => asKey(row)!)
  }

  revokeKey(id: string, at: number, event: AuditEvent): Promise<boolean> {
    return this.#change(
      event,
      (sql) => sql`UPDATE api_keys SET revoked_at = ${at} WHERE id = ${id} AND revoked_at IS NULL`,
    )
  }

  renameKey(id: string, name: string, event: AuditEvent): Promise<boolean> {
    return this.#change(event, (sql) => sql`UPDATE api_keys SET name = ${name} WHERE id = ${id}`)
  }

  /** Locks rows in the order of their keys, so that two instances can't deadlock. */
  async recordUsage(counts: readonly UsageCount[], lastUsed: ReadonlyMap<string, number>): Promise<void> {
    const uses = Array.from(lastUsed, ([id, at]) => ({ id, at }))
    await this.#pool.write(
      (sql) => sql`
      WITH counted AS (
        INSERT INTO usage_counts (key_id, hour, operation, status, calls)
        SELECT k.id, c.hour, c.operation, c.status, sum(c.calls)
        FROM json_to_recordset(${JSON.stringify(counts)}::text::json)
          AS c ("keyId" TEXT, hour BIGINT, operation TEXT, status INTEGER, calls BIGINT)
        JOIN api_keys k ON k.id = c."keyId"
        GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
        ON CONFLICT (key_id, hour, operation, status) DO UPDATE SET calls = usage_counts.calls + excluded.calls
      )
      UPDATE api_keys SET last_used_at = used.at
      FROM (
        SELECT k.id, u.at FROM api_keys k
        JOIN json_to_recordset(${JSON.stringify(uses)}::text::json) AS u (id TEXT, at BIGINT) ON u.id = k.id
        WHERE coalesce(k.last_used_at, 0) < u.at ORDER BY k.id FOR NO KEY UPDATE OF k
      ) AS used
      WHERE api_keys.id = used.id`,
    )
  }

  usageSince(accountId: string, hour: number): Promise<HourlyCount[]> {
    return this.#rows(
      (sql) => sql`
      SELECT u.hour::float8 AS hour, u.operation, u.status, sum(u.calls)::float8 AS calls
      FROM usage_counts u JOIN api_keys k ON k.id = u.key_id
      WHERE k.account_id = ${accountId} AND u.hour >= ${hour}
      GROUP BY u.hour, u.operation, u.status ORDER BY u.hour, u.operation, u.status`,
    )
  }

  callsSince(keyIds: readonly string[], hour: number): Promise<KeyCalls[]> {
    return this.#rows(
      (sql) => sql`
      SELECT key_id AS "keyId", operation, sum(calls)::float8 AS calls FROM usage_counts
      WHERE key_id IN (SELECT json_array_elements_text(${JSON.stringify(keyIds)}::text::json)) AND hour >= ${hour}
      GROUP BY key_id, operation`,
    )
  }

  async recordFailures(failed: readonly FailedRequest[]): Promise<void> {
    const rows = JSON.stringify(failed.map((request, position) => ({ ...request, position })))
    await this.#pool.write(async (sql) => {
      await sql`
        INSERT INTO failed_requests (at, account_id, key_id, request_id, operation, status, code, message)
        SELECT f.at, a.id, f."keyId", f."requestId", f.operation, f.status, f.code, f.message
        FROM json_to_recordset(${rows}::text::json) AS f (position INTEGER, at BIGINT, "accountId" TEXT, "keyId" TEXT,
          "requestId" TEXT, operation TEXT, status INTEGER, code TEXT, message TEXT)
        JOIN accounts a ON a.id = f."accountId" ORDER BY f.position`
      for (const accountId of new Set(failed.map((request) => request.accountId))) {
        await sql`
          DELETE FROM failed_requests WHERE id IN (
            SELECT id FROM failed_requests WHERE account_id = ${accountId}
            ORDER BY id DESC OFFSET ${FAILED_REQUESTS_KEPT} FOR UPDATE SKIP LOCKED)`
      }
    })
  }

  failedRequests(accountId: string, limit: number): Promise<FailedRequest[]> {
    return this.#rows(
      (sql) => sql`
      SELECT at::float8 AS at, account_id AS "accountId", key_id AS "keyId", request_id AS "requestId", operation, status, code, message
      FROM failed_requests WHERE account_id = ${accountId} ORDER BY id DESC LIMIT ${limit}`,
    )
  }

  /** Skips rows that another instance is removing, as does `purgeSessions`: two instances that wait could deadlock. */
  async purgeUsage(before: number): Promise<void> {
    await this.#pool.write(
      (sql) => sql`
      DELETE FROM usage_counts WHERE (key_id, hour, operation, status) IN
        (SELECT key_id, hour, operation, status FROM usage_counts WHERE hour < ${before} FOR UPDATE SKIP LOCKED)`,
    )
  }

  /** Waits, with FOR SHARE, for a password change in progress, and then compares with the new hash. */
  createSession(
    { tokenHash, accountId, createdAt, lastSeenAt }: Session,
    passwordHash: string,
    event: AuditEvent,
  ): Promise<boolean> {
    return this.#change(
      event,
      (sql) => sql`
      INSERT INTO sessions (token_hash, account_id, created_at, last_seen_at)
      SELECT ${tokenHash}::bytea, id, ${createdAt}::bigint, ${lastSeenAt}::bigint
      FROM accounts WHERE id = ${accountId} AND password_hash = ${passwordHash} FOR SHARE`,
    )
  }

  sessionByHash(tokenHash: Uint8Array): Promise<Session | undefined> {
    return this.#first(
      (sql) => sql`
      SELECT token_hash AS "tokenHash", account_id AS "accountId",
        created_at::float8 AS "createdAt", last_seen_at::float8 AS "lastSeenAt"
      FROM sessions WHERE token_hash = ${tokenHash}`,
    )
  }

  async moveSession(tokenHash: Uint8Array, lastSeenAt: number): Promise<void> {
    await this.#pool.writeRepeatable(
      (sql) => sql`UPDATE sessions SET last_seen_at = ${lastSeenAt} WHERE token_hash = ${tokenHash}`,
    )
  }

  endSession(tokenHash: Uint8Array, event: AuditEvent): Promise<boolean> {
    return this.#change(event, (sql) => sql`DELETE FROM sessions WHERE token_hash = ${tokenHash}`)
  }

  async purgeSessions(createdBefore: number, seenBefore: number): Promise<void> {
    await this.#pool.writeRepeatable(
      (sql) => sql`
      DELETE FROM sessions WHERE token_hash IN
        (SELECT token_hash FROM sessions WHERE created_at < ${createdBefore} OR last_seen_at < ${seenBefore}
         FOR UPDATE SKIP LOCKED)`,
    )
  }

  async appendEvent(event: AuditEvent): Promise<void> {
    await this.#pool.write((sql) => insertEvent(sql, event))
  }

  auditTrail(accountId: string, limit: number): Promise<AuditEvent[]> {
    return this.#events((sql) => sql`account_id = ${accountId}`, limit)
  }

  changesOf(petId: bigint, limit: number): Promise<AuditEvent[]> {
    return this.#events((sql) => sql`${sql.unsafe(CHANGES_OF_PET)} = ${idInSubject(petId)}`, limit)
  }

  async #events(which: (sql: Database) => Fragment, limit: number): Promise<AuditEvent[]> {
    const rows = await this.#rows<EventRow>(
      (sql) => sql`
      SELECT at::float8 AS at, account_id AS "accountId", action, via, subject, detail
      FROM audit_events WHERE ${which(sql)} ORDER BY id DESC LIMIT ${limit}`,
    )
    return rows.map(asEvent)
  }

  /** Makes a change and adds its audit event; resolves with false, without an event, if nothing was changed. */
  #change(event: AuditEvent, change: (sql: Database) => Fragment): Promise<boolean> {
    return this.#pool.write((sql) => withEvent(sql, event, change(sql)))
  }

  #transaction<T>(work: (sql: Database) => Promise<T>): Promise<T> {
    return this.#pool.write((sql) => sql.begin((transaction) => work(transaction as unknown as Database)) as Promise<T>)
  }

  #rows<T>(select: (sql: Database) => Fragment): Promise<T[]> {
    return this.#pool.read(async (sql) => [...(await (select(sql) as unknown as Promise<T[]>))])
  }

  async #first<T>(select: (sql: Database) => Fragment): Promise<T | undefined> {
    return (await this.#rows<T>(select))[0]
  }
}

/** Makes a change and adds its audit event in one statement; resolves with false, without an event, if nothing was changed. */
export async function withEvent(sql: Database, event: AuditEvent, change: Fragment): Promise<boolean> {
  const { count } = await sql`WITH changed AS (${change} RETURNING 1) ${insertEvent(sql, event)} FROM changed`
  return count > 0
}

/** Ends in a SELECT, so that the caller can append a FROM. */
function insertEvent(sql: Database, { at, accountId, action, via, subject, detail }: AuditEvent) {
  return sql`
    INSERT INTO audit_events (at, account_id, action, via, subject, detail)
    SELECT ${at}::bigint, ${accountId}, ${action}, ${via}, ${subject}, ${detail ?? null}::text`
}
