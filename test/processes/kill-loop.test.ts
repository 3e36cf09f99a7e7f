// A few kills under load; npm run drill kill-loop is the long form.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { killUnderLoad } from '../harness/failures/kills.ts'
import { seeded } from '../harness/random.ts'
import { isWhole } from '../harness/failures/verdict.ts'
import { ENGINES, type TestEngine } from '../harness/databases/engines.ts'
import { folderUntilExit } from '../harness/programs/command.ts'

async function assertBooks(engine: TestEngine, kills: number, plant: boolean): Promise<void> {
  await using database = await engine.newEmptyDatabase()
  const where = { folder: folderUntilExit(), database: database.url }
  const books = await killUnderLoad({ ...where, kills, clients: 4, random: seeded(1), plant })
  assert.deepEqual([isWhole(books), books.clients.failed, books.verdict.lost.length > 0], [!plant, [], plant])
}

describe('An instance that is killed under load', { concurrency: true }, () => {
  for (const engine of ENGINES) {
    it(`loses and doubles nothing that was acknowledged (${engine.name})`, () => assertBooks(engine, 1, false))
  }

  // The clients keep the books; which engine has lost an animal makes no difference.
  it('would be noticed to lose one animal', () => assertBooks(ENGINES[0]!, 1, true))
})
