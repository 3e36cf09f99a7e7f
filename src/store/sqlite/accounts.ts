// Accounts, keys, usage and the audit trail in SQLite.
import type { DatabaseSync } from 'node:sqlite'
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
import type { Writer } from './writer.ts'

const ACCOUNT = 'id, email, password_hash AS "passwordHash", created_at AS "createdAt"'
const KEY = `id, account_id AS "accountId", name, environment, last_four AS "lastFour", created_at AS "createdAt",
  expires_at AS "expiresAt", revoked_at AS "revokedAt", last_used_at AS "lastUsedAt"`

/** Whether a key is active at the time that is bound to the parameter. */
const ACTIVE = 'revoked_at IS NULL AND coalesce(expires_at > ?, TRUE)'
/** Newest first, after the last key of the previous page: its time, twice, and its id. */
const NEXT_PAGE = '(created_at < ? OR (created_at = ? AND id > ?)) ORDER BY created_at DESC, id LIMIT ?'

type Change = () => { changes: number | bigint }

export class SqliteAccounts implements AccountStore {
  readonly #writer: Writer
  readonly #statements: ReturnType<typeof prepareStatements>

  readonly #append: (event: AuditEvent) => void

  constructor(db: DatabaseSync, writer: Writer) {
    this.#writer = writer
    this.#append = prepareAppendEvent(db)
    this.#statements = prepareStatements(db)
  }

  createAccount({ id, email, passwordHash, createdAt }: Account, event: AuditEvent): Promise<boolean> {
    return this.#change(event, () =>
      this.#statements.insertAccount.run(id, email, foldEmail(email), passwordHash, createdAt),
    )
  }

  accountByEmail(email: string): Promise<Account | undefined> {
    return this.#writer.read(() => this.#statements.accountByEmail.get(foldEmail(email)) as Account | undefined)
  }

  accountById(id: string): Promise<Account | undefined> {
    return this.#writer.read(() => this.#statements.accountById.get(id) as Account | undefined)
  }

  listAccounts(): Promise<Account[]> {
    return this.#writer.read(() => this.#statements.listAccounts.all() as unknown as Account[])
  }

  setPassword(accountId: string, passwordHash: string, event: AuditEvent, instead?: string): Promise<boolean> {
    return this.#change(event, () => {
      const changed = this.#statements.setPassword.run(passwordHash, accountId, instead ?? null)
      if (changed.changes > 0) this.#statements.endSessionsOf.run(accountId)
      return changed
    })
  }

  removeAccount(accountId: string, event: AuditEvent): Promise<boolean> {
    return this.#change(event, () => this.#statements.removeAccount.run(accountId))
  }

  createKey(key: ApiKey & { hash: Buffer }, event: AuditEvent): Promise<'created' | 'exists' | 'too many'> {
    const { id, accountId, name, hash, environment, lastFour, createdAt, expiresAt } = key
    const { keyById, countActive, insertKey } = this.#statements
    return this.#writer.write(() => {
      if (keyById.get(id) !== undefined) return 'exists'
      const { active } = countActive.get(accountId, createdAt) as { active: number }
      if (active >= ACTIVE_KEYS_MOST) return 'too many'
      insertKey.run(id, accountId, name, hash, environment, lastFour, createdAt, expiresAt ?? null)
      this.#append(event)
      return 'created'
    })
  }

  keyByHash(hash: Buffer): Promise<ApiKey | undefined> {
    return this.#writer.read(() => asKey(this.#statements.keyByHash.get(hash) as KeyRow | undefined))
  }

  keyById(id: string): Promise<ApiKey | undefined> {
    return this.#writer.read(() => asKey(this.#statements.keyById.get(id) as KeyRow | undefined))
  }

  listKeys(accountId?: string): Promise<ApiKey[]> {
    const { listKeys, listKeysOf } = this.#statements
    return this.#writer.read(() =>
      (accountId === undefined ? listKeys.all() : listKeysOf.all(accountId)).map((row) =>
        asKey(row as unknown as KeyRow)!,
      ),
    )
  }

  pageOfKeys({ accountId, active, now, limit, after }: KeyQuery): Promise<ApiKey[]> {
    const { activeKeys, inactiveKeys } = this.#statements
    const { createdAt, id } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, id: '' }
    const statement = active ? activeKeys : inactiveKeys
    return this.#writer.read(() =>
      statement.all(accountId, now, createdAt, createdAt, id, limit).map((row) => asKey(row as unknown as KeyRow)!),
    )
  }

  revokeKey(id: string, at: number, event: AuditEvent): Promise<boolean> {
    return this.#change(event, () => this.#statements.revokeKey.run(at, id))
  }

  renameKey(id: string, name: string, event: AuditEvent): Promise<boolean> {
    return this.#change(event, () => this.#statements.renameKey.run(name, id))
  }

  recordUsage(counts: readonly UsageCount[], lastUsed: ReadonlyMap<string, number>): Promise<void> {
    const { addUsage, moveLastUse } = this.#statements
    return this.#writer.writeBookkeeping(() => {
      for (const { keyId, hour, operation, status, calls } of counts) {
        addUsage.run(hour, operation, status, calls, keyId)
      }
      for (const [keyId, at] of lastUsed) moveLastUse.run(at, keyId, at)
    })
  }

  usageSince(accountId: string, hour: number): Promise<HourlyCount[]> {
    return this.#writer.read(() => this.#statements.usageSince.all(accountId, hour) as unknown as HourlyCount[])
  }

  callsSince(keyIds: readonly string[], hour: number): Promise<KeyCalls[]> {
    return this.#writer.read(
      () => this.#statements.callsSince.all(JSON.stringify(keyIds), hour) as unknown as KeyCalls[],
    )
  }

  recordFailures(failed: readonly FailedRequest[]): Promise<void> {
    const { addFailure, trimFailures } = this.#statements
    return this.#writer.writeBookkeeping(() => {
      for (const { at, keyId, requestId, operation, status, code, message, accountId } of failed) {
        addFailure.run(at, keyId, requestId, operation, status, code, message, accountId)
      }
      for (const accountId of new Set(failed.map((request) => request.accountId))) {
        trimFailures.run(accountId, accountId, FAILED_REQUESTS_KEPT)
      }
    })
  }

  failedRequests(accountId: string, limit: number): Promise<FailedRequest[]> {
    return this.#writer.read(() => this.#statements.failedRequests.all(accountId, limit) as unknown as FailedRequest[])
  }

  purgeUsage(before: number): Promise<void> {
    return this.#writer.writeBookkeeping(() => {
      this.#statements.purgeUsage.run(before)
    })
  }

  createSession(
    { tokenHash, accountId, createdAt, lastSeenAt }: Session,
    passwordHash: string,
    event: AuditEvent,
  ): Promise<boolean> {
    return this.#changeSession(event, () =>
      this.#statements.insertSession.run(tokenHash, createdAt, lastSeenAt, accountId, passwordHash),
    )
  }

  sessionByHash(tokenHash: Uint8Array): Promise<Session | undefined> {
    return this.#writer.read(() => {
      const row = this.#statements.sessionByHash.get(tokenHash) as Omit<Session, 'tokenHash'> | undefined
      return row && { ...row, tokenHash }
    })
  }

  async moveSession(tokenHash: Uint8Array, lastSeenAt: number): Promise<void> {
    await this.#writer.writeBookkeeping(() => this.#statements.moveSession.run(lastSeenAt, tokenHash))
  }

  endSession(tokenHash: Uint8Array, event: AuditEvent): Promise<boolean> {
    return this.#changeSession(event, () => this.#statements.endSession.run(tokenHash))
  }

  async purgeSessions(createdBefore: number, seenBefore: number): Promise<void> {
    await this.#writer.writeBookkeeping(() => this.#statements.purgeSessions.run(createdBefore, seenBefore))
  }

  async appendEvent(event: AuditEvent): Promise<void> {
    await this.#writer.writeBookkeeping(() => this.#append(event))
  }

  auditTrail(accountId: string, limit: number): Promise<AuditEvent[]> {
    return this.#writer.read(() =>
      (this.#statements.auditTrail.all(accountId, limit) as unknown as EventRow[]).map(asEvent),
    )
  }

  changesOf(petId: bigint, limit: number): Promise<AuditEvent[]> {
    return this.#writer.read(() =>
      (this.#statements.changesOf.all(idInSubject(petId), limit) as unknown as EventRow[]).map(asEvent),
    )
  }

  /** Makes a change together with its audit event; resolves with false, and adds no event, if nothing was changed. */
  #change(event: AuditEvent, change: Change): Promise<boolean> {
    return this.#writer.write(() => this.#withEvent(event, change))
  }

  #changeSession(event: AuditEvent, change: Change): Promise<boolean> {
    return this.#writer.writeBookkeeping(() => this.#withEvent(event, change))
  }

  #withEvent(event: AuditEvent, change: Change): boolean {
    if (change().changes === 0) return false
    this.#append(event)
    return true
  }
}

function prepareStatements(db: DatabaseSync) {
  const events = (by: string) =>
    db.prepare(
      `SELECT at, account_id AS "accountId", action, via, subject, detail
       FROM audit_events WHERE ${by} = ? ORDER BY id DESC LIMIT ?`,
    )
  return {
    insertAccount: db.prepare(
      `INSERT INTO accounts (id, email, email_folded, password_hash, created_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (email_folded) DO NOTHING`,
    ),
    accountByEmail: db.prepare(`SELECT ${ACCOUNT} FROM accounts WHERE email_folded = ?`),
    accountById: db.prepare(`SELECT ${ACCOUNT} FROM accounts WHERE id = ?`),
    listAccounts: db.prepare(`SELECT ${ACCOUNT} FROM accounts ORDER BY created_at, id`),
    setPassword: db.prepare(
      'UPDATE accounts SET password_hash = ? WHERE id = ? AND password_hash = coalesce(?, password_hash)',
    ),
    removeAccount: db.prepare('DELETE FROM accounts WHERE id = ?'),
    insertKey: db.prepare(
      `INSERT INTO api_keys (id, account_id, name, hash, environment, last_four, created_at, expires_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    countActive: db.prepare(`SELECT count(*) AS active FROM api_keys WHERE account_id = ? AND ${ACTIVE}`),
    activeKeys: db.prepare(`SELECT ${KEY} FROM api_keys WHERE account_id = ? AND ${ACTIVE} AND ${NEXT_PAGE}`),
    inactiveKeys: db.prepare(`SELECT ${KEY} FROM api_keys WHERE account_id = ? AND NOT (${ACTIVE}) AND ${NEXT_PAGE}`),
    keyByHash: db.prepare(`SELECT ${KEY} FROM api_keys WHERE hash = ?`),
    keyById: db.prepare(`SELECT ${KEY} FROM api_keys WHERE id = ?`),
    listKeys: db.prepare(`SELECT ${KEY} FROM api_keys ORDER BY created_at DESC, id`),
    listKeysOf: db.prepare(`SELECT ${KEY} FROM api_keys WHERE account_id = ? ORDER BY created_at DESC, id`),
    revokeKey: db.prepare('UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'),
    renameKey: db.prepare('UPDATE api_keys SET name = ? WHERE id = ?'),
    addUsage: db.prepare(
      `INSERT INTO usage_counts (key_id, hour, operation, status, calls)
       SELECT id, ?, ?, ?, ? FROM api_keys WHERE id = ?
       ON CONFLICT DO UPDATE SET calls = calls + excluded.calls`,
    ),
    moveLastUse: db.prepare('UPDATE api_keys SET last_used_at = ? WHERE id = ? AND coalesce(last_used_at, 0) < ?'),
    usageSince: db.prepare(
      `SELECT u.hour, u.operation, u.status, sum(u.calls) AS calls
       FROM api_keys k JOIN usage_counts u ON u.key_id = k.id
       WHERE k.account_id = ? AND u.hour >= ?
       GROUP BY u.hour, u.operation, u.status ORDER BY u.hour, u.operation, u.status`,
    ),
    callsSince: db.prepare(
      `SELECT key_id AS "keyId", operation, sum(calls) AS calls FROM usage_counts
       WHERE key_id IN (SELECT value FROM json_each(?)) AND hour >= ? GROUP BY key_id, operation`,
    ),
    addFailure: db.prepare(
      `INSERT INTO failed_requests (at, key_id, request_id, operation, status, code, message, account_id)
       SELECT ?, ?, ?, ?, ?, ?, ?, id FROM accounts WHERE id = ?`,
    ),
    trimFailures: db.prepare(
      `DELETE FROM failed_requests WHERE account_id = ? AND id <=
         (SELECT id FROM failed_requests WHERE account_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
    ),
    failedRequests: db.prepare(
      `SELECT at, account_id AS "accountId", key_id AS "keyId", request_id AS "requestId", operation, status, code, message
       FROM failed_requests WHERE account_id = ? ORDER BY id DESC LIMIT ?`,
    ),
    insertSession: db.prepare(
      `INSERT INTO sessions (token_hash, account_id, created_at, last_seen_at)
       SELECT ?, id, ?, ? FROM accounts WHERE id = ? AND password_hash = ?`,
    ),
    sessionByHash: db.prepare(
      `SELECT account_id AS "accountId", created_at AS "createdAt", last_seen_at AS "lastSeenAt"
       FROM sessions WHERE token_hash = ?`,
    ),
    moveSession: db.prepare('UPDATE sessions SET last_seen_at = ? WHERE token_hash = ?'),
    endSession: db.prepare('DELETE FROM sessions WHERE token_hash = ?'),
    endSessionsOf: db.prepare('DELETE FROM sessions WHERE account_id = ?'),
    purgeSessions: db.prepare('DELETE FROM sessions WHERE created_at < ? OR last_seen_at < ?'),
    purgeUsage: db.prepare('DELETE FROM usage_counts WHERE hour < ?'),
    auditTrail: events('account_id'),
    changesOf: events(CHANGES_OF_PET),
  }
}

/** Returns a function that adds an event, to be called inside the transaction of the change that the event describes. */
export function prepareAppendEvent(db: DatabaseSync): (event: AuditEvent) => void {
  const insert = db.prepare(
    'INSERT INTO audit_events (at, account_id, action, via, subject, detail) VALUES (?, ?, ?, ?, ?, ?)',
  )
  return ({ at, accountId, action, via, subject, detail }) => {
    insert.run(at, accountId, action, via, subject, detail ?? null)
  }
}
