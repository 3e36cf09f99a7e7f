// The port for accounts: people, their API keys, sessions, usage, failed requests and the audit trail.
import type { Environment } from '../contract/operations.ts'
import type { Pet } from '../contract/pets.ts'

/** What an account may do in the console; `keyless` is a member without the right to keys. A newer program may have written another. */
export type Role = 'manager' | 'member' | 'keyless'

/** The account of the key that a first start prints (cli/serve.ts). Nobody can sign in to it, so it never counts as a person. */
export const FIRST_RUN_EMAIL = 'first-run@localhost'

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

/** A link that a manager passes on: an invitation or, with an account, a way to set its password. The token is not stored, only its hash. */
export interface AccountLink {
  hash: string
  accountId: string | null
  /** The id of the manager. The link works only as long as they are one. */
  madeBy: string
  expiresAt: number
}

/** `lastSeenAt` is the last use of a session that has not been purged, else the last sign-in or sign-out. */
export type Person = Account & { lastSeenAt: number | null }

/** What managers do. Each change and its audit event are one transaction. */
export interface PeopleStore {
  /** Lists accounts, newest first, those behind the account `after`. */
  pageOfPeople(query: { limit: number; after?: Account | undefined }): Promise<Person[]>
  /**
   * Gives an account another role; one that becomes `keyless` loses its keys. Resolves with false, without a change, if its role is
   * no longer `account.role`, or if it is the last manager.
   */
  setRole(account: Pick<Account, 'id' | 'role'>, role: Role, event: AuditEvent): Promise<boolean>
  /**
   * Removes the account with its keys, but not its audit trail. Resolves with false if there is no such account, `role` is given
   * and no longer its role, or it is the last manager and not the last person.
   */
  removeAccount(accountId: string, event: AuditEvent, role?: Role): Promise<boolean>
  /** Whether there are people, but no manager. */
  lacksManager(): Promise<boolean>
  /** Resolves with false if the account that makes it is not a manager. */
  createLink(link: AccountLink, event: AuditEvent): Promise<boolean>
  /** Resolves with undefined if the link does not work at `now`. `maker` is the manager's email address. */
  linkByHash(hash: string, now: number): Promise<(AccountLink & { maker: string }) | undefined>
  purgeLinks(before: number): Promise<void>
}

/** Each change and its audit event are one transaction. */
export interface AccountStore extends PeopleStore {
  /**
   * Creates an account; one with the role of a manager becomes a member unless it is the first. Resolves with false if the email
   * address, compared without case, is taken, or if there is no link `link`, which is used up.
   */
  createAccount(account: Account, event: AuditEvent, link?: string): Promise<boolean>
  /** Compares without case. Resolves with undefined if there is no such account. */
  accountByEmail(email: string): Promise<Account | undefined>
  accountById(id: string): Promise<Account | undefined>
  /** Lists all accounts, oldest first. */
  listAccounts(): Promise<Account[]>
  /**
   * Changes the password, ends all sessions of the account and voids its links, in one transaction. Resolves with false, without a
   * change, if `currentHash` is given and no longer the hash of the password, or if there is no such account or link.
   */
  setPassword(
    accountId: string,
    passwordHash: string,
    event: AuditEvent,
    currentHash?: string,
    link?: string,
  ): Promise<boolean>

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

/** The role of a new account: the one that is given, but a manager's only for the first person. */
export const ROLE_OF_NEW = `CASE WHEN EXISTS (SELECT 1 FROM accounts WHERE email_folded <> '${FIRST_RUN_EMAIL}') THEN 'member' ELSE`

/** Whether an account may cease to be a manager. */
export const MANAGER_REMAINS = `(role <> 'manager'
  OR EXISTS (SELECT 1 FROM accounts AS other WHERE other.role = 'manager' AND other.id <> accounts.id))`

/** Whether an account may be removed. */
export const MAY_BE_REMOVED = `(${MANAGER_REMAINS} OR NOT EXISTS
  (SELECT 1 FROM accounts AS other WHERE other.id <> accounts.id AND other.email_folded <> '${FIRST_RUN_EMAIL}'))`

export const LACKS_MANAGER = `EXISTS (SELECT 1 FROM accounts WHERE email_folded <> '${FIRST_RUN_EMAIL}')
  AND NOT EXISTS (SELECT 1 FROM accounts WHERE role = 'manager')`

export const LAST_SEEN = `(SELECT max(at) FROM (SELECT last_seen_at AS at FROM sessions WHERE account_id = accounts.id UNION ALL
  SELECT at FROM (SELECT at FROM audit_events WHERE account_id = accounts.id AND action IN ('session.started', 'session.ended')
    ORDER BY id DESC LIMIT 1) AS event) AS seen)`

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
