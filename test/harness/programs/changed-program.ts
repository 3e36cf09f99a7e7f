// This program with other migrations: as it was before the last ones, or as a later release may be.
import { cpSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Folder, folderUntilExit } from './command.ts'
import { MIGRATIONS } from '../databases/database-schema.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Where each program is: the same one serves both engines, compiled once. */
const programs = new Map<string, string>()

/** A folder where a program runs that has this program's migrations up to a number, and these more, on each engine. */
export async function changedProgram(upTo: number, ...more: string[]): Promise<Folder> {
  const path = programs.getOrInsertComputed(JSON.stringify([upTo, ...more]), () => writeProgram(upTo, more))
  return Folder.create([process.execPath, join(path, 'src/main.ts')], { NODE_COMPILE_CACHE: join(path, 'compiled') })
}

/** Returns the path of the changed program, which is removed when this process ends. */
function writeProgram(upTo: number, more: readonly string[]): string {
  const path = folderUntilExit()
  cpSync(join(ROOT, 'src'), join(path, 'src'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(path, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(path, 'node_modules'))
  for (const engine of ['sqlite', 'postgres']) {
    const place = join(path, 'src/store', engine, 'migrations')
    for (const { name } of MIGRATIONS.slice(upTo)) rmSync(join(place, `${name}.sql`))
    for (const [index, sql] of more.entries())
      writeFileSync(join(place, `${String(upTo + index + 1).padStart(4, '0')}-newer.sql`), sql)
  }
  return path
}
