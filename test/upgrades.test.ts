// Upgrades: this program beside a newer one on the same database, and a migration that fails.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ENGINES } from '../assurance/harness/engines.ts'
import { changedProgram } from './changed-program.ts'
import { Folder, makeKey, serve } from './command.ts'
import { MIGRATIONS, readSchema } from './database-schema.ts'

const NEWEST = MIGRATIONS.length
const REX = { method: 'POST', body: '{"name":"Rex","categoryId":1}' }

for (const engine of ENGINES) {
  describe(`an upgrade on ${engine.name}`, { concurrency: false, timeout: 120_000 }, () => {
    it('to a compatible schema leaves this program working, also when it starts again', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const env = { DATABASE_URL: database.url }
      const { key } = await makeKey(folder, env)
      const { url: before } = await serve(folder, { env })
      await using newer = await changedProgram(
        NEWEST,
        `-- compatible from ${NEWEST}\nALTER TABLE pets ADD COLUMN nickname TEXT;`,
        `-- compatible from ${NEWEST}\nCREATE TABLE toys (id INTEGER);`,
      )
      assert.equal((await newer.run(['migrate'], { env })).code, 0)
      assert.ok('toys' in (await readSchema(database.url)))
      const { url: after } = await serve(folder, { env })
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
      for (const url of [before, after]) {
        assert.equal((await fetch(`${url}/v1/pets`, { ...REX, headers })).status, 201)
        assert.equal((await fetch(`${url}/v1/pets`, { headers })).status, 200)
      }
      assert.equal((await folder.runInProcess(['migrate'], { env })).code, 0)
    })

    it('to an incompatible schema makes this program exit with a clear message, and change nothing', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const env = { DATABASE_URL: database.url }
      assert.equal((await folder.runInProcess(['migrate'], { env })).code, 0)
      await using newer = await changedProgram(
        NEWEST,
        `-- compatible from ${NEWEST + 1}\nALTER TABLE pets ADD COLUMN must_be_known TEXT;`,
        `-- compatible from ${NEWEST + 1}\nCREATE TABLE toys (id INTEGER);`,
      )
      assert.equal((await newer.run(['migrate'], { env })).code, 0)
      const schema = await readSchema(database.url)
      for (const words of [['serve', '--port', '0'], ['migrate']]) {
        const { code, stdout, stderr } = await folder.runInProcess(words, { env })
        assert.deepEqual([code, stdout], [1, ''])
        assert.match(stderr, /^petstore: .*\. Run the newer program that wrote it; nothing was changed\.\n$/)
        assert.ok(
          stderr.includes(` has schema version ${NEWEST + 2}, this program knows only up to ${NEWEST}. `),
          stderr,
        )
      }
      assert.deepEqual(await readSchema(database.url), schema)
    })

    it('whose second migration fails leaves the database as it was, and says which one and why', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const env = { DATABASE_URL: database.url }
      assert.equal((await folder.runInProcess(['migrate'], { env })).code, 0)
      const schema = await readSchema(database.url)
      await using newer = await changedProgram(
        NEWEST,
        `-- compatible from ${NEWEST}\nCREATE TABLE toys (id INTEGER);`,
        `-- compatible from ${NEWEST}\nCREATE TABLE balls (id INTEGER); INSERT INTO nowhere VALUES (1);`,
      )
      const { code, stdout, stderr } = await newer.run(['migrate'], { env })
      assert.deepEqual([code, stdout], [1, ''])
      assert.match(
        stderr,
        /^petstore: Cannot open the database .*: migration \d{4}-newer failed, nothing was changed: .*nowhere.*\n$/,
      )
      assert.equal(Number(/migration (\d{4})-newer/.exec(stderr)?.[1]), NEWEST + 2)
      assert.deepEqual(await readSchema(database.url), schema)
      assert.equal((await folder.runInProcess(['migrate'], { env })).code, 0)
      assert.equal((await folder.runInProcess(['account', 'list'], { env })).code, 0)
    })

    it('that this engine does not need is a comment, and still counts', async () => {
      await using database = await engine.newDatabase()
      const env = { DATABASE_URL: database.url }
      await using newer = await changedProgram(
        NEWEST,
        `-- compatible from ${NEWEST}\n-- Only the other engine needs it.\n`,
      )
      assert.equal((await newer.run(['migrate'], { env })).code, 0)
      assert.match((await newer.run(['migrate'], { env })).stderr, /was up to date\.\n$/)
    })
  })
}
