// The port for what accounts have: API keys, sessions, usage, failed requests and the audit trail.
import type { Environment } from '../contract/environments.ts'
import type { PetValues } from '../contract/pet-words.ts'
import type { Pet } from '../contract/pets.ts'
import type { Addition } from './pet-columns.ts'

/** What an account may do in the console; `keyless` is a member without the right to keys. A newer program may have written another. */
export type Role = 'manager' | 'member' | 'keyless'

export interface Account {
  id: string
  email: string
  passwordHash: string
  createdAt: number
  role: Role
  /** Unique by `foldName`; undefined for who has only an address. */
  name?: string
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

/** What is done to animals, which Changes shows. */
const PET_ACTIONS = ['pet.changed', 'pet.removed'] as const
export type PetAction = (typeof PET_ACTIONS)[number]

/** What happened to an animal: its values, and when and by whom one that was removed had been added, by id: no name of a deleted account stays. */
export type PetData = PetValues & { added?: Addition }

/** An entry of the audit trail to add; entries are never changed. */
export interface AuditEvent {
  at: number
  accountId: string
  action:
    | 'account.created'
    | 'account.invited'
    | 'account.link_made'
    | 'account.link_withdrawn'
    | 'account.password_changed'
    | 'account.removed'
    | 'account.renamed'
    | 'account.role_changed'
    | 'key.created'
    | 'key.renamed'
    | 'key.revoked'
    | 'category.added'
    | 'category.renamed'
    | 'category.removed'
    | PetAction
    | 'session.started'
    | 'session.refused'
    | 'session.ended'
  /** Where the action was taken: `console` or `command line`. */
  via: string
  /** The object of the action: an email address, or the name and id of a key, an animal or a category. */
  subject: string
  /** From what to what something was changed, in words that nothing parses. */
  detail?: string
  /** The animal of a `PetAction`, and what happened to it. */
  petId?: bigint
  data?: PetData
  /** The change of many at once that it is a part of. */
  batchId?: bigint
  /** An account that somebody else did this to: its log has the event too, with this detail, before that of who did it. */
  about?: { accountId: string; detail: string }
}

/** Who does something, when and from where, and in which batch. */
export type Author = Pick<AuditEvent, 'at' | 'accountId' | 'via' | 'batchId'>

/** An entry as it is read. A newer program may have written an action that this one does not know. */
export type RecordedEvent = Omit<AuditEvent, 'action' | 'about'> & { action: string }

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

/** A count over some time. */
export type KeyCalls = Pick<UsageCount, 'keyId' | 'operation' | 'calls'>

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

/** Which keys of an account, or of all accounts, to list, newest first. */
export interface KeyQuery {
  accountId?: string | undefined
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
  /** Resolves with false if there is no such key, or its name is no longer `key.name`. */
  renameKey(key: Pick<ApiKey, 'id' | 'name'>, name: string, event: AuditEvent): Promise<boolean>

  /** Adds to the counts and updates the last use of each key. Counts of keys that no longer exist are dropped. */
  recordUsage(counts: readonly UsageCount[], lastUsed: ReadonlyMap<string, number>): Promise<void>
  /** Adds up the counts of an account's keys since `hour`, oldest hour first. */
  usageSince(accountId: string, hour: number): Promise<HourlyCount[]>
  /** Adds up the counts of each of these keys since `hour`. */
  callsSince(keyIds: readonly string[], hour: number): Promise<KeyCalls[]>
  /** Adds failed requests; keeps the newest `FAILED_REQUESTS_KEPT` of each account. Drops those of removed accounts. */
  recordFailures(failed: readonly FailedRequest[]): Promise<void>
  /** Newest first. */
  failedRequests(accountId: string, limit: number): Promise<FailedRequest[]>
  purgeUsage(before: number): Promise<void>

  /** Resolves with false if the account's password hash is no longer the one that was verified, or the account no longer exists. */
  createSession(session: Session, passwordHash: string, event: AuditEvent): Promise<boolean>
  /** Resolves with undefined if there is no such session. The caller decides whether it is still valid. */
  sessionByHash(tokenHash: Uint8Array): Promise<Session | undefined>
  touchSession(tokenHash: Uint8Array, lastSeenAt: number): Promise<void>
  /** Resolves with false if there is no such session. */
  endSession(tokenHash: Uint8Array, event: AuditEvent): Promise<boolean>
  /** Removes sessions created or last seen before these times, or last seen after `seenAfter`. */
  purgeSessions(createdBefore: number, seenBefore: number, seenAfter: number): Promise<void>

  /** Adds an event without a change, such as a refused sign-in. */
  appendEvent(event: AuditEvent): Promise<void>
}

/** Returns the animal that an event is about, and names it. */
export function aboutPet({ id, name }: Pet): { petId: bigint; subject: string } {
  return { petId: id, subject: `${name} (${id})` }
}

/** The same in SQL. */
export const PET_SUBJECT = `name || ' (' || id || ')'`

const LISTED = PET_ACTIONS.map((action) => `'${action}'`).join(', ')

/** Selects the events of animals, or all others, those of a newer program included. Indexes have these conditions. */
export const OF_PETS = `action IN (${LISTED})`
export const NOT_OF_PETS = `action NOT IN (${LISTED})`
