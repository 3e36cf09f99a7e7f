// Keeps a copy of a damaged write-ahead log, before SQLite's recovery drops what follows the damage.
import { copyFileSync, existsSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { beside, reasonOf } from '../database/files.ts'
import { CannotOpenStore } from '../store.ts'
import { type DamagedLog, readLog } from './read-log.ts'

const MOST_COPIES = 3

/** With less free space than this, in bytes, writes are about to fail. */
export const LEAST_FREE = 100 * 1024 * 1024

/**
 * Call this before SQLite opens the database. Tells which copy is kept of a damaged log; throws `CannotOpenStore` if the log does not fit
 * the database, and leaves both alone.
 */
export function keepDamagedLog(database: string, processes: number, tell: (message: string) => void): void {
  const log = readLog(database, processes)
  if (log === undefined) return
  if (!log.fits) throw new CannotOpenStore(`Cannot open the database ${database}: ${log.found}. ${log.fix}`)
  try {
    tell(`${log.found}. A copy of the log is kept: ${keep(log)}`)
  } catch (error) {
    tell(`${log.found}. No copy of the log was kept: ${reasonOf(error as Error)}`)
  }
}

/** Several processes that start at once make one copy: none opens the database before there is a copy. */
function keep({ path, name }: DamagedLog): string {
  const copy = `${path}.damaged-${name}`
  if (existsSync(copy)) return copy
  const isCopy = (each: string) => each.startsWith(`${basename(path)}.damaged-`) && !each.endsWith('.partial')
  const copies = readdirSync(dirname(path)).filter(isCopy)
  if (copies.length >= MOST_COPIES) throw new Error(`there are ${copies.length} already, such as ${copies[0]}`)
  const { bavail, bsize } = statfsSync(dirname(path))
  if (bavail * bsize - statSync(path).size < LEAST_FREE) throw new Error('the disk has too little room')
  using whole = beside(copy)
  copyFileSync(path, whole.partial)
  whole.place(false)
  return copy
}
