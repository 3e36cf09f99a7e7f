// Keeps a copy of a damaged write-ahead log, before SQLite's recovery drops what follows the damage.
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, statfsSync, statSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { reasonOf } from '../database/files.ts'
import { CannotOpenStore } from '../store.ts'
import { type DamagedLog, readLog } from './read-log.ts'

const MOST_COPIES = 3

/** A copy leaves this much of the disk to the service. */
export const LEAST_FREE = 100 * 1024 * 1024

/**
 * Call this before SQLite opens the database. Tells which copy is kept, if the log is damaged; throws `CannotOpenStore` if the log does not fit
 * the database, which is then left alone.
 */
export function keepDamagedLog(database: string, processes: number, tell: (message: string) => void): void {
  const log = readLog(database, processes)
  if (log === undefined) return
  if (!log.fits) throw new CannotOpenStore(`Cannot open the database ${database}: ${log.found}. ${log.fix}`)
  tell(`${log.found}. ${keep(log)}`)
}

/** Several processes that start at once make one copy: none has opened the database before there is a copy. */
function keep({ path, name }: DamagedLog): string {
  const copy = `${path}.damaged-${name}`
  const partial = `${copy}.${randomUUID()}.partial`
  try {
    const kept = `A copy of the log is kept: ${copy}`
    if (existsSync(copy)) return kept
    const copies = readdirSync(dirname(path)).filter((each) => each.startsWith(`${basename(path)}.damaged-`))
    if (copies.length >= MOST_COPIES)
      return `No copy was kept: there are ${copies.length} already, such as ${copies[0]}`
    const { bavail, bsize } = statfsSync(dirname(path))
    if (bavail * bsize - statSync(path).size < LEAST_FREE) return 'No copy was kept: the disk has too little room'
    copyFileSync(path, partial)
    if (existsSync(copy)) return kept
    renameSync(partial, copy)
    return kept
  } catch (error) {
    return `No copy could be kept: ${reasonOf(error as Error)}`
  } finally {
    rmSync(partial, { force: true })
  }
}
