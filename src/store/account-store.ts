// The port for what accounts have: API keys, sessions, usage, failed requests and the audit trail.
import type { Environment } from '../contract/operations.ts'
import type { Pet } from '../contract/pets.ts'

/** What an account may do in the console; `keyless` is a member without the right to keys. A newer program may have written another. */
export type Role = 'manager' | 'member' | 'keyless'

export interface Account {
  id: string
  email: string
  passwordHash: string
  createdAt: number
  role: Role
}

export interface ApiKey {
  id: string
  accountId: string
  name: string
  /** The environment that the key was generated for; the prefix of the key names it. */
  environment: Environment
  /** The last four characters of the key, so that its owner recognises it. */
  lastFour: string
  createdAt: number
  expiresAt: number | undefined
  revokedAt: number | undefined
  lastUsedAt: number | undefined
}

/** An entry of the audit trail to add; entries are never changed. */
export interface AuditEvent {
  at: number
  accountId: string
  action:
    | 'account.created'
    | 'account.invited'
    | 'account.link_made'
    | 'account.password_changed'
    | 'account.removed'
    | 'account.role_changed'
    | 'key.created'
    | 'key.renamed'
    | 'key.revoked'
    | 'category.added'
    | 'category.renamed'
    | 'pet.changed'
    | 'pet.removed'
    | 'session.started'
    | 'session.refused'
    | 'session.ended'
  /** Where the action was taken: `console` or `command line`. */
  via: string
  /** The object of the action: an email address, or the name and id of a key, an animal or a category. */
  subject: string
  /** The old and the new value of each changed field; all values of an animal that was removed. */
  detail?: string
}

/** An entry as it is read. A newer program may have written an action that this one does not know. */
export type RecordedEvent = Omit<AuditEvent, 'action'> & { action: string }

/** How many calls of an operation with a key got this status in the hour that starts at `hour`. */
export interface UsageCount {
  keyId: string
  hour: number
  operation: string
  status: number
  calls: number
}

/** A count over all keys of an account. */
export type HourlyCount = Omit<UsageCount, 'keyId'>

/** A failed request of an account, kept so that its owner can see why it failed. */
export interface FailedRequest {
  at: number
  accountId: string
  keyId: string
  requestId: string
  operation: string
  status: number
  code: string
  message: string
}

/** How many of the newest failed requests are kept for each account. */
export const FAILED_REQUESTS_KEPT = 100

/** A person signed in at the console. The token itself is never stored, only its hash. */
export interface Session {
  tokenHash: Uint8Array
  accountId: string
  createdAt: number
  lastSeenAt: number
}

/** The most active keys of an account. An account that has more, from before this limit, keeps them. */
export const ACTIVE_KEYS_MOST = 100

/** Which keys of an account to list, newest first. */
export interface KeyQuery {
  accountId: string
  /** True for keys that are active at `now`, false for revoked and expired keys. */
  active: boolean
  now: number
  limit: number
  /** The last key of the page before. */
  after?: Pick<ApiKey, 'createdAt' | 'id'> | undefined
}

/** Each change and its audit event are one transaction. */
export interface AccountStore {
  /**
   * Resolves with 'exists' if there is a key with this id, because the same form was sent twice; with 'too many' past
   * `ACTIVE_KEYS_MOST`; with 'no account' if the account no longer exists, with 'no right' if it may not have keys.
   */
  createKey(
    key: ApiKey & { hash: Buffer },
    event: AuditEvent,
  ): Promise<'created' | 'exists' | 'too many' | 'no account' | 'no right'>
  /** Finds revoked and expired keys too. Resolves with undefined if there is no such key. */
  keyByHash(hash: Buffer): Promise<ApiKey | undefined>
  keyById(id: string): Promise<ApiKey | undefined>
  /** Lists the keys of one account, or of all accounts, newest first. */
  listKeys(accountId?: string): Promise<ApiKey[]>
  pageOfKeys(query: KeyQuery): Promise<ApiKey[]>
  /** Resolves with false if there is no such key, or it is revoked already. */
  revokeKey(id: string, at: number, event: AuditEvent): Promise<boolean>
  /** Resolves with false if there is no such key. */
  renameKey(id: string, name: string, event: AuditEvent): Promise<boolean>

  /** Adds to the counts and updates the last use of each key. Counts of keys that no longer exist are dropped. */
  recordUsage(counts: readonly UsageCount[], lastUsed: ReadonlyMap<string, number>): Promise<void>
  /** Adds up the counts of an account's keys since `hour`, oldest hour first. */
  usageSince(accountId: string, hour: number): Promise<HourlyCount[]>
  /** Adds up the counts of each of these keys since `hour`, to one per `bucketMs`; the `hour` of each is where its bucket begins. */
  callsSince(keyIds: readonly string[], hour: number, bucketMs: number): Promise<UsageCount[]>
  /** Adds failed requests; keeps the newest `FAILED_REQUESTS_KEPT` of each account. Drops those of removed accounts. */
  recordFailures(failed: readonly FailedRequest[]): Promise<void>
  /** Newest first. */
  failedRequests(accountId: string, limit: number): Promise<FailedRequest[]>
  /** Removes the counts of hours before `before`. */
  purgeUsage(before: number): Promise<void>

  /** Resolves with false if the account's password hash is no longer the one that was verified, or the account no longer exists. */
  createSession(session: Session, passwordHash: string, event: AuditEvent): Promise<boolean>
  /** Resolves with undefined if there is no such session. The caller decides whether it is still valid. */
  sessionByHash(tokenHash: Uint8Array): Promise<Session | undefined>
  /** Records that the session was used. */
  touchSession(tokenHash: Uint8Array, lastSeenAt: number): Promise<void>
  /** Resolves with false if there is no such session. */
  endSession(tokenHash: Uint8Array, event: AuditEvent): Promise<boolean>
  /** Removes sessions created or last seen before these times, or last seen after `seenAfter`. */
  purgeSessions(createdBefore: number, seenBefore: number, seenAfter: number): Promise<void>

  /** Adds an event without a change, such as a refused sign-in. */
  appendEvent(event: AuditEvent): Promise<void>
  /** The account's events, newest first. */
  auditTrail(accountId: string, limit: number): Promise<RecordedEvent[]>
  /** The changes of an animal by any account, its removal included, newest first. */
  changesOf(petId: bigint, limit: number): Promise<RecordedEvent[]>
}

/** Returns an animal as the subject of an event: its id, in brackets, comes last. */
export function petSubject({ id, name }: Pet): string {
  return `${name} (${id})`
}

/** The same in SQL. */
export const PET_SUBJECT = `name || ' (' || id || ')'`

/** Selects the events of animals; indexes have this condition. */
export const OF_PETS = `action IN ('pet.changed', 'pet.removed')`

/** Selects the events of one animal by comparison with its `idInSubject`. An index has this expression. */
export const CHANGES_OF_PET = `${OF_PETS} AND substr(subject, length(rtrim(subject, '-0123456789)')) + 1)`

export function idInSubject(petId: bigint): string {
  return `${petId})`
}

/** Returns the same text for email addresses that differ only in case, because they are one account. */
export function foldEmail(email: string): string {
  return email.toLowerCase()
}

/** Rows as databases return them, where a missing value is NULL. */
export type KeyRow = { [Field in keyof ApiKey]: ApiKey[Field] | null }

export function asKey({ expiresAt, revokedAt, lastUsedAt, ...key }: KeyRow): ApiKey {
  return {
    ...key,
    expiresAt: expiresAt ?? undefined,
    revokedAt: revokedAt ?? undefined,
    lastUsedAt: lastUsedAt ?? undefined,
  } as ApiKey
}

export type EventRow = Omit<RecordedEvent, 'detail'> & { detail: string | null }

export function asEvent({ detail, ...event }: EventRow): RecordedEvent {
  return detail === null ? event : { ...event, detail }
}
