// Checks a database file for `petstore doctor`, without changing it.
import { existsSync, statfsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type Check, faultCheck, fine, problem, schemaCheck, unknownChecks, warning } from '../database/check.ts'
import { IN_MEMORY } from '../database/database-address.ts'
import { shellWord } from '../../contract/text/shell-word.ts'
import { unknownAmong } from '../records.ts'
import { CannotOpenStore, NoDatabase } from '../store.ts'
import { faultOfPath, folderOf, modeWarnings } from './database-files.ts'
import { refuseForeignFile, requireSqliteVersion, requireWritable } from './database.ts'
import { explain, isBusy, isFull } from './failures.ts'
import { LEAST_FREE } from './keep-log.ts'
import { lackingMigrations, migrate } from './migrate.ts'
import { openToRead } from './open-to-read.ts'
import { readLog } from './read-log.ts'
import { readColumns } from './records.ts'

const MEBIBYTE = 1024 * 1024
const ATTEMPTS = 5
const LONGEST_FAULT = 200

function damaged(name: string, found: string, condition = 'The file is damaged'): Check {
  const fix = 'stop the service, move the file away with its -wal and -shm, and restore a backup in its place:'
  return problem(name, found, `${condition}: ${fix}`, 'restore', 'FILE')
}

export function checkSqlite(path: string, processes = 1): Check[] {
  // What this user may not open is neither missing nor damaged.
  try {
    requireWritable(path)
    const fault = faultOfPath(path)
    if (fault !== undefined) return [faultCheck('Database', fault)]
    if (!existsSync(path)) return [problem('Database', `${path} is missing`, new NoDatabase(path).message)]
  } catch (error) {
    return [
      problem(
        'File modes',
        (error as Error).message,
        'Run this as the user of the service; if it is, change the owner or mode of the file and its folder.',
      ),
    ]
  }
  for (let attempt = 1; ; attempt += 1) {
    const { mtimeMs } = statSync(path)
    const content = checkContent(path, processes)
    // A service that started meanwhile, and may have ended, changed what was read without locks.
    const mayBeTorn = content.some(({ state }) => state === 'problem') && statSync(path).mtimeMs !== mtimeMs
    if (!mayBeTorn || attempt === ATTEMPTS) return [checkSpace(path), ...checkModes(path), ...content]
  }
}

function checkContent(path: string, processes: number): Check[] {
  const checks: Check[] = []
  try {
    const log = readLog(path, processes)
    if (log !== undefined) checks.push(faultCheck('Log', log))
    using db = openToRead(path, log?.fits)
    refuseForeignFile(db, path)
    const lacking = lackingMigrations(db, path)
    checks.push(fine('SQLite', requireSqliteVersion(db)), lacking.length > 0 ? schemaCheck(lacking) : checkObjects(db))
    checks.push(...unknownChecks(unknownAmong(readColumns(db))))
    // The first migration creates the tables.
    if (lacking[0]?.number !== 1) checks.push(checkIntegrity(db, path))
  } catch (error) {
    const found = explain(error)
    const isWhole = error instanceof CannotOpenStore || isBusy(error) || isFull(error)
    const fix = 'The service cannot open it either.'
    checks.push(isWhole ? problem('Database', found, fix) : damaged('Database', found, 'If the file is damaged'))
  }
  return checks
}

function checkSpace(path: string): Check {
  const { bavail, bsize } = statfsSync(folderOf(path))
  return spaceCheck(bavail * bsize, statSync(path).size)
}

export function spaceCheck(free: number, size: number): Check {
  const found = `${Math.floor(free / MEBIBYTE)} MiB free, the database has ${Math.ceil(size / MEBIBYTE)} MiB`
  if (free < LEAST_FREE)
    return problem(
      'Disk space',
      found,
      'Free space on the disk of the database: without it the service answers creates with 503.',
    )
  if (free < size)
    return warning('Disk space', found, 'Free space for a copy of the database: a backup to this disk needs as much.')
  return fine('Disk space', found)
}

function checkModes(path: string): Check[] {
  const warnings = modeWarnings(path)
  if (warnings.length === 0) return [fine('File modes', 'only the owner can read the database')]
  return warnings.map((text) =>
    warning('File modes', text, 'Follow it unless others are meant to read password hashes and key hashes.'),
  )
}

/** What a fault of the index alone is called by SQLite. */
const OF_AN_INDEX = /^(?:row \d+ missing from|wrong # of entries in|non-unique entry in) index /

function checkIntegrity(db: DatabaseSync, path: string): Check {
  const faults: string[] = []
  try {
    // Several lines may come in one row, below a heading.
    for (const row of db.prepare('PRAGMA integrity_check').iterate())
      faults.push(...String(Object.values(row)[0]).split('\n'))
  } catch (error) {
    // It ends where it cannot read on.
    if (faults.length === 0) throw error
  }
  if (faults[0] === 'ok') {
    const broken = db.prepare('PRAGMA foreign_key_check').all().length
    if (broken > 0) return damaged('Integrity', `${broken} rows refer to rows that do not exist`)
    return fine('Integrity', 'integrity_check and foreign_key_check found nothing')
  }
  const [first, ...more] = faults.filter((line) => !line.startsWith('***'))
  const found = `${first?.slice(0, LONGEST_FAULT)}${more.length === 0 ? '' : `, and ${more.length} more`}`
  if (!faults.every((line) => OF_AN_INDEX.test(line))) return damaged('Integrity', found)
  const fix = 'An index does not have what its table has; the rows are whole. Stop the service and run:'
  return problem('Integrity', found, `${fix} sqlite3 ${shellWord(path)} REINDEX`)
}

/** Finds what was dropped by hand. */
function checkObjects(db: DatabaseSync): Check {
  using complete = new DatabaseSync(IN_MEMORY)
  migrate(complete, IN_MEMORY, true)
  const objects = (of: DatabaseSync) =>
    of.prepare('SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL').all() as Record<string, string>[]
  const names = new Set(objects(db).map(({ name }) => name))
  const lost = objects(complete).filter(({ name }) => !names.has(name))
  if (lost.length === 0) return schemaCheck([])
  const found = `lacks ${lost.map(({ type, name }) => `the ${type} ${name}`).join(', ')}`
  if (lost.some(({ type }) => type === 'table')) return damaged('Schema', found)
  const sql = lost.map((each) => `${each['sql']};`).join(' ')
  return problem('Schema', found, `Stop the service and run in an SQLite shell: ${sql}`)
}
