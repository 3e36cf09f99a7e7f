// The port for people: their accounts and roles, the links that managers pass on, and what was done.
import { foldName } from '../contract/text/fold-name.ts'
import { type Account, type AuditEvent, OF_PETS, type RecordedEvent, type Role } from './account-store.ts'
import { ADDED_IN_CONSOLE, dataOf } from './pet-changes.ts'
import { type LogPage, securityLog } from './security-log.ts'
import { changeWithEvent, insertRows, plain, type Row, type Sql, type SqlValue, type Statement } from './sql.ts'

/** The account of the key that a first start prints (cli/commands/serve.ts). Nobody can sign in to it: it is no person, and has no role or link. */
export const FIRST_RUN_EMAIL = 'first-run@localhost'

export function isPerson({ email }: Pick<Account, 'email'>): boolean {
  return email.toLowerCase() !== FIRST_RUN_EMAIL
}

/** `lastSeenAt` is the last use of a session that has not been purged, else the last sign-in or sign-out; 0 for never. */
export type Person = Account & { lastSeenAt: number }

export const LINK_DAYS = 7

/**
 * A link of a manager that works: an invitation or, with an account, a way to set its password. The whole rule: it works for
 * `LINK_DAYS` and once, since `createAccount` and `setPassword` remove it in their transaction. It ends before that if its manager
 * loses the role (`setRole`) or the account (the database removes both), or if the password is changed otherwise. Only a hash of its
 * token is stored.
 */
export interface Link {
  hash: string
  /** The email address of the manager who made it, and the name that people know this manager by. */
  maker: string
  madeBy: string
  account: Account | undefined
  expiresAt: number
  /** For whom an invitation is, and the role that the account gets; undefined if an older program made it. */
  name?: string
  role?: Role
}

export type Invited = Required<Pick<Link, 'name' | 'role'>>

/** Returns the name that people know an account by. */
export function nameOf({ name, email }: Pick<Account, 'name' | 'email'>): string {
  return name ?? email
}

/** Each change and its audit event are one transaction. */
interface PeopleStore {
  /**
   * Resolves with false if the email address or the name, each compared by `foldName`, is taken, or if there is no invitation `link`, which
   * is used up and gives its role.
   */
  createAccount(account: Account, event: AuditEvent, link?: string): Promise<boolean>
  /** Compares by `foldName`. Resolves with undefined if there is no such account. */
  accountByEmail(email: string): Promise<Account | undefined>
  /** The same for names. */
  accountByName(name: string): Promise<Account | undefined>
  accountById(id: string): Promise<Account | undefined>
  /** Resolves with the names that people know accounts by: a closed one is "Ben (left)", or missing if it had no name. */
  namesOf(ids: Iterable<string>): Promise<ReadonlyMap<string, string>>
  /** Lists all accounts, oldest first. */
  listAccounts(): Promise<Account[]>
  /** Lists the accounts of people, newest first, those behind the account `after`. */
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
  /** Resolves with false, without a change, if the account has this name already or does not exist, or if another one has it. */
  setName(accountId: string, name: string, event: AuditEvent): Promise<boolean>
  /**
   * Changes the role. An account that becomes `keyless` loses its keys; the links of one that is no manager are removed. Resolves
   * with false, without a change, if its role is no longer `account.role`, or if it is the last manager.
   */
  setRole(account: Pick<Account, 'id' | 'role'>, role: Role, event: AuditEvent): Promise<boolean>
  /**
   * Removes the account with its keys, but neither its audit trail nor its name. Resolves with false if there is no such account, `role` is given
   * and no longer its role, or it is the last manager and not the last person.
   */
  removeAccount(accountId: string, event: AuditEvent, role?: Role): Promise<boolean>
  /**
   * Adds a link of the account that the event names: for the account with the id `to`, or an invitation, which replaces one of the same maker
   * for the same name. Resolves with false if the maker is no manager, or if there is no other account `to`.
   */
  createLink(hash: string, to: string | Invited | undefined, expiresAt: number, event: AuditEvent): Promise<boolean>
  /**
   * Resolves with undefined if there is no such link, it has expired, the password was changed since, or the account that made it is
   * no longer a manager.
   */
  linkByHash(hash: string, now: number): Promise<Link | undefined>
  /** Lists the links that work, newest first. */
  links(now: number, limit: number): Promise<Link[]>
  /** Resolves with false if there is no such link. */
  removeLink(hash: string, event: AuditEvent): Promise<boolean>
  /** The account's events, newest first. */
  auditTrail(accountId: string, limit: number): Promise<RecordedEvent[]>
  securityLog(accountId: string, before?: number): Promise<LogPage>
  /** Resolves with the ids and names of accounts, also of closed ones, that have added animals in the console, changed or removed some, by name. */
  authors(): Promise<ReadonlyMap<string, string>>
  /** The changes of an animal by any account, its removal included, newest first. */
  changesOf(petId: bigint, limit: number): Promise<RecordedEvent[]>
  /**
   * The newest change of the status of each animal, by one statement. Of one with `LOOKED_AT` newer changes, one of these; of one that has no
   * such change, none.
   */
  statusChanges(petIds: readonly bigint[]): Promise<RecordedEvent[]>
  /** The changes of a batch, newest first. */
  changesIn(batchId: bigint, limit: number): Promise<RecordedEvent[]>
  /** The last event of these actions, a pattern of LIKE, with this subject, if it is among the newest 10,000 of all events. */
  lastEvent(actions: string, subject: string): Promise<RecordedEvent | undefined>
}

const ACCOUNT = 'id, email, password_hash AS "passwordHash", created_at AS "createdAt", role, name'

const OTHER_PERSON = `SELECT 1 FROM accounts AS other
  WHERE other.id <> accounts.id AND other.email_folded <> '${FIRST_RUN_EMAIL}'`

const MANAGER_REMAINS = `(role <> 'manager' OR EXISTS (${OTHER_PERSON} AND other.role = 'manager'))`

const LAST_SEEN = `(SELECT max(at) FROM (SELECT last_seen_at AS at FROM sessions WHERE account_id = accounts.id UNION ALL
  SELECT at FROM (SELECT at FROM audit_events WHERE account_id = accounts.id AND action IN ('session.started', 'session.ended')
    ORDER BY id DESC LIMIT 1) AS event) AS seen)`

/** Selects the events of one animal by comparison with its id. An index has this condition. */
export const CHANGES_OF_PET = `${OF_PETS} AND pet_id`

/** How many authors are read of each table. */
const AUTHORS_MOST = 200

const AUTHORS = [
  ['account_id', `audit_events WHERE ${OF_PETS}`],
  ['added_by', `pets WHERE ${ADDED_IN_CONSOLE}`],
] as const

/** How many changes of an animal are looked at for that of its status. */
const LOOKED_AT = 20

const RECENT = 'id > (SELECT max(id) FROM audit_events) - 10000'

type WorkingLink = Omit<Link, 'account'> & { accountId?: string; replacesHash?: string }

function withoutNulls(row: object): Row {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined && value !== null))
}

function eventOf(row: Row): RecordedEvent {
  const { petId, data, batchId, ...event } = row
  return withoutNulls({ ...plain(event), petId, data: dataOf(data), batchId }) as unknown as RecordedEvent
}

export function peopleStore(sql: Sql): PeopleStore {
  /** Each sees what the one before has left: the managers that remain, and a link that was used. */
  const change = (event: AuditEvent, first: Statement, ...others: Statement[]) =>
    sql.transaction(function* () {
      yield* sql.oneByOne
      return yield* changeWithEvent(event, first, ...others)
    })

  async function find(which: string, ...values: string[]): Promise<Account[]> {
    return (await sql.read(`SELECT ${ACCOUNT} FROM accounts ${which}`, ...values)).map((row) =>
      plain(withoutNulls(row)),
    ) as Account[]
  }

  async function events(which: string, values: SqlValue[], limit: number): Promise<RecordedEvent[]> {
    const select =
      'SELECT at, account_id AS "accountId", action, via, subject, detail, pet_id AS "petId", data, batch_id AS "batchId" FROM audit_events'
    return (await sql.read(`${select} WHERE ${which} ORDER BY id DESC LIMIT ${limit}`, ...values)).map(eventOf)
  }

  async function namesOf(ids: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    // Data of an event may name any text; JSON of PostgreSQL takes no U+0000 and no half of a pair.
    const known = [...ids].filter((id) => id.isWellFormed() && !id.includes('\0'))
    if (known.length === 0) return new Map()
    const asked = JSON.stringify(known.map((id) => ({ id })))
    const isAsked = `id IN (SELECT id FROM ${sql.jsonTable('$1', 'asked', 'id TEXT')})`
    const select = `SELECT id, coalesce(name, email) AS name FROM accounts WHERE ${isAsked}
      UNION ALL SELECT id, name || ' (left)' FROM former_people WHERE ${isAsked}`
    return new Map((await sql.read<{ id: string; name: string }>(select, asked)).map(({ id, name }) => [id, name]))
  }

  const accountById = async (id: string) => (await find('WHERE id = $1', id))[0]

  async function workingLinks(now: number, which: string, ...values: string[]): Promise<Link[]> {
    const works = `SELECT hash, email AS maker, coalesce(accounts.name, email) AS "madeBy", account_links.name, account_links.role,
        account_id AS "accountId", replaces_hash AS "replacesHash", expires_at AS "expiresAt"
      FROM account_links JOIN accounts ON id = made_by AND accounts.role = 'manager'
      WHERE expires_at > $1 ${which}`
    const found = (await sql.read(works, now, ...values)).map(plain) as WorkingLink[]
    const links = await Promise.all(
      found.map(async ({ accountId, replacesHash, ...link }) => {
        const account = accountId === undefined ? undefined : await accountById(accountId)
        return accountId === undefined || account?.passwordHash === replacesHash ? { ...link, account } : undefined
      }),
    )
    return links.filter((link) => link !== undefined)
  }

  return {
    accountById,
    namesOf,
    accountByEmail: async (email) => (await find('WHERE email_folded = $1', foldName(email)))[0],
    accountByName: async (name) => (await find('WHERE name_folded = $1', foldName(name)))[0],
    listAccounts: () => find('ORDER BY created_at, id'),

    async pageOfPeople({ limit, after: { createdAt, id } = { createdAt: Number.MAX_SAFE_INTEGER, id: '' } }) {
      const page = `SELECT ${ACCOUNT}, coalesce(${LAST_SEEN}, 0) AS "lastSeenAt" FROM accounts
        WHERE (created_at, id) < ($1, $2) AND email_folded <> '${FIRST_RUN_EMAIL}' ORDER BY created_at DESC, id DESC LIMIT ${limit}`
      return (await sql.read(page, createdAt, id)).map((row) => plain(withoutNulls(row))) as Person[]
    },

    createAccount({ id, email, passwordHash, createdAt, role, name }, event, link) {
      const insert = `INSERT INTO accounts (id, email, email_folded, password_hash, role, created_at, name, name_folded)
        SELECT $1, $2, $3, $4, coalesce((SELECT role FROM account_links WHERE hash = $7), $5), CAST($6 AS BIGINT), $8, $9 WHERE CAST($7 AS TEXT) IS NULL
          OR EXISTS (SELECT 1 FROM account_links WHERE hash = $7 AND account_id IS NULL) ON CONFLICT DO NOTHING`
      const names = name === undefined ? [null, null] : [name, foldName(name)]
      const values = [id, email, foldName(email), passwordHash, role, createdAt, link ?? null, ...names]
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

    setName(accountId, name, event) {
      const update = `UPDATE accounts SET name = $1, name_folded = $2 WHERE id = $3 AND coalesce(name, '') <> $1
        AND NOT EXISTS (SELECT 1 FROM accounts AS other WHERE other.name_folded = $2 AND other.id <> $3)`
      return change(event, [update, name, foldName(name), accountId])
    },

    setRole({ id, role: expected }, role, event) {
      const update = `UPDATE accounts SET role = $1 WHERE id = $2 AND role = $3 AND ($1 = 'manager' OR ${MANAGER_REMAINS})`
      const changed: Statement = [update, role, id, expected]
      const voidLinks: Statement[] = role === 'manager' ? [] : [['DELETE FROM account_links WHERE made_by = $1', id]]
      if (role !== 'keyless') return change(event, changed, ...voidLinks)
      const noteRevoked = `INSERT INTO audit_events (at, account_id, action, via, subject)
        SELECT CAST($1 AS BIGINT), account_id, 'key.revoked', CAST($2 AS TEXT), name || ' (' || id || ')' FROM api_keys
        WHERE account_id = $3 AND revoked_at IS NULL ORDER BY created_at`
      const revoke = 'UPDATE api_keys SET revoked_at = $1 WHERE account_id = $2 AND revoked_at IS NULL'
      return change(event, changed, ...voidLinks, [noteRevoked, event.at, event.via, id], [revoke, event.at, id])
    },

    removeAccount(accountId, event, role) {
      const remove = `DELETE FROM accounts WHERE id = $1 AND role = coalesce($2, role) AND (${MANAGER_REMAINS} OR NOT EXISTS (${OTHER_PERSON}))`
      const name = 'SELECT id, name FROM accounts WHERE id = $1 AND name IS NOT NULL'
      return sql.transaction(function* () {
        yield* sql.oneByOne
        const [named] = (yield [name, accountId]).rows
        const isRemoved = yield* changeWithEvent(event, [remove, accountId, role ?? null])
        if (isRemoved && named)
          yield* insertRows('former_people', ['id', 'name'], [[accountId, named['name'] as string]])
        return isRemoved
      })
    },

    createLink(hash, to, expiresAt, event) {
      const [accountId, name, role] = typeof to === 'object' ? [null, to.name, to.role] : [to ?? null, null, null]
      const insert = `INSERT INTO account_links (hash, account_id, made_by, expires_at, replaces_hash, name, role)
        SELECT $1, person.id, maker.id, CAST($4 AS BIGINT), person.password_hash, $5, $6 FROM accounts AS maker
        LEFT JOIN accounts AS person ON person.id = $2 AND person.id <> maker.id
        WHERE maker.id = $3 AND maker.role = 'manager' AND (person.id IS NOT NULL OR CAST($2 AS TEXT) IS NULL)`
      const purge = 'DELETE FROM account_links WHERE expires_at <= $1'
      const replace = 'DELETE FROM account_links WHERE account_id IS NULL AND made_by = $1 AND name = $2 AND hash <> $3'
      const values = [hash, accountId, event.accountId, expiresAt, name, role]
      return change(event, [insert, ...values], [purge, event.at], [replace, event.accountId, name, hash])
    },

    linkByHash: async (hash, now) => (await workingLinks(now, 'AND hash = $2', hash))[0],
    links: (now, limit) => workingLinks(now, `ORDER BY expires_at DESC, hash LIMIT ${limit}`),
    removeLink: (hash, event) => change(event, ['DELETE FROM account_links WHERE hash = $1', hash]),

    auditTrail: (accountId, limit) => events('account_id = $1', [accountId], limit),
    securityLog: (accountId, before) => securityLog(sql, accountId, before),

    /** Each is found by an index from the one before: DISTINCT would read every row, and Citus has no recursive queries. */
    async authors() {
      const idsOf = AUTHORS.map(async ([column, rows]) => {
        const ids: string[] = []
        for (let last: string | undefined = ''; last !== undefined && ids.length < AUTHORS_MOST;) {
          const next = `SELECT ${column} AS id FROM ${rows} AND ${column} > $1 ORDER BY ${column} LIMIT 1`
          last = (await sql.read<{ id: string }>(next, last))[0]?.id
          if (last !== undefined) ids.push(last)
        }
        return ids
      })
      const ids = new Set((await Promise.all(idsOf)).flat())
      const names = Array.from(await namesOf(ids), ([id, name]) => ({
        entry: [id, name] as const,
        folded: foldName(name),
      }))
      return new Map(names.toSorted((one, other) => (one.folded < other.folded ? -1 : 1)).map(({ entry }) => entry))
    },

    changesOf: (petId, limit) => events(`${CHANGES_OF_PET} = $1`, [petId], limit),
    statusChanges(petIds) {
      const ids = JSON.stringify(petIds.map((id) => ({ id: String(id) })))
      const newest = `SELECT id, data FROM audit_events WHERE ${CHANGES_OF_PET} = asked.id ORDER BY id DESC LIMIT ${LOOKED_AT}`
      const found = `SELECT coalesce(max(CASE WHEN data LIKE '%"status":%' THEN id END), CASE WHEN count(*) = ${LOOKED_AT} THEN min(id) END)
        FROM (${newest}) AS newest`
      return events(`id IN (SELECT (${found}) FROM ${sql.jsonTable('$1', 'asked', 'id BIGINT')})`, [ids], petIds.length)
    },
    changesIn: (batchId, limit) => events('batch_id = $1', [batchId], limit),
    lastEvent: async (...values) => (await events(`action LIKE $1 AND subject = $2 AND ${RECENT}`, values, 1))[0],
  }
}
