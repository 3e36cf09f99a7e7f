// The port for categories: people give names to the numbers that animals have. Numbers are never changed or reused.
import { type Category, CategoryNames, categoryNameProblem } from '../contract/category-name.ts'
import { FieldProblem } from '../contract/errors.ts'
import { int64FromText } from '../contract/int64.ts'
import { foldName } from '../contract/text/fold-name.ts'
import { CATEGORIES_A_DAY, CATEGORIES_MOST } from '../contract/limits.ts'
import { inSlices } from '../timing.ts'
import type { AuditEvent, Author } from './account-store.ts'
import { byAction } from './security-log.ts'
import { changeWithEvent, eventStatement, type Row, type Sql } from './sql.ts'

/** Names are compared by `foldName`. */
export interface CategoryStore {
  /**
   * Gives a number its name, if it still has the name `former`, undefined for none, and adds the audit event in the same
   * transaction. If not, resolves with the category in the way: the number with the name that it has now, or another number
   * that has the new name; with 'full' if `CATEGORIES_MOST` have a name; with a time if the account of the event is a member's that
   has added `CATEGORIES_A_DAY`, and may go on then.
   */
  save(
    category: Category,
    former: string | undefined,
    event: AuditEvent,
  ): Promise<Category | 'full' | number | undefined>
  /**
   * Removes the name of a number that no animal has, if it is still that of `category`, and adds the audit event in the same transaction.
   * Resolves with whether it did. An animal that gets the number in the same moment keeps it: it has no name then.
   */
  remove(category: Category, event: AuditEvent): Promise<boolean>
  /** Resolves with the categories whose names were removed: only the same name gets such a number again. */
  removed(): Promise<Category[]>
  /** Resolves with all names: there are at most `CATEGORIES_MOST`. */
  names(): Promise<CategoryNames>
}

const DAY_MS = 86_400_000
const ADDED = byAction('at', "'category.added'", '0', '$2', CATEGORIES_A_DAY)

function categoryOf({ number, name }: Row): Category {
  return { number, name } as Category
}

export function categoryStore(sql: Sql): CategoryStore {
  /** What was last read: each page of members reads the names, which seldom change. */
  let [read, prepared]: [readonly Category[], CategoryNames] = [[], new CategoryNames()]
  let folds: ReadonlyMap<string, string> = new Map()

  return {
    save({ number, name }, former, event) {
      const folded = foldName(name)
      const write = `INSERT INTO categories (number, name, name_folded) VALUES ($1, $2, $3)
        ON CONFLICT (number) DO UPDATE SET name = excluded.name, name_folded = excluded.name_folded, removed_at = NULL`
      const find = 'SELECT number, name, name_folded, removed_at FROM categories WHERE number = $1 OR name_folded = $2'
      return sql.transaction(function* () {
        yield* sql.oneByOne
        const { rows } = yield [find, number, folded]
        const isAgain = (row: Row) =>
          row['removed_at'] !== null && row['name_folded'] === folded && former === undefined
        const other = rows.find((row) => row['number'] !== number || (row['name'] !== former && !isAgain(row)))
        if (other !== undefined) return categoryOf(other)
        if (former === undefined) {
          const [named] = (yield ['SELECT count(*) AS count FROM categories WHERE removed_at IS NULL']).rows
          if (Number(named!['count']) >= CATEGORIES_MOST) return 'full'
          const isMember =
            (yield ["SELECT 1 FROM accounts WHERE id = $1 AND role <> 'manager'", event.accountId]).count > 0
          const added = isMember && (yield [ADDED, event.accountId, Number.MAX_SAFE_INTEGER]).rows[CATEGORIES_A_DAY - 1]
          if (added && Number(added['at']) > event.at - DAY_MS) return Number(added['at']) + DAY_MS
        }
        yield [write, number, name, folded]
        yield eventStatement(event)
        return undefined
      })
    },

    remove: ({ number, name }, event) =>
      sql.transaction(function* () {
        yield* sql.oneByOne
        // By status, so that PostgreSQL reads an index: it has this order.
        const used = yield ['SELECT id FROM pets WHERE category_id = $1 ORDER BY status LIMIT 1', number]
        if (used.count > 0) return false
        const write = 'UPDATE categories SET removed_at = $1 WHERE number = $2 AND name = $3 AND removed_at IS NULL'
        return yield* changeWithEvent(event, [write, event.at, number, name])
      }),

    removed: async () =>
      (await sql.read('SELECT number, name FROM categories WHERE removed_at IS NOT NULL')).map(categoryOf),

    async names() {
      const now = (await sql.read('SELECT number, name FROM categories WHERE removed_at IS NULL')).map(categoryOf)
      const isRead = ({ number, name }: Category, at: number) => read[at]?.number === number && read[at].name === name
      if (now.length === read.length && now.every(isRead)) return prepared
      // A name can take 100 µs.
      const folded = await inSlices(now, ({ name }) => [name, folds.get(name) ?? foldName(name)] as const)
      folds = new Map(folded)
      ;[read, prepared] = [now, new CategoryNames(now, (name) => folds.get(name)!)]
      return prepared
    },
  }
}

/** What adding a category needs of the `Store`, which is made of this file's and others. */
interface CategoryParts {
  categories: CategoryStore
  pets: { list(query: { categoryId: bigint; limit: number }): Promise<readonly unknown[]> }
}

const FULL = `At most ${CATEGORIES_MOST} categories can have a name`

/** Adds a category, by the same rules in the console and by command. Takes a free number, none of `used`, if `digits` is empty. Resolves with the category, also if it was added before, or with a problem without a full stop. */
export async function addCategory(
  store: CategoryParts,
  name: string,
  digits: string,
  by: Author,
  used: ReadonlySet<bigint> = new Set(),
): Promise<Category | FieldProblem> {
  const { names } = await store.categories.names()
  const wrongName = names.size >= CATEGORIES_MOST ? FULL : categoryNameProblem(name)
  if (wrongName !== undefined) return new FieldProblem('name', wrongName)
  const removed = await store.categories.removed()
  const again = removed.find((category) => foldName(category.name) === foldName(name))?.number
  const taken = new Set([...names.keys(), ...removed.map((category) => category.number), ...used])
  const number = digits === '' ? (again ?? (await freeNumber(store, taken))) : int64FromText(digits)
  if (number === undefined) return new FieldProblem('number', 'Enter a whole number in digits, such as 3 or -3')
  const event: AuditEvent = { ...by, action: 'category.added', subject: `${name} (${number})` }
  const found = await store.categories.save({ number, name }, undefined, event)
  if (found === 'full') return new FieldProblem('name', FULL)
  if (found === undefined) return { number, name }
  if (typeof found === 'number') {
    const time = new Date(found + 59_999).toISOString().slice(0, 16).replace('T', ' ')
    return new FieldProblem(
      'name',
      `A member adds at most ${CATEGORIES_A_DAY} categories in 24 hours. You can go on at ${time} UTC, and a manager can add more now`,
    )
  }
  if (found.name === name && (digits === '' || found.number === number)) return found
  // Somebody else took the free number meanwhile.
  if (digits === '' && found.number === number) return addCategory(store, name, digits, by, used)
  if (found.number !== number) return new FieldProblem('name', whyNameTaken(found, removed))
  const isRemoved = removed.some((category) => category.number === number)
  const other = isRemoved ? whyNameTaken(found, removed) : `There is ${found.name} (${number}) already: rename it`
  return new FieldProblem('number', `${other}, or enter another number`)
}

/** Says that another category has a name. One that was removed keeps name and number. */
export function whyNameTaken({ name, number }: Category, removed: readonly Category[]): string {
  const isRemoved = removed.some((category) => category.number === number)
  return `${name} (${number}) ${isRemoved ? 'was removed: add it again under that name, without a number' : 'has this name already'}`
}

/** Resolves with the lowest number from 1 that is not in use and has no animals; undefined if the first hundreds are taken. */
async function freeNumber({ pets }: CategoryParts, used: ReadonlySet<bigint>): Promise<bigint | undefined> {
  for (let number = 1n; number <= CATEGORIES_MOST; number += 1n) {
    const isTaken = used.has(number) || (await pets.list({ categoryId: number, limit: 1 })).length > 0
    if (!isTaken) return number
  }
  return undefined
}
