// The port: what the service requires of a database engine. SQLite and PostgreSQL implement it, and one suite tests both.
import type { ListQuery } from '../contract/list-query.ts'
import type { Environment } from '../contract/operations.ts'
import type { NewPet, Pet, PetStatus } from '../contract/pets.ts'
import type { ImportStore } from './imports.ts'
import type { RecordStore } from './records.ts'

export interface Store {
  /** What opening the database has done, and what its operator should know. */
  opened: Opened
  pets: PetStore
  accounts: AccountStore
  imports: ImportStore
  /** Everything in the store, row by row, for copies. */
  records: RecordStore
  /**
   * Returns a number that differs whenever data may have changed since the last call, whoever changed it, so that an
   * answer kept for one version is never stale. Every write moves it, except for bookkeeping: usage counts, failed
   * requests, sessions, idempotency records, imports and the audit trail, which must not be kept that way. Returns undefined if
   * the engine can't tell cheaply.
   */
  version(): number | undefined
  /** Resolves with the environment that this database belongs to; undefined if none was recorded yet. */
  environment(): Promise<Environment | undefined>
  /**
   * Records the environment if `instead` is what is recorded now, by default nothing. Resolves with the one that is
   * recorded afterwards, so that several instances that start at once agree.
   */
  recordEnvironment(environment: Environment, instead?: Environment): Promise<Environment | undefined>
  /** Whether a copy into this store was begun and not finished; then it holds only a part of the data. */
  isUnfinishedCopy(): Promise<boolean>
  setUnfinishedCopy(unfinished: boolean): Promise<void>
  /** The connections to the database; undefined if the engine has none. */
  connections(): ConnectionStats | undefined
  /** How well writes have shared commits in this process so far. */
  commits(): CommitStats
  /** Resolves when the database answers; rejects with `StoreUnavailable` when it does not. */
  ping(): Promise<void>
  close(): Promise<void>
}

export interface Opened {
  /** Whether there was no database of ours before. */
  created: boolean
  /** The names of the migrations that were applied; all of them if it was created. */
  migrations: readonly string[]
  /** Whole sentences. */
  warnings: readonly string[]
}

/** The database is unavailable; the same call may work later. A write may or may not have taken effect. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
}

/** The database answers, but all connections are in use, or wait for an answer that is overdue. */
export class StoreBusy extends StoreUnavailable {
  override name = 'StoreBusy'
}

/** Commits of data, and the writes in them, as far as writes can share one: on PostgreSQL, creates without idempotency key. */
export interface CommitStats {
  commits: number
  writes: number
}

export interface ConnectionStats {
  inUse: number
  idle: number
  /** Kept open after a write that had no answer in time, until it comes. */
  parked: number
  /** Calls that wait for a connection. */
  waiting: number
  /** The server that the last connection was opened to. */
  host: string | undefined
  role: 'primary' | 'standby' | undefined
}

/** What an engine tells the operator while it runs: a line of the log each. */
export type Report = (event: StoreEvent) => void
export interface StoreEvent {
  level: 'notice' | 'warn' | 'error'
  message: string
  details?: object
}

/** How a store is opened. */
export interface OpenOptions {
  /** Whether a copy that was interrupted may be opened. */
  unfinished?: boolean
  /** Whether a missing database is created, as by default; else that throws `NoDatabase`. */
  create?: boolean
  /** How long to wait for a process that holds the lock of a SQLite file; the wait blocks everything else. */
  lockWaitMs?: number
  /** Receives what the engine has to tell while the store is open. */
  report?: Report
}

/** The database can't be opened; the message is for the operator. */
export class CannotOpenStore extends Error {
  override name = 'CannotOpenStore'
  /** Whether a later attempt may succeed: the database is unavailable, or another process holds its lock. */
  readonly passing: boolean
  constructor(message: string, { passing = false, ...options }: ErrorOptions & { passing?: boolean } = {}) {
    super(message, options)
    this.passing = passing
  }
}

/** There is nothing to open, and the caller did not ask to create it. */
export class NoDatabase extends CannotOpenStore {
  override name = 'NoDatabase'
  constructor(place: string) {
    super(`There is no petstore database at ${place}. The service creates one when it starts; --database or DATABASE_URL names another.`)
  }
}

export interface PetStore {
  /**
   * Adds an animal and resolves once it is durable, never before. With `idempotency`, a repetition finds the first
   * animal instead of adding another; its record is stored in the same transaction as the animal.
   */
  create(newPet: NewPet, idempotency?: Idempotency): Promise<Created>

  /** Adds many in one short transaction. */
  createMany(newPets: readonly NewPet[]): Promise<void>

  /** Resolves with undefined if there is no such animal. */
  get(id: bigint): Promise<Pet | undefined>

  /** Resolves with at most `limit` animals, by id descending: with an id below `before`, if given, and that status, if given. */
  list(query: ListQuery): Promise<Pet[]>

  /**
   * Changes an animal if it still is as `expected`, and adds the audit event in the same transaction. If somebody else
   * changed it meanwhile, nothing is written, and the outcome has the animal as it is now.
   */
  update(id: bigint, expected: NewPet, wanted: NewPet, event: AuditEvent): Promise<Updated>

  /** Counts the animals of each status; as fast with ten million as with ten. */
  countByStatus(): Promise<Record<PetStatus, number>>

  /** Removes some of the idempotency records made before that time; resolves with how many, 0 when none is left. */
  purgeIdempotencyRecords(before: number): Promise<number>
}

/** What makes a create safe to repeat: the account's idempotency key, the fingerprint of the animal, and the time. */
export interface Idempotency {
  accountId: string
  key: string
  fingerprint: Buffer
  now: number
  /** Records created before this time have expired. */
  validSince: number
}

export type Created =
  | { outcome: 'created' | 'replayed'; pet: Pet }
  /** The key was used for another animal. */
  | { outcome: 'mismatch' }
  /** The first request with this key is still running, after waiting for it for some seconds. */
  | { outcome: 'in progress' }

export type Updated = { outcome: 'updated' } | { outcome: 'conflict'; pet: Pet } | { outcome: 'missing' }

export interface Account {
  id: string
  email: string
  passwordHash: string
  createdAt: number
}

export interface ApiKey {
  id: string
  accountId: string
  name: string
  /** The one that the key was generated for, which its prefix names. */
  environment: Environment
  /** The last four characters of the key, so that its owner recognises it. */
  lastFour: string
  createdAt: number
  expiresAt: number | undefined
  revokedAt: number | undefined
  lastUsedAt: number | undefined
}

/** An entry of the audit trail; entries are added and read, never changed. */
export interface AuditEvent {
  at: number
  accountId: string
  action:
    | 'account.created'
    | 'account.password_changed'
    | 'account.removed'
    | 'key.created'
    | 'key.renamed'
    | 'key.revoked'
    | 'pet.changed'
    | 'session.started'
    | 'session.refused'
    | 'session.ended'
  /** Where it was done: `console` or `command line`. */
  via: string
  /** What it was done to: an email address, or the name and id of a key or an animal. */
  subject: string
  /** The old and the new value of what was changed. */
  detail?: string
}

/** How many calls of an operation with a key got this status in the hour that starts at `hour`. */
export interface UsageCount {
  keyId: string
  hour: number
  operation: string
  status: number
  calls: number
}

/** The same for all keys of an account together. */
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

/** How many failed requests are kept for each account: the newest. */
export const FAILED_REQUESTS_KEPT = 100

/** A person signed in at the console. The token itself is never stored, only its hash. */
export interface Session {
  tokenHash: Buffer
  accountId: string
  createdAt: number
  lastSeenAt: number
}

/** The most active keys that an account can create. More of them, from before there was a limit, are kept. */
export const ACTIVE_KEYS_MOST = 100

/** Which keys of an account to list, newest first. */
export interface KeyQuery {
  accountId: string
  /** Those that are active at `now`, or those that are not any more. */
  active: boolean
  now: number
  limit: number
  /** The last key of the page before. */
  after?: Pick<ApiKey, 'createdAt' | 'id'> | undefined
}

/** How often a key called an operation. */
export interface KeyCalls {
  keyId: string
  operation: string
  calls: number
}

/** Each change and its audit event are one transaction. "False" below is what the promise resolves with. */
export interface AccountStore {
  /** False if the email address, compared without case, is taken. */
  createAccount(account: Account, event: AuditEvent): Promise<boolean>
  /** Compares without case; undefined if there is none. */
  accountByEmail(email: string): Promise<Account | undefined>
  accountById(id: string): Promise<Account | undefined>
  /** All of them, oldest first. */
  listAccounts(): Promise<Account[]>
  /**
   * Changes the password and ends all sessions of the account in one transaction, if `instead` is the present hash, or
   * without that condition. False if it is not, or there is no such account.
   */
  setPassword(accountId: string, passwordHash: string, event: AuditEvent, instead?: string): Promise<boolean>
  /** Removes the account with its keys, but not its audit trail; false if there is no such account. */
  removeAccount(accountId: string, event: AuditEvent): Promise<boolean>

  /** 'exists' if there is a key with this id, because the same form was sent twice; 'too many' past `ACTIVE_KEYS_MOST`. */
  createKey(key: ApiKey & { hash: Buffer }, event: AuditEvent): Promise<'created' | 'exists' | 'too many'>
  /** Finds revoked and expired keys too; undefined if there is none. */
  keyByHash(hash: Buffer): Promise<ApiKey | undefined>
  keyById(id: string): Promise<ApiKey | undefined>
  /** Newest first; those of one account, or all. */
  listKeys(accountId?: string): Promise<ApiKey[]>
  pageOfKeys(query: KeyQuery): Promise<ApiKey[]>
  /** False if there is no such key, or it is revoked already. */
  revokeKey(id: string, at: number, event: AuditEvent): Promise<boolean>
  /** Resolves with false if there is no such key. */
  renameKey(id: string, name: string, event: AuditEvent): Promise<boolean>

  /** Adds to the counts and updates the last use of each key. Counts of keys that no longer exist are dropped. */
  recordUsage(counts: readonly UsageCount[], lastUsed: ReadonlyMap<string, number>): Promise<void>
  /** Adds up the counts of an account's keys since that hour, in order. */
  usageSince(accountId: string, hour: number): Promise<HourlyCount[]>
  /** Adds up the calls of these keys since that hour. */
  callsSince(keyIds: readonly string[], hour: number): Promise<KeyCalls[]>
  /** Adds failed requests and removes the oldest of each account. Those of accounts that no longer exist are dropped. */
  recordFailures(failed: readonly FailedRequest[]): Promise<void>
  /** Newest first. */
  failedRequests(accountId: string, limit: number): Promise<FailedRequest[]>
  /** Removes the counts of hours before this one. */
  purgeUsage(before: number): Promise<void>

  /** False if the account's password hash is no longer the one that was verified, or the account no longer exists. */
  createSession(session: Session, passwordHash: string, event: AuditEvent): Promise<boolean>
  /** Undefined if there is none. The caller decides whether it is still valid. */
  sessionByHash(tokenHash: Buffer): Promise<Session | undefined>
  moveSession(tokenHash: Buffer, lastSeenAt: number): Promise<void>
  /** False if there is none. */
  endSession(tokenHash: Buffer, event: AuditEvent): Promise<boolean>
  /** Removes sessions created or last seen before these times. */
  purgeSessions(createdBefore: number, seenBefore: number): Promise<void>

  /** Adds an event without a change, such as a refused sign-in. */
  appendEvent(event: AuditEvent): Promise<void>
  /** The account's events, newest first. */
  auditTrail(accountId: string, limit: number): Promise<AuditEvent[]>
}
