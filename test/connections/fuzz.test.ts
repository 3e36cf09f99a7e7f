// Some hundred malformed requests, from a new seed each time.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fuzz } from '../harness/fuzzing/fuzzing.ts'
import { seeded } from '../harness/random.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { folderUntilExit } from '../harness/programs/command.ts'

// One after the other: the command that makes a key blocks this process, and the connections of another test would seem to stay open.
describe('Malformed requests', { concurrency: false }, () => {
  for (const engine of ENGINES) {
    it(`get no 5xx, always the Error body, and disturb nobody (${engine.name})`, async () => {
      await using database = await engine.newDatabase()
      const seed = Date.now() % 1e9
      const where = { folder: folderUntilExit(), database: database.url }
      const { statuses, violations } = await fuzz({ ...where, requests: 250, random: seeded(seed) })
      assert.deepEqual(violations, [], `seed ${seed}`)
      for (const status of [200, 400]) assert.ok(statuses.has(status), `no answer ${status}`)
    })
  }
})
