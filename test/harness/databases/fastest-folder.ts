// Where the files of tests are written fast. On a disk, creating a PostgreSQL database of 300 files takes several times as long.
import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/** The files of a test run together stay well below this. */
const MEMORY_BYTES = 4 * 1024 ** 3

/** Returns Linux's folder in memory if it has room, else the one for temporary files. */
export function fastestFolder(): string {
  const inMemory = '/dev/shm'
  if (!existsSync(inMemory)) return tmpdir()
  const { bavail, bsize } = statfsSync(inMemory)
  return bavail * bsize > MEMORY_BYTES ? inMemory : tmpdir()
}
