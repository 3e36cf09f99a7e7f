// The database by another name: no command that writes a file takes one of the database's own files for it.
import assert from 'node:assert/strict'
import { existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs'
import { describe, it } from 'node:test'
import { Folder, makeKey, serve } from '../harness/programs/command.ts'
import { askDatabase } from '../harness/databases/database-schema.ts'
import { petstore } from '../harness/programs/in-process-command.ts'

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
  const at = (name: string) => folder.at(name)
  symlinkSync(DATABASE, at('linked.db'))
  symlinkSync(at('linked.db'), at('linked-twice.db'))
  linkSync(at(DATABASE), at('hard-linked.db'))
  symlinkSync('data', at('folder'))
  symlinkSync('data/petstore.db-wal', at('linked-wal.db'))
  linkSync(at('data/petstore.db-shm'), at('hard-linked-shm.db'))
  symlinkSync('data/petstore.db-journal', at('linked-journal.db'))
}

async function seeded(): Promise<Folder> {
  const folder = await Folder.create()
  await folder.commands.call(0, 'seed --count 10')
  return folder
}

/** Every name in the folder with the file or link that it stands for. */
function namesIn(folder: Folder): string[] {
  return (readdirSync(folder.path, { recursive: true }) as string[]).toSorted().map((name) => {
    const path = folder.at(name)
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

  it('is refused by every command that writes a file, and what was acknowledged is there after a restart', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    const { url, child, ended } = await serve(folder)
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const add = async () => {
      const answer = await fetch(`${url}/v1/pets`, { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' })
      assert.equal(answer.status, 201)
    }
    await add()
    addNames(folder)
    const before = namesIn(folder)
    for (const [name, words] of Object.entries(commands))
      for (const database of [DATABASE, 'linked.db', 'folder/petstore.db']) {
        for (const [file, message] of Object.entries(NAMES)) {
          // A restore of a file that does not exist ends before.
          if (name === 'restore' && !existsSync(folder.at(file))) continue
          const where = `${name} ${file} with ${database}`
          const { code, stderr, stdout } = await petstore(words(folder.at(database), `${folder.path}/${file}`))
          assert.match(stderr, message, where)
          assert.match(stderr, /[Nn]othing was (?:written|changed)/)
          assert.ok(code > 0 && stdout === '', where)
          assert.deepEqual(namesIn(folder), before, where)
        }
        await add()
      }
    child.kill('SIGKILL')
    await ended
    const again = await serve(folder)
    const listed = (await (await fetch(`${again.url}/v1/pets`, { headers })).json()) as unknown[]
    assert.equal(listed.length, 1 + 3 * Object.keys(commands).length)
  })

  it('is recognised in relative paths, and where a folder is a link to another place', async () => {
    await using folder = await seeded()
    mkdirSync(folder.at('data/deep'))
    symlinkSync('data/deep', folder.at('deep'))
    const itself =
      /^petstore: \S+ is the database itself, \/.*\/data\/petstore\.db by another name; nothing was written\. Name another file for the backup\.\n$/
    await folder.commands.refused(1, 'backup --force ./data/petstore.db', /^petstore: \.\/data\/petstore\.db is the /)
    await folder.commands.refused(1, 'backup --force deep/../petstore.db', itself)
    await folder.commands.refused(1, 'backup --force deep/../petstore.db-wal', /-wal is the -wal file of the database/)
    // The same name in another folder is another file.
    for (const file of ['deep/petstore.db', 'petstore.db-wal']) await folder.commands.call(0, `backup ${file}`)
  })

  it('is not restored over a file of the backup', async () => {
    await using folder = await seeded()
    await folder.commands.call(0, 'backup copy.db')
    symlinkSync('copy.db-journal', folder.at('promised.db'))
    for (const target of ['copy.db-wal', 'promised.db'])
      await folder.commands.refused(
        1,
        `restore copy.db --database sqlite:${target}`,
        /is the -(?:wal|journal) file of the database copy\.db, a part of it; nothing was changed\. Name another file with --database\.\n$/,
      )
    assert.deepEqual(folder.names(), ['copy.db', 'data', 'promised.db'])
  })

  it('has what an earlier database left beside it removed, but for a log, which may hold animals; a link to nothing is refused', async () => {
    await using folder = await seeded()
    await folder.commands.call(0, 'backup copy.db')
    mkdirSync(folder.at('new'))
    symlinkSync('new/linked.db', folder.at('link.db'))
    for (const companion of ['-wal', '-shm', '-journal']) folder.write(`new/petstore.db${companion}`, 'stale')
    const restore = 'restore copy.db --database sqlite:'
    await folder.commands.refused(1, `${restore}new/petstore.db`, /petstore\.db-wal is a log without its database/)
    await folder.commands.refused(1, `${restore}link.db`, /link\.db is a symbolic link to a file that does not exist/)
    folder.write('new/petstore.db-wal', '')
    await folder.commands.call(0, `${restore}new/petstore.db`)
    const [pets] = await askDatabase(`sqlite:${folder.at('new/petstore.db')}`, 'SELECT count(*) AS count FROM pets')
    assert.equal(pets?.['count'], 10n)
    assert.deepEqual(readdirSync(folder.at('new')), ['petstore.db'])
  })
})
