// The database by another name: no command that writes a file takes one of the database's own files for it.
import assert from 'node:assert/strict'
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { Folder, makeKey, serve } from './command.ts'
import { petstore } from './in-process-command.ts'

const DATABASE = 'data/petstore.db'
/** Names that `addNames` gives, and what each is to the database. */
const NAMES: Record<string, RegExp> = {
  [DATABASE]: /is the database itself/,
  'data/../data//petstore.db': /is the database itself/,
  'linked.db': /is the database itself/,
  'linked-twice.db': /is the database itself/,
  'hard-linked.db': /is the database itself/,
  'folder/petstore.db': /is the database itself/,
  'data/petstore.db-wal': /is the -wal file of the database/,
  'data/petstore.db-shm': /is the -shm file of the database/,
  'folder/petstore.db-wal': /is the -wal file of the database/,
  'linked-wal.db': /is the -wal file of the database/,
  'hard-linked-shm.db': /is the -shm file of the database/,
  // Not there now: SQLite would take it for its own when it opens the database.
  'data/petstore.db-journal': /is the -journal file of the database/,
  'folder/petstore.db-JOURNAL': /is the -journal file of the database/,
  'linked-journal.db': /is the -journal file of the database/,
}

/** Gives the files of a database that is in use their other names. */
function addNames(folder: Folder): void {
  const at = (name: string) => join(folder.path, name)
  symlinkSync(DATABASE, at('linked.db'))
  symlinkSync(at('linked.db'), at('linked-twice.db'))
  linkSync(at(DATABASE), at('hard-linked.db'))
  symlinkSync('data', at('folder'))
  symlinkSync('data/petstore.db-wal', at('linked-wal.db'))
  linkSync(at('data/petstore.db-shm'), at('hard-linked-shm.db'))
  symlinkSync('data/petstore.db-journal', at('linked-journal.db'))
}

/** Every name in the folder with the file or link that it stands for. */
function namesIn(folder: Folder): string[] {
  return (readdirSync(folder.path, { recursive: true }) as string[]).toSorted().map((name) => {
    const path = join(folder.path, name)
    const state = lstatSync(path)
    return `${name} ${state.ino} ${state.isSymbolicLink() ? readlinkSync(path) : ''}`
  })
}

describe('A file of the database by another name', { concurrency: false }, () => {
  const commands: Record<string, (database: string, file: string) => string[]> = {
    backup: (database, file) => ['backup', file, '--force', '--database', `sqlite:${database}`],
    export: (database, file) => ['export', file, '--force', '--format', 'csv', '--database', `sqlite:${database}`],
    restore: (database, file) => ['restore', file, '--database', `sqlite:${database}`],
    'copy to': (database, file) => ['copy', '--from', `sqlite:${database}`, '--to', `sqlite:${file}`],
    'copy from': (database, file) => ['copy', '--from', `sqlite:${file}`, '--to', `sqlite:${database}`],
  }

  for (const [name, words] of Object.entries(commands)) {
    it(`is refused by ${name}, and what was acknowledged is there after a restart`, async () => {
      await using folder = await Folder.create()
      const { key } = await makeKey(folder)
      const { url, child, ended } = await serve(folder)
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
      const add = async () =>
        assert.equal(
          (await fetch(`${url}/v1/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' })).status,
          201,
        )
      await add()
      addNames(folder)
      const before = namesIn(folder)
      for (const database of [DATABASE, 'linked.db', 'folder/petstore.db']) {
        for (const [file, message] of Object.entries(NAMES)) {
          // A restore of a file that does not exist ends before.
          if (name === 'restore' && !existsSync(join(folder.path, file))) continue
          const { code, stderr, stdout } = await petstore(words(join(folder.path, database), `${folder.path}/${file}`))
          assert.match(stderr, message, `${file} with ${database}`)
          assert.match(stderr, /[Nn]othing was (?:written|changed)/)
          assert.ok(code > 0 && stdout === '')
          assert.deepEqual(namesIn(folder), before, `${file} with ${database}`)
        }
      }
      await add()
      child.kill('SIGKILL')
      await ended
      const again = await serve(folder)
      const listed = (await (await fetch(`${again.url}/v1/pets`, { headers })).json()) as unknown[]
      assert.equal(listed.length, 2)
    })
  }

  it('is recognised in relative paths, and where a folder is a link to another place', async () => {
    await using folder = await Folder.create()
    await folder.runInProcess(['seed', '--count', '10'])
    mkdirSync(join(folder.path, 'data/deep'))
    symlinkSync('data/deep', join(folder.path, 'deep'))
    for (const file of ['./data/petstore.db', 'deep/../petstore.db', 'deep/../petstore.db-wal']) {
      const { code, stderr } = await folder.runInProcess(['backup', '--force', file])
      assert.deepEqual([code, stderr.startsWith(`petstore: ${file} is the `)], [1, true], stderr)
    }
    const { stderr } = await folder.runInProcess(['backup', '--force', 'deep/../petstore.db'])
    assert.match(
      stderr,
      /is the database itself, \/.*\/data\/petstore\.db by another name; nothing was written\. Name another file for the backup\.\n$/,
    )
    assert.equal(
      (await folder.runInProcess(['backup', 'deep/petstore.db'])).code,
      0,
      'the same name in another folder is another file',
    )
    assert.equal((await folder.runInProcess(['backup', 'petstore.db-wal'])).code, 0)
  })

  it('is not restored over a file of the backup', async () => {
    await using folder = await Folder.create()
    await folder.runInProcess(['seed', '--count', '10'])
    await folder.runInProcess(['backup', 'copy.db'])
    symlinkSync('copy.db-journal', join(folder.path, 'promised.db'))
    for (const target of ['copy.db-wal', 'promised.db']) {
      const { code, stderr } = await folder.runInProcess(['restore', 'copy.db', '--database', `sqlite:${target}`])
      assert.match(
        stderr,
        /is the -(?:wal|journal) file of the database copy\.db, a part of it; nothing was changed\. Name another file with --database\.\n$/,
      )
      assert.equal(code, 1)
    }
    assert.deepEqual(readdirSync(folder.path).toSorted(), ['copy.db', 'data', 'promised.db'])
  })

  it('has what an earlier database left beside it removed, where a link names the place to restore to', async () => {
    await using folder = await Folder.create()
    await folder.runInProcess(['seed', '--count', '10'])
    await folder.runInProcess(['backup', 'copy.db'])
    mkdirSync(join(folder.path, 'new'))
    symlinkSync('new/petstore.db', join(folder.path, 'link.db'))
    for (const companion of ['-wal', '-shm', '-journal'])
      writeFileSync(join(folder.path, `new/petstore.db${companion}`), 'stale')
    assert.equal((await folder.runInProcess(['restore', 'copy.db', '--database', 'sqlite:link.db'])).code, 0)
    assert.deepEqual(readdirSync(join(folder.path, 'new')), ['petstore.db'])
    using db = new DatabaseSync(join(folder.path, 'new/petstore.db'))
    assert.deepEqual({ ...db.prepare('SELECT count(*) AS count FROM pets').get() }, { count: 10 })
  })
})
