// Brings the schema of a database file up to date. Of several processes that start at once, one migrates.
import type { DatabaseSync } from 'node:sqlite'
import {
  type AppliedMigration,
  type Migration,
  migrationFailed,
  MIGRATIONS_TABLE,
  missingMigrations,
  readMigrations,
} from '../database/migrations.ts'
import { explain, isFull } from './failures.ts'

/** "PET1" in ASCII; in the header of a file it marks a petstore database. */
export const APPLICATION_ID = 0x50455431

/** "PETS": that of unpublished checkouts. */
export const UNPUBLISHED_ID = 0x50455453

const MIGRATIONS = readMigrations('store/sqlite/migrations/')

/**
 * Returns the applied migrations; undefined if the database is new and must not be created. Throws
 * `CannotOpenStore` if the database is newer than this program and not compatible with it, or if a migration fails.
 */
export function migrate(db: DatabaseSync, path: string, create: boolean): Migration[] | undefined {
  const lacking = lackingMigrations(db, path)
  if (lacking.length === MIGRATIONS.length && !create) return undefined
  if (lacking.length === 0) return []
  db.exec('BEGIN IMMEDIATE')
  try {
    // Read again under the lock: another process may have migrated in the meantime.
    const missing = lackingMigrations(db, path)
    for (const migration of missing) apply(db, path, migration)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; COMMIT`)
    return missing
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function apply(db: DatabaseSync, path: string, migration: Migration): void {
  const { number, name, compatibleFrom, hash, sql } = migration
  try {
    db.exec(`CREATE TABLE IF NOT EXISTS ${MIGRATIONS_TABLE} (
      number INTEGER PRIMARY KEY, name TEXT NOT NULL, compatible_from INTEGER NOT NULL, hash TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`)
    db.exec(sql)
    db.prepare(`INSERT INTO ${MIGRATIONS_TABLE} VALUES (?, ?, ?, ?, ?)`).run(
      number,
      name,
      compatibleFrom,
      hash,
      Date.now(),
    )
  } catch (error) {
    // Waited for, as where no migration is due; a migration that rewrites a large table writes to the disk before its COMMIT.
    if (isFull(error)) throw error
    throw migrationFailed(path, migration, explain(error), error)
  }
}

/** Returns the migrations that the database lacks; throws `CannotOpenStore` if a checkout made it, or if it is newer than this program and not compatible with it. */
export function lackingMigrations(db: DatabaseSync, path: string): Migration[] {
  return missingMigrations(MIGRATIONS, readApplied(db), path)
}

/** Returns an empty list for a new database. */
function readApplied(db: DatabaseSync): AppliedMigration[] {
  if (db.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(MIGRATIONS_TABLE) === undefined) return []
  const applied = db.prepare(`SELECT number, name, compatible_from AS "compatibleFrom", hash FROM ${MIGRATIONS_TABLE}`)
  return applied.all() as unknown as AppliedMigration[]
}
