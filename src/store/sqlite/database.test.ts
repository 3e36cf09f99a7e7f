// The guarantees of the database file: durable commits, foreign keys, correct counts.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs, {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { IN_MEMORY } from '../database/database-address.ts'
import { CannotOpenStore, NoDatabase } from '../store.ts'
import { openDatabase, readPragma, refuseForeignFile, requireSqliteVersion } from './database.ts'
import { isFull, LOCK_RETRY_MS } from './failures.ts'
import { APPLICATION_ID, migrate } from './migrate.ts'

const serving = (checkpoints: boolean) => ({ serving: { checkpoints, onBroken: () => {} } })

describe('A database file that is open', () => {
  it('syncs each commit to the disk, checks references, and waits for locks elsewhere', () => {
    using file = new File()
    const { db } = openDatabase(join(file.folder, 'deeper', 'pets.db'))
    const value = (pragma: string) => Object.values(db.prepare(`PRAGMA ${pragma}`).get()!)[0]
    // FULL is 2: with NORMAL, a WAL file loses its last commits when the power fails.
    const settings = { journal_mode: 'wal', synchronous: 2, foreign_keys: 1, trusted_schema: 0 }
    for (const [pragma, expected] of Object.entries(settings)) assert.equal(value(pragma), expected, pragma)
    assert.ok(Number(value('busy_timeout')) <= 10, 'a wait inside SQLite stops the whole service')
    db.close()
  })

  it('leaves the sync of a commit to `Transactions` only where it serves requests', () => {
    using file = new File()
    const { path } = file
    for (const [checkpoints, expected] of [
      [undefined, { synchronous: 2, fullfsync: 1, wal_autocheckpoint: 1000 }],
      [true, { synchronous: 1, fullfsync: 1, wal_autocheckpoint: 0 }],
      [false, { synchronous: 1, fullfsync: 1, wal_autocheckpoint: 0 }],
    ] as const) {
      const { db, wal } = openDatabase(path, checkpoints === undefined ? {} : serving(checkpoints))
      for (const [pragma, value] of Object.entries(expected)) assert.equal(readPragma(db, pragma), value, pragma)
      wal?.close()
      db.close()
    }
  })
})

describe('A new database file', () => {
  it('is not made for a database in memory', () => {
    using file = new File()
    const before = process.cwd()
    process.chdir(file.folder)
    try {
      openDatabase(IN_MEMORY, serving(true)).db.close()
      assert.deepEqual(readdirSync(file.folder), [])
    } finally {
      process.chdir(before)
    }
  })

  it('is not created, nor is its folder, for a caller that only reads', () => {
    using file = new File()
    assert.throws(() => openDatabase(join(file.folder, 'none', 'pets.db'), { create: false }), NoDatabase)
    assert.deepEqual(readdirSync(file.folder), [])
  })

  it('is not made of an empty file either', () => {
    using file = new File()
    writeFileSync(file.path, '')
    for (const create of [false, true])
      assert.throws(() => openDatabase(file.path, { create }), {
        name: 'NoDatabase',
        message: /pets\.db is empty, not a store\. /,
      })
    assert.equal(readFileSync(file.path).length, 0)
  })

  it('gets its name when it is complete, with nothing left in a log, and never takes that of another', ({ mock }) => {
    using file = new File()
    const { linkSync } = fs
    const links: boolean[] = []
    mock.method(fs, 'linkSync', (from: string, to: string) => {
      assert.deepEqual(readdirSync(file.folder), [basename(from)], 'a process that is killed here leaves no store')
      using db = openDatabase(from, { create: false }).db
      links.push(db.isOpen)
      // Another process is faster at the second attempt.
      if (links.length === 2) writeFileSync(to, 'precious')
      linkSync(from, to)
    })
    syncBuiltinESMExports()
    try {
      const { db, opened } = openDatabase(file.path)
      db.close()
      assert.deepEqual([opened.created, readdirSync(file.folder)], [true, ['pets.db']])
      rmSync(file.path)
      assert.throws(() => openDatabase(file.path), /it is not a SQLite database/)
      assert.equal(readFileSync(file.path, 'utf8'), 'precious')
    } finally {
      mock.restoreAll()
      syncBuiltinESMExports()
    }
    assert.deepEqual([links.length, readdirSync(file.folder)], [2, ['pets.db']])
  })

  it('is made as soon as another process that holds its lock lets go', ({ mock }) => {
    using file = new LockedFile()
    const attempts = file.countAttempts(mock, 4)
    openDatabase(file.path).db.close()
    assert.equal(attempts(), 4)
  })

  it('is refused when the time is over in which the other process might have let go', ({ mock }) => {
    using file = new LockedFile()
    const attempts = file.countAttempts(mock, Infinity)
    const isTransient = (error: unknown) => error instanceof CannotOpenStore && error.transient
    assert.throws(() => openDatabase(file.path, { lockWaitMs: 5 * LOCK_RETRY_MS }), isTransient)
    assert.ok(attempts() >= 2 && attempts() <= 7, `${attempts()} attempts`)
  })

  it('that another process migrates while this one waits for the lock is not migrated again', ({ mock }) => {
    using file = new File()
    const { path } = file
    using other = new DatabaseSync(path)
    using db = new DatabaseSync(path)
    const exec = db.exec.bind(db)
    mock.method(db, 'exec', (sql: string) => {
      if (sql === 'BEGIN IMMEDIATE') assert.ok(migrate(other, path, true)!.length > 0)
      exec(sql)
    })
    assert.deepEqual(migrate(db, path, true), [])
  })

  it('that another process makes at the same moment is not taken for that of another program', () => {
    using file = new File()
    const { path } = file
    using other = new DatabaseSync(path, { timeout: 0 })
    using db = new DatabaseSync(path)
    // Between the two statements of `refuseForeignFile`, the other process tries to create the tables, and finds a lock.
    let statements = 0
    db.prepare = (sql) => {
      statements += 1
      if (statements === 2)
        assert.throws(
          () => other.exec(`BEGIN; CREATE TABLE pets (id); PRAGMA application_id = ${APPLICATION_ID}; COMMIT`),
          /locked/,
        )
      return DatabaseSync.prototype.prepare.call(db, sql)
    }
    refuseForeignFile(db, path)
    assert.equal(statements, 2)
  })
})

describe('A database file that can not be used safely', () => {
  it('is refused where a version of SQLite may damage it', () => {
    const having = (version: string) => ({ prepare: () => ({ get: () => ({ version }) }) }) as unknown as DatabaseSync
    for (const version of ['3.9.9', '3.51.2'])
      assert.throws(() => requireSqliteVersion(having(version)), new RegExp(`This Node.js has SQLite ${version};`))
    for (const version of ['3.51.3', '3.51.10', '3.100.0', '4.0.0'])
      assert.equal(requireSqliteVersion(having(version)), version)
  })

  it('is refused, and left alone, if it is that of another program', () => {
    for (const sql of [
      'CREATE TABLE notes (id)',
      'PRAGMA application_id = 7',
      'PRAGMA application_id = 7; CREATE TABLE t (id)',
    ]) {
      using file = new File()
      using other = new DatabaseSync(file.path)
      other.exec(sql)
      const before = readFileSync(file.path)
      assert.throws(
        () => openDatabase(file.path),
        /pets\.db is a SQLite database of another program; nothing in it was changed/,
      )
      assert.deepEqual(readFileSync(file.path), before, sql)
    }
  })

  it('is refused to the process that checkpoints while its log is damaged and another one reads from it', () => {
    using file = new File()
    const { db } = openDatabase(file.path)
    using reader = new DatabaseSync(file.path)
    reader.exec('BEGIN')
    reader.prepare('SELECT * FROM pets').all()
    db.exec("INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'available')")
    const log = openSync(`${file.path}-wal`, 'r+')
    const open = (checkpoints: boolean) => openDatabase(file.path, { lockWaitMs: 20, ...serving(checkpoints) })
    const intact = Buffer.alloc(1)
    readSync(log, intact, 0, 1, 100)
    writeSync(log, Buffer.from([intact[0]! ^ 1]), 0, 1, 100)
    assert.throws(
      () => open(true),
      (error) =>
        error instanceof CannotOpenStore && error.transient && /its write-ahead log is damaged/.test(error.message),
    )
    writeSync(log, intact, 0, 1, 100)
    const [worker, first] = [open(false), open(true)]
    closeSync(log)
    reader.exec('COMMIT')
    for (const opened of [worker, first]) {
      opened.wal?.close()
      opened.db.close()
    }
    db.close()
  })

  it('has all that was written before the damage to its log, once the process that its message says to kill was killed', async () => {
    using file = new File()
    openDatabase(file.path).db.close()
    const program = `const db = new (require('node:sqlite').DatabaseSync)(process.argv[1])
      db.exec('BEGIN'); db.prepare('SELECT * FROM pets').all(); console.log('reads'); setInterval(() => {}, 1000)`
    const reader = spawn(process.execPath, ['-e', program, file.path], { stdio: ['ignore', 'pipe', 'inherit'] })
    using _killed = { [Symbol.dispose]: () => void reader.kill('SIGKILL') }
    await once(reader.stdout, 'data')
    const { db } = openDatabase(file.path)
    const insert = db.prepare("INSERT INTO pets (name, category_id, status) VALUES (?, 1, 'available')")
    for (const name of ['kept', 'kept too', 'not synced']) insert.run(name)
    db.close()
    const end = readFileSync(`${file.path}-wal`).length
    const log = openSync(`${file.path}-wal`, 'r+')
    writeSync(log, Buffer.alloc(4096), 0, 4096, end - 4096)
    closeSync(log)
    const open = () => openDatabase(file.path, { lockWaitMs: 20, ...serving(true) })
    assert.throws(
      open,
      /while another process uses it\. Kill that process with SIGKILL: if it ends by itself, it may copy the damage/,
    )
    reader.kill('SIGKILL')
    await once(reader, 'exit')
    const opened = open()
    const names = opened.db.prepare('SELECT name FROM pets').all()
    assert.deepEqual(
      names.map(({ name }) => name),
      ['kept', 'kept too'],
    )
    assert.equal(readPragma(opened.db, 'integrity_check'), 'ok')
    opened.wal?.close()
    opened.db.close()
  })

  it('is waited for where the disk is full in the middle of a migration, too', () => {
    using db = new DatabaseSync(IN_MEMORY)
    db.exec('PRAGMA max_page_count = 8')
    assert.throws(() => migrate(db, 'pets.db', true), isFull)
    assert.deepEqual(db.prepare('SELECT name FROM sqlite_schema').all(), [])
  })

  const settings: [setting: string, instead: string, message: RegExp][] = [
    [
      'journal_mode = WAL',
      'journal_mode = DELETE',
      /keeps journal_mode at delete instead of wal; is the file on a net/,
    ],
    ['synchronous = FULL', 'synchronous = NORMAL', /keeps synchronous at 1 instead of 2/],
    ['foreign_keys = ON', 'foreign_keys = OFF', /keeps foreign_keys at 0 instead of 1/],
  ]
  for (const [setting, instead, message] of settings) {
    it(`is refused, and closed again, where it does not take ${setting}`, ({ mock }) => {
      using file = new File()
      const exec = Reflect.get(DatabaseSync.prototype, 'exec')
      mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
        exec.call(this, sql.replace(setting, instead))
      })
      const close = mock.method(DatabaseSync.prototype, 'close')
      assert.throws(() => openDatabase(file.path), message)
      assert.equal(close.mock.callCount(), 1)
    })
  }
})

/** A path for a database file, in a folder of its own. */
class File implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
  readonly path = join(this.folder, 'pets.db');

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true })
  }
}

/** A store that another process holds the lock of, as one does that switches it to a write-ahead log. */
class LockedFile extends File {
  readonly #other = new DatabaseSync(this.path)

  constructor() {
    super()
    migrate(this.#other, this.path, true)
    this.#other.exec('BEGIN IMMEDIATE')
  }

  /** Counts the attempts to switch to a write-ahead log, and releases the lock before the last one. */
  countAttempts(mock: TestContext['mock'], last: number): () => number {
    let attempts = 0
    const other = this.#other
    const exec = Reflect.get(DatabaseSync.prototype, 'exec')
    mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      if (sql === 'PRAGMA journal_mode = WAL') attempts += 1
      if (attempts === last && other.isTransaction) exec.call(other, 'ROLLBACK')
      exec.call(this, sql)
    })
    return () => attempts
  }

  override [Symbol.dispose](): void {
    this.#other.close()
    super[Symbol.dispose]()
  }
}
