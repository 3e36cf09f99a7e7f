// A few kills under load; npm run drill kill-loop is the long form.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { killUnderLoad } from '../assurance/drills/kills.ts'
import { seeded } from '../assurance/harness/random.ts'
import { isWhole } from '../assurance/drills/verdict.ts'
import { ENGINES } from '../assurance/harness/engines.ts'
import { folderUntilExit } from './command.ts'

describe('An instance that is killed under load', { concurrency: true }, () => {
  for (const engine of ENGINES) {
    it(`loses and doubles nothing that was acknowledged (${engine.name}), and one lost animal would be noticed`, async () => {
      for (const { plant, kills } of [
        { plant: false, kills: 2 },
        { plant: true, kills: 1 },
      ]) {
        await using database = await engine.newDatabase()
        const where = { folder: folderUntilExit(), database: database.url }
        const books = await killUnderLoad({ ...where, kills, clients: 4, random: seeded(1), plant })
        assert.deepEqual([isWhole(books), books.clients.failed, books.verdict.lost.length > 0], [!plant, [], plant])
      }
    })
  }
})
