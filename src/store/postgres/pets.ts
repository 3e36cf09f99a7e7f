// Animals in PostgreSQL: the store, and which creates share a statement. A call takes one statement, or a part of
// one, and so one transaction and one round trip; a replay and a conflicting update take two, a count three and a search several.
import { FIELD_LIST, type Pet } from '../../contract/pets.ts'
import { type ColumnValue, petOf } from '../pet-columns.ts'
import { SELECT_KEYS } from '../account-store-sql.ts'
import { type Idempotency, IN_PROGRESS_WAIT_MS } from '../idempotency.ts'
import { listOf, type Page, pageOf, pagesOfList, type PetList, SELECT_PETS, type Summarize } from '../pet-list.ts'
import { INSERT_PETS, INSERT_PETS_WITH_IDS, NEW_COLUMNS, NEW_FIELDS, NewRow } from '../pet-writes.ts'
import { toJson } from '../records.ts'
import { sharedPets } from '../shared-pets.ts'
import type { Sql } from '../sql.ts'
import type { CommitStats, Created, PetStore } from '../store.ts'
import { together } from '../../timing.ts'
import { type Database, PREPARED, readRows } from './pool/connection.ts'
import { findIdFaults, isIdTaken, raiseSequences } from './ids.ts'
import { asStoreFailure, isBadRow, isLockTimeout, NO_ROOM, sqlState, wasRefused } from './pool/failures.ts'
import type { Pool } from './pool.ts'
import { renderPage, renderedPages, SELECT_ROWS } from './pages.ts'
import { findMissingRights } from './rights.ts'

const INTEGER_FIELDS = FIELD_LIST.filter(({ schema }) => schema.type === 'integer')
const INTEGERS = new Set(['added_at', ...INTEGER_FIELDS.map(({ column }) => column)])
const typeOf = (column: string) => (INTEGERS.has(column) ? 'BIGINT' : 'TEXT')

export function postgresPets(pool: Pool, common: Sql, creates: Creates): PetStore {
  /** Those of one turn of the event loop are read by one statement: a third of the work. */
  const get = together<bigint, Pet | undefined>(async (ids) => {
    const rows = await pool.readShort((sql) => readRows(sql, BY_IDS, `{${ids.join()}}`))
    const found = new Map(rows.map((row) => [row[0], petOf(row)]))
    return ids.map((id) => found.get(id))
  }, GETS_PER_STATEMENT)

  /** Reads pages of the same columns by one statement; the rows of several are in no order. */
  function readPages(pages: readonly Page[]): Promise<ColumnValue[][]> {
    const parameters: (string | bigint)[] = []
    const parameter = (value: string | bigint) => `$${parameters.push(value)}`
    const text = pages.map((page) => `(${renderPage(page, parameter)})`).join(' UNION ALL ')
    return pool.readShort((sql) => readRows(sql, text, ...parameters))
  }

  const summarize: Summarize = async (page, columns, words = []) => {
    const parameters: (string | bigint)[] = []
    const parameter = (value: string | bigint) => `$${parameters.push(value)}`
    const hasWords = words.map((word) => `strpos(name_folded, ${parameter(word)}) > 0`).join(' AND ')
    const text = `SELECT ${columns(hasWords)} FROM (${renderPage(page, parameter)}) AS page`
    return (await pool.read((sql) => readRows(sql, text, ...parameters)))[0]!
  }

  const renderedPage = renderedPages(pool)

  return {
    async create(newPet, idempotency, addition) {
      const row = new NewRow(newPet, addition)
      if (idempotency !== undefined)
        return withFreeIds(pool, () => pool.writeRepeatable((sql) => insertIdempotently(sql, row, idempotency)))
      return { outcome: 'created', pet: { id: await creates.add(row), ...newPet } }
    },

    async createMany(newPets, addition) {
      const rows = newPets.map((newPet) => new NewRow(newPet, addition))
      await withFreeIds(pool, () => pool.write((sql) => insert(sql, rows)))
    },

    get,

    ...sharedPets(
      common,
      { get, page: (page) => readPages([page]), summarize },
      () => `${pool.writes} ${Math.floor(Date.now() / COUNTS_KEPT_MS)}`,
    ),

    list: (async (query: PetList, as?: 'json') => {
      if (as === 'json') return renderedPage(pageOf(query, SELECT_ROWS))
      const pages = pagesOfList(query)
      return listOf(query, pages, (await readPages(pages)).map(petOf))
    }) as PetStore['list'],
  }
}

/** How long counts may lack what other instances have written. */
const COUNTS_KEPT_MS = 3000

const BY_IDS = `${SELECT_PETS} WHERE id = ANY($1::text::bigint[])`
const GETS_PER_STATEMENT = 32

/** The parameters are the idempotency record, `validSince`, then the values of the animal. */
const INSERT_IDEMPOTENTLY = `
  WITH claimed AS (
    INSERT INTO idempotency_records (account_id, key, fingerprint, pet_id, created_at)
    SELECT $1, $2, $3::bytea, nextval(pg_get_serial_sequence('pets', 'id')), $4::bigint
    WHERE set_config('lock_timeout', '${IN_PROGRESS_WAIT_MS}', TRUE) IS NOT NULL
    ON CONFLICT (account_id, key) DO UPDATE
      SET fingerprint = excluded.fingerprint, pet_id = excluded.pet_id, created_at = excluded.created_at
      WHERE idempotency_records.created_at < $5
    RETURNING pet_id
  )
  ${INSERT_PETS_WITH_IDS}
  SELECT pet_id, ${NEW_COLUMNS.map((column, index) => `$${index + 6}::${typeOf(column)}`).join()} FROM claimed
  RETURNING id`

/**
 * Adds the idempotency record and the animal in one statement. Of two creates with the same key, the second waits for
 * the first to commit and then finds its record. The lock timeout is set inside the statement, so it needs no session and
 * works behind PgBouncer. A replay takes only the id from the record: the same fingerprint means that the other fields are
 * the same.
 */
async function insertIdempotently(sql: Database, row: NewRow, idempotency: Idempotency): Promise<Created> {
  const { newPet } = row
  const { accountId, key, fingerprint, now, validSince } = idempotency
  try {
    const parameters = [accountId, key, fingerprint, now, validSince, ...row.values()]
    const [made] = await sql.unsafe<{ id: bigint }[]>(INSERT_IDEMPOTENTLY, parameters, PREPARED)
    if (made !== undefined) return { outcome: 'created', pet: { id: made.id, ...newPet } }
  } catch (error) {
    if (isLockTimeout(error)) return { outcome: 'in progress' }
    throw error
  }
  const [record] = await sql<{ fingerprint: Buffer; petId: bigint }[]>`
    SELECT fingerprint, pet_id AS "petId" FROM idempotency_records WHERE account_id = ${accountId} AND key = ${key}`
  // The record had expired and was purged between the two statements, so this create is the first one.
  if (record === undefined) return insertIdempotently(sql, row, idempotency)
  if (!record.fingerprint.equals(fingerprint)) return { outcome: 'mismatch' }
  return { outcome: 'replayed', pet: { id: record.petId, ...newPet } }
}

/** Retries a create whose id exists already, after its sequence was moved: the server may have been a logical replica. */
async function withFreeIds<T>(pool: Pool, create: () => Promise<T>): Promise<T> {
  try {
    return await create()
  } catch (error) {
    if (!isIdTaken(error)) throw error
    await pool.write((sql) => raiseSequences(sql, ['pets']))
    return create()
  }
}

/**
 * How many creates share a statement. A turn has fewer requests (`REQUESTS_A_TURN` of client-connections.ts), but bodies that arrive in
 * pieces can end together: a thousand of the longest names are a parameter of about a megabyte.
 */
const CREATES_PER_STATEMENT = 1000

export type Creates = ReturnType<typeof gatherCreates>

/** Inserts the animals that arrive in one turn of the event loop with one statement, so one round trip and one commit. */
export function gatherCreates(pool: Pool) {
  const commits: CommitStats = { commits: 0, writes: 0 }

  async function insertAll(rows: readonly NewRow[]): Promise<readonly (bigint | Promise<bigint>)[]> {
    try {
      const ids = await withFreeIds(pool, () => pool.write((sql) => insert(sql, rows)))
      commits.commits += 1
      commits.writes += rows.length
      return ids
    } catch (error) {
      // One bad row must not fail the others, so each is inserted alone. After any other error the batch may be stored.
      if (rows.length === 1 || !isBadRow(error)) throw error
      return rows.map(async (row) => (await insertAll([row]))[0]!)
    }
  }

  /** `add` resolves with the animal's id once it is committed. */
  return { commits, add: together<NewRow, bigint>(insertAll, CREATES_PER_STATEMENT) }
}

const NEW = NEW_COLUMNS.join()
const INSERT_ONE = `${INSERT_PETS} VALUES (${NEW_COLUMNS.map((_, index) => `$${index + 1}`).join()}) RETURNING id`
const JSON_COLUMNS = NEW_FIELDS.map(({ name, column }) => `"${name}" ${typeOf(column)}`).join()

/** Assigns the ids before the insert, to know the id of each animal. Rows as JSON need no array types of the driver. */
const INSERT_MANY = `
  WITH made AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('pets', 'id')) AS id, ${NEW}, position
    FROM ROWS FROM (json_to_recordset($1::text::json) AS (${JSON_COLUMNS}))
    WITH ORDINALITY AS pet (${NEW}, position)
  ), stored AS (
    ${INSERT_PETS_WITH_IDS} SELECT id, ${NEW} FROM made
  )
  SELECT id FROM made ORDER BY position`

/** Inserts these animals; resolves with their ids in the same order. */
async function insert(sql: Database, newRows: readonly NewRow[]): Promise<bigint[]> {
  const [text, values] =
    newRows.length === 1
      ? [INSERT_ONE, newRows[0]!.values()]
      : [INSERT_MANY, [toJson(newRows.map(({ named }) => named))]]
  const rows = await sql.unsafe<{ id: bigint }[]>(text, values, PREPARED)
  return rows.map(({ id }) => id)
}

const VALUES = new NewRow({ name: 'Rex', categoryId: 1n, status: 'available' }).values()
const UNDONE_CREATE = `DO $$ BEGIN
  PERFORM set_config('lock_timeout', '50', TRUE);
  ${INSERT_PETS} VALUES (${VALUES.map((value) => (value === null ? 'NULL' : `'${value}'`)).join()});
  RAISE SQLSTATE 'PT999';
END $$`

/** Adds an animal and undoes it: nothing else tells whether a create finds room on the disk. Rejects if it does not. */
export async function requireRoom(sql: Database): Promise<void> {
  await sql.unsafe(UNDONE_CREATE).catch((error: unknown) => {
    if (!wasRefused(error) || sqlState(error) === NO_ROOM) throw error
  })
}

/** Plans creates, and the search for their key, without running them; a lock on the animals makes the plan unknown. */
const PLANS = [SELECT_KEYS, INSERT_ONE, INSERT_IDEMPOTENTLY].map((statement) => `EXPLAIN ${statement}`)
const PLAN_CREATES = `SET LOCAL lock_timeout = 50; ${PLANS.join(';')}`.replaceAll(/\$\d+/g, 'NULL')

/** Resolves with why a create would fail, and the fix; undefined if it would work. */
export async function findCreateFault(sql: Database): Promise<string | undefined> {
  try {
    const missing = await findMissingRights(sql)
    if (missing === undefined) await sql.unsafe(PLAN_CREATES)
    const fault = missing ?? (await findIdFaults(sql, ['pets']))[0]
    return fault && `${fault.found}. ${fault.fix}`
  } catch (error) {
    if (isLockTimeout(error)) return undefined
    if (!wasRefused(error) || (asStoreFailure(error) !== error && !sqlState(error)!.startsWith('42'))) throw error
    return (error as Error).message
  }
}
