// Version 1.0.0 as it was released: its program, and a database of each engine that it made (made by test/fixtures/make.ts).
import { execFileSync } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { askPostgres } from '../assurance/harness/ask-postgres.ts'
import type { TestEngine } from '../assurance/harness/engines.ts'
import { Folder, folderUntilExit } from './command.ts'

const FIXTURES = fileURLToPath(new URL('fixtures/1.0.0/', import.meta.url))
const NODE_MODULES = fileURLToPath(new URL('../node_modules', import.meta.url))

/** The newest migration that it knows. */
export const OLD_SCHEMA = 1

/** What is needed to use a database that it made. */
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

export const FILES = { SQLite: 'petstore.db.gz', PostgreSQL: 'postgres.sql', program: 'program.tar.gz' }

/** Fills an empty database with what the old release has stored, and returns how to use that. */
export async function restoreOldDatabase(engine: TestEngine, url: string): Promise<Made> {
  const file = readFileSync(join(FIXTURES, engine.name === 'SQLite' ? FILES.SQLite : FILES.PostgreSQL))
  if (engine.name === 'SQLite') writeFileSync(url.slice('sqlite:'.length), gunzipSync(file), { mode: 0o600 })
  else await askPostgres(url, file.toString())
  return (JSON.parse(readFileSync(join(FIXTURES, 'made.json'), 'utf8')) as Record<string, Made>)[engine.name]!
}

/** The path of its program, once unpacked: every folder runs the same one. */
let program: string | undefined

/**
 * A folder where the old release runs, with today's versions of its dependencies. Its pages need Fastify, which is no
 * longer one of them: the operations and all commands work, and the flag makes Node.js go on without the pages.
 */
export async function oldReleaseFolder(): Promise<Folder> {
  program ??= unpackProgram()
  return Folder.create([process.execPath, '--unhandled-rejections=warn', join(program, 'src/main.ts')], {
    NODE_COMPILE_CACHE: join(program, 'compiled'),
  })
}

/** Returns the path of the old program, which is removed when this process ends. */
function unpackProgram(): string {
  const path = folderUntilExit()
  execFileSync('tar', ['-xzf', join(FIXTURES, FILES.program), '-C', path])
  symlinkSync(NODE_MODULES, join(path, 'node_modules'))
  return path
}
