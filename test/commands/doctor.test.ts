// petstore doctor: what is wrong and what to do, with an exit code for monitoring, and nothing changed.
import assert from 'node:assert/strict'
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import type { Check } from '../../src/store/database/check.ts'
import { Folder, makeKey } from '../harness/programs/command.ts'
import { changedProgram } from '../harness/programs/changed-program.ts'
import { askDatabase, MIGRATION_NAMES, MIGRATIONS, readSchema } from '../harness/databases/database-schema.ts'
import { askPostgres } from '../harness/databases/ask-postgres.ts'
import { ENGINES, postgres, sqlite, type TestEngine, withParameters } from '../harness/databases/engines.ts'
import { until } from '../harness/until.ts'
import { type Commands, commandsOn, type InProcessOptions } from '../harness/programs/in-process-command.ts'
import { withStore } from '../harness/databases/with-store.ts'

/** The server of the tests does not sync. */
const FAST_SERVER = 'fsync = off, full_page_writes = off:'

/** Runs the doctor; tells its exit code, and its checks that are not fine by their names. */
async function examine(url: string, words = '', options: InProcessOptions = {}) {
  const { code, stdout, stderr } = await commandsOn(url).run(`doctor --json${words}`, options)
  const { healthy, checks } = JSON.parse(stdout) as { healthy: boolean; checks: Check[] }
  assert.equal(healthy, code === 0, stderr)
  const found = Object.fromEntries(
    checks
      .filter(({ state, found: what }) => state !== 'ok' && !what.startsWith(FAST_SERVER))
      .map(({ name, ...rest }) => [name, rest]),
  )
  for (const [name, { fix }] of Object.entries(found)) assert.ok(fix, `${name} says what to do`)
  return { code, found, names: checks.map(({ name }) => name) }
}

/** A database of staging. */
async function withDatabase(engine: TestEngine, work: (url: string, commands: Commands) => Promise<void>) {
  await using database = await engine.newEmptyDatabase()
  const commands = commandsOn(database.url)
  await commands.call(0, 'migrate --environment staging')
  await work(database.url, commands)
}

async function untilUnconnected(url: string): Promise<void> {
  const others =
    'SELECT 1 FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
  await until(async () => (await askPostgres(url, others)).length === 0, 'every connection is closed')
}

for (const engine of ENGINES) {
  describe(`petstore doctor on ${engine.name}`, { concurrency: false }, () => {
    it('finds nothing on a healthy database, and exits with 0; then a copy and imports that were not finished', () =>
      withDatabase(engine, async (url, commands) => {
        const { code, found, names } = await examine(url)
        assert.deepEqual([code, found], [0, {}])
        if (engine === postgres) await untilUnconnected(url)
        for (const name of ['Settings', 'Node.js', 'Schema', 'Environment']) assert.ok(names.includes(name), name)
        await withStore(url, async (store) => {
          for (const [name, at] of Object.entries({ one: Date.UTC(2026, 10, 15, 12), two: Date.UTC(2026, 10, 15, 13) }))
            await store.imports.begin({ hash: name, file: `/srv/${name}.csv`, rowsTotal: 5 }, at, false)
          await store.setUnfinishedCopy(true)
        })
        const { stdout } = await commands.call(1, 'doctor')
        for (const told of [
          'problem  Copy         a copy into this database was interrupted\n                      → Run the same petstore copy again.\n',
          'warning  Import       of /srv/one.csv had added 0 of 5 rows at 2026-11-15 12:00 UTC; it is running or was interrupted\n                      → Unless it is running, run the same petstore import again to finish it.\n',
          'warning  Import       of /srv/two.csv had added 0 of 5 rows at 2026-11-15 13:00 UTC;',
        ])
          assert.ok(stdout.replaceAll(/ {2,}/g, '  ').includes(told.replaceAll(/ {2,}/g, '  ')), stdout)
      }))

    it('tells an environment that is not recorded, one that is a default and gives way to the setting, and one that was chosen', async () => {
      await using database = await engine.newEmptyDatabase()
      const { url } = database
      const commands = commandsOn(url)
      await withStore(url, async () => {})
      const environment = async (words = ' --environment production') => {
        const { code, found } = await examine(url, words)
        return [code, found['Environment']]
      }
      const fix = 'Start the service, which records it: production.'
      assert.deepEqual(await environment(), [0, { state: 'warning', found: 'none is recorded yet', fix }])
      await commands.call(0, 'migrate')
      assert.deepEqual(await environment(), [0, undefined])
      await commands.call(0, 'migrate --environment staging')
      const refused = (own: string, setting: string) => ({
        state: 'problem',
        found: `the database belongs to ${own}, the setting is ${setting}`,
        fix: `Set PETSTORE_ENVIRONMENT=${own}, or name another database: the service refuses to start.`,
      })
      assert.deepEqual(await environment(), [1, refused('staging', 'production')], 'it was chosen')
      await commands.call(0, 'environment set production --yes')
      assert.deepEqual(
        await environment(''),
        [1, refused('production', 'staging, its default')],
        'serve would refuse it',
      )
      assert.deepEqual(await environment(), [0, undefined])
    })

    it('examines the rest of a database of an earlier release as well', async () => {
      const newest = MIGRATIONS.length
      await using newer = await changedProgram(newest, `-- compatible from ${newest}\nCREATE TABLE toys (id INTEGER);`)
      await withDatabase(engine, async (url) => {
        const { stdout } = await newer.run(['doctor', '--json'], { env: { DATABASE_URL: url } })
        const { checks } = JSON.parse(stdout) as { checks: Check[] }
        assert.match(checks.find(({ name }) => name === 'Schema')!.found, /^lacks \d{4}-newer/)
        assert.ok(checks.some(({ name }) => name === (engine === postgres ? 'Clock' : 'Integrity')))
      })
    })

    it('leaves a database that needs a migration as it is', async () => {
      await using database = await engine.newEmptyDatabase()
      if (engine !== postgres) {
        await askDatabase(database.url, 'PRAGMA journal_mode = WAL')
        chmodSync(database.url.slice('sqlite:'.length), 0o600)
      }
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
    await folder.commands.call(0, 'seed --count 2000')
    const path = folder.at('data/petstore.db')
    const url = `sqlite:${path}`
    chmodSync(path, 0o604)
    const open = await examine(url)
    assert.deepEqual([open.code, Object.keys(open.found)], [0, ['File modes']])
    assert.ok(open.names.includes('Environment') && open.names.includes('Copy'), 'a warning ends no check')
    assert.match(
      open.found['File modes']!.found,
      /Other users of this machine can read .*petstore\.db; its mode is 604/,
    )
    const spaced = folder.at('my data')
    mkdirSync(spaced)
    chmodSync(spaced, 0o755)
    await commandsOn(`sqlite:${spaced}/p.db`).call(0, 'migrate')
    const { found } = (await examine(`sqlite:${spaced}/p.db`)).found['File modes']!
    assert.ok(found.endsWith(`chmod go= '${spaced}'`), found)
    chmodSync(path, 0o600)
    const problem = async (database: string, check: string, message: RegExp) => {
      const told = await examine(database)
      assert.deepEqual([told.code, told.found[check]?.state], [1, 'problem'])
      assert.match(`${told.found[check]?.found} ${told.found[check]?.fix}`, message)
    }
    await problem(`${url}.gone`, 'Database', /petstore\.db\.gone is missing /)
    for (const name of ['zero.db', 'lost.db-wal']) folder.write(name, name === 'zero.db' ? '' : 'of a lost database')
    await problem(`sqlite:${folder.at('zero.db')}`, 'Database', /zero\.db is empty, not a store Restore a backup to it/)
    await problem(`sqlite:${folder.at('lost.db')}`, 'Database', /lost\.db-wal is a log without its database/)
    await problem(`sqlite:${folder.path}`, 'Database', / is a folder Name the file of the database in it/)

    const before = readFileSync(path)
    const file = openSync(path, 'r+')
    writeSync(file, Buffer.alloc(4096, 7), 0, 4096, 4096 * 20)
    closeSync(file)
    await problem(url, 'Integrity', /restore a backup/)
    writeFileSync(path, before)
    await askDatabase(url, "INSERT INTO store_migrations VALUES (999, 'from the future', 999, '', 0)")
    // Nothing advises to move a whole file away.
    await problem(url, 'Database', /has schema version 999.* The service cannot open it either\.$/)
    const foreign = `sqlite:${folder.at('data/foreign.db')}`
    await askDatabase(foreign, 'CREATE TABLE toys (name TEXT)')
    await problem(foreign, 'Database', /is a SQLite database of another program.* The service cannot open it either\.$/)
  })

  it('refuses a database in memory, and examines no file of that name', async () => {
    await using folder = await Folder.create()
    const refused =
      'petstore: A database in memory ends with the command that opens it. Name a file, or a PostgreSQL database.\n'
    for (const file of ['none', ':memory:']) {
      folder.write(file, '')
      await folder.commands.refused(1, 'doctor --database sqlite::memory:', refused)
    }
  })

  it('leaves the tables of another program alone, beside which the service can not have its own', async () => {
    await using database = await postgres.newEmptyDatabase()
    await askPostgres(database.url, 'CREATE TABLE pets (id INTEGER)')
    const { code, found } = await examine(database.url)
    assert.deepEqual([code, Object.keys(found)], [1, ['Schema']])
    assert.match(found['Schema']!.found, /, and the table pets is another program's$/)
    assert.equal(found['Schema']!.fix, 'Create a database for the service alone.')
  })

  it('finds an index without its rows, one that was dropped, and tells of much damage in one short line', () =>
    withDatabase(sqlite, async (url, commands) => {
      await commands.call(0, 'seed --count 2000')
      const path = url.slice('sqlite:'.length)
      const change = (sql: string) => {
        using db = new DatabaseSync(path, { defensive: false })
        db.exec(`PRAGMA writable_schema = ON; ${sql}`)
      }
      const index = 'pets_by_category'
      change(`DROP INDEX ${index}`)
      const { code, found } = await examine(url)
      assert.deepEqual([code, found['Schema']?.found], [1, `lacks the index ${index}`])
      const [, sql] = /^Stop the service and run in an SQLite shell: (CREATE INDEX .*;)$/.exec(found['Schema']!.fix!)!
      change(sql!)
      assert.deepEqual((await examine(url)).found, {})
      // An index of no row: it is made empty while it has a condition.
      change(`DROP INDEX ${index}; ${sql!.replace(';', ' WHERE id < 0;')}
        UPDATE sqlite_schema SET sql = '${sql!.replace(';', '')}' WHERE name = '${index}'`)
      const { Integrity: without } = (await examine(url)).found
      assert.match(without!.found, /^(?:row 1 missing from|wrong # of entries in) index .*, and \d+ more$/)
      assert.match(without!.fix!, /the rows are whole\. Stop the service and run: sqlite3 \S+ REINDEX$/)
      change(`REINDEX ${index}`)
      assert.deepEqual((await examine(url)).found, {})
      const bytes = readFileSync(path)
      bytes.fill(7, 4096 * 50, 4096 * 60)
      writeFileSync(path, bytes)
      const { Integrity: damaged } = (await examine(url)).found
      assert.match(damaged!.found, /^[^\n]{10,200}, and \d+ more$/)
    }))

  it('finds rows of a database file that refer to rows that do not exist', () =>
    withDatabase(sqlite, async (url) => {
      using db = new DatabaseSync(url.slice('sqlite:'.length), { enableForeignKeyConstraints: false })
      db.exec("INSERT INTO sessions VALUES (x'01', 'acct_none', 1, 1)")
      const { code, found } = await examine(url)
      const { state, found: told } = found['Integrity']!
      assert.deepEqual([code, state, told], [1, 'problem', '1 rows refer to rows that do not exist'])
    }))

  /** Lets what a query of PostgreSQL's catalogue finds be told by the schema `told`. */
  const tell = async (url: string, object: string) => {
    const name = new URL(url).pathname.slice(1)
    const path = `ALTER DATABASE ${name} SET search_path = public, told, pg_catalog`
    for (const statement of ['CREATE SCHEMA told', object, path]) await askPostgres(url, statement)
  }

  it('finds a PostgreSQL that is a standby', () =>
    withDatabase(postgres, async (url) => {
      await tell(url, 'CREATE FUNCTION told.pg_is_in_recovery() RETURNS BOOLEAN LANGUAGE sql AS $$SELECT TRUE$$')
      const { code, found } = await examine(url)
      assert.deepEqual([code, found['Role']?.state], [1, 'problem'])
    }))

  it('finds a clock that differs from that of PostgreSQL, and takes no offence at seconds', () =>
    withDatabase(postgres, async (url) => {
      const stateAt = async (ahead: number) => {
        const { code, found } = await examine(url, '', { clock: () => Date.now() + ahead })
        return [code, found['Clock']?.state]
      }
      for (const ahead of [-3_600_000, 30_000]) assert.deepEqual(await stateAt(ahead), [1, 'problem'])
      assert.deepEqual(await stateAt(-2000), [0, undefined])
    }))

  it('warns of a PostgreSQL without room for a whole pool more, and counts no processes of its own', () =>
    withDatabase(postgres, async (url) => {
      await tell(
        url,
        `CREATE TABLE told.pg_stat_activity AS
        SELECT CASE WHEN number > 100 THEN 'client backend' ELSE 'walwriter' END AS backend_type FROM generate_series(
          1, 90 + current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int) AS number`,
      )
      assert.equal((await examine(withParameters(url, 'pool_size=10'))).found['Connections'], undefined)
      const { code, found } = await examine(withParameters(url, 'pool_size=11'))
      assert.deepEqual([code, found['Connections']?.state], [0, 'warning'])
      const { code: crowded, found: more } = await examine(withParameters(url, 'pool_size=1000'))
      assert.deepEqual([crowded, more['Connections']?.state], [0, 'warning'])
      await untilUnconnected(url)
    }))

  it('prints the problems and how many they are, after a warning of a variable that is no setting', async () => {
    await using folder = await Folder.create()
    const env = { PETSTORE_BASEURL: 'https://pets.example/v1' }
    const { stdout, stderr } = await folder.commands.call(1, 'doctor', { env })
    assert.match(stderr, /PETSTORE_BASEURL is no setting and is ignored\. Did you mean PETSTORE_BASE_URL\?\n/)
    assert.match(stdout, /^ok {7}Settings .*\nok {7}Node\.js +v26/)
    assert.match(stdout, /\nproblem {2}Database +.*petstore\.db is missing\n +→ There is no petstore database at /)
    assert.ok(stderr.endsWith('petstore: 1 problem found.\n'), stderr)
  })

  it('finds a PostgreSQL that does not answer, or whose address is mistyped, and names it without its password', async () => {
    const url = 'postgres://me:hunter2@127.0.0.1:1/none'
    const { stdout } = await commandsOn(url).call(1, 'doctor --json')
    const { database, checks } = JSON.parse(stdout) as { database: string; checks: Check[] }
    assert.equal(database, 'PostgreSQL at 127.0.0.1:1/none')
    const { found = '' } = checks.find(({ name }) => name === 'Database') ?? {}
    assert.match(found, /Cannot connect to PostgreSQL at 127\.0\.0\.1:1/)
    assert.ok(!stdout.includes('hunter2'), stdout)
    await using withoutTls = await postgres.newEmptyDatabase()
    const refused = (await examine(withParameters(withoutTls.url, 'sslmode=require'))).found['Database']
    assert.match(`${refused?.found} ${refused?.fix}`, /TLS .* sslmode/)
    const mistyped = await examine(`${url}?colour=red`)
    assert.equal(mistyped.code, 1)
    assert.match(mistyped.found['Database']!.found, /unknown parameter colour/)
  })
})
