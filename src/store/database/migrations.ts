// The migrations of an engine: numbered SQL files that are applied in order, each one once. Their rules:
//
// - A migration gets the next number and a file in the folder of each engine. A released file never changes.
// - It only adds: tables, indexes, triggers, columns that may be NULL or have a default. During a rolling upgrade the
//   previous release still runs on the same database, so a column that a release stops using is dropped by a later
//   release. Only an index may be dropped at once, by the migration that creates its replacement: no statement names one.
// - Its first line, `-- compatible from N`, names the oldest program that can still use the database afterwards: one
//   whose newest migration is N. A migration that only adds repeats the N of the one before. One that takes something away,
//   changes a column, or is in `NEEDS_ITS_PROGRAM` of migration-rules.test.ts has its own number. A program starts on a schema
//   newer than its own if all migrations that it does not know are compatible with it, and otherwise refuses to start.
// - All missing migrations run in one transaction, so that a failure leaves the database as it was.
// - The exception, on PostgreSQL: an index on a large table is built while creates go on. Its migration has the second line
//   `-- concurrently` and one statement, CREATE INDEX CONCURRENTLY, which can't run in a transaction. If it is interrupted,
//   the next start resumes it. On a new database it runs in the transaction of all others, without CONCURRENTLY.
// - If only one engine changes, the file of the other engine holds only a comment.
// - A database records the hash of each migration that made it. Another hash under a number that this program knows is that of a checkout.
// - New tables and columns are listed in records.ts, in `KINDS` if `petstore copy` copies them, else in `LEFT_BEHIND`.
import { hash } from 'node:crypto'
import { listOwnFiles, readOwnFile } from '../../own-files.ts'
import { CannotOpenStore, type Opened } from '../store.ts'

/** A migration as a database remembers it. */
export interface AppliedMigration {
  number: number
  name: string
  /** The newest migration that the oldest compatible program knows. */
  compatibleFrom: number
  /** The SHA-256 of its file. */
  hash: string
}

export interface Migration extends AppliedMigration {
  sql: string
  /** The index that the migration builds outside of a transaction; undefined for one that runs in a transaction. */
  concurrentIndex: string | undefined
}

export const MIGRATIONS_TABLE = 'store_migrations'

/** What unpublished checkouts called that table. */
export const UNPUBLISHED_TABLE = 'petstore_migrations'

/** Returns the migrations in a folder of `src/`, such as `store/sqlite/migrations/`. */
export function readMigrations(folder: string): Migration[] {
  const files = listOwnFiles(folder)
    .filter((file) => file.endsWith('.sql'))
    .toSorted()
  return files.map((file, index) => {
    const number = Number.parseInt(file, 10)
    if (number !== index + 1) throw new Error(`migration ${file} should have the number ${index + 1}`)
    const sql = readOwnFile(folder + file).toString()
    const [, from, concurrently] = /^-- compatible from ([1-9][0-9]*)\n(-- concurrently\n)?/.exec(sql) ?? []
    const compatibleFrom = Number(from)
    if (!(compatibleFrom <= number))
      throw new Error(`migration ${file} must begin with "-- compatible from N", where N is at most ${number}`)
    const concurrentIndex = concurrently === undefined ? undefined : indexOf(file, sql)
    return { number, name: file.replace('.sql', ''), compatibleFrom, hash: hash('sha256', sql), sql, concurrentIndex }
  })
}

/** Returns the name of the index. Requires a single statement, so that an interrupted migration can be resumed. */
function indexOf(file: string, sql: string): string {
  const statement = sql.replaceAll(/^--.*\n/gm, '').trim()
  const name = /^CREATE (?:UNIQUE )?INDEX CONCURRENTLY ([a-z0-9_]+) ON [^;]+;$/.exec(statement)?.[1]
  if (name === undefined)
    throw new Error(`migration ${file} must be one statement, CREATE INDEX CONCURRENTLY name ON …;`)
  return name
}

/** Returns the migrations that a database lacks; throws `CannotOpenStore` if a checkout made it, or if it has one that is not compatible with this program. */
export function missingMigrations(
  migrations: readonly Migration[],
  applied: readonly AppliedMigration[],
  database: string,
): Migration[] {
  const known = migrations.length
  if (applied.some(({ number, hash: ofFile }) => number <= known && ofFile !== migrations[number - 1]!.hash))
    throw unpublished(database)
  const version = Math.max(0, ...applied.map(({ number }) => number))
  if (applied.some(({ number, compatibleFrom }) => number > known && compatibleFrom > known)) {
    throw new CannotOpenStore(
      `${database} has schema version ${version}, this program knows only up to ${known}. Run the newer program that wrote it; nothing was changed.`,
    )
  }
  return migrations.slice(version)
}

/** Returns the refusal of a store that a checkout of before the first release made. */
export function unpublished(database: string): CannotOpenStore {
  return new CannotOpenStore(
    `${database} was made by an unpublished version of this program; nothing was changed. Write its animals to a file with the checkout that made it (petstore export animals.csv), and add them to a new database with this program (petstore import animals.csv): ids are new, and accounts, keys, names of categories and history stay behind.`,
  )
}

export function openedBy(applied: readonly Migration[], warnings: readonly string[] = []): Opened {
  return { created: applied[0]?.number === 1, migrations: applied.map(({ name }) => name), warnings }
}

/** Returns the error for a migration that failed; `reason` is the database's message. */
export function migrationFailed(database: string, failed: Migration, reason: string, cause: unknown): CannotOpenStore {
  const state = failed.concurrentIndex === undefined ? 'nothing was changed' : 'the next start tries it again'
  const message = `Cannot open the database ${database}: migration ${failed.name} failed, ${state}: ${reason}`
  return new CannotOpenStore(message, { cause })
}
