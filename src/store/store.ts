// The port: what the service requires of a database engine. SQLite and PostgreSQL implement it, and one suite tests both.
import type { ListQuery } from '../contract/list-query.ts'
import type { Environment } from '../contract/operations.ts'
import type { NewPet, Pet, PetStatus } from '../contract/pets.ts'
import type { AccountStore, AuditEvent } from './account-store.ts'
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
  /**
   * Returns the version of what a read that begins now will find. It is ahead of `version` while a commit of this process waits
   * for its sync; such a read resolves once that is done.
   */
  versionToRead(): number | undefined
  /** Resolves with the environment that this database belongs to; undefined if none was recorded yet. */
  environment(): Promise<Environment | undefined>
  /** Whether the recorded environment is a default that nobody has chosen. */
  isDefaultEnvironment(): Promise<boolean>
  /**
   * Records the environment if `instead` is what is recorded now, by default nothing. Resolves with the one that is
   * recorded afterwards, so that several instances that start at once agree.
   */
  recordEnvironment(
    environment: Environment,
    how?: { instead?: Environment | undefined; isDefault?: boolean },
  ): Promise<Environment>
  /** Whether a copy into this store was begun and not finished; then it holds only a part of the data. */
  isUnfinishedCopy(): Promise<boolean>
  setUnfinishedCopy(unfinished: boolean): Promise<void>
  /** The connections to the database; undefined if the engine has none. */
  connections(): ConnectionStats | undefined
  /** How well writes have shared commits in this process so far. */
  commits(): CommitStats
  /** Resolves when the database answers and accepts writes; rejects with `StoreUnavailable` when it does not. */
  ping(): Promise<void>
  /** Rejects with `DiskHangs` if the last writes wait for a disk that does not answer. */
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

/** The database answers, but accepts no writes: it is read-only, or a write is overdue. */
export class NoWrites extends StoreUnavailable {
  override name = 'NoWrites'
}

/** The disk does not answer, so the store can't be closed. An orderly exit of the process would wait for it too. */
export class DiskHangs extends StoreUnavailable {
  override name = 'DiskHangs'
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

/** Receives the name of a call, such as `pets.create`, when it has ended. */
export type Observe = (call: string, seconds: number) => void

/** How a store is opened. */
export interface OpenOptions {
  /** Whether a copy that was interrupted may be opened. */
  unfinished?: boolean
  /** Whether a missing database is created, as by default; else that throws `NoDatabase`. */
  create?: boolean
  /** How long to wait for a process that holds the lock of a SQLite file; the wait blocks everything else. */
  lockWaitMs?: number
  /** Given for a store that serves requests; SQLite then syncs its commits outside the event loop. */
  serving?: Serving
  /** How many processes of one instance open this database, and share the connections that the instance may have. */
  processes?: number
  /** Receives what the engine has to tell while the store is open. */
  report?: Report
  /** Receives the duration of each call to a part of the store. */
  observe?: Observe | undefined
}

export interface Serving {
  /** Whether this process keeps the write-ahead log of SQLite short: one process of an instance does. */
  checkpoints: boolean
  /**
   * Called once if a sync of the database has failed. The store refuses every call from then on. All processes of the
   * instance must end by an explicit exit or a signal: Node.js closes an open database when the event loop runs empty, and
   * closing would copy the log without a look at its checksums. The next start recovers it.
   */
  onBroken: (error: StoreUnavailable) => void
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
    super(
      `There is no petstore database at ${place}. The service creates one when it starts; --database or DATABASE_URL names another.`,
    )
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

  /**
   * Resolves with at most `limit` animals, by id descending: with that status, if given, and with the highest ids, those
   * below `before`, or the lowest ones above `after`. A query has `before` or `after`, or neither.
   */
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
  fingerprint: Uint8Array
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

/** The import of a file, as far as it has come; finished when all rows are done. */
export interface FileImport {
  /** SHA-256 of the file, in hexadecimal. */
  hash: string
  /** Where the file was read from. */
  file: string
  rowsDone: number
  rowsTotal: number
  updatedAt: number
}

/** "False" below is what the promise resolves with. */
export interface ImportStore {
  /** Undefined if no import of this file was begun. */
  find(hash: string): Promise<FileImport | undefined>
  /** Those that were begun and not finished, oldest first. */
  unfinished(): Promise<FileImport[]>
  /**
   * Records that an import begins, before its first row. False if there is a record of this file already, unless that
   * import is finished and `again` asks for another.
   */
  begin(file: Pick<FileImport, 'hash' | 'file' | 'rowsTotal'>, now: number, again: boolean): Promise<boolean>
  /**
   * Adds the rows that follow the first `rowsDone` of a file, and records in the same transaction that they are done. False,
   * and nothing is added, if the import is not at `rowsDone`, because another process has gone on with it.
   */
  addRows(hash: string, rowsDone: number, rows: readonly NewPet[], now: number): Promise<boolean>
  /** Forgets an unfinished import; its rows stay. */
  abandon(hash: string): Promise<void>
}
