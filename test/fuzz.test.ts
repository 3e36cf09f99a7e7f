// Some hundred malformed requests; npm run drill fuzz is the long form.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fuzz } from '../assurance/drills/fuzzing.ts'
import { seeded } from '../assurance/harness/random.ts'
import { ENGINES } from '../assurance/harness/engines.ts'

describe('Malformed requests', { concurrency: true }, () => {
  for (const engine of ENGINES) {
    it(`get no 5xx, always the Error body, and disturb nobody (${engine.name})`, async (context) => {
      const folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
      context.after(() => rmSync(folder, { recursive: true }))
      await using database = await engine.newDatabase()
      const seed = Date.now() % 1e9
      const { statuses, violations } = await fuzz({
        folder,
        database: database.url,
        requests: 500,
        random: seeded(seed),
      })
      assert.deepEqual(violations, [], `seed ${seed}`)
      for (const status of [200, 400]) assert.ok(statuses.has(status), `no answer ${status}`)
    })
  }

  it('would be noticed to get a 503', async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
    context.after(() => rmSync(folder, { recursive: true }))
    await using database = await ENGINES[0]!.newDatabase()
    const { violations } = await fuzz({ folder, database: database.url, requests: 50, random: seeded(1), plant: true })
    assert.match(violations.join('\n'), /^503 /m)
  })
})
