// A page of an account's security log. Anybody can cause wrong passwords, and a thief sign-ins: those between two other events are folded
// into a count while they are read, so that they never push out a link, a key, a password or a role.
import { NOT_OF_PETS, type RecordedEvent } from './account-store.ts'
import { plain, type Sql } from './sql.ts'

/** What is folded, each action by itself: a thousand wrong passwords do not hide a sign-in. */
const FOLDED_ACTIONS = ['session.refused', 'session.started', 'session.ended'] as const
export type FoldedAction = (typeof FOLDED_ACTIONS)[number]

/** Where counting stops: this count means "1,000 or more". */
export const FOLDED_MOST = 1000

/** How many events that are not folded a page has. */
const PAGE = 20

/** The newest of `count` events, the oldest of which is from `since`. Only folded ones are more than one. */
export type LogLine = RecordedEvent & { id: number; count: number; since: number }

export interface LogPage {
  /** Newest first. */
  lines: LogLine[]
  /** Where the next page starts; undefined if this is the last one. */
  next: number | undefined
}

/** Events of a newer program are among them. An index has the first condition. */
const UNFOLDED = `action NOT IN ('pet.changed', 'pet.removed', 'category.added', 'category.renamed', 'session.started', 'session.refused', 'session.ended')
  AND action NOT LIKE 'category.%'`

const EVENT = 'audit_events.id, audit_events.at, account_id AS "accountId", audit_events.action, via, subject, detail'

/**
 * Selects the events of the account $1 with this action and these ids, newest first. Only the index of these columns has `-id`: by `id`,
 * PostgreSQL may read the events of everybody until it finds a rare action.
 */
export function byAction(columns: string, action: string, above: string, below: string, limit: number): string {
  return `SELECT ${columns} FROM audit_events WHERE account_id = $1 AND action = ${action} AND ${NOT_OF_PETS}
    AND -id < -CAST(${above} AS BIGINT) AND -id > -CAST(${below} AS BIGINT) ORDER BY -id LIMIT ${limit}`
}

/** `before` is the `next` of the page before. */
export async function securityLog(sql: Sql, accountId: string, before = Number.MAX_SAFE_INTEGER): Promise<LogPage> {
  const select = `SELECT ${EVENT}, at AS since, 1 AS count FROM audit_events
    WHERE account_id = $1 AND id < $2 AND ${UNFOLDED} ORDER BY id DESC LIMIT ${PAGE + 1}`
  const found = (await sql.read(select, accountId, before)).map(plain) as LogLine[]
  const lines = found.slice(0, PAGE)
  const next = found.length > PAGE ? lines.at(-1)!.id : undefined
  const ends = [before, ...lines.map(({ id }) => id), ...(next === undefined ? [0] : [])]
  const gaps = ends.slice(1).map((above, nth) => ({ above, below: ends[nth] }))
  const folded = await readFolded(sql, accountId, gaps)
  return { lines: [...lines, ...folded].toSorted((one, other) => other.id - one.id), next }
}

/** Finds the newest and the oldest of each action by an index, and counts no more than `FOLDED_MOST`. */
async function readFolded(sql: Sql, accountId: string, gaps: readonly object[]): Promise<LogLine[]> {
  const asked = FOLDED_ACTIONS.flatMap((action) => gaps.map((gap) => ({ action, ...gap })))
  const inGap = (limit: number) => byAction('id', 'gap.action', 'gap.above', 'gap.below', limit)
  const oldest = inGap(1).replace('ORDER BY -id', 'ORDER BY -id DESC')
  const select = `SELECT ${EVENT}, (SELECT at FROM audit_events WHERE id = folded.oldest) AS since, count
    FROM (SELECT (${inGap(1)}) AS newest, (${oldest}) AS oldest, (SELECT count(*) FROM (${inGap(FOLDED_MOST)}) AS counted) AS count
      FROM ${sql.jsonTable('$2', 'gap', 'action TEXT, above BIGINT, below BIGINT')}) AS folded
    JOIN audit_events ON audit_events.id = folded.newest`
  return (await sql.read(select, accountId, JSON.stringify(asked))).map(plain) as LogLine[]
}
