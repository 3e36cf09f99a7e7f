// This program with other migrations: as it was before the last ones, or as a later release may be.
import { cpSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Folder } from './command.ts'
import { MIGRATIONS } from './database-schema.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** A folder where a program runs that has this program's migrations up to a number, and these more, on each engine. */
export async function changedProgram(upTo: number, ...more: string[]): Promise<Folder> {
  const folder = await Folder.create([process.execPath, 'program/src/main.ts'], { NODE_COMPILE_CACHE: 'compiled' })
  const program = join(folder.path, 'program')
  cpSync(join(ROOT, 'src'), join(program, 'src'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(program, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(program, 'node_modules'))
  for (const engine of ['sqlite', 'postgres']) {
    const place = join(program, 'src/store', engine, 'migrations')
    for (const { name } of MIGRATIONS.slice(upTo)) rmSync(join(place, `${name}.sql`))
    for (const [index, sql] of more.entries())
      writeFileSync(join(place, `${String(upTo + index + 1).padStart(4, '0')}-newer.sql`), sql)
  }
  return folder
}
