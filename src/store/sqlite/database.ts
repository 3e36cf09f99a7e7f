// Opens the database file: ours, of a version we know, on a SQLite without the WAL bug, with the settings we promise.
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Migration, readMigrations } from '../migrations.ts'
import { CannotOpenStore } from '../store.ts'
import { explain } from './failures.ts'

export const IN_MEMORY = ':memory:'

/** "PETS" in ASCII, kept in the file's header: tells our files from those of others. */
const APPLICATION_ID = 0x50455453

/** Earlier ones can corrupt a WAL database under concurrent checkpoints. */
const SQLITE_MINIMUM = '3.51.3'

/** How long the start may wait for another process that starts or migrates. */
const START_WAIT_MS = 10_000

/** While serving: a wait inside SQLite stops every other request, so the waiting is done outside (writer.ts). */
const SERVING_WAIT_MS = 2

export function openDatabase(path: string): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    if (path !== IN_MEMORY) {
      mkdirSync(dirname(path), { recursive: true })
      requireWritable(path)
    }
    db = new DatabaseSync(path, { timeout: START_WAIT_MS })
    requireSqliteVersion(db)
    requireOurs(db, path)
    configure(db, path)
    migrate(db, readMigrations(new URL('migrations/', import.meta.url)), path)
    db.exec(`PRAGMA busy_timeout = ${SERVING_WAIT_MS}`)
    return db
  } catch (error) {
    db?.close()
    if (error instanceof CannotOpenStore) throw error
    throw new CannotOpenStore(`Cannot open the database ${path}: ${explain(error)}`, { cause: error })
  }
}

/** SQLite opens a read-only file without a word; then every create would fail. */
function requireWritable(path: string): void {
  for (const place of [path, dirname(path)].filter((name) => existsSync(name))) {
    try {
      accessSync(place, constants.W_OK)
    } catch (error) {
      throw new CannotOpenStore(
        `Cannot open the database ${path}: the user that runs this may not write to ${place}; the file and its folder must both be writable.`,
        { cause: error },
      )
    }
  }
}

function requireSqliteVersion(db: DatabaseSync): void {
  const { version } = db.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  if (version.localeCompare(SQLITE_MINIMUM, 'en', { numeric: true }) >= 0) return
  throw new CannotOpenStore(
    `This Node.js has SQLite ${version}; the store needs ${SQLITE_MINIMUM} or later. Run it on the Node.js that npm ci installs.`,
  )
}

/** A file is ours when it says so, or when it is still empty. */
function requireOurs(db: DatabaseSync, path: string): void {
  if (readPragma(db, 'application_id') === APPLICATION_ID) return
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number }
  if (tables === 0 && readPragma(db, 'application_id') === 0) return
  throw new CannotOpenStore(
    `${path} is a SQLite database of another program; nothing in it was changed. Name another file with --database.`,
  )
}

function configure(db: DatabaseSync, path: string): void {
  db.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
  `)
  const expected = { journal_mode: path === IN_MEMORY ? 'memory' : 'wal', synchronous: 2, foreign_keys: 1 }
  for (const [pragma, value] of Object.entries(expected)) {
    const actual = readPragma(db, pragma)
    if (actual === value) continue
    throw new CannotOpenStore(
      `${path}: SQLite keeps ${pragma} at ${String(actual)} instead of ${value}; is the file on a network drive? Use a local disk.`,
    )
  }
}

/** Applies what is missing, under the write lock: of several processes that start at once, one does it. */
function migrate(db: DatabaseSync, migrations: readonly Migration[], path: string): void {
  const newest = migrations.length
  if (readPragma(db, 'user_version') === newest) return
  db.exec('BEGIN IMMEDIATE')
  try {
    const version = Number(readPragma(db, 'user_version'))
    if (version > newest) {
      throw new CannotOpenStore(
        `${path} has schema version ${version}, this program knows only up to ${newest}. Run the newer program that wrote it; nothing was changed.`,
      )
    }
    for (const migration of migrations.slice(version)) db.exec(migration.sql)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${newest}; COMMIT`)
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function readPragma(db: DatabaseSync, name: string): unknown {
  const row = db.prepare(`PRAGMA ${name}`).get() ?? {}
  return Object.values(row)[0]
}

