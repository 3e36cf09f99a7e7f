// Lets only the owner read the database. SQLite gives the -wal and -shm files the mode of the database file.
import { closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { platform } from 'node:os'
import { dirname } from 'node:path'

const OWNER_ONLY_FOLDER = 0o700
const OWNER_ONLY_FILE = 0o600
const READABLE_BY_OTHERS = 0o044

/** Creates the missing folders of a path, readable by the owner only; existing folders keep their mode. */
export function createFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: OWNER_ONLY_FOLDER })
}

/** Creates a missing file, empty and readable by the owner only: SQLite itself would let everyone read it. */
export function createFile(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', OWNER_ONLY_FILE))
}

/** Returns a warning for the database file and for its folder, if other users can read them. */
export function modeWarnings(path: string): string[] {
  // Windows has access control lists, which the mode does not show.
  if (platform() === 'win32') return []
  return [dirname(path), path].flatMap((place) => {
    const mode = statSync(place).mode & 0o777
    if ((mode & READABLE_BY_OTHERS) === 0) return []
    return [
      `Other users of this machine can read ${place}; its mode is ${mode.toString(8)}. If only the service uses it: chmod go= ${place}`,
    ]
  })
}
