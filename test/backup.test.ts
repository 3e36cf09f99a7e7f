// petstore backup and restore: a whole copy while the service writes, put back where nothing can be lost.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { backUp, restore } from '../src/store/sqlite/backup.ts'
import { Folder, makeKey, serve } from './command.ts'
import { MIGRATIONS, readSchema } from './database-schema.ts'
import { postgres, sqlite } from '../assurance/harness/engines.ts'
import { startPetstore } from './harness.ts'
import { petstore } from './in-process-command.ts'
import { OLD_SCHEMA, restoreOldDatabase } from './old-release.ts'

const DATABASE = 'data/petstore.db'

/** Rows of a query on a database file in the folder. */
function ask(folder: Folder, file: string, sql: string): Record<string, unknown>[] {
  using db = new DatabaseSync(join(folder.path, file))
  return db
    .prepare(sql)
    .all()
    .map((row) => ({ ...row }))
}

const count = (folder: Folder, file: string, table: string) =>
  ask(folder, file, `SELECT count(*) AS rows FROM ${table}`)[0]!['rows'] as number

/** Runs a command, and fails unless it ends with this code. */
async function call(folder: Folder, code: number, words: string[]) {
  const ended = await folder.runInProcess(words)
  assert.equal(ended.code, code, ended.stderr)
  return ended
}

/** Leaves a NULL in a column that forbids it: damage that SQLite copies without complaint. */
function breakRule(path: string): void {
  const exec = (sql: string) => {
    using db = new DatabaseSync(path, { defensive: false })
    db.exec(sql)
  }
  const rule = (from: string, to: string) =>
    exec(
      `PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '${from}', '${to}') WHERE name = 'pets'`,
    )
  rule('name TEXT NOT NULL', 'name TEXT')
  exec('UPDATE pets SET name = NULL WHERE id = 5')
  rule('name TEXT', 'name TEXT NOT NULL')
}

describe('petstore backup', { concurrency: 3 }, () => {
  it('copies a database that a running service writes to: all that was acknowledged before, and whole', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    await folder.runInProcess(['seed', '--count', '20000'])
    const { url } = await serve(folder)
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const add = async () =>
      assert.equal(
        (await fetch(`${url}/v1/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' })).status,
        201,
      )
    for (let added = 0; added < 20; added += 1) await add()
    const child = folder.start(['backup', 'copy.db', '--json'])
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    let during = 0
    while (child.exitCode === null) {
      await add()
      during += 1
    }
    assert.equal(await ended, 0)
    assert.ok(during > 0)
    const rows = count(folder, 'copy.db', 'pets')
    assert.ok(rows >= 20_020 && rows <= 20_020 + during, `${rows} animals`)
    assert.deepEqual(ask(folder, 'copy.db', 'PRAGMA integrity_check'), [{ integrity_check: 'ok' }])
    assert.equal(statSync(join(folder.path, 'copy.db')).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(folder.path).toSorted(), ['copy.db', 'data'], 'nothing is left beside it')
  })

  it('never replaces a file unless told, and leaves nothing behind where it fails', async () => {
    await using folder = await Folder.create()
    await folder.runInProcess(['seed', '--count', '10'])
    writeFileSync(join(folder.path, 'copy.db'), 'precious')
    const refused = await call(folder, 1, ['backup', 'copy.db'])
    assert.equal(
      refused.stderr,
      'petstore: copy.db exists already; nothing was written. Name another file, or add --force.\n',
    )
    assert.equal(readFileSync(join(folder.path, 'copy.db'), 'utf8'), 'precious')
    assert.match(
      (await call(folder, 1, ['backup', 'none/copy.db'])).stderr,
      /^petstore: Cannot back up .*\/data\/petstore\.db to none\/copy\.db: ENOENT/,
    )
    assert.match((await call(folder, 1, ['backup', DATABASE, '--force'])).stderr, /is the database itself/)
    assert.match(
      (await call(folder, 1, ['backup', 'x.db', '--database', 'sqlite:none.db'])).stderr,
      /There is no petstore database at .*none\.db/,
    )
    assert.match(
      (await call(folder, 0, ['backup', 'copy.db', '--force'])).stderr,
      /^Backed up .*\/data\/petstore\.db to copy\.db \(\d+ KiB\), checked\./,
    )
    assert.equal(count(folder, 'copy.db', 'pets'), 10)
    assert.deepEqual(readdirSync(folder.path).toSorted(), ['copy.db', 'data'])
  })

  const TAKEN: Record<string, (path: string) => void> = {
    'a pipe': (path) => execFileSync('mkfifo', [path]),
    'a folder': (path) => mkdirSync(path),
    'a link to a device': (path) => symlinkSync('/dev/null', path),
    // As is /dev/stdout where it is sent to a file.
    'a link to a file': (path) => {
      writeFileSync(`${path}.target`, '')
      symlinkSync(`${path}.target`, path)
    },
    'a link to nothing': (path) => symlinkSync('none.csv', path),
  }
  for (const [what, take] of Object.entries(TAKEN)) {
    it(`never takes the place of ${what}, even with --force, nor does an export`, async () => {
      await using folder = await Folder.create()
      await folder.runInProcess(['seed', '--count', '1'])
      const taken = join(folder.path, 'taken.csv')
      take(taken)
      const look = () => [lstatSync(taken).ino, readdirSync(folder.path)]
      const before = look()
      for (const words of [
        'backup taken.csv',
        'backup taken.csv --force',
        'export taken.csv',
        'export taken.csv --force',
      ])
        assert.match(
          (await call(folder, 1, words.split(' '))).stderr,
          /^petstore: taken\.csv is a symbolic link, a folder or a special file; nothing was written\. Name another file/,
          words,
        )
      assert.deepEqual(look(), before)
    })
  }

  it('leaves a database of an earlier release as it is: one that is made before an upgrade leads back', async () => {
    await using database = await sqlite.newDatabase()
    await restoreOldDatabase(sqlite, database.url)
    const schema = await readSchema(database.url)
    const { code, stderr } = await petstore(['backup', `${database.url.slice('sqlite:'.length)}.copy`], {
      env: { DATABASE_URL: database.url },
    })
    assert.equal(code, 0, stderr)
    for (const url of [database.url, `${database.url}.copy`]) assert.deepEqual(await readSchema(url), schema, url)
  })

  it('is whole and for its owner only under any name, also one that SQLite would take for a URI', async () => {
    await using folder = await Folder.create()
    await folder.runInProcess(['seed', '--count', '10', '--database', 'sqlite:file:q.db?mode=memory'])
    for (const file of ['file:copy.db', 'file:copy.db?mode=ro', ':memory:']) {
      await call(folder, 0, ['backup', file, '--database', 'sqlite:file:q.db?mode=memory'])
      assert.equal(statSync(join(folder.path, file)).mode & 0o777, 0o600)
      await call(folder, 0, ['restore', file, '--database', `sqlite:file:new-${file}`])
      assert.equal(count(folder, `file:new-${file}`, 'pets'), 10)
    }
    const missing = await call(folder, 1, ['backup', 'missing/', '--database', 'sqlite:file:q.db?mode=memory'])
    assert.match(missing.stderr, /^petstore: Cannot back up .* to missing\/: /)
    assert.deepEqual(
      readdirSync(folder.path).filter((name) => !/^(?:file:|:memory:$)/.test(name)),
      [],
    )
  })

  it('refuses a database in memory, as every command does that would lose what it wrote, and leaves no file with that name', async () => {
    await using folder = await Folder.create()
    await folder.runInProcess(['seed', '--count', '10', '--database', 'sqlite:q.db'])
    const inMemory = 'sqlite::memory:'
    for (const words of [
      ['backup', 'copy.db', '--database', inMemory],
      ['restore', 'q.db', '--database', inMemory],
      ['seed', '--count', '1', '--database', inMemory],
      ['account', 'list', '--database', inMemory],
      ['copy', '--from', inMemory, '--to', 'sqlite:new.db'],
      ['copy', '--from', 'sqlite:q.db', '--to', inMemory],
    ])
      assert.equal(
        (await call(folder, 1, words)).stderr,
        'petstore: A database in memory ends with the command that opens it. Name a file, or a PostgreSQL database.\n',
      )
    assert.deepEqual(readdirSync(folder.path), ['q.db'])
  })

  it("refuses another program's database, and a file that holds none", async () => {
    await using folder = await Folder.create()
    const foreign = join(folder.path, 'foreign.db')
    {
      using toys = new DatabaseSync(foreign)
      toys.exec('CREATE TABLE toys (name TEXT)')
    }
    writeFileSync(join(folder.path, 'nothing.db'), '')
    for (const [file, message] of [
      ['foreign.db', /foreign\.db is a SQLite database of another program/],
      ['nothing.db', /nothing\.db is empty; it holds no petstore database\./],
    ] as const)
      assert.match((await call(folder, 1, ['backup', 'copy.db', '--database', `sqlite:${file}`])).stderr, message)
    assert.deepEqual(readdirSync(folder.path).toSorted(), ['foreign.db', 'nothing.db'])
  })

  it('does not replace a file that another process has made meanwhile', async ({ mock }) => {
    await using folder = await Folder.create()
    await folder.runInProcess(['seed', '--count', '10'])
    const [database, file] = [DATABASE, 'copy.db'].map((name) => join(folder.path, name)) as [string, string]
    const prepare = Reflect.get(DatabaseSync.prototype, 'prepare')
    let copies = 0
    mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, sql: string) {
      if (sql.startsWith('VACUUM INTO')) {
        copies += 1
        writeFileSync(file, 'precious')
      }
      return prepare.call(this, sql)
    })
    await assert.rejects(backUp(database, file, false), /copy\.db exists already; nothing was written/)
    await assert.rejects(backUp(database, file, false), /copy\.db exists already; nothing was written/)
    assert.equal(copies, 1, 'where the file is there from the beginning, nothing is copied')
    assert.equal(readFileSync(file, 'utf8'), 'precious')
    assert.deepEqual(readdirSync(folder.path).toSorted(), ['copy.db', 'data'])
  })

  it('refuses a damaged database instead of keeping a damaged copy', async () => {
    await using folder = await Folder.create()
    await folder.runInProcess(['seed', '--count', '5000'])
    truncateSync(join(folder.path, DATABASE), 40_000)
    assert.match((await call(folder, 1, ['backup', 'copy.db'])).stderr, /^petstore: .*damaged/)
    assert.deepEqual(readdirSync(folder.path), ['data'])
  })

  it('checks the copy too: a row that breaks the rules of its table is damage that is copied without complaint', async () => {
    await using folder = await Folder.create()
    await folder.runInProcess(['seed', '--count', '10'])
    breakRule(join(folder.path, DATABASE))
    assert.match((await call(folder, 1, ['backup', 'copy.db'])).stderr, /is damaged: NULL value in pets\.name/)
    assert.deepEqual(readdirSync(folder.path), ['data'])
  })

  it('names the tools for PostgreSQL', async () => {
    await using folder = await Folder.create()
    await using database = await postgres.newDatabase()
    const made = await call(folder, 1, ['backup', 'copy.db', '--database', database.url])
    assert.match(made.stderr, /this command works on SQLite\. For PostgreSQL use its own tools: pg_dump .*pgBackRest/)
    assert.match(
      (await call(folder, 1, ['restore', 'copy.db', '--database', database.url])).stderr,
      /pg_restore or pgBackRest/,
    )
  })
})

describe('petstore restore', { concurrency: 3 }, () => {
  async function withBackup(): Promise<Folder> {
    const folder = await Folder.create()
    await makeKey(folder)
    await folder.runInProcess(['seed', '--count', '100'])
    await folder.runInProcess(['backup', 'copy.db'])
    return folder
  }

  it('brings everything back, ids and keys included, also keys revoked since, of which it warns', async () => {
    await using folder = await Folder.create()
    const { id, key } = await makeKey(folder)
    await folder.runInProcess(['seed', '--count', '100'])
    {
      using db = new DatabaseSync(join(folder.path, DATABASE))
      db.exec(`INSERT INTO sessions SELECT x'01', id, 1, 1 FROM accounts`)
    }
    await folder.runInProcess(['backup', 'copy.db'])
    const copy = readFileSync(join(folder.path, 'copy.db'))
    await folder.runInProcess(['key', 'revoke', id])
    const { stderr } = await call(folder, 0, ['restore', 'copy.db', '--database', 'sqlite:new/petstore.db'])
    assert.match(
      stderr,
      /^Warning: keys that were revoked, .* since the backup are valid again.* See .*key list --database sqlite:\/.*\/new\/petstore\.db\nRestored .*\/new\/petstore\.db from copy\.db, checked\. People need to sign in again\.\nNote: .*\n$/,
    )
    for (const table of ['pets', 'accounts', 'audit_events'])
      assert.equal(count(folder, 'new/petstore.db', table), count(folder, 'copy.db', table), table)
    assert.equal(count(folder, 'new/petstore.db', 'sessions'), 0, 'a session may have been ended since')
    assert.ok(readFileSync(join(folder.path, 'copy.db')).equals(copy), 'the backup stays as it is')
    for (const [name, mode] of Object.entries({ new: 0o700, 'new/petstore.db': 0o600 }))
      assert.equal(statSync(join(folder.path, name)).mode & 0o777, mode, name)
    const { url } = await serve(folder, { env: { DATABASE_URL: 'sqlite:new/petstore.db' } })
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const added = await fetch(`${url}/v1/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' })
    assert.deepEqual([added.status, ((await added.json()) as { id: number }).id], [201, 101])
  })

  it('takes a database that was moved away with its -wal, and loses nothing that is only there', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    const { url, child, ended } = await serve(folder)
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const added = await fetch(`${url}/v1/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' })
    assert.equal(added.status, 201)
    child.kill('SIGKILL')
    await ended
    const [from, to] = [DATABASE, 'away.db'].map((name) => join(folder.path, name)) as [string, string]
    for (const part of ['', '-wal', '-shm']) renameSync(from + part, to + part)
    chmodSync(to, 0o644)
    await call(folder, 0, ['restore', 'away.db'])
    assert.deepEqual(ask(folder, DATABASE, 'SELECT name FROM pets'), [{ name: 'Rex' }])
    assert.equal(statSync(from).mode & 0o777, 0o600, 'whatever the mode of the backup')
  })

  it('takes a backup of an earlier release, which the next start upgrades', async () => {
    await using old = await sqlite.newDatabase()
    await using database = await sqlite.newDatabase()
    const made = await restoreOldDatabase(sqlite, old.url)
    const { code, stderr } = await petstore(['restore', old.url.slice('sqlite:'.length), '--database', database.url])
    assert.equal(code, 0, stderr)
    await using service = await startPetstore({ database: database.url, env: { PETSTORE_ENVIRONMENT: 'staging' } })
    assert.deepEqual(
      service.store.opened.migrations,
      MIGRATIONS.slice(OLD_SCHEMA).map(({ name }) => name),
    )
    const listed = await service.call('/pets?limit=100', { headers: { Authorization: `Bearer ${made.key}` } })
    assert.partialDeepStrictEqual(await listed.json(), JSON.parse(made.pets))
  })

  it('prints JSON for scripts, as a backup does: which file became which, and of how many bytes', async () => {
    await using database = await sqlite.newDatabase()
    const [path, copy, to] = ['', '.copy', '.restored'].map((end) => database.url.slice('sqlite:'.length) + end)
    await petstore(['seed', '--count', '10', '--database', database.url])
    const made = await petstore(['backup', copy!, '--json', '--database', `sqlite:${path}`])
    assert.deepEqual(JSON.parse(made.stdout), { file: copy, bytes: statSync(copy!).size })
    const restored = await petstore(['restore', copy!, '--json', '--database', `sqlite:${to}`])
    assert.deepEqual(JSON.parse(restored.stdout), { database: to, file: copy })
    assert.match(restored.stderr, /^Warning: keys that were revoked.*\nNote: .*\n$/)
  })

  it('takes an empty database in its place, but not one with data and not one in use', async () => {
    await using folder = await withBackup()
    const before = readFileSync(join(folder.path, DATABASE))
    assert.match(
      (await call(folder, 1, ['restore', 'copy.db'])).stderr,
      /^petstore: .*\/data\/petstore\.db has data already \(accounts: 1, .*animals: 100\); nothing was changed\./,
    )
    assert.ok(readFileSync(join(folder.path, DATABASE)).equals(before))
    const foreign = join(folder.path, 'foreign.db')
    using toys = new DatabaseSync(foreign)
    toys.exec('CREATE TABLE toys (name TEXT)')
    const refused = await call(folder, 1, ['restore', 'copy.db', '--database', 'sqlite:foreign.db'])
    assert.match(refused.stderr, /\/foreign\.db is a SQLite database of another program; nothing in it was changed/)
    assert.equal(toys.prepare('SELECT count(*) AS count FROM toys').get()!['count'], 0)

    const { child, ended } = await serve(folder, { env: { DATABASE_URL: 'sqlite:empty.db' } })
    const used = await call(folder, 1, ['restore', 'copy.db', '--database', 'sqlite:empty.db'])
    assert.match(used.stderr, /^petstore: .*\/empty\.db is in use; nothing was changed\. Stop the service first\.\n$/)
    child.kill('SIGKILL')
    await ended
    assert.ok(existsSync(join(folder.path, 'empty.db-wal')))
    await call(folder, 0, ['restore', 'copy.db', '--database', 'sqlite:empty.db'])
    assert.deepEqual(
      readdirSync(folder.path).filter((name) => name.startsWith('empty.db')),
      ['empty.db'],
    )
    assert.equal(count(folder, 'empty.db', 'pets'), 100)
  })

  it('removes files that a database of the same name has left: they would damage the restored one', async () => {
    await using folder = await withBackup()
    mkdirSync(join(folder.path, 'new'))
    for (const companion of ['-wal', '-shm', '-journal'])
      writeFileSync(join(folder.path, `new/petstore.db${companion}`), 'stale')
    await call(folder, 0, ['restore', 'copy.db', '--database', 'sqlite:new/petstore.db'])
    assert.deepEqual(readdirSync(join(folder.path, 'new')), ['petstore.db'])
    assert.equal(count(folder, 'new/petstore.db', 'pets'), 100)
  })

  it('checks the restored database too: the disk may have damaged it', async ({ mock }) => {
    await using folder = await withBackup()
    const [copy, path] = ['copy.db', 'new.db'].map((name) => join(folder.path, name)) as [string, string]
    const exec = Reflect.get(DatabaseSync.prototype, 'exec')
    mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      exec.call(this, sql)
      if (sql === 'DELETE FROM sessions' && this.location() === path) breakRule(path)
    })
    await assert.rejects(restore(copy, path), /new\.db is damaged: NULL value in pets\.name/)
  })

  it('refuses a file that is no backup, damaged, or from a newer program, before it touches anything', async () => {
    await using folder = await withBackup()
    writeFileSync(join(folder.path, 'letter.txt'), 'Dear Sir or Madam, '.repeat(100))
    writeFileSync(join(folder.path, 'nothing.db'), '')
    copyFileSync(join(folder.path, 'copy.db'), join(folder.path, 'cut.db'))
    truncateSync(join(folder.path, 'cut.db'), 20_000)
    copyFileSync(join(folder.path, 'copy.db'), join(folder.path, 'broken.db'))
    breakRule(join(folder.path, 'broken.db'))
    copyFileSync(join(folder.path, 'copy.db'), join(folder.path, 'newer.db'))
    ask(folder, 'newer.db', "INSERT INTO petstore_migrations VALUES (999, 'from the future', 999, 0)")
    const refusals: [file: string, message: RegExp][] = [
      ['none.db', /There is no file none\.db to restore\./],
      ['letter.txt', /it is not a SQLite database/],
      ['nothing.db', /nothing\.db is empty; it holds no petstore database\./],
      ['cut.db', /damaged/],
      ['broken.db', /broken\.db is damaged: NULL value in pets\.name/],
      ['newer.db', /newer\.db has schema version 999/],
    ]
    for (const [file, message] of refusals) {
      const { stderr } = await call(folder, 1, ['restore', file, '--database', 'sqlite:new/petstore.db'])
      assert.match(stderr, message)
      assert.ok(!existsSync(join(folder.path, 'new')), file)
    }
  })
})
