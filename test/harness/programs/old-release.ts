// Earlier releases: the program of each, and a database of each engine that it made (made by test/upgrades/fixtures/make.ts).
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { askPostgres } from '../databases/ask-postgres.ts'
import { sqlite, type TestEngine } from '../databases/engines.ts'
import { Folder, folderUntilExit } from './command.ts'

const FIXTURES = fileURLToPath(new URL('../../upgrades/fixtures/', import.meta.url))

export interface OldRelease {
  version: string
  /** The newest migration that it knows. */
  schema: number
}

export const RELEASES: readonly OldRelease[] = [{ version: '1.0.0', schema: 1 }]

/** What is needed to use a database that a release made. */
export interface Made {
  /** When, in milliseconds: sessions and idempotency records expire. */
  at: number
  email: string
  password: string
  /** An API key and the session token of this account. */
  key: string
  session: string
  /** A create, and its answer. */
  idempotencyKey: string
  created: { name: string; categoryId: number; status: string }
  /** The CSV file that was imported. */
  imported: string
  /** The answer to a list of all animals. */
  pets: string
}

export const FILES = { SQLite: 'petstore.db.gz', PostgreSQL: 'postgres.sql', program: 'package.tar.gz' }

/** Fills an empty database with what the old release has stored, and returns how to use that. */
export async function restoreOldDatabase(engine: TestEngine, url: string, { version }: OldRelease): Promise<Made> {
  const file = readFileSync(join(FIXTURES, version, engine === sqlite ? FILES.SQLite : FILES.PostgreSQL))
  if (engine === sqlite) writeFileSync(url.slice('sqlite:'.length), gunzipSync(file), { mode: 0o600 })
  else await askPostgres(url, file.toString())
  return (JSON.parse(readFileSync(join(FIXTURES, version, 'made.json'), 'utf8')) as Record<string, Made>)[engine.name]!
}

/** The path of each program that was unpacked: every folder runs the same one. */
const programs = new Map<string, string>()

/** A folder where the old release runs, as it was packed: with its own dependencies. */
export async function oldReleaseFolder({ version }: OldRelease): Promise<Folder> {
  const program = programs.get(version) ?? unpackProgram(version)
  programs.set(version, program)
  return Folder.create([process.execPath, join(program, 'package/dist/main.js')], {
    NODE_COMPILE_CACHE: join(program, 'compiled'),
  })
}

/** Returns the path of the old program, which is removed when this process ends. */
function unpackProgram(version: string): string {
  const path = folderUntilExit()
  execFileSync('tar', ['-xzf', join(FIXTURES, version, FILES.program), '-C', path])
  return path
}
