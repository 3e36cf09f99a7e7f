// Debian's PostgreSQL: the folder of its programs, and the user that runs them.
import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../../test/harness/programs/processes.ts'

export const PROGRAMS = '/usr/lib/postgresql/15/bin'
export const POSTGRES_PROGRAMS = ['postgres', 'initdb', 'pg_basebackup', 'pg_ctl'].map((name) => join(PROGRAMS, name))

/** Returns the user that Debian's package creates, if the drill runs as root: PostgreSQL refuses to run as root. */
export function postgresUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  return { uid: Number(run('id', ['-u', 'postgres'])), gid: Number(run('id', ['-g', 'postgres'])) }
}

/** Makes a folder that belongs to PostgreSQL's user. */
export function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true })
  const user = postgresUser()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
}

export function postgresVersion(): string {
  return run(join(PROGRAMS, 'postgres'), ['--version']).trim()
}
