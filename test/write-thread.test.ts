// A thread of its own that writes: the same promises, and requests that are served while the disk syncs.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { Folder, serve } from './command.ts'
import { startPetstore } from './harness.ts'

const IN_THREAD = { PETSTORE_WRITE_THREAD: 'on' }

describe('A thread that writes', () => {
  it('answers a create after its commit: the next list shows it, and ids grow', async () => {
    await using petstore = await startPetstore({ env: IN_THREAD })
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) => petstore.add({ name: `Animal ${round} ${index}`, categoryId: 1 })),
      )
      const ids = await Promise.all(answers.map(async (answer) => ((await answer.json()) as { id: number }).id))
      const page = (await (await petstore.call('/pets?limit=10')).json()) as { id: number }[]
      assert.deepEqual(
        page.map(({ id }) => id),
        ids.toSorted((a, b) => b - a),
      )
    }
  })

  it('shares commits among creates that come together, and the metrics tell how well', async () => {
    await using petstore = await startPetstore({ env: { ...IN_THREAD, PETSTORE_ADMIN_PORT: '0' } })
    await Promise.all(
      Array.from({ length: 100 }, (_, index) => petstore.add({ name: `Animal ${index}`, categoryId: 1 })),
    )
    const page = await (await fetch(`${petstore.adminUrl}/metrics`)).text()
    const read = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(page)?.[1])
    // The account and its key are writes too.
    assert.equal(read('petstore_committed_writes_total'), 102)
    assert.ok(read('petstore_commits_total') < 80)
  })

  it('leaves what it wrote behind: after a stop the file is whole, and nothing else is in its folder', async () => {
    await using folder = await Folder.create()
    const served = await serve(folder, { env: { ...IN_THREAD, DATABASE_URL: 'sqlite:data/petstore.db' } })
    await fetch(`${served.url}/livez`)
    served.child.kill('SIGTERM')
    assert.equal((await served.ended).code, 0)
    assert.deepEqual(await readdir(`${folder.path}/data`), ['petstore.db'])
    assert.equal(
      (await folder.run(['doctor', '--database', 'sqlite:data/petstore.db', '--environment', 'staging'])).code,
      0,
    )
  })

  it('is not started for a database in memory, which belongs to one thread', async () => {
    await using petstore = await startPetstore({ database: 'sqlite::memory:', env: IN_THREAD })
    assert.equal((await petstore.add({ name: 'Rex', categoryId: 1 })).status, 201)
  })
})
