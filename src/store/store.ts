// The interface that the service requires of a database engine. SQLite and PostgreSQL implement it; one suite tests both.
import type { Filters, ListQuery } from '../contract/list-query.ts'
import type { Environment } from '../contract/environments.ts'
import type { NewPet, Pet, RenderedPets } from '../contract/pets.ts'
import type { Author } from './account-store.ts'
import type { Idempotency } from './idempotency.ts'
import type { ChangeQuery, PetChanges } from './pet-changes.ts'
import type { Addition } from './pet-columns.ts'
import type { PetCounts } from './pet-counts.ts'
import type { PetList } from './pet-list.ts'
import type { RecordStore } from './records.ts'
import type { sharedParts } from './shared-parts.ts'

export interface Store extends ReturnType<typeof sharedParts> {
  /** What opening the database has done, with warnings for the operator. */
  opened: Opened
  pets: PetStore
  /** Everything in the store, row by row, for copies. */
  records: RecordStore
  /**
   * Returns a number that differs whenever data may have changed since the last call, in this or another process. So a
   * response cached for one version is never stale: every write moves the version. Returns undefined if the engine can't tell
   * cheaply.
   */
  version(): number | undefined
  /**
   * Returns the version of the data that a read beginning now will find. It is ahead of `version` while a commit of this
   * process waits for its sync; such a read resolves after the sync.
   */
  versionAfterSync(): number | undefined
  /** Resolves with the environment that this database belongs to; undefined if none was recorded yet. */
  environment(): Promise<Environment | undefined>
  /** Whether the recorded environment is the default, which the operator has not chosen. */
  isDefaultEnvironment(): Promise<boolean>
  /**
   * Records the environment if the recorded one is `instead`, by default none. Resolves with the one that is recorded
   * afterwards, so that several instances that start at once agree.
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
  /** Counts how many writes have shared how many commits in this process so far. */
  commits(): CommitStats
  /** Resolves when the database answers and accepts writes; rejects with `StoreUnavailable` when it does not. */
  ping(): Promise<void>
  /** Refuses every call from now on: a sync has failed in another process of the instance. PostgreSQL syncs by itself. */
  giveUp(): void
  /** May be called more than once. Rejects with `CannotCloseStore` if the last writes wait for a disk that hangs, or a sync has failed. */
  close(): Promise<void>
}

export interface Opened {
  /** Whether there was no petstore database before. */
  created: boolean
  /** The names of the migrations that were applied; all of them for a new database. */
  migrations: readonly string[]
  /** Whole sentences. */
  warnings: readonly string[]
}

/** The database is unavailable; the same call may work later. A write may or may not have taken effect. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
  /** What /readyz says, which strangers may read: a whole sentence without a name of the database. */
  readonly publicReason: string | undefined
  constructor(
    message: string,
    { publicReason, ...options }: ErrorOptions & { publicReason?: string | undefined } = {},
  ) {
    super(message, options)
    this.publicReason = publicReason
  }
}

/** What /readyz says of either engine. */
export const DISK_FULL = 'The disk of the database is full.'

/** The database answers, but no connection is free for the call, or too many calls wait already. */
export class StoreBusy extends StoreUnavailable {
  override name = 'StoreBusy'
}

/** The database answers, but accepts no writes: it is read-only, or a write is overdue. */
export class NoWrites extends StoreUnavailable {
  override name = 'NoWrites'
}

/**
 * The disk does not answer, or a sync has failed. The process must be killed: a graceful exit would wait for the disk too, or
 * close the database, which copies the log without verifying its checksums.
 */
export class CannotCloseStore extends StoreUnavailable {
  override name = 'CannotCloseStore'
}

/** Commits, and the writes in them. PostgreSQL counts only creates without idempotency key, which share commits. */
export interface CommitStats {
  commits: number
  writes: number
}

export interface ConnectionStats {
  inUse: number
  idle: number
  /** Connections of overdue writes, kept open until the answer comes. */
  parked: number
  waiting: number
  /** Each server that a connection leads to: more than one after a failover, or if a name leads to several. */
  servers: readonly DatabaseServer[]
}

/** What a server of the database says of itself. */
interface DatabaseServer {
  host: string
  role: 'primary' | 'standby'
  /** Tells it from every other server, whatever its name: when it was started, in microseconds since 1970. */
  startedAt: string
  timeline: number | undefined
}

/** Receives what an engine reports to the operator while it runs; each event is a line of the log. */
export type Report = (event: { level: 'notice' | 'warn' | 'error'; message: string; details?: object }) => void

/**
 * Receives the name of a call that begins, such as `pets.create`. Returns a function to call when it has ended, or undefined if
 * this call is not observed.
 */
export type Observe = (call: string) => (() => void) | undefined

export interface OpenOptions {
  /** Whether a copy that was interrupted may be opened. */
  unfinished?: boolean
  /** Whether to create a missing database, as by default; if false, opening throws `NoDatabase`. */
  create?: boolean
  /** Whether to change nothing at all, on SQLite; the schema must be up to date. */
  readOnly?: boolean
  /** How long to wait for a process that holds the lock of a SQLite file; the wait blocks the event loop. */
  lockWaitMs?: number | undefined
  /** Given for a store that serves requests; SQLite then syncs its commits outside the event loop. */
  serving?: ServingOptions
  /** Whether a command opens it, whose statements may take hours. */
  isCommand?: true
  /** How many processes of the instance open this database and share the connections of the instance. */
  processes?: number
  report?: Report
  /** Receives a sentence while opening: what a migration waits for, or that the log of SQLite is damaged. */
  onWait?: (message: string) => void
  observe?: Observe | undefined
}

export interface ServingOptions {
  /** Whether this process checkpoints the write-ahead log of SQLite; one process of an instance does. */
  checkpoints: boolean
  /**
   * Called once if a sync of the database has failed. The store refuses every call from then on; the caller must make the other
   * processes of the instance give up too (`giveUp`). All of them must end by an explicit exit or a signal: Node.js closes an
   * open database when the event loop runs empty, and closing copies the log without verifying its checksums. The next start
   * recovers the log.
   */
  onBroken: (error: StoreUnavailable) => void
}

/** The database can't be opened; the message is for the operator. */
export class CannotOpenStore extends Error {
  override name = 'CannotOpenStore'
  /** Whether a later attempt may succeed: the database is unavailable, or another process holds its lock. */
  readonly transient: boolean
  /** The words of a command that completes the message; empty if there is none. */
  readonly command: readonly string[]
  constructor(
    message: string,
    {
      transient = false,
      command = [],
      ...options
    }: ErrorOptions & { transient?: boolean; command?: readonly string[] } = {},
  ) {
    super(message, options)
    this.transient = transient
    this.command = command
  }
}

/** The database does not exist, and the caller did not ask to create it. */
export class NoDatabase extends CannotOpenStore {
  override name = 'NoDatabase'
  constructor(
    database: string,
    message = `There is no petstore database at ${database}. The service creates one when it starts; --database or DATABASE_URL names another.`,
  ) {
    super(message)
  }
}

export interface PetStore {
  /**
   * Adds an animal and resolves once it is durable, never before. With `idempotency`, a retry finds the first animal
   * instead of adding another; the idempotency record is stored in the same transaction as the animal.
   */
  create(newPet: NewPet, idempotency?: Idempotency, addition?: Addition): Promise<Created>

  /** Adds many animals in one short transaction. */
  createMany(newPets: readonly NewPet[], addition?: Addition): Promise<void>

  /** Resolves with undefined if there is no such animal. */
  get(id: bigint): Promise<Pet | undefined>

  /** Resolves with undefined if there is no such animal, or this was not recorded. */
  addition(id: bigint): Promise<Addition | undefined>

  /** The same of many animals, by id; those of which it is unknown are absent. */
  additions(ids: readonly bigint[]): Promise<Map<bigint, Addition>>

  /**
   * Resolves with at most `limit` animals that pass the filters, by id descending: those with the highest ids, the highest below
   * `before`, or the lowest above `after`. A query has at most one of these two. As JSON, it takes what the API can ask for.
   */
  list(query: Omit<ListQuery, 'after'>, as: 'json'): Promise<RenderedPets>
  list(query: PetList): Promise<Pet[]>

  /**
   * Changes an animal if it still equals `expected`, and adds the audit event, in words, in the same transaction. After a concurrent
   * change nothing is written, and the outcome has the animal as it is now.
   */
  update(id: bigint, expected: NewPet, wanted: NewPet, author: Author): Promise<Updated>

  /**
   * Removes an animal for good if it still equals `expected`, and adds the audit event in the same transaction: its detail keeps
   * what the animal was. The id is never assigned again, and a replay of the animal's create still gets the first answer.
   */
  remove(id: bigint, expected: NewPet, author: Author): Promise<Removed>

  /** Resolves with a page of who added, changed and removed animals, newest first. */
  changes(query: ChangeQuery): Promise<PetChanges>

  /** Resolves with a page of the animals whose names have the words, newest first, as far as one request reads. */
  search(query: PetSearch): Promise<FoundPets>

  /**
   * Counts the animals of each status, or those in a category, each up to `most` (`COUNTED_MOST`) and one more. What other processes have changed
   * may count a few seconds later.
   */
  countByStatus(categoryId?: bigint, most?: number): Promise<PetCounts>

  /** Removes a batch of the idempotency records made before `before`; resolves with how many, 0 when none is left. */
  purgeIdempotencyRecords(before: number): Promise<number>
}

/** A search by filters and at least one word (`wordsOf`), each of which must be somewhere in the folded name. */
export interface PetSearch extends Filters, Pick<PetList, 'categoryId' | 'inShop' | 'before'> {
  words: readonly string[]
  limit: number
  /** Whether to count all that match, as far as one request reads. */
  isCounted?: boolean
  /** Ends the search when it aborts: it rejects with its reason. */
  signal?: AbortSignal | undefined
}

export interface FoundPets {
  pets: Pet[]
  /** Where the next page starts (`before`); undefined if the search has reached its end. */
  next: bigint | undefined
  /** Whether the page has as many animals as it may. If not, what follows `next` was not searched. */
  isFull: boolean
  /** How many animals with the words, and the category, have each status: only of those statuses whose animals were all read. */
  counts: Partial<PetCounts>
}

export type Created =
  | { outcome: 'created' | 'replayed'; pet: Pet }
  /** The idempotency key was used for another animal. */
  | { outcome: 'mismatch' }
  /** The first request with this key is still running, after a wait of some seconds. */
  | { outcome: 'in progress' }

/** Nothing was written: the animal was changed since, or there is none. */
export type NotWritten = { outcome: 'conflict'; pet: Pet } | { outcome: 'missing' }
type Updated = { outcome: 'updated' } | NotWritten
export type Removed = { outcome: 'removed' } | NotWritten
