// When `petstore doctor` warns of low disk space and of an old SQLite; test/doctor.test.ts has its other checks.
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

it('disk space is a problem below 100 MiB, and worth a warning when a copy of the database does not fit', () => {
  const mebibyte = 1024 * 1024
  assert.equal(spaceCheck(100 * mebibyte - 1, mebibyte).state, 'problem')
  assert.equal(spaceCheck(100 * mebibyte, mebibyte).state, 'ok')
  assert.equal(spaceCheck(200 * mebibyte, 200 * mebibyte + 1).state, 'warning')
  assert.equal(spaceCheck(200 * mebibyte, 200 * mebibyte).state, 'ok')
})

it('Disk space that the system keeps for root counts as full', async ({ mock }) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const path = join(folder.path, 'pets.db')
  openDatabase(path).db.close()
  const statfs = mock.method(fs, 'statfsSync', () => ({ bsize: 1024 * 1024, bfree: 5000, bavail: 99 }))
  syncBuiltinESMExports()
  const [space] = checkSqlite(path, Date.now())
  statfs.mock.restore()
  syncBuiltinESMExports()
  assert.deepEqual([space!.state, space!.found.split(',')[0]], ['problem', '99 MiB free'])
})

it('An SQLite that may damage the database opens none, and is a problem', async ({ mock }) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
  const path = join(folder.path, 'pets.db')
  openDatabase(path).db.close()
  const prepare = Reflect.get(DatabaseSync.prototype, 'prepare')
  mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, sql: string) {
    return prepare.call(this, sql.replace('sqlite_version()', "'3.51.2'"))
  })
  assert.throws(() => openDatabase(path), /This Node\.js has SQLite 3\.51\.2;/)
  const checks = checkSqlite(path, Date.now())
  assert.deepEqual(
    checks.filter(({ state }) => state !== 'ok').map(({ name, state }) => [name, state]),
    [['SQLite', 'problem']],
  )
})
