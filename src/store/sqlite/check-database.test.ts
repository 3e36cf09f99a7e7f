// When `petstore doctor` warns of low disk space and an old SQLite; test/commands/doctor.test.ts has its other checks.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { it } from 'node:test'
import { checkSqlite, spaceCheck } from './check-database.ts'
import { openDatabase } from './database.ts'

/** A new database in a folder of its own. */
async function newDatabase() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const path = join(folder.path, 'pets.db')
  openDatabase(path).db.close()
  return { path, folder: folder.path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

it('disk space is a problem below 100 MiB, and worth a warning when a copy of the database does not fit', () => {
  const mebibyte = 1024 * 1024
  assert.equal(spaceCheck(100 * mebibyte - 1, mebibyte).state, 'problem')
  assert.equal(spaceCheck(100 * mebibyte, mebibyte).state, 'ok')
  assert.equal(spaceCheck(200 * mebibyte, 200 * mebibyte + 1).state, 'warning')
  assert.equal(spaceCheck(200 * mebibyte, 200 * mebibyte).state, 'ok')
})

it('Disk space that the system keeps for root counts as full', async ({ mock }) => {
  await using database = await newDatabase()
  const { path } = database
  const statfs = mock.method(fs, 'statfsSync', () => ({ bsize: 1024 * 1024, bfree: 5000, bavail: 99 }))
  syncBuiltinESMExports()
  const [space] = checkSqlite(path)
  statfs.mock.restore()
  syncBuiltinESMExports()
  assert.deepEqual([space!.state, space!.found.split(',')[0]], ['problem', '99 MiB free'])
})

it('Disk space and modes are those of the folder that the database is in, where the path is a link', async ({
  mock,
}) => {
  await using database = await newDatabase()
  const links = join(database.folder, 'links')
  fs.mkdirSync(links)
  fs.chmodSync(links, 0o755)
  fs.symlinkSync('../pets.db', join(links, 'pets.db'))
  const statfs = mock.method(fs, 'statfsSync')
  syncBuiltinESMExports()
  const checks = checkSqlite(join(links, 'pets.db'))
  const places = statfs.mock.calls.map(({ arguments: [place] }) => place)
  statfs.mock.restore()
  syncBuiltinESMExports()
  assert.deepEqual(places, [fs.realpathSync(database.folder)])
  assert.equal(checks.find(({ name }) => name === 'File modes')?.state, 'ok')
})

it('An SQLite that may damage the database opens none, and is a problem', async ({ mock }) => {
  await using database = await newDatabase()
  const { path } = database
  const prepare = Reflect.get(DatabaseSync.prototype, 'prepare')
  mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, sql: string) {
    return prepare.call(this, sql.replace('sqlite_version()', "'3.51.2'"))
  })
  assert.throws(() => openDatabase(path), /This Node\.js has SQLite 3\.51\.2;/)
  const checks = checkSqlite(path)
  assert.deepEqual(
    checks.filter(({ state }) => state !== 'ok').map(({ name, state }) => [name, state]),
    [['Database', 'problem']],
  )
})
