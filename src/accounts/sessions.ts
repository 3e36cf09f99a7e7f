// Starts, finds and ends console sessions. The store keeps them, so that every instance knows them and can end them.
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { SESSION_MINUTES } from '../contract/limits.ts'
import type { Account, AuditEvent, Session } from '../store/account-store.ts'
import { type Store, StoreUnavailable } from '../store/store.ts'

/** A session ends after the idle time without use, which a setting may change, and after the maximum in any case. */
export const SESSION_IDLE_MS = SESSION_MINUTES.idle * 60_000
export const SESSION_MAX_MS = SESSION_MINUTES.most * 60_000

/** How far the clocks of two instances may differ. A session from further in the future began while a clock was ahead. */
export const CLOCK_SKEW_MS = 5 * 60_000

/** The time between two updates of a session's last use: most page views only read. */
const UPDATE_EVERY_MS = 60_000

/** 32 bytes as base64url. */
const TOKEN_SHAPE = /^[\w-]{43}$/

export interface SignedIn {
  account: Account
  session: Session
}

export class Sessions {
  readonly #store: Pick<Store, 'accounts'>
  readonly #clock: () => number
  readonly #idleMs: number
  /** When a last use could not be written. */
  #moveFailedAt = -Infinity

  constructor(store: Pick<Store, 'accounts'>, clock: () => number, idleMs = SESSION_IDLE_MS) {
    this.#store = store
    this.#clock = clock
    this.#idleMs = idleMs
  }

  /**
   * Starts a session and resolves with its token, which only the browser keeps: the store has its hash. Resolves with
   * undefined if the account's password was changed since it was verified.
   */
  async start(account: Account, address: string): Promise<string | undefined> {
    const token = newToken()
    const now = this.#clock()
    const session = { tokenHash: hashToken(token), accountId: account.id, createdAt: now, lastSeenAt: now }
    const event = this.#event(account, 'session.started', address)
    return (await this.#store.accounts.createSession(session, account.passwordHash, event)) ? token : undefined
  }

  /** Resolves with undefined if there is no such session, it is not valid at this time, or its account no longer exists. */
  async find(token: string): Promise<SignedIn | undefined> {
    const session = await this.#store.accounts.sessionByHash(hashToken(token))
    const now = this.#clock()
    if (session === undefined || !isValid(session, now, this.#idleMs)) return undefined
    const account = await this.#store.accounts.accountById(session.accountId)
    if (account === undefined) return undefined
    if (now - session.lastSeenAt >= UPDATE_EVERY_MS) await this.#move(session, now)
    return { account, session }
  }

  /** Ends a session, also one that is not valid now: it may be later, or when the clock is set right. */
  async end(token: string, address: string): Promise<void> {
    const tokenHash = hashToken(token)
    const session = await this.#store.accounts.sessionByHash(tokenHash)
    const account = session && (await this.#store.accounts.accountById(session.accountId))
    if (account === undefined) return
    await this.#store.accounts.endSession(tokenHash, this.#event(account, 'session.ended', address))
  }

  /** Adds a refused sign-in to the security log, which the account's owner sees. */
  async noteRefusal(account: Account, address: string): Promise<void> {
    await this.#store.accounts.appendEvent(this.#event(account, 'session.refused', address))
  }

  async purge(): Promise<void> {
    const now = this.#clock()
    // Not sessions just beyond CLOCK_SKEW_MS: for an instance whose clock is behind, those of all others are from the future.
    await this.#store.accounts.purgeSessions(now - SESSION_MAX_MS, now - this.#idleMs, now + SESSION_MAX_MS)
  }

  /**
   * Updates the last use, unless the database accepts no writes now: pages that only read need none. After a failure the next
   * try waits: each one costs the connections to a read-only PostgreSQL, or the time limit of a call.
   */
  async #move({ tokenHash }: Session, now: number): Promise<void> {
    // A clock that was set back by more than the wait ends it.
    if (Math.abs(now - this.#moveFailedAt) < UPDATE_EVERY_MS) return
    try {
      await this.#store.accounts.touchSession(tokenHash, now)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      this.#moveFailedAt = now
    }
  }

  #event(account: Account, action: AuditEvent['action'], address: string): AuditEvent {
    return {
      at: this.#clock(),
      accountId: account.id,
      action,
      via: 'console',
      subject: `${account.email} from ${address}`,
    }
  }
}

export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

export function isToken(text: string | undefined): text is string {
  return text !== undefined && TOKEN_SHAPE.test(text)
}

/** Returns the CSRF token for forms: an HMAC under the cookie's token, which another site can't read. */
export function csrfToken(token: string): string {
  return createHmac('sha256', token).update('form').digest('base64url')
}

export function isCsrfToken(token: string, given: string): boolean {
  return isEqualInConstantTime(csrfToken(token), given)
}

/** Compares a signature in a time that does not reveal how much of it is right. */
export function isEqualInConstantTime(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)]
  return one.length === other.length && timingSafeEqual(one, other)
}

function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** A session from the future is not valid before that time: while the clock is wrong, its age is unknown. */
function isValid({ createdAt, lastSeenAt }: Session, now: number, idleMs: number): boolean {
  const isFromFuture = lastSeenAt - now > CLOCK_SKEW_MS
  return !isFromFuture && now - createdAt < SESSION_MAX_MS && now - lastSeenAt < idleMs
}
