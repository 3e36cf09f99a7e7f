// Backs up a database file while processes write to it, and restores it. A copy with `cp` would miss the data in the -wal file.
import { existsSync, lstatSync, rmSync, statSync } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { LEFT_BEHIND, titleOf, unknownAmong, whyUnknown } from '../records.ts'
import { CannotOpenStore, NoDatabase } from '../store.ts'
import { isReplaceable, reasonOf, writeWholeFile } from '../database/files.ts'
import { companionsOf, createFile, createFolder, partOfDatabase } from './database-files.ts'
import { readPragma, refuseForeignFile, refuseUnchanged, requireUsablePath } from './database.ts'
import { keepDamagedLog } from './keep-log.ts'
import { explain, isBusy, LOCK_WAIT_MS } from './failures.ts'
import { APPLICATION_ID, lackingMigrations } from './migrate.ts'
import { readColumns } from './records.ts'

/** SQLite takes a name that begins with `file:` for a URI. Keeps a slash at the end, which no file can have. */
function asPath(file: string): string {
  return isAbsolute(file) ? file : `./${file}`
}

/** Writes a snapshot to a new file, readable by the owner only, and resolves with its size. Throws `CannotOpenStore`. */
export async function backUp(
  path: string,
  file: string,
  replace: boolean,
  tell = (_sentence: string) => {},
): Promise<number> {
  const part = partOfDatabase(file, path)
  if (part !== undefined)
    throw new CannotOpenStore(`${file} is ${part}; nothing was written. Name another file for the backup.`)
  refuseExisting(file, replace)
  try {
    // Not existsSync: a database that this user may not see is not missing.
    requireUsablePath(path)
    if (statSync(path, { throwIfNoEntry: false }) === undefined) throw new NoDatabase(path)
    refuseUnchanged(path)
    return await writeWholeFile(asPath(file), (partial) => {
      createFile(partial)
      keepDamagedLog(path, 1, tell)
      writeCopy(path, partial)
      requireIntact(partial)
      refuseExisting(file, replace)
      return statSync(partial).size
    })
  } catch (error) {
    throw asRefusal(`Cannot back up ${path} to ${file}`, error)
  }
}

function refuseExisting(file: string, replace: boolean): void {
  if (!isReplaceable(file))
    throw new CannotOpenStore(
      `${file} is a symbolic link, a folder or a special file; nothing was written. Name another file.`,
    )
  if (!replace && existsSync(file))
    throw new CannotOpenStore(`${file} exists already; nothing was written. Name another file, or add --force.`)
}

/** VACUUM INTO reads everything in one transaction, so the copy is a snapshot. */
function writeCopy(path: string, copy: string): void {
  using db = new DatabaseSync(path, { timeout: LOCK_WAIT_MS.command })
  requirePetstore(db, path)
  db.prepare('VACUUM INTO ?').run(copy)
}

/**
 * Restores a backup to a database that does not exist or has no data. Removes the sessions, because some may have ended
 * after the backup. Throws `CannotOpenStore`.
 */
export async function restore(file: string, path: string, tell = (_sentence: string) => {}): Promise<void> {
  try {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile())
      throw new CannotOpenStore(`There is no file ${file} to restore.`)
    const part = partOfDatabase(file, path)
    if (part !== undefined)
      throw new CannotOpenStore(
        `${file} is ${part}; nothing was changed. Name the backup, and with --database where to restore it.`,
      )
    const partOfBackup = partOfDatabase(path, file)
    if (partOfBackup !== undefined)
      throw new CannotOpenStore(`${path} is ${partOfBackup}; nothing was changed. Name another file with --database.`)
    refuseUnchanged(file)
    using source = new DatabaseSync(asPath(file), { readOnly: true, timeout: LOCK_WAIT_MS.command })
    requirePetstore(source, file)
    lackingMigrations(source, file)
    requireIntact(asPath(file))
    // Only the newer program knows which of its tables, like `sessions` here, must not be restored.
    const why = whyUnknown(file, unknownAmong(readColumns(source)))
    if (why !== undefined) throw new CannotOpenStore(why)
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() && !existsSync(path))
      throw new CannotOpenStore(`${path} is a symbolic link to a file that does not exist; nothing was changed.`)
    requireUsablePath(path, true)
    if (existsSync(path)) refuseUnchanged(path)
    if (existsSync(path)) keepDamagedLog(path, 1, tell)
    if (existsSync(path)) requireUnused(path)
    else for (const companion of companionsOf(path)) rmSync(companion, { force: true })
    createFolder(dirname(path))
    createFile(path)
    // One transaction under SQLite's own locks: after an interruption the target is as empty as before.
    await backup(source, path)
    using target = new DatabaseSync(path, { timeout: LOCK_WAIT_MS.command })
    target.exec('DELETE FROM sessions')
  } catch (error) {
    throw asRefusal(`Cannot restore ${file} to ${path}`, error)
  }
  requireIntact(path)
}

/** Refuses other programs' databases and empty files. */
function requirePetstore(db: DatabaseSync, path: string): void {
  refuseForeignFile(db, path)
  if (readPragma(db, 'application_id') !== APPLICATION_ID)
    throw new CannotOpenStore(`${path} is empty; it holds no petstore database.`)
}

function requireIntact(path: string): void {
  using db = new DatabaseSync(path, { readOnly: true, timeout: LOCK_WAIT_MS.command })
  const result = readPragma(db, 'integrity_check')
  if (result !== 'ok') throw new CannotOpenStore(`${path} is damaged: ${String(result)}`)
}

/** Refuses a database that has data or that another process has open; removes its -wal and -shm files. */
function requireUnused(path: string): void {
  using db = new DatabaseSync(path, { timeout: 0 })
  refuseForeignFile(db, path)
  // All tables, also those of a newer program.
  const tables = new Set(readColumns(db).map(({ table }) => table)).difference(new Set(Object.keys(LEFT_BEHIND)))
  const found = [...tables].flatMap((name) => {
    const { count } = db.prepare(`SELECT count(*) AS count FROM "${name}"`).get() as { count: number }
    return count === 0 ? [] : [`${titleOf({ name })}: ${count}`]
  })
  if (found.length > 0) {
    throw new CannotOpenStore(
      `${path} has data already (${found.join(', ')}); nothing was changed. Restore to another file, or move this one away first, with its -wal and -shm.`,
    )
  }
  try {
    // Only the last connection can leave WAL mode.
    db.exec('PRAGMA journal_mode = DELETE')
  } catch (error) {
    if (!isBusy(error)) throw error
    throw new CannotOpenStore(`${path} is in use; nothing was changed. Stop the service first.`, { cause: error })
  }
}

function asRefusal(what: string, error: unknown): CannotOpenStore {
  if (error instanceof CannotOpenStore) return error
  return new CannotOpenStore(`${what}: ${reasonOf(new Error(explain(error)))}`, { cause: error })
}
