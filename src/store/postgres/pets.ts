// Animals in PostgreSQL: the store, which creates share a statement, and imports of files. A call takes one statement, or a part of
// one, and so one transaction and one round trip; a replay, a conflicting update and a count take two, and a search and a step of
// its index several.
import { FIELD_LIST, type NewPet, type Pet } from '../../contract/pets.ts'
import {
  type Addition,
  ADDITION_COLUMNS,
  type ColumnValue,
  COLUMN_TYPES,
  NEW_COLUMNS,
  type NewRow,
  newValuesOf,
  petOf,
  type Read,
} from '../pet-columns.ts'
import { IN_PROGRESS_WAIT_MS, PURGE_AT_ONCE } from '../idempotency.ts'
import type { FileImport, ImportStore } from '../imports.ts'
import { mergeChanges, pagesOfChanges, readAddition } from '../pet-changes.ts'
import type { Partitions } from '../partition-store.ts'
import { COUNT_IN_CATEGORY, countsOf, listOf, type Page, pagesOfList, type PetList, SELECT_PETS } from '../pet-list.ts'
import { toJson } from '../records.ts'
import { searchPets } from '../search-pets.ts'
import type { CommitStats, Created, Idempotency, PetStore } from '../store.ts'
import { type Traced, traced } from '../traced.ts'
import { gatherTurns } from '../../timing.ts'
import { type Database, PREPARED } from './connection.ts'
import { countPets, postgresWords } from './counts-and-words.ts'
import { isBadRow, isLockTimeout } from './failures.ts'
import { pageStatement, type Reach } from './page-statement.ts'
import { writeIfSame } from './pet-writes.ts'
import type { Pool } from './pool.ts'

/** PostgreSQL's names of the column types. */
const SQL_TYPES = { text: 'TEXT', integer: 'BIGINT' } as const
const typeOf = (column: string) => SQL_TYPES[{ ...COLUMN_TYPES, ...ADDITION_COLUMNS }[column]!]

/** `known` returns the partitions that the animals had lately. */
export function postgresPets(pool: Pool, creates: Creates, known?: () => Partitions | undefined): PetStore {
  const words = postgresWords(pool)

  const read: Read = (text, values) => pool.rows(text, values)

  async function get(id: bigint): Promise<Pet | undefined> {
    const [row] = await read(BY_ID, [id])
    return row && petOf(row)
  }

  /** Reads pages of the same columns by one statement. */
  function readPages(pages: readonly Page[], reach?: Reach): Promise<ColumnValue[][]> {
    const { text, parameters } = pageStatement(pages, reach)
    return read(text, parameters)
  }

  /**
   * Reads a list. Looks in the partition of the cursor first, and in the next one if its border is near; there it usually ends, and
   * opening 30 takes longer than to read it.
   */
  async function readNearby(query: PetList): Promise<ColumnValue[][]> {
    const { before, after, limit } = query
    const pages = pagesOfList(query)
    const partitions = known?.()
    if (partitions === undefined) return readPages(pages)
    const { newest, size } = partitions
    const bound = (id: bigint) => (id / size) * size
    const near = after === undefined ? bound((before ?? newest) - size / 10n) : bound(after + size / 10n) + size - 1n
    const rows = BigInt.asIntN(64, near) === near ? await readPages(pages, near) : []
    return rows.length < limit ? readPages(pages, 'end') : rows
  }

  return {
    async create(newPet, idempotency, addition) {
      if (idempotency !== undefined)
        return pool.writeRepeatable((sql) => insertIdempotently(sql, { newPet, addition }, idempotency))
      return { outcome: 'created', pet: { id: await creates.add(newPet, addition), ...newPet } }
    },

    async createMany(newPets, addition) {
      const rows = newPets.map((newPet) => ({ newPet, addition }))
      await pool.write((sql) => insert(sql, rows))
    },

    get,

    addition: (id) => readAddition(read, id),

    list: async (query) => listOf(await readNearby(query), query),

    async changes(query) {
      const [added, events] = pagesOfChanges(query)
      return mergeChanges(...(await Promise.all([readPages([added]), readPages([events])])), query)
    },

    update: async (id, expected, wanted, event) =>
      (await writeIfSame(pool, get, { ...expected, id }, wanted, event)) ?? { outcome: 'updated' },

    remove: async (id, expected, event) =>
      (await writeIfSame(pool, get, { ...expected, id }, undefined, event)) ?? { outcome: 'removed' },

    search: (query) => searchPets(words, query),

    indexWords: () => words.indexBatch(),

    countByStatus: () => pool.read(countPets),

    countInCategory: async (categoryId) => countsOf(await read(COUNT_IN_CATEGORY, [categoryId])),

    async purgeIdempotencyRecords(before) {
      const { count } = await pool.write(
        (sql) => sql`
        DELETE FROM idempotency_records WHERE (account_id, key) IN
          (SELECT account_id, key FROM idempotency_records WHERE created_at < ${before}
           ORDER BY created_at LIMIT ${sql.unsafe(String(PURGE_AT_ONCE))} FOR UPDATE SKIP LOCKED)`,
      )
      return count
    },
  }
}

const BY_ID = `${SELECT_PETS} WHERE id = $1`

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
  INSERT INTO pets (id, ${NEW_COLUMNS.join()})
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
    const parameters = [accountId, key, fingerprint, now, validSince, ...newValuesOf(row)]
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

/**
 * How many creates share a statement. The requests of a turn, 128 (http/app.ts), are fewer, but bodies that arrive in pieces can end
 * together: a thousand of the longest names are a parameter of about a megabyte.
 */
const CREATES_PER_STATEMENT = 1000

interface Job extends NewRow, PromiseWithResolvers<bigint> {
  span: Traced | undefined
  addedAt: number
}

/** Inserts the animals that arrive in one turn of the event loop with one statement, so one round trip and one commit. */
export class Creates {
  readonly #pool: Pool
  readonly #queue = gatherTurns<Job>((batch) => void this.#insertAll(batch), CREATES_PER_STATEMENT)

  readonly commits: CommitStats = { commits: 0, writes: 0 }

  constructor(pool: Pool) {
    this.#pool = pool
  }

  /** Resolves with the animal's id once it is committed. */
  add(newPet: NewPet, addition?: Addition): Promise<bigint> {
    const own = { span: traced.getStore(), addedAt: performance.now() }
    const job: Job = { newPet, addition, ...own, ...Promise.withResolvers<bigint>() }
    this.#queue(job)
    return job.promise
  }

  async #insertAll(batch: readonly Job[]): Promise<void> {
    try {
      const ids = await traced.run(spanOfAll(batch), () => this.#pool.write((sql) => insert(sql, batch)))
      this.commits.commits += 1
      this.commits.writes += batch.length
      for (const [index, job] of batch.entries()) job.resolve(ids[index]!)
    } catch (error) {
      // One bad row must not fail the others, so each is inserted alone. After any other error the batch may be stored.
      if (batch.length > 1 && isBadRow(error)) await Promise.all(batch.map((job) => this.#insertAll([job])))
      else for (const job of batch) job.reject(error)
    }
  }
}

/** Ends the waits for the batch. Returns a span that records a step for each create that is traced, or undefined if none is. */
function spanOfAll(batch: readonly Job[]): Traced | undefined {
  if (batch.every(({ span }) => span === undefined)) return undefined
  for (const { span, addedAt } of batch) span?.step('wait for the batch', addedAt, performance.now())
  return { step: (name, from, to) => batch.forEach(({ span }) => span?.step(name, from, to, batch.length)) }
}

const NEW = NEW_COLUMNS.join()
const INSERT_ONE = `INSERT INTO pets (${NEW}) VALUES (${NEW_COLUMNS.map((_, index) => `$${index + 1}`).join()}) RETURNING id`
const JSON_COLUMNS = [...FIELD_LIST, { name: 'at', column: 'added_at' }, { name: 'by', column: 'added_by' }]
  .map(({ name, column }) => `"${name}" ${typeOf(column)}`)
  .join()

/** Assigns the ids before the insert, to know the id of each animal. Rows as JSON need no array types of the driver. */
const INSERT_MANY = `
  WITH made AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('pets', 'id')) AS id, ${NEW}, position
    FROM ROWS FROM (json_to_recordset($1::text::json) AS (${JSON_COLUMNS}))
    WITH ORDINALITY AS pet (${NEW}, position)
  ), stored AS (
    INSERT INTO pets (id, ${NEW}) SELECT id, ${NEW} FROM made
  )
  SELECT id FROM made ORDER BY position`

/** Inserts these animals; resolves with their ids in the same order. */
async function insert(sql: Database, newRows: readonly NewRow[]): Promise<bigint[]> {
  const [text, values] =
    newRows.length === 1
      ? [INSERT_ONE, newValuesOf(newRows[0]!)]
      : [INSERT_MANY, [toJson(newRows.map((row) => ({ ...row.newPet, ...row.addition })))]]
  const rows = await sql.unsafe<{ id: bigint }[]>(text, values, PREPARED)
  return rows.map(({ id }) => id)
}

export function postgresImports(pool: Pool): ImportStore {
  return {
    async find(hash) {
      const [found] = await pool.read(
        (sql) => sql<FileImport[]>`SELECT ${importColumns(sql)} FROM imports WHERE hash = ${hash}`,
      )
      return found
    },

    unfinished: () =>
      pool.read(
        (sql) => sql<FileImport[]>`
        SELECT ${importColumns(sql)} FROM imports WHERE rows_done < rows_total AND NOT EXISTS (
          SELECT 1 FROM imports AS later WHERE later.file = imports.file AND later.updated_at > imports.updated_at
        ) ORDER BY updated_at`,
      ),

    async begin({ hash, file, rowsTotal }, now, again) {
      const { count } = await pool.write(
        (sql) => sql`
        INSERT INTO imports (hash, file, rows_done, rows_total, updated_at) VALUES (${hash}, ${file}, 0, ${rowsTotal}, ${now})
        ON CONFLICT (hash) DO UPDATE
          SET file = excluded.file, rows_done = 0, rows_total = excluded.rows_total, updated_at = excluded.updated_at
          WHERE (imports.rows_done >= imports.rows_total OR imports.rows_total <> excluded.rows_total) AND ${again}`,
      )
      return count === 1
    },

    addRows: ({ hash, rowsDone, rowsTotal }, rows, now) =>
      pool.writeTransaction(async (sql) => {
        const { count } = await sql`
          UPDATE imports SET rows_done = ${rowsDone + rows.length}, updated_at = ${now}
          WHERE hash = ${hash} AND rows_done = ${rowsDone} AND rows_total = ${rowsTotal}`
        if (count === 1)
          await insert(
            sql,
            rows.map((newPet) => ({ newPet, addition: { at: now, by: undefined } })),
          )
        return count === 1
      }),
  }
}

/** Reads counts and times as float8, which is exact: they are far below 2⁵³. */
function importColumns(sql: Database) {
  return sql`hash, file, rows_done::float8 AS "rowsDone", rows_total::float8 AS "rowsTotal", updated_at::float8 AS "updatedAt"`
}
