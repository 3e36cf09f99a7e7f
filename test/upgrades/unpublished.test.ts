// Stores of checkouts from before the first release: refused with what to do, and left as they are.
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { ENGINES, sqlite, type TestEngine } from '../harness/databases/engines.ts'
import { Folder } from '../harness/programs/command.ts'
import { askDatabase } from '../harness/databases/database-schema.ts'
import { commandsOn } from '../harness/programs/in-process-command.ts'

const REFUSED =
  /was made by an unpublished version of this program; nothing was changed\. Write its animals to a file with the checkout that made it \(petstore export animals\.csv\), and add them to a new database/

/** What each checkout made: its animals, and the table of its migrations, of which it had so many. */
const checkout = (migrations: number) => [
  "CREATE TABLE pets (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category_id INTEGER NOT NULL, status TEXT NOT NULL CHECK (status IN ('available', 'pending', 'sold')))",
  "INSERT INTO pets VALUES (1, 'Rex', 1, 'sold')",
  'CREATE TABLE petstore_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, compatible_from INTEGER NOT NULL, applied_at INTEGER NOT NULL)',
  ...Array.from(
    { length: migrations },
    (_, nth) => `INSERT INTO petstore_migrations VALUES (${nth + 1}, 'migration', 1, 0)`,
  ),
]

const STORES: Record<string, (engine: TestEngine, url: string) => Promise<void>> = {
  ...Object.fromEntries(
    [1, 15].map((migrations) => [
      `with ${migrations} of the migrations that there were`,
      async (engine: TestEngine, url: string) => {
        const mark = engine === sqlite ? ['PRAGMA journal_mode = WAL', 'PRAGMA application_id = 0x50455453'] : []
        await askDatabase(url, ...mark, ...checkout(migrations))
      },
    ]),
  ),
  'whose first migration was another': async (_engine, url) => {
    await commandsOn(url).call(0, 'seed --count 3')
    await askDatabase(url, "UPDATE store_migrations SET hash = 'of another file'")
  },
}

const COMMANDS = [
  'serve --port 0',
  'migrate',
  'account list',
  'key list',
  'key create --account a@example.com --name x',
  'category create Dogs',
  'environment show',
  'export - --format csv',
  'import - --format csv',
  'import - --format csv --dry-run',
  'seed --count 1',
]

/** All that may change: of files the bytes, the time and which there are; else the catalogue and the rows. */
async function stateOf(engine: TestEngine, url: string): Promise<unknown> {
  if (engine === sqlite) {
    const path = url.slice('sqlite:'.length)
    return ['', '-wal', '-shm', '-journal'].map((ending) => {
      if (!existsSync(path + ending)) return undefined
      return [readFileSync(path + ending).toString('base64'), statSync(path + ending).mtimeMs]
    })
  }
  const catalogue = await askDatabase(
    url,
    `SELECT oid::text, relname, xmin::text, relfilenode::text, (SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute
      WHERE attrelid = c.oid) AS columns FROM pg_class c WHERE relnamespace = 'public'::regnamespace ORDER BY oid`,
  )
  return [catalogue, await askDatabase(url, 'SELECT pets.*, pets.xmin::text AS written FROM pets ORDER BY id')]
}

for (const engine of ENGINES) {
  describe(`A store of an unpublished checkout on ${engine.name}`, { concurrency: false }, () => {
    for (const [name, make] of Object.entries(STORES)) {
      it(`${name}, is refused by every command, which says what to do, and changes nothing`, async () => {
        await using database = await engine.newEmptyDatabase()
        await using other = await sqlite.newEmptyDatabase()
        await make(engine, database.url)
        await commandsOn(other.url).call(0, 'migrate')
        const state = await stateOf(engine, database.url)
        const commands = commandsOn(database.url)
        const options = { input: 'name,categoryId\nRex,1\n' }
        for (const line of COMMANDS) await commands.refused(1, line, REFUSED, options)
        const copies = [
          ['--from', database.url, '--to', other.url],
          ['--from', other.url, '--to', database.url],
        ]
        for (const words of copies) await commands.refused(1, ['copy', ...words], REFUSED)
        if (engine === sqlite) {
          const path = database.url.slice('sqlite:'.length)
          await commands.refused(1, `backup ${path}.copy`, REFUSED)
          await commandsOn(other.url).call(0, `backup ${path}.other`)
          await commands.refused(1, `restore ${path}.other`, REFUSED)
          await commandsOn(`sqlite:${path}.new`).refused(1, `restore ${path}`, REFUSED)
          for (const ending of ['.copy', '.new']) assert.ok(!existsSync(path + ending))
        } else await commands.refused(1, 'distribute --shards 4', REFUSED)
        const doctor = await commands.run('doctor')
        assert.deepEqual([doctor.code, REFUSED.test(doctor.stdout.replaceAll(/\s+/g, ' '))], [1, true], doctor.stdout)
        assert.deepEqual(await stateOf(engine, database.url), state)
      })
    }
  })
}

describe('A store of an unpublished checkout on SQLite, whose process was killed', () => {
  it('keeps its log, also where only the log has the mark', async () => {
    await using folder = await Folder.create()
    for (const mayHaveShm of [true, false]) {
      const place = folder.at(String(mayHaveShm))
      mkdirSync(place)
      {
        using db = new DatabaseSync(folder.at('living.db'))
        db.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA application_id = 0x50455453')
        for (const statement of checkout(1)) db.exec(statement)
        for (const ending of ['', '-wal', ...(mayHaveShm ? ['-shm'] : [])])
          copyFileSync(`${folder.at('living.db')}${ending}`, `${place}/pets.db${ending}`)
        for (const statement of ['DROP TABLE pets', 'DROP TABLE petstore_migrations']) db.exec(statement)
      }
      const url = `sqlite:${place}/pets.db`
      const state = await stateOf(sqlite, url)
      for (const line of COMMANDS)
        await commandsOn(url).refused(1, line, REFUSED, { input: 'name,categoryId\nRex,1\n' })
      assert.deepEqual(await stateOf(sqlite, url), state)
      assert.deepEqual(
        readdirSync(place),
        ['pets.db', 'pets.db-wal', ...(mayHaveShm ? ['pets.db-shm'] : [])].toSorted(),
      )
    }
  })
})
