// Checks a database file for `petstore doctor`, without changing it.
import { existsSync, statfsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type Check, faultCheck, fine, problem, schemaCheck, unknownChecks, warning } from '../database/check.ts'
import { unknownAmong } from '../records.ts'
import { CannotOpenStore, NoDatabase } from '../store.ts'
import { faultOfPath, folderOf, modeWarnings } from './database-files.ts'
import { readPragma, refuseForeignFile, requireSqliteVersion, requireWritable } from './database.ts'
import { explain, isBusy, isFull, LOCK_WAIT_MS } from './failures.ts'
import { lackingMigrations } from './migrate.ts'
import { readColumns } from './records.ts'

const MEBIBYTE = 1024 * 1024

/** With less free space than this, writes are about to fail. */
const LEAST_FREE = 100 * MEBIBYTE

function damaged(name: string, found: string, condition = 'The file is damaged'): Check {
  const fix = 'stop the service, move the file away with its -wal and -shm, and restore a backup in its place:'
  return problem(name, found, `${condition}: ${fix}`, 'restore', 'FILE')
}

export function checkSqlite(path: string): Check[] {
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
  const checks = [checkSpace(path), ...checkModes(path)]
  try {
    using db = new DatabaseSync(path, { timeout: LOCK_WAIT_MS.command })
    refuseForeignFile(db, path)
    const lacking = lackingMigrations(db, path)
    checks.push(fine('SQLite', requireSqliteVersion(db)), schemaCheck(lacking))
    checks.push(...unknownChecks(unknownAmong(readColumns(db))))
    // The first migration creates the tables.
    if (lacking[0]?.number !== 1) checks.push(checkIntegrity(db))
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

function checkIntegrity(db: DatabaseSync): Check {
  const result = String(readPragma(db, 'quick_check'))
  if (result !== 'ok') return damaged('Integrity', result)
  const broken = db.prepare('PRAGMA foreign_key_check').all().length
  if (broken > 0) return damaged('Integrity', `${broken} rows refer to rows that do not exist`)
  return fine('Integrity', 'quick_check and foreign_key_check found nothing')
}
