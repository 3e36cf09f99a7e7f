// The files of a database: creates them for the owner only, and recognises them under any path.
import {
  type BigIntStats,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { platform } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { shellWord } from '../../contract/text/shell-word.ts'
import type { Fault } from '../database/check.ts'

const OWNER_ONLY_FOLDER = 0o700
const OWNER_ONLY_FILE = 0o600
const READABLE_BY_OTHERS = 0o044

/** Creates the missing folders of a path, readable by the owner only; existing folders keep their mode. */
export function createFolder(path: string): void {
  if (isFolder(path)) return
  const parent = dirname(path)
  if (parent !== path) createFolder(parent)
  try {
    // The option `recursive` tries for ever where a system allows no folder, such as below /proc.
    mkdirSync(path, OWNER_ONLY_FOLDER)
  } catch (error) {
    // Another process has created it meanwhile.
    if (!isFolder(path)) throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/**
 * Creates a missing file, empty and readable by the owner only: SQLite itself would let everyone read it. SQLite gives the
 * -wal and -shm files the mode of the database file.
 */
export function createFile(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', OWNER_ONLY_FILE))
}

/**
 * Returns why this path cannot be opened as a database. SQLite would take an empty file for a new database, and remove a log that has
 * lost its database.
 */
export function faultOfPath(path: string, mayBeEmpty = false): Fault | undefined {
  const log = `${followLinks(path)}-wal`
  // Looked up first: a process that creates the database meanwhile creates it before its log.
  const hasLog = (statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0
  const file = statSync(path, { throwIfNoEntry: false })
  if (file?.isDirectory())
    return { found: `${path} is a folder`, fix: 'Name the file of the database in it: --database or DATABASE_URL.' }
  if (hasLog && !file?.size)
    return {
      found: `${log} is a log without its database: ${path} is ${file === undefined ? 'missing' : 'empty'}`,
      fix: 'The log may hold animals that are nowhere else: put the database back that it belongs to. Without it, move the log away, keep it, and restore a backup.',
    }
  if (file?.isFile() && file.size === 0 && !mayBeEmpty)
    return { found: `${path} is empty, not a store`, fix: 'Restore a backup to it; or remove it to begin a new store.' }
  return undefined
}

/** Returns the folder that SQLite writes to: if the path is a symbolic link, that of the file that it leads to. */
export function folderOf(path: string): string {
  return dirname(followLinks(path))
}

/** Returns a warning for the database file and for its folder, if other users can read them. */
export function modeWarnings(path: string): string[] {
  // Windows has access control lists, which the mode does not show.
  if (platform() === 'win32') return []
  return [folderOf(path), path].flatMap((file) => {
    const mode = statSync(file).mode & 0o777
    if ((mode & READABLE_BY_OTHERS) === 0) return []
    return [
      `Other users of this machine can read ${file}; its mode is ${mode.toString(8)}. If only the service uses it: chmod go= ${shellWord(file)}`,
    ]
  })
}

/** The endings of the files that SQLite keeps beside a database. They would damage any other database. */
export const COMPANIONS = ['-wal', '-shm', '-journal']

/** Returns the paths of the companions. SQLite puts them beside the file that a symbolic link leads to. */
export function companionsOf(database: string): string[] {
  return COMPANIONS.map((ending) => followLinks(database) + ending)
}

/**
 * Describes the file for a message such as "FILE is the database itself"; undefined for neither the database nor a companion.
 * Links and letter case give one file many names. Calls only `stat`, never opens a file: closing its file descriptor would
 * drop the POSIX locks that SQLite holds on it in this process.
 */
export function partOfDatabase(file: string, database: string): string | undefined {
  if (isSameFile(file, database))
    return `the database itself${resolve(file) === resolve(database) ? '' : `, ${database} by another name`}`
  const ending = COMPANIONS.find((candidate) =>
    [database, followLinks(database)].some((name) => isSameFile(file, name + candidate)),
  )
  return ending === undefined ? undefined : `the ${ending} file of the database ${database}, a part of it`
}

/** Compares device and inode. Files that do not exist yet are the same if they have the same name in the same folder. */
function isSameFile(one: string, other: string): boolean {
  const [a, b] = [followLinks(one), followLinks(other)]
  const [statsA, statsB] = [lookUp(a), lookUp(b)]
  if (statsA !== undefined || statsB !== undefined) return statsA?.dev === statsB?.dev && statsA?.ino === statsB?.ino
  // Some file systems ignore case. On the others this refuses only names that nearly equal the database's.
  return (
    basename(a).toLowerCase() === basename(b).toLowerCase() && dirname(a) !== a && isSameFile(dirname(a), dirname(b))
  )
}

/** Returns undefined if `stat` fails. Such a file can't be replaced either: that attempt then fails with the reason. */
function lookUp(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true })
  } catch {
    return undefined
  }
}

/** Resolves symbolic links, even to a missing file: SQLite creates the file that a dangling link points to. */
export function followLinks(path: string): string {
  try {
    return realpathSync.native(path)
  } catch (error) {
    // For example, symbolic links that form a cycle.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) return path
  }
  const folder = followLinks(dirname(path))
  try {
    return followLinks(resolve(folder, readlinkSync(path)))
  } catch {
    return join(folder, basename(path))
  }
}
