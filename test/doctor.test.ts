// petstore doctor: what is wrong and what to do, with an exit code for monitoring, and nothing changed.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readConfig } from '../src/config.ts'
import type { Check } from '../src/store/check.ts'
import { openStore } from '../src/store/open-store.ts'
import { Folder, makeKey } from './command.ts'
import { MIGRATION_NAMES, readSchema } from './database-schema.ts'
import { askPostgres } from '../assurance/harness/ask-postgres.ts'
import { ENGINES, postgres, sqlite, withParameters } from '../assurance/harness/engines.ts'
import { until } from '../assurance/harness/until.ts'
import { type InProcessOptions, petstore } from './in-process-command.ts'
import { restoreOldDatabase } from './old-release.ts'

const KILLED_IMPORT = fileURLToPath(new URL('killed-import.ts', import.meta.url))

/** Runs the doctor; tells its exit code, and its checks that are not fine by their names. */
async function examine(url: string, words: string[] = [], options: InProcessOptions = {}) {
  const { code, stdout, stderr } = await petstore(['doctor', '--json', '--database', url, ...words], options)
  const { healthy, checks } = JSON.parse(stdout) as { healthy: boolean; checks: Check[] }
  assert.equal(healthy, code === 0, stderr)
  const found = Object.fromEntries(
    checks.filter(({ state }) => state !== 'ok').map(({ name, ...rest }) => [name, rest]),
  )
  for (const [name, { fix }] of Object.entries(found)) assert.ok(fix, `${name} says what to do`)
  return { code, found, names: checks.map(({ name }) => name) }
}

async function untilUnconnected(url: string): Promise<void> {
  const others = 'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
  await until(async () => (await askPostgres(url, others)).length === 0, 'every connection is closed')
}

for (const engine of ENGINES) {
  describe(`petstore doctor on ${engine.name}`, { concurrency: false }, () => {
    it('finds nothing on a healthy database, and exits with 0', async () => {
      await using database = await engine.newDatabase()
      await petstore(['migrate', '--environment', 'staging', '--database', database.url])
      const { code, found, names } = await examine(database.url)
      assert.deepEqual([code, found], [0, {}])
      if (engine === postgres) await untilUnconnected(database.url)
      for (const name of ['Settings', 'Node.js', 'Schema', 'Clock', 'Environment'])
        assert.ok(names.includes(name), name)
    })

    it('finds a database of the other environment, and an import that was not finished, of which it says what is known', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      await petstore(['migrate', '--environment', 'staging', '--database', database.url])
      const file = join(folder.path, 'pets.csv')
      writeFileSync(file, `name,categoryId\n${'Rex,1\n'.repeat(1500)}`)
      await once(spawn(process.execPath, [KILLED_IMPORT, database.url, file, '500'], { stdio: 'inherit' }), 'exit')
      const { code, found } = await examine(database.url, ['--environment', 'production'])
      assert.equal(code, 1)
      assert.equal(found['Environment']!.found, 'the database belongs to staging, the setting is production')
      const { state, found: text, fix } = found['Import']!
      assert.deepEqual(
        [state, text.replace(/\d{4}-\d\d-\d\d \d\d:\d\d/, 'TIME'), fix],
        [
          'warning',
          `of ${file} had added 500 of 1500 rows at TIME UTC; it is running or was interrupted`,
          'Unless it is running, run the same petstore import again to finish it.',
        ],
      )
    })

    it('finds a copy that was not finished', async () => {
      await using database = await engine.newDatabase()
      await petstore(['migrate', '--environment', 'staging', '--database', database.url])
      const store = await openStore(readConfig({ database: database.url }, {}).database)
      await store.setUnfinishedCopy(true)
      await store.close()
      const { code, found } = await examine(database.url)
      assert.deepEqual(
        [code, found['Copy']],
        [
          1,
          {
            state: 'problem',
            found: 'a copy into this database was interrupted',
            fix: 'Run the same petstore copy again.',
          },
        ],
      )
    })

    it('tells an environment that is not recorded, and one that is a default and gives way to the setting', async () => {
      await using database = await engine.newDatabase()
      await (await openStore(readConfig({ database: database.url }, {}).database)).close()
      const production = ['--environment', 'production']
      const none = await examine(database.url, production)
      assert.deepEqual(
        [none.code, none.found['Environment']],
        [
          0,
          { state: 'warning', found: 'none is recorded yet', fix: 'Start the service, which records it: production.' },
        ],
      )
      await petstore(['migrate', '--database', database.url])
      assert.deepEqual((await examine(database.url, production)).found, {})
      await petstore(['migrate', '--environment', 'staging', '--database', database.url])
      assert.equal((await examine(database.url, production)).found['Environment']?.state, 'problem', 'it was chosen')
      await petstore(['environment', 'set', 'production', '--yes', '--database', database.url])
      const unset = await examine(database.url)
      assert.deepEqual(
        [unset.code, unset.found['Environment']],
        [
          1,
          {
            state: 'problem',
            found: 'the database belongs to production, the setting is staging, its default',
            fix: 'Set PETSTORE_ENVIRONMENT=production, or name another database: the service refuses to start.',
          },
        ],
        'serve would refuse it',
      )
      assert.deepEqual((await examine(database.url, production)).found, {})
    })

    it('finds a clock that is wrong, and takes no offence at seconds', async () => {
      await using database = await engine.newDatabase()
      const options = ['account', 'create', 'you@example.com', '--password-stdin', '--database', database.url]
      await petstore(['migrate', '--environment', 'staging', '--database', database.url])
      // The newest event decides, not one of long ago.
      const earlier = { input: 'correct horse battery', clock: () => Date.now() - 7_200_000 }
      assert.equal((await petstore(options.with(2, 'me@example.com'), earlier)).code, 0)
      assert.equal((await petstore(options, { input: 'correct horse battery' })).code, 0)
      const { code, found } = await examine(database.url, [], { clock: () => Date.now() - 3_600_000 })
      assert.deepEqual([code, found['Clock']!.state], [1, 'problem'])
      const stateAt = async (ahead: number) =>
        (await examine(database.url, [], { clock: () => Date.now() + ahead })).found['Clock']?.state
      assert.equal(await stateAt(-2000), undefined)
      // A file has no clock of its own: events of the past say nothing of one that is ahead.
      assert.equal(await stateAt(30_000), engine === postgres ? 'problem' : undefined)
    })

    it('examines the rest of a database of an earlier release as well', async () => {
      await using database = await engine.newDatabase()
      await restoreOldDatabase(engine, database.url)
      const { found, names } = await examine(database.url)
      assert.ok('Schema' in found)
      for (const name of engine === postgres ? ['Clock'] : ['Clock', 'Integrity']) assert.ok(names.includes(name), name)
    })

    it('leaves a database that needs a migration as it is', async () => {
      await using database = await engine.newDatabase()
      if (engine !== postgres) writeFileSync(database.url.slice('sqlite:'.length), '', { mode: 0o600 })
      const { code, found } = await examine(database.url)
      assert.deepEqual([code, Object.keys(found), found['Schema']!.found], [0, ['Schema'], `lacks ${MIGRATION_NAMES}`])
      assert.deepEqual(await readSchema(database.url), {})
    })
  })
}

describe('petstore doctor', { concurrency: 3 }, () => {
  it("finds a database file that is missing, damaged, newer, another program's, or readable by others", async () => {
    await using folder = await Folder.create()
    await makeKey(folder)
    await folder.runInProcess(['seed', '--count', '2000'])
    const path = join(folder.path, 'data/petstore.db')
    const url = `sqlite:${path}`
    chmodSync(path, 0o604)
    const open = await examine(url)
    assert.deepEqual([open.code, Object.keys(open.found)], [0, ['File modes']])
    assert.ok(open.names.includes('Environment') && open.names.includes('Copy'), 'a warning ends no check')
    assert.match(
      open.found['File modes']!.found,
      /Other users of this machine can read .*petstore\.db; its mode is 604/,
    )
    const spaced = join(folder.path, 'my data')
    mkdirSync(spaced)
    chmodSync(spaced, 0o755)
    await folder.runInProcess(['migrate', '--database', `sqlite:${join(spaced, 'p.db')}`])
    const { found } = (await examine(`sqlite:${join(spaced, 'p.db')}`)).found['File modes']!
    assert.ok(found.endsWith(`chmod go= '${spaced}'`), found)
    chmodSync(path, 0o600)
    const missing = await examine(`${url}.gone`)
    assert.deepEqual([missing.code, missing.found['Database']!.state], [1, 'problem'])

    const before = readFileSync(path)
    const file = openSync(path, 'r+')
    writeSync(file, Buffer.alloc(4096, 7), 0, 4096, 4096 * 20)
    closeSync(file)
    const damaged = await examine(url)
    assert.equal(damaged.code, 1)
    assert.match(damaged.found['Integrity']!.fix!, /restore a backup/)
    writeFileSync(path, before)
    {
      using db = new DatabaseSync(path)
      db.exec("INSERT INTO petstore_migrations VALUES (999, 'from the future', 999, 0)")
    }
    const newer = await examine(url)
    assert.equal(newer.code, 1)
    assert.match(newer.found['Database']!.found, /has schema version 999/)
    {
      using db = new DatabaseSync(join(folder.path, 'data/foreign.db'))
      db.exec('CREATE TABLE toys (name TEXT)')
    }
    const foreign = await examine(`sqlite:${join(folder.path, 'data/foreign.db')}`)
    assert.equal(foreign.code, 1)
    assert.match(foreign.found['Database']!.found, /is a SQLite database of another program/)
  })

  it('refuses a database in memory, and examines no file of that name', async () => {
    await using folder = await Folder.create()
    const words = ['doctor', '--database', 'sqlite::memory:']
    const refused =
      'petstore: A database in memory ends with the command that opens it. Name a file, or a PostgreSQL database.\n'
    for (const file of ['none', ':memory:']) {
      writeFileSync(join(folder.path, file), '')
      assert.deepEqual(await folder.runInProcess(words), { code: 1, stdout: '', stderr: refused }, file)
    }
  })

  it('finds rows of a database file that refer to rows that do not exist', async () => {
    await using database = await sqlite.newDatabase()
    await petstore(['migrate', '--environment', 'staging', '--database', database.url])
    {
      using db = new DatabaseSync(database.url.slice('sqlite:'.length), { enableForeignKeyConstraints: false })
      db.exec("INSERT INTO sessions VALUES (x'01', 'acct_none', 1, 1)")
    }
    const { code, found } = await examine(database.url)
    assert.deepEqual(
      [code, found['Integrity']?.state, found['Integrity']?.found],
      [1, 'problem', '1 rows refer to rows that do not exist'],
    )
  })

  it('finds every import that was not finished', async () => {
    await using database = await sqlite.newDatabase()
    await petstore(['migrate', '--environment', 'staging', '--database', database.url])
    const store = await openStore(readConfig({ database: database.url }, {}).database)
    for (const name of ['one', 'two'])
      await store.imports.begin({ hash: name, file: `/srv/${name}.csv`, rowsTotal: 5 }, Date.now(), false)
    await store.close()
    const { code, stdout } = await petstore(['doctor', '--database', database.url])
    assert.equal(code, 0)
    for (const name of ['one', 'two'])
      assert.match(
        stdout,
        new RegExp(
          `\nwarning +Import +of /srv/${name}\\.csv had added 0 of 5 rows at .* UTC; it is running or was interrupted\n`,
        ),
      )
  })

  it('finds a PostgreSQL that is a standby', async () => {
    await using database = await postgres.newDatabase()
    await petstore(['migrate', '--environment', 'staging', '--database', database.url])
    for (const statement of [
      'CREATE SCHEMA told',
      'CREATE FUNCTION told.pg_is_in_recovery() RETURNS BOOLEAN LANGUAGE sql AS $$SELECT TRUE$$',
      `ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET search_path = public, told, pg_catalog`,
    ])
      await askPostgres(database.url, statement)
    const { code, found } = await examine(database.url)
    assert.deepEqual([code, found['Role']?.state], [1, 'problem'])
  })

  it('warns of a PostgreSQL without room for a whole pool more, and counts no processes of its own', async () => {
    await using database = await postgres.newDatabase()
    await petstore(['migrate', '--environment', 'staging', '--database', database.url])
    const ask = (statement: string) => askPostgres(database.url, statement)
    await ask('CREATE SCHEMA told')
    await ask(`
      CREATE TABLE told.pg_stat_activity AS
      SELECT CASE WHEN number > 100 THEN 'client backend' ELSE 'walwriter' END AS backend_type FROM generate_series(
        1, 90 + current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int) AS number`)
    await ask(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET search_path = public, told, pg_catalog`)
    assert.deepEqual((await examine(withParameters(database.url, 'pool_size=10'))).found, {})
    const { code, found } = await examine(withParameters(database.url, 'pool_size=11'))
    assert.deepEqual([code, found['Connections']?.state], [0, 'warning'])
  })

  it('finds a variable that is no setting, and says which may be meant', async () => {
    await using folder = await Folder.create()
    await folder.runInProcess(['migrate', '--environment', 'staging'])
    const { code, stdout, stderr } = await folder.run(['doctor'], {
      env: { PETSTORE_BASEURL: 'https://pets.example/v1' },
    })
    assert.equal(code, 0, stderr)
    assert.match(
      stdout,
      /^warning {2}Settings +PETSTORE_BASEURL is no setting and is ignored\n +→ Correct the name\. Did you mean PETSTORE_BASE_URL\?\nok {7}Node\.js +v26/,
    )
  })

  it('prints the problems and how many they are', async () => {
    await using folder = await Folder.create()
    const { code, stdout, stderr } = await folder.runInProcess(['doctor'])
    assert.deepEqual([code, stderr], [1, 'petstore: 1 problem found.\n'])
    assert.match(stdout, /\nproblem {2}Database +.*petstore\.db is missing\n +→ There is no petstore database at /)
  })

  it('names the database in JSON, without its password', async () => {
    const { stdout } = await petstore(['doctor', '--json'], {
      env: { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/none' },
    })
    assert.equal((JSON.parse(stdout) as { database: string }).database, 'PostgreSQL at 127.0.0.1:1/none')
    assert.ok(!stdout.includes('hunter2'), stdout)
  })

  it('finds a PostgreSQL that does not answer, and one with too few connections', async () => {
    const away = await examine('postgres://me:secret@127.0.0.1:1/none')
    assert.equal(away.code, 1)
    assert.match(away.found['Database']!.found, /Cannot connect to PostgreSQL at 127\.0\.0\.1:1/)
    const mistyped = await examine('postgres://me:secret@127.0.0.1:1/none?colour=red')
    assert.equal(mistyped.code, 1)
    assert.match(mistyped.found['Database']!.found, /unknown parameter colour/)
    await using database = await postgres.newDatabase()
    const crowded = await examine(withParameters(database.url, 'pool_size=1000'))
    assert.deepEqual([crowded.code, crowded.found['Connections']!.state], [0, 'warning'])
    await untilUnconnected(database.url)
  })
})
