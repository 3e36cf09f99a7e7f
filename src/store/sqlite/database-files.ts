// Tells whether a path leads to a file of a database. Links and other spellings give one file many names. Files are only
// looked up, never opened: closing a database file would drop the locks that SQLite holds on it in this process.
import { type BigIntStats, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** Files that SQLite keeps beside a database; they belong to that one database and would damage another. */
const COMPANIONS = ['-wal', '-shm', '-journal']

/** Returns the paths of the companions. SQLite puts them beside the file that a symbolic link leads to. */
export function companionsOf(database: string): string[] {
  return COMPANIONS.map((ending) => followLinks(database) + ending)
}

/** Returns what the file is to the database, for a message such as "FILE is the database itself"; undefined if it is neither it nor a companion. */
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
  const [here, there] = [lookUp(a), lookUp(b)]
  if (here !== undefined || there !== undefined) return here?.dev === there?.dev && here?.ino === there?.ino
  // Some file systems ignore case; on the others this refuses no name that anyone needs.
  return (
    basename(a).toLowerCase() === basename(b).toLowerCase() && dirname(a) !== a && isSameFile(dirname(a), dirname(b))
  )
}

/** Returns undefined for a file that can't be looked up. It can't be replaced either: the attempt fails with its own reason. */
function lookUp(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true })
  } catch {
    return undefined
  }
}

/** Returns the path without symbolic links, also of a file that does not exist: SQLite creates the file that a link promises. */
function followLinks(path: string): string {
  try {
    return realpathSync.native(path)
  } catch (error) {
    // Such as links that lead in a circle.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) return path
  }
  const folder = followLinks(dirname(path))
  try {
    return followLinks(resolve(folder, readlinkSync(path)))
  } catch {
    return join(folder, basename(path))
  }
}
