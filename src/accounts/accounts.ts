// Creates, changes and removes accounts and keys for the console and the command line. Each change writes an audit event.
import { hash } from 'node:crypto'
import type { Environment } from '../contract/environments.ts'
import { FieldProblem, InvalidFields } from '../contract/errors.ts'
import type { Account, ApiKey, AuditEvent, Role } from '../store/account-store.ts'
import { FIRST_RUN_EMAIL, type Invited, isPerson, type Link, LINK_DAYS } from '../store/people-store.ts'
import type { Store } from '../store/store.ts'
import {
  KEY_CHANGED,
  KEY_EXISTS,
  keyProblem,
  LAST_MANAGER,
  nameProblem,
  NameTaken,
  newAccountProblems,
  NO_LINK,
  NO_RIGHT_TO_KEYS,
  NoAccount,
  passwordFieldProblem,
  RESERVED,
  TOO_MANY_KEYS,
} from './account-problems.ts'
import { generateKey, hashKey, randomText, textFrom } from './api-keys.ts'
import { ROLE_WORDS, roleWords } from './roles.ts'
import { newToken } from './sessions.ts'
import { hashPassword, verifyPassword } from './passwords.ts'

const ID_LENGTH = 16

export type Via = 'console' | 'command line'

interface AccountsParts {
  store: Pick<Store, 'accounts'>
  environment: Environment
  clock: () => number
  /** Called when a key is revoked or an account is removed. Resolves when this instance refuses the revoked keys. */
  onRevoked?: () => Promise<void>
}

interface CreateOptions {
  name?: string | undefined
  signal?: AbortSignal
  isTrusted?: boolean
  link?: Link | undefined
}

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
   * Creates an account, or resolves with all that is wrong; the first person becomes a manager if `isTrusted`. Here and below, aborting
   * `signal` ends the wait for the password hash and rejects, and a success uses up the link.
   */
  async create(
    email: string,
    password: string,
    via: Via,
    { name, signal, isTrusted = via === 'command line', link }: CreateOptions = {},
  ): Promise<Account | InvalidFields> {
    const { accounts } = this.#store
    const problems = () => newAccountProblems(accounts, { name, email, password })
    // Looked for before the hash, which takes long.
    const found = await problems()
    if (found.length > 0) return new InvalidFields(found)
    const passwordHash = await hashPassword(password, signal)
    const id = `acct_${randomText(ID_LENGTH)}`
    const isFirst = isTrusted && !(await accounts.listAccounts()).some(isPerson)
    const role: Role = isFirst ? 'manager' : 'member'
    const account: Account = { id, email, passwordHash, createdAt: this.#clock(), role, ...(name && { name }) }
    const event = this.#event(id, 'account.created', via, email, link)
    if (await accounts.createAccount(account, event, link?.hash)) return account
    const taken = await problems()
    return new InvalidFields(taken.length > 0 ? taken : [NO_LINK])
  }

  /** Creates the account of the key that a first start prints. Its password is random and not kept. */
  async createFirstRun(): Promise<Account | undefined> {
    const id = `acct_${randomText(ID_LENGTH)}`
    const passwordHash = await hashPassword(randomText(40))
    const account: Account = { id, email: FIRST_RUN_EMAIL, passwordHash, createdAt: this.#clock(), role: 'member' }
    const event = this.#event(id, 'account.created', 'command line', FIRST_RUN_EMAIL)
    return (await this.#store.accounts.createAccount(account, event)) ? account : undefined
  }

  /** Gives a person a name, which the history shows from then on. */
  async setName(account: Account, name: string, via: Via): Promise<FieldProblem | undefined> {
    const problem = nameProblem(name)
    if (problem !== undefined || name === account.name) return problem
    const detail = `Name: ${JSON.stringify(account.name ?? '')} → ${JSON.stringify(name)}`
    const event = { ...this.#event(account.id, 'account.renamed', via, account.email), detail }
    if (await this.#store.accounts.setName(account.id, name, event)) return undefined
    const now = await this.#store.accounts.accountById(account.id)
    if (now === undefined) return new NoAccount(account)
    return now.name === name ? undefined : new NameTaken(name)
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
    const problem = isPerson(account) ? passwordFieldProblem(password) : RESERVED
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
    return isRemoved ? undefined : this.#whyNotChanged(account, by)
  }

  /** Changes the role. An account that becomes `keyless` loses its keys. Succeeds if `by` has just made the same change. */
  async setRole(account: Account, role: Role, via: Via, by = account): Promise<FieldProblem | undefined> {
    if (!isPerson(account)) return RESERVED
    const detail = `Role: ${roleWords(account)} → ${ROLE_WORDS[role]}`
    const event = {
      ...this.#event(by.id, 'account.role_changed', via, account.email),
      detail,
      ...about(account, by, `${detail}, `),
    }
    const isChanged = account.role !== role && (await this.#store.accounts.setRole(account, role, event))
    await this.#onRevoked()
    return isChanged ? undefined : this.#whyNotChanged(account, by, role)
  }

  /**
   * Resolves with the token of a new link for the password of an account, or of an invitation. Resolves with undefined if the account is
   * no person or was removed meanwhile, or `by` is a manager no more.
   */
  async makeLink(by: Account, to: Account | Invited): Promise<string | undefined> {
    const account = 'email' in to ? to : undefined
    if (account !== undefined && !isPerson(account)) return undefined
    const token = newToken()
    const event = account
      ? { ...this.#event(by.id, 'account.link_made', 'console', account.email), ...about(account, by) }
      : this.#event(by.id, 'account.invited', 'console', `${to.name}, ${roleWords(to)}, for ${LINK_DAYS} days`)
    const expiresAt = event.at + LINK_DAYS * 86_400_000
    const isFor = 'email' in to ? to.id : to
    const isMade = await this.#store.accounts.createLink(hash('sha256', token), isFor, expiresAt, event)
    return isMade ? token : undefined
  }

  findLink(token: string): Promise<Link | undefined> {
    return this.#store.accounts.linkByHash(hash('sha256', token), this.#clock())
  }

  /** Withdraws a link that was not used; `id` is its hash. Succeeds if `by` has just withdrawn it. */
  async withdrawLink(id: string, by: Account): Promise<FieldProblem | undefined> {
    const { accounts } = this.#store
    const link = await accounts.linkByHash(id, this.#clock())
    const event = this.#event(by.id, 'account.link_withdrawn', 'console', `Link ${id.slice(0, 8)}`)
    const detail = `${link?.account?.email ?? 'an invitation'}, made by ${link?.maker}`
    if (link !== undefined && (await accounts.removeLink(id, { ...event, detail }))) return undefined
    const { isOwn, words } = await this.lastDone(event.action, event.subject, by)
    if (isOwn) return undefined
    const how = words === '' ? 'was used or has expired' : `was withdrawn already${words}`
    return new FieldProblem('', `Nothing was changed: the link ${how}.`)
  }

  async #whyNotChanged(account: Account, by: Account, wanted?: Role): Promise<FieldProblem | undefined> {
    const now = await this.#store.accounts.accountById(account.id)
    if (now === undefined) return new NoAccount(account)
    if (now.role === account.role) return wanted === now.role ? undefined : LAST_MANAGER
    const { isOwn, words } = await this.lastDone('account.role_changed', account.email, by)
    if (isOwn && wanted === now.role) return undefined
    return new FieldProblem('', `Nothing was changed: meanwhile the role became ${roleWords(now)}${words}.`)
  }

  /** Resolves with who did this last and when, in words, as far as the audit trail tells. `isOwn`: it was this account, in the console. */
  async lastDone(actions: string, subject: string, own: Account): Promise<{ isOwn: boolean; words: string }> {
    const last = await this.#store.accounts.lastEvent(actions, subject)
    if (last === undefined) return { isOwn: false, words: '' }
    const isInConsole = last.via === 'console'
    const name = (await this.#store.accounts.namesOf([last.accountId])).get(last.accountId) ?? 'a deleted account'
    const time = new Date(last.at).toISOString().slice(0, 16).replace('T', ' ')
    return {
      isOwn: isInConsole && last.accountId === own.id,
      words: ` (${isInConsole ? name : `on the ${last.via}`}, ${time} UTC)`,
    }
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
    const event = this.#event(account.id, 'key.created', via, keySubject(key))
    const outcome = await this.#store.accounts.createKey({ ...key, hash: hashKey(secret) }, event)
    if (outcome === 'no account') return new NoAccount(account)
    if (outcome === 'too many') return TOO_MANY_KEYS
    if (outcome === 'no right') return NO_RIGHT_TO_KEYS
    return outcome === 'created' ? { key, secret } : KEY_EXISTS
  }

  /** Resolves with false if the key was already revoked. */
  async revokeKey(key: ApiKey, via: Via, by?: Account): Promise<boolean> {
    const event = this.#event(by?.id ?? key.accountId, 'key.revoked', via, keySubject(key))
    const owner = by && by.id !== key.accountId && (await this.#store.accounts.accountById(key.accountId))
    const noted = owner ? { ...event, detail: `a key of ${owner.email}`, ...about(owner, by) } : event
    const revoked = await this.#store.accounts.revokeKey(key.id, this.#clock(), noted)
    await this.#onRevoked()
    return revoked
  }

  /** Revokes a key in the console: of one's own or, for a manager, of anybody. Succeeds if `by` has just revoked it. */
  async revokeFor(by: Account, key: ApiKey): Promise<FieldProblem | undefined> {
    if (await this.revokeKey(key, 'console', by)) return undefined
    const { isOwn, words } = await this.lastDone('key.revoked', keySubject(key), by)
    return isOwn ? undefined : new FieldProblem('', `Nothing was changed: the key was revoked already${words}.`)
  }

  async renameKey(key: ApiKey, name: string, via: Via): Promise<FieldProblem | undefined> {
    const problem = keyProblem(name, undefined, this.#clock())
    if (problem !== undefined || name === key.name) return problem
    const event = {
      ...this.#event(key.accountId, 'key.renamed', via, keySubject({ id: key.id, name })),
      detail: `Name: ${JSON.stringify(key.name)} → ${JSON.stringify(name)}`,
    }
    if (await this.#store.accounts.renameKey(key, name, event)) return undefined
    // Only its owner renames a key, so the form was sent twice.
    return (await this.#store.accounts.keyById(key.id))?.name === name ? undefined : KEY_CHANGED
  }

  #event(accountId: string, action: AuditEvent['action'], via: Via, subject: string, link?: Link): AuditEvent {
    const event = { at: this.#clock(), accountId, action, via, subject }
    return link === undefined ? event : { ...event, detail: `by a link of ${link.maker}` }
  }
}

/** For the event of what a manager does to another account: the log of that account says by whom. */
function about({ id: accountId }: Account, by: Account, detail = ''): Pick<AuditEvent, 'about'> {
  return accountId === by.id ? {} : { about: { accountId, detail: `${detail}by ${by.email}` } }
}

function keySubject({ id, name }: Pick<ApiKey, 'id' | 'name'>): string {
  return `${name} (${id})`
}
