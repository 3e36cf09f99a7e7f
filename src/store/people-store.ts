// The port for people: their accounts and roles, and the links that managers pass on. The statements are the same in both engines.
import { type Account, type AuditEvent, foldEmail, type Role } from './account-store.ts'
import type { Read } from './pet-columns.ts'

/** The account of the key that a first start prints (cli/serve.ts). Nobody can sign in to it, so it does not count as a person. */
export const FIRST_RUN_EMAIL = 'first-run@localhost'

export function isPerson({ email }: Pick<Account, 'email'>): boolean {
  return foldEmail(email) !== FIRST_RUN_EMAIL
}

/** `lastSeenAt` is the last use of a session that has not been purged, else the last sign-in or sign-out; 0 for never. */
export type Person = Account & { lastSeenAt: number }

/** A link that works: an invitation or, with an account, a way to set its password. Its token is not stored, only the hash. */
export interface Link {
  hash: string
  /** The email address of the manager who made it. */
  maker: string
  account: Account | undefined
}

/** Each change and its audit event are one transaction. */
export interface PeopleStore {
  /** Resolves with false if the email address, compared without case, is taken, or if there is no invitation `link`, which is used up. */
  createAccount(account: Account, event: AuditEvent, link?: string): Promise<boolean>
  /** Compares without case. Resolves with undefined if there is no such account. */
  accountByEmail(email: string): Promise<Account | undefined>
  accountById(id: string): Promise<Account | undefined>
  /** Lists all accounts, oldest first. */
  listAccounts(): Promise<Account[]>
  /** Lists accounts, newest first, those behind the account `after`. */
  pageOfPeople(query: { limit: number; after?: Account | undefined }): Promise<Person[]>
  /**
   * Changes the password, ends all sessions of the account and removes its links. Resolves with false, without a change, if
   * `currentHash` is given and no longer the hash of the password, or if there is no such account or link.
   */
  setPassword(
    accountId: string,
    passwordHash: string,
    event: AuditEvent,
    currentHash?: string,
    link?: string,
  ): Promise<boolean>
  /**
   * Changes the role. An account that becomes `keyless` loses its keys; the links of one that is no manager are removed. Resolves
   * with false, without a change, if its role is no longer `account.role`, or if it is the last manager.
   */
  setRole(account: Pick<Account, 'id' | 'role'>, role: Role, event: AuditEvent): Promise<boolean>
  /**
   * Removes the account with its keys, but not its audit trail. Resolves with false if there is no such account, `role` is given
   * and no longer its role, or it is the last manager and not the last person.
   */
  removeAccount(accountId: string, event: AuditEvent, role?: Role): Promise<boolean>
  /**
   * Adds a link of the account that the event names; without `accountId`, an invitation. Resolves with false if that account is no
   * manager, or if there is no account `accountId`.
   */
  createLink(hash: string, accountId: string | undefined, expiresAt: number, event: AuditEvent): Promise<boolean>
  /** Resolves with undefined if there is no such link, it has expired, or the account that made it is no longer a manager. */
  linkByHash(hash: string, now: number): Promise<Link | undefined>
}

const ACCOUNT = 'id, email, password_hash, created_at, role'

function accountOf([id, email, passwordHash, createdAt, role]: readonly unknown[]): Account {
  return { id, email, passwordHash, createdAt: Number(createdAt), role } as Account
}

const OTHER_PERSON = `SELECT 1 FROM accounts AS other
  WHERE other.id <> accounts.id AND other.email_folded <> '${FIRST_RUN_EMAIL}'`

const MANAGER_REMAINS = `(role <> 'manager' OR EXISTS (${OTHER_PERSON} AND other.role = 'manager'))`

const LAST_SEEN = `(SELECT max(at) FROM (SELECT last_seen_at AS at FROM sessions WHERE account_id = accounts.id UNION ALL
  SELECT at FROM (SELECT at FROM audit_events WHERE account_id = accounts.id AND action IN ('session.started', 'session.ended')
    ORDER BY id DESC LIMIT 1) AS event) AS seen)`

/** A statement and its parameters $1, $2 …. */
export type Statement = readonly [text: string, ...values: (string | number | null)[]]

/**
 * Runs statements and adds the event in one transaction, one such transaction after the other. Resolves with false, without an
 * event, if the first statement changes nothing.
 */
type Change = (event: AuditEvent, first: Statement, ...others: Statement[]) => Promise<boolean>

export function peopleStore(read: Read, change: Change): PeopleStore {
  async function find(which: string, ...values: string[]): Promise<Account[]> {
    // PostgreSQL can't compare with U+0000.
    if (values.some((value) => value.includes('\0'))) return []
    return (await read(`SELECT ${ACCOUNT} FROM accounts ${which}`, values)).map(accountOf)
  }
  const accountById = async (id: string) => (await find('WHERE id = $1', id))[0]

  return {
    accountById,
    accountByEmail: async (email) => (await find('WHERE email_folded = $1', foldEmail(email)))[0],
    listAccounts: () => find('ORDER BY created_at, id'),

    async pageOfPeople({ limit, after: { createdAt, id } = { createdAt: Number.MAX_SAFE_INTEGER, id: '' } }) {
      const page = `SELECT ${ACCOUNT}, ${LAST_SEEN} FROM accounts
        WHERE (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT ${limit}`
      return (await read(page, [BigInt(createdAt), id])).map((row) => ({
        ...accountOf(row),
        lastSeenAt: Number(row[5]),
      }))
    },

    createAccount({ id, email, passwordHash, createdAt, role }, event, link) {
      const insert = `INSERT INTO accounts (id, email, email_folded, password_hash, role, created_at)
        SELECT $1, $2, $3, $4, $5, CAST($6 AS BIGINT) WHERE CAST($7 AS TEXT) IS NULL
          OR EXISTS (SELECT 1 FROM account_links WHERE hash = $7 AND account_id IS NULL) ON CONFLICT (email_folded) DO NOTHING`
      const values = [id, email, foldEmail(email), passwordHash, role, createdAt, link ?? null]
      return change(event, [insert, ...values], ['DELETE FROM account_links WHERE hash = $1', link ?? null])
    },

    setPassword(accountId, passwordHash, event, currentHash, link) {
      const update = `UPDATE accounts SET password_hash = $1 WHERE id = $2 AND password_hash = coalesce($3, password_hash)
        AND (CAST($4 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM account_links WHERE hash = $4 AND account_id = $2))`
      return change(
        event,
        [update, passwordHash, accountId, currentHash ?? null, link ?? null],
        ['DELETE FROM sessions WHERE account_id = $1', accountId],
        ['DELETE FROM account_links WHERE account_id = $1', accountId],
      )
    },

    setRole({ id, role: expected }, role, event) {
      const update = `UPDATE accounts SET role = $1 WHERE id = $2 AND role = $3 AND ($1 = 'manager' OR ${MANAGER_REMAINS})`
      const changed: Statement = [update, role, id, expected]
      if (role === 'manager') return change(event, changed)
      const voidLinks: Statement = ['DELETE FROM account_links WHERE made_by = $1', id]
      if (role !== 'keyless') return change(event, changed, voidLinks)
      const noteRevoked = `INSERT INTO audit_events (at, account_id, action, via, subject)
        SELECT CAST($1 AS BIGINT), account_id, 'key.revoked', CAST($2 AS TEXT), name || ' (' || id || ')' FROM api_keys
        WHERE account_id = $3 AND revoked_at IS NULL ORDER BY created_at`
      const revoke = 'UPDATE api_keys SET revoked_at = $1 WHERE account_id = $2 AND revoked_at IS NULL'
      return change(event, changed, voidLinks, [noteRevoked, event.at, event.via, id], [revoke, event.at, id])
    },

    removeAccount(accountId, event, role) {
      const remove = `DELETE FROM accounts WHERE id = $1 AND role = coalesce($2, role) AND (${MANAGER_REMAINS} OR NOT EXISTS (${OTHER_PERSON}))`
      return change(event, [remove, accountId, role ?? null])
    },

    createLink(hash, accountId, expiresAt, event) {
      const insert = `INSERT INTO account_links (hash, account_id, made_by, expires_at)
        SELECT $1, person.id, maker.id, CAST($4 AS BIGINT) FROM accounts AS maker LEFT JOIN accounts AS person ON person.id = $2
        WHERE maker.id = $3 AND maker.role = 'manager' AND (person.id IS NOT NULL OR CAST($2 AS TEXT) IS NULL)`
      const purge = 'DELETE FROM account_links WHERE expires_at <= $1'
      return change(event, [insert, hash, accountId ?? null, event.accountId, expiresAt], [purge, event.at])
    },

    async linkByHash(hash, now) {
      const works = `SELECT email, account_id FROM account_links JOIN accounts ON id = made_by AND role = 'manager'
        WHERE hash = $1 AND expires_at > $2`
      const [found] = await read(works, [hash, BigInt(now)])
      if (found === undefined) return undefined
      const [maker, accountId] = found as [string, string | null]
      return { hash, maker, account: accountId === null ? undefined : await accountById(accountId) }
    },
  }
}
