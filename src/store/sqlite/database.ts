// Opens the database file. Refuses another program's file, an SQLite with the WAL bug, and settings that do not take effect.
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { IN_MEMORY } from '../database/database-address.ts'
import { beside } from '../database/files.ts'
import { type Migration, openedBy, unpublished } from '../database/migrations.ts'
import { CannotOpenStore, NoDatabase, type Opened, type OpenOptions } from '../store.ts'
import {
  COMPANIONS,
  companionsOf,
  createFile,
  createFolder,
  faultOfPath,
  followLinks,
  folderOf,
  modeWarnings,
} from './database-files.ts'
import { asStoreFailure, explain, isBusy, isFull, LOCK_WAIT_MS, pauseThread } from './failures.ts'
import { APPLICATION_ID, lackingMigrations, migrate, UNPUBLISHED_ID } from './migrate.ts'
import { keepDamagedLog } from './keep-log.ts'
import { openToRead } from './open-to-read.ts'
import { rewriteWal } from './rewrite-wal.ts'
import { openWal, type Wal, WAL_LIMIT } from './transactions/wal.ts'

/** Earlier versions can corrupt a WAL database under concurrent checkpoints. */
const SQLITE_MINIMUM = '3.51.3'

/** Throws `CannotOpenStore`; `NoDatabase` if the file is missing and must not be created. */
export function openDatabase(
  path: string,
  {
    create = true,
    readOnly = false,
    lockWaitMs = LOCK_WAIT_MS.start,
    processes = 1,
    serving,
    report,
    onWait = () => {},
  }: OpenOptions = {},
): { db: DatabaseSync; opened: Opened; wal: Wal | undefined } {
  let db: DatabaseSync | undefined
  const isFile = path !== IN_MEMORY
  try {
    const created = isFile && !readOnly ? prepareFile(path, create, lockWaitMs) : undefined
    if (isFile && created === undefined) refuseUnchanged(path)
    if (readOnly) return { db: openToRead(path), opened: openedBy([]), wal: undefined }
    // A worker opens the database after the first process.
    if (isFile && serving?.checkpoints !== false) keepDamagedLog(path, processes, onWait)
    db = new DatabaseSync(path, { timeout: lockWaitMs })
    requireSqliteVersion(db)
    refuseForeignFile(db, path)
    configure(db, path, lockWaitMs)
    // SQLite has undone what a killed restore began to write.
    const applied = created ?? migrate(db, path, !isFile)
    if (applied === undefined)
      throw new NoDatabase(path, `The database ${path} has no store: restore a backup to it, or remove it.`)
    if (serving?.checkpoints && isFile) requireDurableWal(db, path, lockWaitMs)
    db.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_MS.statement}`)
    const wal = serving && isFile ? openWal(db, serving.checkpoints, report) : undefined
    return { db, opened: openedBy(applied, isFile ? modeWarnings(path) : []), wal }
  } catch (error) {
    db?.close()
    if (error instanceof CannotOpenStore) throw error
    throw new CannotOpenStore(`Cannot open the database ${path}: ${explain(error)}`, {
      cause: asStoreFailure(error),
      transient: isBusy(error) || isFull(error),
    })
  }
}

/**
 * Throws `CannotOpenStore` for a file that the program does not open, before a connection that writes copies its log to it. What else is
 * wrong with it is found by that connection.
 */
export function refuseUnchanged(path: string): void {
  try {
    using db = openToRead(path)
    refuseForeignFile(db, path)
    lackingMigrations(db, path)
  } catch (error) {
    if (error instanceof CannotOpenStore) throw error
  }
}

/** Returns the migrations of a store that it has created. */
function prepareFile(path: string, create: boolean, lockWaitMs: number): Migration[] | undefined {
  if (create) createFolder(dirname(path))
  requireWritable(path)
  requireUsablePath(path)
  if (existsSync(path)) return undefined
  if (!create) throw new NoDatabase(path)
  return createStore(path, lockWaitMs)
}

/** Throws `CannotOpenStore`; `NoDatabase` for an empty file. */
export function requireUsablePath(path: string, mayBeEmpty = false): void {
  const fault = faultOfPath(path, mayBeEmpty)
  if (fault === undefined) return
  const message = `Cannot open the database ${path}: ${fault.found}. ${fault.fix}`
  throw statSync(path, { throwIfNoEntry: false })?.isFile()
    ? new NoDatabase(path, message)
    : new CannotOpenStore(message)
}

/**
 * Creates a store under another name, which it replaces when the store is complete: a process that is killed meanwhile leaves no part of a
 * store. Returns the migrations; undefined if another process was faster.
 */
function createStore(path: string, lockWaitMs: number): Migration[] | undefined {
  using store = beside(followLinks(path), COMPANIONS)
  createFile(store.partial)
  const applied = fillStore(store.partial, path, lockWaitMs)
  return store.place(false) ? applied : undefined
}

function fillStore(partial: string, path: string, lockWaitMs: number): Migration[] | undefined {
  const db = new DatabaseSync(partial)
  try {
    requireSqliteVersion(db)
    configure(db, path, lockWaitMs)
    const applied = migrate(db, path, true)
    // Closing would copy the log as well, but without a word where the disk is full.
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    return applied
  } finally {
    db.close()
  }
}

/** Refuses a file that can't be written: SQLite opens it without complaint, and then every create fails. */
export function requireWritable(path: string): void {
  for (const file of [path, folderOf(path), ...companionsOf(path)]) {
    try {
      accessSync(file, constants.W_OK)
    } catch (error) {
      // Another process that ends removes the -wal and -shm.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
      throw new CannotOpenStore(
        `Cannot open the database ${path}: the user that runs this may not write to ${file}; the file, its -wal and -shm, and its folder must be writable.`,
        { cause: error },
      )
    }
  }
}

/** Returns the version. */
export function requireSqliteVersion(db: DatabaseSync): string {
  const { version } = db.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  if (versionNumber(version) >= versionNumber(SQLITE_MINIMUM)) return version
  throw new CannotOpenStore(
    `This Node.js has SQLite ${version}; the store needs ${SQLITE_MINIMUM} or later. Run it on the Node.js that npm ci installs.`,
  )
}

/** Returns the version as the number that SQLite makes of it: 3.51.3 is 3051003. */
function versionNumber(version: string): number {
  return version.split('.').reduce((number, part) => number * 1000 + Number(part), 0)
}

/**
 * Refuses a file of another program or an unpublished checkout. Accepts a file that has the application id, or that is still empty. Reads both in one
 * transaction: between two reads, another process that starts at the same time may create the tables.
 */
export function refuseForeignFile(db: DatabaseSync, path: string): void {
  db.exec('BEGIN')
  const applicationId = readPragma(db, 'application_id')
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number }
  db.exec('COMMIT')
  if (applicationId === APPLICATION_ID || (applicationId === 0 && tables === 0)) return
  if (applicationId === UNPUBLISHED_ID) throw unpublished(path)
  throw new CannotOpenStore(
    `${path} is a SQLite database of another program; nothing in it was changed. Name another file.`,
  )
}

function configure(db: DatabaseSync, path: string, lockWaitMs: number): void {
  switchToWal(db, lockWaitMs)
  db.exec(`
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA journal_size_limit = ${WAL_LIMIT};
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

/**
 * Makes the log that an earlier process has left durable, by writing it again. If a sync of that log had failed, a power cut could
 * lose everything behind the failed part, even after a later sync that succeeds. Then copies the log to the database file
 * and truncates it, unless another process reads from it, such as a backup, or the disk is full. In this order: a database file that has more
 * than its log is damaged when the power fails.
 */
function requireDurableWal(db: DatabaseSync, path: string, lockWaitMs: number): void {
  const measure = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  const frames = () => (measure.get() as { log: number }).log
  if (frames() === 0) return
  {
    using lock = new DatabaseSync(path, { timeout: lockWaitMs })
    lock.exec('BEGIN IMMEDIATE')
    if (!rewriteWal(`${db.location()}-wal`, frames()))
      throw new CannotOpenStore(
        `Cannot open the database ${path}: its write-ahead log is damaged, and can't be recovered while another process uses it. Kill that process with SIGKILL: if it ends by itself, it may copy the damage to the database.`,
        { transient: true },
      )
  }
  try {
    db.exec(
      `PRAGMA busy_timeout = ${Math.min(lockWaitMs, LOCK_WAIT_MS.startForReaders)}; PRAGMA wal_checkpoint(TRUNCATE)`,
    )
  } catch (error) {
    if (!isFull(error)) throw error
  }
}

/** Retries while another process that starts holds the lock: SQLite's timeout does not apply to this switch. */
function switchToWal(db: DatabaseSync, lockWaitMs: number): void {
  const deadline = performance.now() + lockWaitMs
  for (;;) {
    try {
      db.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error
    }
    pauseThread()
  }
}

export function readPragma(db: DatabaseSync, name: string): unknown {
  const row = db.prepare(`PRAGMA ${name}`).get() ?? {}
  return Object.values(row)[0]
}

/**
 * Prepares a statement whose integers are bigints, as those above 2⁵³ must be. Every statement that writes needs it: `run` of
 * node:sqlite also returns the id that this connection has assigned last, in whichever table.
 */
export function prepareExact(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql)
  statement.setReadBigInts(true)
  return statement
}

/** Reads rows as arrays: objects from node:sqlite are slow to access and made a page take 75 instead of 40 µs. */
export function prepareRows(db: DatabaseSync, sql: string): StatementSync {
  const statement = prepareExact(db, sql)
  statement.setReturnArrays(true)
  return statement
}

/** Returns a function that prepares a statement when its text is first used, and returns the same one from then on. */
export function rememberStatements<T>(prepare: (sql: string) => T): (sql: string) => T {
  const prepared = new Map<string, T>()
  return (sql) => {
    const statement = prepared.get(sql) ?? prepare(sql)
    prepared.set(sql, statement)
    return statement
  }
}
