// A database that a newer, compatible program has extended: what this program can't see, it does not claim to have copied,
// compared, checked or restored.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ENGINES, postgres, sqlite } from '../assurance/harness/engines.ts'
import type { Check } from '../src/store/check.ts'
import { Folder } from './command.ts'
import { askDatabase } from './database-schema.ts'
import { petstore } from './in-process-command.ts'
import { withStore } from './with-store.ts'

const UNKNOWN = 'column pets.nickname, table toys'
const NEWER = [
  "INSERT INTO petstore_migrations VALUES (999, '0999-newer', 1, 0)",
  'ALTER TABLE pets ADD COLUMN nickname TEXT',
  'CREATE TABLE toys (id INTEGER)',
  'INSERT INTO toys VALUES (1)',
]
const REFUSED = `has tables or columns that this program does not know: ${UNKNOWN}; nothing was changed. Run the newer program that made them.`

async function fill(url: string): Promise<void> {
  for (const words of [
    ['migrate', '--environment', 'staging'],
    ['seed', '--count', '10'],
  ])
    assert.equal((await petstore([...words, '--database', url])).code, 0)
}

for (const engine of ENGINES) {
  describe(`tables and columns of a newer program on ${engine.name}`, { concurrency: false }, () => {
    it('make copy refuse, whichever side has them, and change nothing', async () => {
      await using source = await engine.newDatabase()
      await using target = await sqlite.newDatabase()
      await fill(source.url)
      await askDatabase(source.url, ...NEWER)
      const from = await petstore(['copy', '--from', source.url, '--to', target.url])
      assert.deepEqual([from.code, from.stdout], [1, ''])
      assert.ok(from.stderr.includes(`petstore: The source ${REFUSED}\nNote: `), from.stderr)
      assert.equal((await askDatabase(target.url, 'SELECT name FROM pets')).length, 0)

      await fill(target.url)
      await askDatabase(source.url, 'DELETE FROM pets')
      const to = await petstore(['copy', '--from', target.url, '--to', source.url])
      assert.deepEqual([to.code, to.stdout], [1, ''])
      assert.ok(to.stderr.endsWith(`petstore: The target ${REFUSED}\n`), to.stderr)
      const marks = await askDatabase(source.url, "SELECT name FROM store_facts WHERE name = 'unfinished_copy'")
      assert.equal(marks.length, 0)
      assert.equal((await askDatabase(source.url, 'SELECT name FROM pets')).length, 0)
    })

    it('are named by doctor, which goes on with what it can check', async () => {
      await using database = await engine.newDatabase()
      await fill(database.url)
      await askDatabase(database.url, ...NEWER)
      const { code, stdout } = await petstore(['doctor', '--json', '--database', database.url])
      const { checks } = JSON.parse(stdout) as { checks: Check[] }
      const tables = checks.find(({ name }) => name === 'Tables')
      assert.deepEqual([code, tables?.state, tables?.found], [0, 'warning', `this program does not know ${UNKNOWN}`])
      assert.ok(checks.some(({ name }) => name === 'Environment'))
    })

    it('are not suspected where only an index, a view, statistics, or a column that was dropped again have been added', async () => {
      await using source = await engine.newDatabase()
      await using target = await sqlite.newDatabase()
      await fill(source.url)
      await askDatabase(source.url, NEWER[0]!, 'CREATE INDEX pets_by_name ON pets (name)', 'ANALYZE')
      await askDatabase(source.url, 'CREATE VIEW pet_names AS SELECT name FROM pets')
      await askDatabase(source.url, 'ALTER TABLE pets ADD COLUMN mood TEXT', 'ALTER TABLE pets DROP COLUMN mood')
      assert.equal((await petstore(['copy', '--from', source.url, '--to', target.url])).code, 0)
    })
  })
}

describe('a PostgreSQL database that holds more than the service', () => {
  const unknownIn = (url: string) => withStore(url, ({ records }) => records.unknown())

  it('is not suspected for a view, the tables of an extension or those of another schema', async () => {
    await using database = await postgres.newDatabase()
    await fill(database.url)
    await askDatabase(
      database.url,
      'CREATE VIEW names AS SELECT name FROM pets',
      'CREATE TABLE of_extension (id INTEGER)',
      'ALTER EXTENSION plpgsql ADD TABLE of_extension',
      'CREATE SCHEMA shop CREATE TABLE toys (id INTEGER) CREATE TABLE pets (nickname TEXT)',
    )
    assert.deepEqual(await unknownIn(database.url), [])
  })

  it('names a table in partitions once', async () => {
    await using database = await postgres.newDatabase()
    await fill(database.url)
    await askDatabase(
      database.url,
      'CREATE TABLE toys (id INTEGER) PARTITION BY RANGE (id)',
      'CREATE TABLE toys_small PARTITION OF toys FOR VALUES FROM (0) TO (10)',
    )
    assert.deepEqual(await unknownIn(database.url), ['table toys'])
  })
})

describe('a backup of a newer program', () => {
  it('is whole, though this program made it, and is not restored by it', async () => {
    await using folder = await Folder.create()
    const url = (name: string) => `sqlite:${join(folder.path, name)}`
    await fill(url('petstore.db'))
    await askDatabase(url('petstore.db'), ...NEWER)
    const file = join(folder.path, 'backup.db')
    assert.equal((await petstore(['backup', file, '--database', url('petstore.db')])).code, 0)
    assert.equal((await askDatabase(url('backup.db'), 'SELECT pets.nickname FROM pets JOIN toys')).length, 10)
    const restored = await petstore(['restore', file, '--database', url('new/petstore.db')])
    assert.deepEqual([restored.code, restored.stderr], [1, `petstore: ${file} ${REFUSED}\n`])
    assert.ok(!existsSync(join(folder.path, 'new')))
  })

  it('is not overwritten by a restore, though only tables that this program does not know have rows', async () => {
    await using folder = await Folder.create()
    const url = (name: string) => `sqlite:${join(folder.path, name)}`
    await fill(url('petstore.db'))
    const file = join(folder.path, 'backup.db')
    assert.equal((await petstore(['backup', file, '--database', url('petstore.db')])).code, 0)
    assert.equal((await petstore(['migrate', '--database', url('newer.db')])).code, 0)
    await askDatabase(url('newer.db'), ...NEWER)
    const { code, stderr } = await petstore(['restore', file, '--database', url('newer.db')])
    assert.equal(code, 1)
    assert.match(stderr, /newer\.db has data already \(toys: 1\); nothing was changed\./)
    assert.equal((await askDatabase(url('newer.db'), 'SELECT * FROM toys')).length, 1)
  })
})
