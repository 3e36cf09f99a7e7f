// A database that a newer, compatible program has extended: what this program can't see, it does not claim to have copied,
// compared, checked or restored.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, it } from 'node:test'
import { ENGINES, postgres, sqlite } from '../harness/databases/engines.ts'
import type { Check } from '../../src/store/database/check.ts'
import { Folder } from '../harness/programs/command.ts'
import { askDatabase } from '../harness/databases/database-schema.ts'
import { commandsOn, petstore } from '../harness/programs/in-process-command.ts'
import { withStore } from '../harness/databases/with-store.ts'

const UNKNOWN = 'column pets.nickname, table toys'
const NEWER = [
  "INSERT INTO store_migrations VALUES (999, '0999-newer', 1, '', 0)",
  'ALTER TABLE pets ADD COLUMN nickname TEXT',
  'CREATE TABLE toys (id INTEGER)',
  'INSERT INTO toys VALUES (1)',
]
const REFUSED = `has tables or columns that this program does not know: ${UNKNOWN}; nothing was changed. Run the newer program that made them.`

async function fill(url: string): Promise<void> {
  for (const line of ['migrate --environment staging', 'seed --count 10']) await commandsOn(url).call(0, line)
}

const copy = (from: string, to: string) => petstore(['copy', '--from', from, '--to', to])

for (const engine of ENGINES) {
  describe(`tables and columns of a newer program on ${engine.name}`, { concurrency: false }, () => {
    it('make copy refuse, whichever side has them, and change nothing; doctor names them, and goes on with what it can check', async () => {
      await using source = await engine.newEmptyDatabase()
      await using target = await sqlite.newEmptyDatabase()
      const names = async (url: string) => (await askDatabase(url, 'SELECT name FROM pets')).length
      await fill(source.url)
      await askDatabase(source.url, ...NEWER)
      const from = await copy(source.url, target.url)
      assert.deepEqual([from.code, from.stdout], [1, ''])
      assert.ok(from.stderr.includes(`petstore: The source ${REFUSED}\n`), from.stderr)
      assert.equal(await names(target.url), 0)

      const { checks } = await commandsOn(source.url).json<{ checks: Check[] }>('doctor')
      const tables = checks.find(({ name }) => name === 'Tables')
      assert.deepEqual([tables?.state, tables?.found], ['warning', `this program does not know ${UNKNOWN}`])
      assert.ok(checks.some(({ name }) => name === 'Environment'))

      await fill(target.url)
      await askDatabase(source.url, 'DELETE FROM pets')
      const to = await copy(target.url, source.url)
      assert.deepEqual([to.code, to.stdout], [1, ''])
      assert.ok(to.stderr.endsWith(`petstore: The target ${REFUSED}\n`), to.stderr)
      const marks = await askDatabase(source.url, "SELECT name FROM store_facts WHERE name = 'unfinished_copy'")
      assert.deepEqual([marks.length, await names(source.url)], [0, 0])
    })

    it('are not suspected where only an index, a view, statistics, or a column that was dropped again have been added', async () => {
      await using source = await engine.newEmptyDatabase()
      await using target = await sqlite.newEmptyDatabase()
      await fill(source.url)
      await askDatabase(source.url, NEWER[0]!, 'CREATE INDEX pets_by_name ON pets (name)', 'ANALYZE')
      await askDatabase(source.url, 'CREATE VIEW pet_names AS SELECT name FROM pets')
      await askDatabase(source.url, 'ALTER TABLE pets ADD COLUMN mood TEXT', 'ALTER TABLE pets DROP COLUMN mood')
      assert.equal((await copy(source.url, target.url)).code, 0)
    })
  })
}

describe('a PostgreSQL database that holds more than the service', () => {
  it('is not suspected for a view, the tables of an extension or those of another schema, and names a table in partitions once', async () => {
    await using database = await postgres.newEmptyDatabase()
    const unknown = () => withStore(database.url, ({ records }) => records.unknown())
    await askDatabase(
      database.url,
      'CREATE VIEW names AS SELECT 1 AS name',
      'CREATE TABLE of_extension (id INTEGER)',
      'ALTER EXTENSION plpgsql ADD TABLE of_extension',
      'CREATE SCHEMA shop CREATE TABLE toys (id INTEGER) CREATE TABLE pets (nickname TEXT)',
    )
    assert.deepEqual(await unknown(), [])
    await askDatabase(
      database.url,
      'CREATE TABLE toys (id INTEGER) PARTITION BY RANGE (id)',
      'CREATE TABLE toys_small PARTITION OF toys FOR VALUES FROM (0) TO (10)',
    )
    assert.deepEqual(await unknown(), ['table toys'])
  })
})

describe('a backup of a newer program', () => {
  it('is whole, though this program made it, and is not restored by it; nor is a database overwritten of which only unknown tables have rows', async () => {
    await using folder = await Folder.create()
    const on = (name: string) => `--database sqlite:${name}`
    const url = (name: string) => `sqlite:${folder.at(name)}`
    await fill(url('petstore.db'))
    await folder.commands.call(0, `backup before.db ${on('petstore.db')}`)
    await folder.commands.call(0, `migrate ${on('newer.db')}`)
    for (const name of ['petstore.db', 'newer.db']) await askDatabase(url(name), ...NEWER)
    await folder.commands.call(0, `backup backup.db ${on('petstore.db')}`)
    assert.equal((await askDatabase(url('backup.db'), 'SELECT pets.nickname FROM pets JOIN toys')).length, 10)
    const restore = `restore backup.db ${on('new/petstore.db')}`
    await folder.commands.refused(1, restore, `petstore: backup.db ${REFUSED}\n`)
    assert.ok(!existsSync(folder.at('new')))
    const taken = /newer\.db has data already \(toys: 1\); nothing was changed\./
    await folder.commands.refused(1, `restore before.db ${on('newer.db')}`, taken)
    assert.equal((await askDatabase(url('newer.db'), 'SELECT * FROM toys')).length, 1)
  })
})
