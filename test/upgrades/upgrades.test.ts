// Upgrades: this program beside a newer one on the same database, and a migration that fails.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ENGINES, type TestEngine } from '../harness/databases/engines.ts'
import { changedProgram } from '../harness/programs/changed-program.ts'
import { Folder, makeKey, serve } from '../harness/programs/command.ts'
import { MIGRATIONS, readSchema } from '../harness/databases/database-schema.ts'
import { commandsOn } from '../harness/programs/in-process-command.ts'

const NEWEST = MIGRATIONS.length
const REX = { method: 'POST', body: '{"name":"Rex","categoryId":1}' }

/** This program and a newer one with these further migrations, on a database that this one has made. */
async function upgraded(engine: TestEngine, ...migrations: string[]) {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await Folder.create())
  const { url } = stack.use(await engine.newEmptyDatabase())
  const newer = stack.use(await changedProgram(NEWEST, ...migrations))
  const commands = commandsOn(url)
  await commands.call(0, 'migrate')
  const env = { DATABASE_URL: url }
  const owned = stack.move()
  const migrateNewer = () => newer.run(['migrate'], { env })
  return { url, env, folder, commands, migrateNewer, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

for (const engine of ENGINES) {
  describe(`an upgrade on ${engine.name}`, { concurrency: false }, () => {
    it('to a compatible schema leaves this program working, also when it starts again', async () => {
      await using both = await upgraded(
        engine,
        `-- compatible from ${NEWEST}\nALTER TABLE pets ADD COLUMN nickname TEXT;`,
        `-- compatible from ${NEWEST}\nCREATE TABLE toys (id INTEGER);`,
      )
      const { folder, env } = both
      const { key } = await makeKey(folder, env)
      const { url: before } = await serve(folder, { env })
      assert.equal((await both.migrateNewer()).code, 0)
      assert.ok('toys' in (await readSchema(both.url)))
      const { url: after } = await serve(folder, { env })
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
      for (const url of [before, after]) {
        assert.equal((await fetch(`${url}/v1/pets`, { ...REX, headers })).status, 201)
        assert.equal((await fetch(`${url}/v1/pets`, { headers })).status, 200)
      }
      await both.commands.call(0, 'migrate')
    })

    it('to an incompatible schema makes this program exit with a clear message, and change nothing', async () => {
      await using both = await upgraded(
        engine,
        `-- compatible from ${NEWEST + 1}\nALTER TABLE pets ADD COLUMN must_be_known TEXT;`,
        `-- compatible from ${NEWEST + 1}\nCREATE TABLE toys (id INTEGER);`,
      )
      assert.equal((await both.migrateNewer()).code, 0)
      const schema = await readSchema(both.url)
      const why = new RegExp(
        `^petstore: .* has schema version ${NEWEST + 2}, this program knows only up to ${NEWEST}\\. Run the newer program that wrote it; nothing was changed\\.\n$`,
      )
      for (const line of ['serve --port 0', 'migrate']) await both.commands.refused(1, line, why)
      assert.deepEqual(await readSchema(both.url), schema)
    })

    it('whose second migration fails leaves the database as it was, and says which one and why', async () => {
      await using both = await upgraded(
        engine,
        `-- compatible from ${NEWEST}\nCREATE TABLE toys (id INTEGER);`,
        `-- compatible from ${NEWEST}\nCREATE TABLE balls (id INTEGER); INSERT INTO nowhere VALUES (1);`,
      )
      const schema = await readSchema(both.url)
      const { code, stdout, stderr } = await both.migrateNewer()
      assert.deepEqual([code, stdout], [1, ''])
      const failed =
        /^petstore: Cannot open the database .*: migration (\d{4})-newer failed, nothing was changed: .*nowhere.*\n$/
      assert.equal(Number(failed.exec(stderr)?.[1]), NEWEST + 2, stderr)
      assert.deepEqual(await readSchema(both.url), schema)
      for (const line of ['migrate', 'account list']) await both.commands.call(0, line)
    })

    it('that this engine does not need is a comment, and still counts', async () => {
      await using both = await upgraded(engine, `-- compatible from ${NEWEST}\n-- Only the other engine needs it.\n`)
      assert.match((await both.migrateNewer()).stderr, /^Applied to .*-newer\.\n$/)
      assert.match((await both.migrateNewer()).stderr, /was up to date\.\n$/)
    })
  })
}
