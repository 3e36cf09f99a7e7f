// petstore backup and restore: a whole copy while the service writes, put back where nothing can be lost.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { backUp, restore } from '../../src/store/sqlite/backup.ts'
import { collect } from '../harness/programs/processes.ts'
import { changedProgram } from '../harness/programs/changed-program.ts'
import { Folder, makeKey, serve } from '../harness/programs/command.ts'
import { askDatabase, MIGRATIONS, readSchema } from '../harness/databases/database-schema.ts'
import { sqlite } from '../harness/databases/engines.ts'
import { commandsOn } from '../harness/programs/in-process-command.ts'

const DATABASE = 'data/petstore.db'

const ask = (folder: Folder, file: string, sql: string) => askDatabase(`sqlite:${folder.at(file)}`, sql)

async function count(folder: Folder, file: string, table: string): Promise<number> {
  return Number((await ask(folder, file, `SELECT count(*) AS rows FROM ${table}`))[0]!['rows'])
}

const modeOf = (folder: Folder, file: string) => statSync(folder.at(file)).mode & 0o777

/** A folder with a database of so many animals. */
async function seeded(animals: number): Promise<Folder> {
  const folder = await Folder.create()
  await folder.commands.call(0, `seed --count ${animals}`)
  return folder
}

/** Adds an animal through a service; resolves with its id. */
async function addPet(url: string, key: string): Promise<number> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const answer = await fetch(`${url}/v1/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' })
  assert.equal(answer.status, 201)
  return ((await answer.json()) as { id: number }).id
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
    await folder.commands.call(0, 'seed --count 20000')
    const { url } = await serve(folder)
    for (let added = 0; added < 20; added += 1) await addPet(url, key)
    const child = folder.start(['backup', 'copy.db', '--json'])
    const ended = collect(child)
    let during = 0
    for (; child.exitCode === null; during += 1) await addPet(url, key)
    const { code, stdout } = await ended
    assert.equal(code, 0)
    assert.deepEqual(JSON.parse(stdout), { file: 'copy.db', bytes: statSync(folder.at('copy.db')).size })
    assert.ok(during > 0)
    const rows = await count(folder, 'copy.db', 'pets')
    assert.ok(rows >= 20_020 && rows <= 20_020 + during, `${rows} animals`)
    assert.equal((await ask(folder, 'copy.db', 'PRAGMA integrity_check'))[0]?.['integrity_check'], 'ok')
    assert.equal(modeOf(folder, 'copy.db'), 0o600)
    assert.deepEqual(folder.names(), ['copy.db', 'data'], 'nothing is left beside it')
  })

  it('never replaces a file unless told, and leaves nothing behind where it fails', async () => {
    await using folder = await seeded(10)
    folder.write('copy.db', 'precious')
    const refusals: [line: string, message: string | RegExp][] = [
      ['backup copy.db', 'petstore: copy.db exists already; nothing was written. Name another file, or add --force.\n'],
      [
        'backup none/copy.db',
        /^petstore: Cannot back up .*\/data\/petstore\.db to none\/copy\.db: no such file or directory\n/,
      ],
      [`backup ${DATABASE} --force`, /is the database itself/],
      ['backup x.db --database sqlite:none.db', /There is no petstore database at .*none\.db/],
    ]
    for (const [line, message] of refusals) await folder.commands.refused(1, line, message)
    assert.equal(readFileSync(folder.at('copy.db'), 'utf8'), 'precious')
    const { stderr } = await folder.commands.call(0, 'backup copy.db --force')
    assert.match(stderr, /^Backed up .*\/data\/petstore\.db to copy\.db \(\d+ KiB\), checked\./)
    assert.equal(await count(folder, 'copy.db', 'pets'), 10)
    assert.deepEqual(folder.names(), ['copy.db', 'data'])
  })

  it('never takes the place of a pipe, a folder or a link, even with --force, nor does an export', async () => {
    await using folder = await seeded(1)
    execFileSync('mkfifo', [folder.at('pipe.csv')])
    mkdirSync(folder.at('folder.csv'))
    symlinkSync('/dev/null', folder.at('device.csv'))
    // As is /dev/stdout where it is sent to a file.
    symlinkSync(folder.write('target', ''), folder.at('link.csv'))
    symlinkSync('none.csv', folder.at('nothing.csv'))
    const files = folder.names().filter((name) => name.endsWith('.csv'))
    assert.equal(files.length, 5)
    const look = () => [folder.names(), files.map((name) => lstatSync(folder.at(name)).ino)]
    const before = look()
    for (const file of files)
      for (const line of [`backup ${file}`, `backup ${file} --force`, `export ${file}`, `export ${file} --force`])
        await folder.commands.refused(
          1,
          line,
          /^petstore: \w+\.csv is a symbolic link, a folder or a special file; nothing was written\. Name another file/,
        )
    assert.deepEqual(look(), before)
  })

  it('is whole and for its owner only under any name, also one that SQLite would take for a URI', async () => {
    await using folder = await Folder.create()
    const on = '--database sqlite:file:q.db?mode=memory'
    await folder.commands.call(0, `seed --count 10 ${on}`)
    for (const file of ['file:copy.db', 'file:copy.db?mode=ro', ':memory:']) {
      await folder.commands.call(0, `backup ${file} ${on}`)
      assert.equal(modeOf(folder, file), 0o600)
      await folder.commands.call(0, `restore ${file} --database sqlite:file:new-${file}`)
      assert.equal(await count(folder, `file:new-${file}`, 'pets'), 10)
    }
    await folder.commands.refused(1, `backup missing/ ${on}`, /^petstore: Cannot back up .* to missing\/: /)
    assert.deepEqual(
      folder.names().filter((name) => !/^(?:file:|:memory:$)/.test(name)),
      [],
    )
  })

  it('refuses a database in memory, as every command does that would lose what it wrote, and leaves no file with that name', async () => {
    await using folder = await Folder.create()
    await folder.commands.call(0, 'seed --count 10 --database sqlite:q.db')
    const refused =
      'petstore: A database in memory ends with the command that opens it. Name a file, or a PostgreSQL database.\n'
    for (const line of [
      'backup copy.db --database sqlite::memory:',
      'restore q.db --database sqlite::memory:',
      'seed --count 1 --database sqlite::memory:',
      'account list --database sqlite::memory:',
      'copy --from sqlite::memory: --to sqlite:new.db',
      'copy --from sqlite:q.db --to sqlite::memory:',
    ])
      await folder.commands.refused(1, line, refused)
    assert.deepEqual(folder.names(), ['q.db'])
  })

  it("refuses another program's database, a file that holds none, and one that is damaged, instead of keeping a damaged copy", async () => {
    await using folder = await Folder.create()
    await ask(folder, 'foreign.db', 'CREATE TABLE toys (name TEXT)')
    folder.write('nothing.db', '')
    for (const name of ['cut.db', 'broken.db'])
      await folder.commands.call(0, `seed --count 5000 --database sqlite:${name}`)
    truncateSync(folder.at('cut.db'), 40_000)
    // Damage that is copied without complaint: the copy is checked too.
    breakRule(folder.at('broken.db'))
    const refusals = {
      'foreign.db': /foreign\.db is a SQLite database of another program/,
      'nothing.db': /nothing\.db is empty, not a store\. Restore a backup to it;/,
      'cut.db': /^petstore: .*damaged/,
      'broken.db': /is damaged: NULL value in pets\.name/,
    }
    for (const [file, message] of Object.entries(refusals))
      await folder.commands.refused(1, `backup copy.db --database sqlite:${file}`, message)
    assert.deepEqual(folder.names(), Object.keys(refusals).toSorted())
  })

  it('does not replace a file that another process has made meanwhile', async ({ mock }) => {
    await using folder = await seeded(10)
    const file = folder.at('copy.db')
    const prepare = Reflect.get(DatabaseSync.prototype, 'prepare')
    let copies = 0
    mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, sql: string) {
      // Other tests make backups at the same time.
      if (sql.startsWith('VACUUM INTO') && this.location() === folder.at(DATABASE)) {
        copies += 1
        folder.write('copy.db', 'precious')
      }
      return prepare.call(this, sql)
    })
    for (let time = 0; time < 2; time += 1)
      await assert.rejects(backUp(folder.at(DATABASE), file, false), /copy\.db exists already; nothing was written/)
    assert.equal(copies, 1, 'where the file is there from the beginning, nothing is copied')
    assert.equal(readFileSync(file, 'utf8'), 'precious')
    assert.deepEqual(folder.names(), ['copy.db', 'data'])
  })

  it('names the tools for PostgreSQL', async () => {
    const commands = commandsOn('postgres://127.0.0.1:1/none')
    const tools = /this command works on SQLite\. For PostgreSQL use its own tools: pg_dump .*pgBackRest/
    await commands.refused(1, 'backup copy.db', tools)
    await commands.refused(1, 'restore copy.db', /pg_restore or pgBackRest/)
  })
})

describe('petstore restore', { concurrency: 3 }, () => {
  const NEW = '--database sqlite:new/petstore.db'

  async function withBackup(): Promise<Folder> {
    const folder = await seeded(100)
    await folder.commands.call(0, 'backup copy.db')
    return folder
  }

  it('brings everything back, ids and keys included, also keys revoked since, of which it warns', async () => {
    await using folder = await Folder.create()
    const { id, key } = await makeKey(folder)
    await folder.commands.call(0, 'seed --count 100')
    await ask(folder, DATABASE, `INSERT INTO sessions SELECT x'01', id, 1, 1 FROM accounts`)
    await folder.commands.call(0, 'backup copy.db')
    const copy = readFileSync(folder.at('copy.db'))
    await folder.commands.call(0, `key revoke ${id}`)
    const { stderr } = await folder.commands.call(0, `restore copy.db ${NEW}`)
    assert.match(
      stderr,
      /^Warning: keys that were revoked, .* since the backup are valid again.* See .*key list --database sqlite:\/.*\/new\/petstore\.db\nRestored .*\/new\/petstore\.db from copy\.db, checked\. People need to sign in again\.\n$/,
    )
    for (const table of ['pets', 'accounts', 'audit_events'])
      assert.equal(await count(folder, 'new/petstore.db', table), await count(folder, 'copy.db', table), table)
    assert.equal(await count(folder, 'new/petstore.db', 'sessions'), 0, 'a session may have been ended since')
    assert.ok(readFileSync(folder.at('copy.db')).equals(copy), 'the backup stays as it is')
    assert.deepEqual([modeOf(folder, 'new'), modeOf(folder, 'new/petstore.db')], [0o700, 0o600])
    const { url } = await serve(folder, { env: { DATABASE_URL: 'sqlite:new/petstore.db' } })
    assert.equal(await addPet(url, key), 101)
  })

  it('takes a database that was moved away with its -wal, and loses nothing that is only there', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    const { url, child, ended } = await serve(folder)
    await addPet(url, key)
    child.kill('SIGKILL')
    await ended
    for (const part of ['', '-wal', '-shm']) renameSync(folder.at(DATABASE + part), folder.at(`away.db${part}`))
    chmodSync(folder.at('away.db'), 0o644)
    const restored = await folder.commands.json('restore away.db')
    assert.deepEqual(Object.keys(restored), ['database', 'file'])
    assert.ok(String(restored['database']).endsWith(DATABASE) && restored['file'] === 'away.db')
    assert.equal((await ask(folder, DATABASE, 'SELECT name FROM pets'))[0]?.['name'], 'Rex')
    assert.equal(modeOf(folder, DATABASE), 0o600, 'whatever the mode of the backup')
  })

  it('takes a backup of an earlier release as it was, which the next start of the newer program upgrades', async () => {
    const newest = MIGRATIONS.length
    await using newer = await changedProgram(newest, `-- compatible from ${newest}\nCREATE TABLE toys (id INTEGER);`)
    await using old = await sqlite.newEmptyDatabase()
    await using database = await sqlite.newEmptyDatabase()
    await commandsOn(old.url).call(0, 'seed --count 10')
    const schema = await readSchema(old.url)
    const copy = `${old.url.slice('sqlite:'.length)}.copy`
    for (const [url, words] of [
      [old.url, ['backup', copy]],
      [database.url, ['restore', copy]],
    ] as const)
      assert.equal((await newer.run([...words], { env: { DATABASE_URL: url } })).code, 0)
    for (const url of [old.url, `sqlite:${copy}`, database.url]) assert.deepEqual(await readSchema(url), schema, url)
    const { stderr } = await newer.run(['migrate'], { env: { DATABASE_URL: database.url } })
    assert.match(stderr, /^Applied to .*-newer\.\n$/)
    assert.equal((await askDatabase(database.url, 'SELECT name FROM pets')).length, 10)
  })

  it('takes a file of 0 bytes in its place, but neither a link to nothing nor a log that has lost its database', async () => {
    await using folder = await withBackup()
    folder.write('zero.db', '')
    await folder.commands.call(0, 'restore copy.db --database sqlite:zero.db')
    assert.equal(await count(folder, 'zero.db', 'pets'), 100)
    symlinkSync('gone.db', folder.at('link.db'))
    folder.write('lost.db-wal', 'of a database that is gone')
    folder.write('none.db', '')
    folder.write('none.db-wal', 'of a database that is gone')
    const names = folder.names()
    const refusals = {
      'link.db': /link\.db is a symbolic link to a file that does not exist; nothing was changed\./,
      'lost.db': /lost\.db-wal is a log without its database: .*lost\.db is missing\. The log may hold animals/,
      'none.db': /none\.db-wal is a log without its database: .*none\.db is empty\. The log may hold animals/,
    }
    for (const [name, message] of Object.entries(refusals))
      await folder.commands.refused(1, `restore copy.db --database sqlite:${name}`, message)
    assert.deepEqual(folder.names(), names)
  })

  it('takes an empty database in its place, but not one with data and not one in use', async () => {
    await using folder = await withBackup()
    await makeKey(folder)
    const before = readFileSync(folder.at(DATABASE))
    await folder.commands.refused(
      1,
      'restore copy.db',
      /^petstore: .*\/data\/petstore\.db has data already \(accounts: 1, .*animals: 100\); nothing was changed\./,
    )
    assert.ok(readFileSync(folder.at(DATABASE)).equals(before))
    await ask(folder, 'foreign.db', 'CREATE TABLE toys (name TEXT)')
    await folder.commands.refused(
      1,
      'restore copy.db --database sqlite:foreign.db',
      /\/foreign\.db is a SQLite database of another program; nothing in it was changed/,
    )
    assert.equal(await count(folder, 'foreign.db', 'toys'), 0)

    const { child, ended } = await serve(folder, { env: { DATABASE_URL: 'sqlite:empty.db' } })
    const restoreIt = 'restore copy.db --database sqlite:empty.db'
    const inUse = /^petstore: .*\/empty\.db is in use; nothing was changed\. Stop the service first\.\n$/
    await folder.commands.refused(1, restoreIt, inUse)
    child.kill('SIGKILL')
    await ended
    assert.ok(existsSync(folder.at('empty.db-wal')))
    await folder.commands.call(0, restoreIt)
    assert.deepEqual(folder.names(), ['copy.db', 'data', 'empty.db', 'foreign.db'])
    assert.equal(await count(folder, 'empty.db', 'pets'), 100)
  })

  it('checks the restored database too: the disk may have damaged it', async ({ mock }) => {
    await using folder = await withBackup()
    const path = folder.at('new.db')
    const exec = Reflect.get(DatabaseSync.prototype, 'exec')
    mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      exec.call(this, sql)
      if (sql === 'DELETE FROM sessions' && this.location() === path) breakRule(path)
    })
    await assert.rejects(restore(folder.at('copy.db'), path), /new\.db is damaged: NULL value in pets\.name/)
  })

  it('refuses a file that is no backup, damaged, or from a newer program, before it touches anything', async () => {
    await using folder = await withBackup()
    folder.write('letter.txt', 'Dear Sir or Madam, '.repeat(100))
    folder.write('nothing.db', '')
    for (const name of ['cut.db', 'broken.db', 'newer.db']) copyFileSync(folder.at('copy.db'), folder.at(name))
    truncateSync(folder.at('cut.db'), 20_000)
    breakRule(folder.at('broken.db'))
    execFileSync('mkfifo', [folder.at('pipe')])
    await ask(folder, 'newer.db', "INSERT INTO store_migrations VALUES (999, 'from the future', 999, '', 0)")
    const refusals = {
      'none.db': /There is no file none\.db to restore\./,
      pipe: /There is no file pipe to restore\./,
      'letter.txt': /it is not a SQLite database/,
      'nothing.db': /nothing\.db is empty; it holds no petstore database\./,
      'cut.db': /damaged/,
      'broken.db': /broken\.db is damaged: NULL value in pets\.name/,
      'newer.db': /newer\.db has schema version 999/,
    }
    for (const [file, message] of Object.entries(refusals)) {
      await folder.commands.refused(1, `restore ${file} ${NEW}`, message)
      assert.ok(!existsSync(folder.at('new')), file)
    }
  })
})
