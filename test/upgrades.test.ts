// Upgrades: this program beside a newer one on the same database, and a migration that fails.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cpSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { collect, type Ended } from '../harness/processes.ts'
import { Folder, makeKey, serve } from './command.ts'
import { readSchema } from './database-schema.ts'
import { ENGINES } from '../harness/engines.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const REX = { method: 'POST', body: '{"name":"Rex","categoryId":1}' }

/** Makes a program in this folder that is newer by these migrations, and returns how to run it. */
function newerProgram(
  folder: Folder,
  ...migrations: string[]
): (words: readonly string[], databaseUrl: string) => Promise<Ended> {
  const program = join(folder.path, 'newer')
  cpSync(join(ROOT, 'src'), join(program, 'src'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(program, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(program, 'node_modules'))
  for (const engine of ['sqlite', 'postgres']) {
    const place = join(program, 'src/store', engine, 'migrations')
    for (const [index, sql] of migrations.entries()) writeFileSync(join(place, `000${index + 3}-newer.sql`), sql)
  }
  return (words, databaseUrl) => {
    const env = { PATH: process.env['PATH'], DATABASE_URL: databaseUrl }
    return collect(spawn(process.execPath, [join(program, 'src/main.ts'), ...words], { cwd: folder.path, env }))
  }
}

for (const engine of ENGINES) {
  describe(`an upgrade on ${engine.name}`, { concurrency: false, timeout: 120_000 }, () => {
    it('to a compatible schema leaves this program working, also when it starts again', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const env = { DATABASE_URL: database.url }
      const { key } = await makeKey(folder, { env })
      const { url: before } = await serve(folder, { env })
      const newer = newerProgram(
        folder,
        '-- compatible from 1\nALTER TABLE pets ADD COLUMN nickname TEXT;',
        '-- compatible from 1\nCREATE TABLE toys (id INTEGER);',
      )
      assert.equal((await newer(['migrate'], database.url)).code, 0)
      assert.ok('toys' in (await readSchema(database.url)))
      const { url: after } = await serve(folder, { env })
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
      for (const url of [before, after]) {
        assert.equal((await fetch(`${url}/v1/pets`, { ...REX, headers })).status, 201)
        assert.equal((await fetch(`${url}/v1/pets`, { headers })).status, 200)
      }
      assert.equal((await folder.run(['migrate'], { env })).code, 0)
    })

    it('to an incompatible schema makes this program exit with a clear message, and change nothing', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const env = { DATABASE_URL: database.url }
      assert.equal((await folder.run(['migrate'], { env })).code, 0)
      const newer = newerProgram(
        folder,
        '-- compatible from 3\nALTER TABLE pets ADD COLUMN must_be_known TEXT;',
        '-- compatible from 3\nCREATE TABLE toys (id INTEGER);',
      )
      assert.equal((await newer(['migrate'], database.url)).code, 0)
      const schema = await readSchema(database.url)
      for (const words of [['serve', '--port', '0'], ['migrate']]) {
        const { code, stdout, stderr } = await folder.run(words, { env })
        assert.deepEqual([code, stdout], [1, ''])
        assert.match(
          stderr,
          /^petstore: .* has schema version 4, this program knows only up to 2\. Run the newer program that wrote it; nothing was changed\.\n$/,
        )
      }
      assert.deepEqual(await readSchema(database.url), schema)
    })

    it('whose second migration fails leaves the database as it was, and says which one and why', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const env = { DATABASE_URL: database.url }
      assert.equal((await folder.run(['migrate'], { env })).code, 0)
      const schema = await readSchema(database.url)
      const newer = newerProgram(
        folder,
        '-- compatible from 1\nCREATE TABLE toys (id INTEGER);',
        '-- compatible from 1\nCREATE TABLE balls (id INTEGER); INSERT INTO nowhere VALUES (1);',
      )
      const { code, stdout, stderr } = await newer(['migrate'], database.url)
      assert.deepEqual([code, stdout], [1, ''])
      assert.match(
        stderr,
        /^petstore: Cannot open the database .*: migration 0004-newer failed, nothing was changed: .*nowhere.*\n$/,
      )
      assert.deepEqual(await readSchema(database.url), schema)
      assert.equal((await folder.run(['migrate'], { env })).code, 0)
      assert.equal((await folder.run(['account', 'list'], { env })).code, 0)
    })
  })
}
