// Runs a drill on both engines, one after the other, each with a new database and a new folder.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ENGINES } from '../../test/harness/databases/engines.ts'
import { say } from '../../test/harness/say.ts'

export interface Ground {
  /** The name of the engine. */
  name: string
  /** The address of an empty database. */
  database: string
  /** The folder for logs. */
  folder: string
}

/** Resolves with true if the drill passed on every engine. */
export async function onEachEngine(
  all: string,
  task: string,
  drill: (ground: Ground) => Promise<boolean>,
): Promise<boolean> {
  let held = true
  for (const engine of ENGINES) {
    const { name } = engine
    say(`${name}: ${task}`)
    await using database = await engine.newEmptyDatabase()
    const folder = join(all, name)
    mkdirSync(folder)
    const heldHere = await drill({ name, database: database.url, folder })
    held &&= heldHere
  }
  return held
}
