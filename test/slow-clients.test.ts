// A hundred slow clients for a moment; npm run drill slow-clients is the long form, and waits for the time limits.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { serveBesideSlowClients } from '../assurance/drills/slow.ts'
import { ENGINES } from '../assurance/harness/engines.ts'

it('Honest clients are served beside slow ones, unless those may take every connection', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
  context.after(() => rmSync(folder, { recursive: true }))
  for (const plant of [false, true]) {
    await using database = await ENGINES[0]!.newDatabase()
    const { answered, broken } = await serveBesideSlowClients({
      folder,
      database: database.url,
      connections: 99,
      seconds: 1,
      seed: 1,
      plant,
    })
    assert.deepEqual([answered > 0, broken.length > 0], [!plant, plant], broken.join('\n'))
  }
})
