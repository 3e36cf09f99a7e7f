// A hundred slow clients for a moment; npm run drill slow-clients is the long form, and waits for the time limits.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { serveBesideSlowClients } from '../harness/failures/slow.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { folderUntilExit } from '../harness/programs/command.ts'

it('Honest clients are served beside slow ones, unless those may take every connection', async () => {
  for (const plant of [false, true]) {
    await using database = await ENGINES[0]!.newDatabase()
    const where = { folder: folderUntilExit(), database: database.url }
    const { answered, broken } = await serveBesideSlowClients({ ...where, connections: 99, seconds: 1, seed: 1, plant })
    assert.deepEqual([answered > 0, broken.length > 0], [!plant, plant], broken.join('\n'))
  }
})
