// npm run drill:kill-loop: kill -9 of an instance under load, again and again, on both engines.
// Fails if an acknowledged animal is lost or doubled, or if a client that tries again still sees a failure.
// --kills and --seed take a number; --plant loses an animal at each kill, and then the drill must fail.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ENGINES } from '../test/engines.ts'
import { conduct, say } from './conduct.ts'
import { killUnderLoad } from './kills.ts'
import { summary } from './report.ts'
import { isWhole } from './verdict.ts'

const CLIENTS = 8

await conduct({ kills: 30 }, async ({ folder: all, random, plant, counts: { kills } }) => {
  let held = true
  for (const engine of ENGINES) {
    say(`${engine.name}: ${kills} kills`)
    await using database = await engine.newDatabase()
    const folder = join(all, engine.name)
    mkdirSync(folder)
    const books = await killUnderLoad({ folder, database: database.url, kills, clients: CLIENTS, random, plant })
    process.stdout.write(`${engine.name}: ${kills} kills, ${CLIENTS} clients\n${summary(books)}`)
    held &&= isWhole(books)
  }
  return held
})
