// Creates, changes and removes accounts and keys for the console and the command line. Each change writes an audit event.
import { hash } from 'node:crypto'
import type { Environment } from '../contract/operations.ts'
import { entryOf } from '../contract/entry-of.ts'
import { FieldProblem } from '../contract/errors.ts'
import { type Account, ACTIVE_KEYS_MOST, type ApiKey, type AuditEvent, type Role } from '../store/account-store.ts'
import { isPerson, type Link } from '../store/people-store.ts'
import type { Store } from '../store/store.ts'
import { generateKey, hashKey, isExpired, randomText, textFrom } from './api-keys.ts'
import { newToken } from './sessions.ts'
import { hashPassword, isTooLongPassword, passwordProblem, verifyPassword } from './passwords.ts'

const EMAIL_MAX_LENGTH = 254
/** Without characters that can't be seen: two accounts must not look the same to a manager. */
const EMAIL_SHAPE = /^[^\s@\p{Cc}\p{Default_Ignorable_Code_Point}]+@[^\s@\p{Cc}\p{Default_Ignorable_Code_Point}]+$/u
export const KEY_NAME_MAX_LENGTH = 100
const ID_LENGTH = 16

/** Where a change was made. */
export type Via = 'console' | 'command line'

interface AccountsParts {
  store: Pick<Store, 'accounts'>
  environment: Environment
  clock: () => number
  /** Called when a key is revoked or an account is removed. Resolves when this instance refuses the revoked keys. */
  onRevoked?: () => Promise<void>
}

export const ROLE_WORDS: Record<Role, string> = {
  manager: 'Manager',
  member: 'Member',
  keyless: 'Member without keys',
}

/** How long a link of a manager works. */
export const LINK_DAYS = 7

export interface MadeKey {
  key: ApiKey
  secret: string
}

export class Accounts {
  readonly #store: Pick<Store, 'accounts'>
  readonly #environment: Environment
  readonly #clock: () => number
  readonly #onRevoked: () => Promise<void>

  constructor({ store, environment, clock, onRevoked = async () => {} }: AccountsParts) {
    this.#store = store
    this.#environment = environment
    this.#clock = clock
    this.#onRevoked = onRevoked
  }

  /**
   * Creates an account, for the first person that of a manager if `isTrusted`. Here and below, aborting `signal` ends the wait
   * for the password hash and rejects, and a success uses up the link.
   */
  async create(
    email: string,
    password: string,
    via: Via,
    signal?: AbortSignal,
    isTrusted = via === 'command line',
    link?: Link,
  ): Promise<Account | FieldProblem> {
    const { accounts } = this.#store
    const problem = emailProblem(email) ?? passwordFieldProblem(password)
    if (problem !== undefined) return problem
    const passwordHash = await hashPassword(password, signal)
    const id = `acct_${randomText(ID_LENGTH)}`
    const isFirst = isTrusted && isPerson({ email }) && !(await accounts.listAccounts()).some(isPerson)
    const role: Role = isFirst ? 'manager' : 'member'
    const account = { id, email, passwordHash, createdAt: this.#clock(), role }
    const event = this.#event(id, 'account.created', via, email, link)
    if (await accounts.createAccount(account, event, link?.hash)) return account
    if (link !== undefined && (await accounts.accountByEmail(email)) === undefined) return NO_LINK
    return new FieldProblem('email', `There is already an account for ${email}.`)
  }

  /** Resolves with undefined if the password is wrong or, after the same time, if no account has this email address. */
  async signIn(email: string, password: string, signal?: AbortSignal): Promise<Account | undefined> {
    const account = await this.#store.accounts.accountByEmail(email)
    return (await verifyPassword(password, account?.passwordHash, signal)) ? account : undefined
  }

  /** Changes the password and ends all sessions of the account; resolves with the changed account. */
  async changePassword(
    account: Account,
    password: string,
    via: Via,
    signal?: AbortSignal,
    link?: Link,
  ): Promise<Account | FieldProblem> {
    const problem = passwordFieldProblem(password)
    if (problem !== undefined) return problem
    const event = this.#event(account.id, 'account.password_changed', via, account.email, link)
    const passwordHash = await hashPassword(password, signal)
    const { accounts } = this.#store
    const isChanged = await accounts.setPassword(account.id, passwordHash, event, account.passwordHash, link?.hash)
    if (isChanged) return { ...account, passwordHash }
    if (link !== undefined) return NO_LINK
    return (await this.#store.accounts.accountById(account.id)) === undefined
      ? new NoAccount(account)
      : new FieldProblem('current', 'The password was changed meanwhile. Try again.')
  }

  /** Removes the account and its keys. Here and below, `by` is the account that does it in the console. */
  async remove(account: Account, via: Via, by = account): Promise<FieldProblem | undefined> {
    const event = this.#event(by.id, 'account.removed', via, account.email)
    const isRemoved = await this.#store.accounts.removeAccount(account.id, event, account.role)
    await this.#onRevoked()
    return isRemoved ? undefined : this.#whyNotChanged(account)
  }

  /** Changes the role. An account that becomes `keyless` loses its keys. */
  async setRole(account: Account, role: Role, via: Via, by = account): Promise<FieldProblem | undefined> {
    const detail = `Role: ${roleWords(account)} → ${ROLE_WORDS[role]}`
    const event = { ...this.#event(by.id, 'account.role_changed', via, account.email), detail }
    const isChanged = account.role === role || (await this.#store.accounts.setRole(account, role, event))
    await this.#onRevoked()
    return isChanged ? undefined : this.#whyNotChanged(account)
  }

  /**
   * Resolves with the token of a new link for this account; without one, of an invitation. Resolves with undefined if the account
   * was removed meanwhile, or `by` is a manager no more.
   */
  async makeLink(by: Account, account?: Account): Promise<string | undefined> {
    const token = newToken()
    const event = account
      ? this.#event(by.id, 'account.link_made', 'console', account.email)
      : this.#event(by.id, 'account.invited', 'console', `valid for ${LINK_DAYS} days`)
    const expiresAt = event.at + LINK_DAYS * 86_400_000
    const isMade = await this.#store.accounts.createLink(hash('sha256', token), account?.id, expiresAt, event)
    return isMade ? token : undefined
  }

  findLink(token: string): Promise<Link | undefined> {
    return this.#store.accounts.linkByHash(hash('sha256', token), this.#clock())
  }

  async #whyNotChanged(account: Account): Promise<FieldProblem> {
    const now = await this.#store.accounts.accountById(account.id)
    if (now === undefined) return new NoAccount(account)
    if (now.role === account.role) return LAST_MANAGER
    return new FieldProblem('', `Nothing was changed: meanwhile the role became ${roleWords(now)}.`)
  }

  /**
   * Resolves with the key and its secret, which can't be read again: the store has only its hash. The key's id is derived
   * from `formId`, so that a form that is sent twice creates one key; its second request resolves with `KEY_EXISTS`.
   */
  async createKey(
    account: Account,
    name: string,
    expiresAt: number | undefined,
    via: Via,
    formId = randomText(ID_LENGTH),
  ): Promise<MadeKey | FieldProblem> {
    const problem = keyProblem(name, expiresAt, this.#clock())
    if (problem !== undefined) return problem
    const secret = generateKey(this.#environment)
    const key: ApiKey = {
      id: `key_${textFrom(`${account.id} ${formId}`, ID_LENGTH)}`,
      accountId: account.id,
      name,
      environment: this.#environment,
      lastFour: secret.slice(-4),
      createdAt: this.#clock(),
      expiresAt,
      revokedAt: undefined,
      lastUsedAt: undefined,
    }
    const event = this.#event(account.id, 'key.created', via, `${name} (${key.id})`)
    const outcome = await this.#store.accounts.createKey({ ...key, hash: hashKey(secret) }, event)
    if (outcome === 'no account') return new NoAccount(account)
    if (outcome === 'too many') return TOO_MANY_KEYS
    if (outcome === 'no right') return NO_RIGHT_TO_KEYS
    return outcome === 'created' ? { key, secret } : KEY_EXISTS
  }

  /** Resolves with false if the key was already revoked. */
  async revokeKey(key: ApiKey, via: Via): Promise<boolean> {
    const event = this.#event(key.accountId, 'key.revoked', via, `${key.name} (${key.id})`)
    const revoked = await this.#store.accounts.revokeKey(key.id, this.#clock(), event)
    await this.#onRevoked()
    return revoked
  }

  async renameKey(key: ApiKey, name: string, via: Via): Promise<FieldProblem | undefined> {
    const problem = keyProblem(name, undefined, this.#clock())
    if (problem !== undefined || name === key.name) return problem
    const event = {
      ...this.#event(key.accountId, 'key.renamed', via, `${name} (${key.id})`),
      detail: `Name: ${key.name} → ${name}`,
    }
    await this.#store.accounts.renameKey(key.id, name, event)
    return undefined
  }

  #event(accountId: string, action: AuditEvent['action'], via: Via, subject: string, link?: Link): AuditEvent {
    const event = { at: this.#clock(), accountId, action, via, subject }
    return link === undefined ? event : { ...event, detail: `by a link of ${link.maker}` }
  }
}

/** The account was removed between its look-up and the change. */
export class NoAccount extends FieldProblem {
  constructor({ email }: Account) {
    super('', `There is no account for ${email}: it was removed meanwhile.`)
  }
}

export const KEY_EXISTS = new FieldProblem('', 'This form has already created its key.')

export function roleWords({ role }: Account): string {
  return entryOf(ROLE_WORDS, role) ?? role
}

/** The link was used, has expired or was voided meanwhile. */
export const NO_LINK = new FieldProblem('', 'The link does not work any more.')

const LAST_MANAGER = new FieldProblem('', 'This is the only manager. Make another person a manager first.')

export const NO_RIGHT_TO_KEYS = new FieldProblem('', 'A manager has taken away the right to keys from this account.')

const TOO_MANY_KEYS = new FieldProblem(
  '',
  `The account has ${ACTIVE_KEYS_MOST} active keys or more. Revoke one that is no longer used first.`,
)

/** Returns whether the email address or the password is longer than any account's. The limits are public. */
export function isTooLongToSignIn(email: string, password: string): boolean {
  return email.length > EMAIL_MAX_LENGTH || isTooLongPassword(password)
}

export function emailProblem(email: string): FieldProblem | undefined {
  if (email.length <= EMAIL_MAX_LENGTH && EMAIL_SHAPE.test(email) && email.isWellFormed()) return undefined
  return new FieldProblem(
    'email',
    `The email address must have the form name@host, at most ${EMAIL_MAX_LENGTH} characters and none that is invisible, got ${JSON.stringify(email.slice(0, 60))}.`,
  )
}

function passwordFieldProblem(password: string): FieldProblem | undefined {
  const message = passwordProblem(password)
  return message === undefined ? undefined : new FieldProblem('password', message)
}

function keyProblem(name: string, expiresAt: number | undefined, now: number): FieldProblem | undefined {
  if (name.trim() === '') return new FieldProblem('name', 'Enter a name')
  const length = [...name].length
  if (length > KEY_NAME_MAX_LENGTH || /\p{Cc}/u.test(name) || !name.isWellFormed()) {
    return new FieldProblem(
      'name',
      `The key's name must have at most ${KEY_NAME_MAX_LENGTH} characters, all of them printable, got ${length} characters.`,
    )
  }
  return isExpired({ expiresAt }, now)
    ? new FieldProblem('expires', 'The expiry date must be in the future.')
    : undefined
}
