// The files of a database: who may read them, and how they are recognised by other names. The commands: test/sqlite/same-file.test.ts.
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { companionsOf, createFile, createFolder, folderOf, modeWarnings, partOfDatabase } from './database-files.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'petstore-test-')))
const at = (name: string) => join(folder, name)
const modeOf = (name: string) => statSync(at(name)).mode & 0o777

after(() => rmSync(folder, { recursive: true }))

describe('The files of a database', () => {
  it('are made for their owner only; those that are there keep their mode and content', () => {
    createFolder(at('new/deeper'))
    createFile(at('new/pets.db'))
    assert.deepEqual(['new', 'new/deeper', 'new/pets.db'].map(modeOf), [0o700, 0o700, 0o600])
    mkdirSync(at('old'))
    writeFileSync(at('old/pets.db'), 'kept')
    for (const name of ['old', 'old/pets.db']) chmodSync(at(name), 0o755)
    createFolder(at('old'))
    createFile(at('old/pets.db'))
    assert.deepEqual([modeOf('old'), modeOf('old/pets.db'), statSync(at('old/pets.db')).size], [0o755, 0o755, 4])
  })

  it('are refused where the system allows no folder, and at the name of a file', () => {
    writeFileSync(at('file'), '')
    for (const path of [at('file'), at('file/deeper')]) assert.throws(() => createFolder(path), /EEXIST|ENOTDIR/)
    if (existsSync('/proc/self')) assert.throws(() => createFolder('/proc/none/deeper'), /ENOENT/)
  })

  it('cause a warning each where others can read them, and none where only the owner can', () => {
    const path = at('read/pets.db')
    createFolder(at('read'))
    createFile(path)
    assert.deepEqual(modeWarnings(path), [])
    for (const [name, mode] of [
      ['read', 0o740],
      ['read/pets.db', 0o604],
    ] as const) {
      chmodSync(at(name), mode)
      assert.equal(
        modeWarnings(path).at(-1),
        `Other users of this machine can read ${at(name)}; its mode is ${mode.toString(8)}. If only the service uses it: chmod go= ${at(name)}`,
      )
    }
    assert.equal(modeWarnings(path).length, 2)
  })

  it('are recognised by any name, those that do not exist yet too, and no other file is', () => {
    mkdirSync(at('data/deep'), { recursive: true })
    for (const name of ['pets.db', 'pets.db-wal', 'other.db']) writeFileSync(at(`data/${name}`), '')
    linkSync(at('data/pets.db'), at('hard-link'))
    symlinkSync('data/pets.db', at('link'))
    symlinkSync(at('link'), at('link-to-link'))
    symlinkSync('data', at('folder'))
    symlinkSync('data/deep', at('deep'))
    symlinkSync('data/pets.db-journal', at('link-to-nothing'))
    symlinkSync('circle-2', at('circle-1'))
    symlinkSync('circle-1', at('circle-2'))
    const expected: Record<string, string | undefined> = {
      'data/pets.db': 'the database itself',
      'data/./pets.db': 'the database itself',
      'hard-link': `the database itself, ${at('data/pets.db')} by another name`,
      'link-to-link': `the database itself, ${at('data/pets.db')} by another name`,
      'folder/pets.db': `the database itself, ${at('data/pets.db')} by another name`,
      'deep/../pets.db': `the database itself, ${at('data/pets.db')} by another name`,
      'folder/pets.db-wal': `the -wal file of the database ${at('data/pets.db')}, a part of it`,
      'data/pets.db-shm': `the -shm file of the database ${at('data/pets.db')}, a part of it`,
      'folder/PETS.DB-SHM': `the -shm file of the database ${at('data/pets.db')}, a part of it`,
      'link-to-nothing': `the -journal file of the database ${at('data/pets.db')}, a part of it`,
      'data/other.db': undefined,
      'data/missing.db': undefined,
      'data/deep/pets.db': undefined,
      'pets.db-wal': undefined,
      'no-folder/pets.db-shm': undefined,
      'circle-1': undefined,
      'data/other.db/pets.db': undefined,
    }
    for (const [name, part] of Object.entries(expected))
      assert.equal(partOfDatabase(`${folder}/${name}`, at('data/pets.db')), part, name)
    assert.equal(
      partOfDatabase(at('data/pets.db-wal'), at('link')),
      `the -wal file of the database ${at('link')}, a part of it`,
    )
    assert.equal(
      partOfDatabase(at('link-wal'), at('link')),
      `the -wal file of the database ${at('link')}, a part of it`,
    )
    assert.equal(partOfDatabase(at('new.db'), at('NEW.db')), `the database itself, ${at('NEW.db')} by another name`)
    assert.equal(partOfDatabase(at('link-to-nothing'), at('circle-1')), undefined)
  })

  it('are beside the file that a link leads to, also to one that does not exist yet', () => {
    mkdirSync(at('home'))
    symlinkSync('home/pets.db', at('to-home'))
    const beside = ['-wal', '-shm', '-journal'].map((ending) => at(`home/pets.db${ending}`))
    for (const name of ['to-home', 'home/pets.db']) {
      assert.equal(folderOf(at(name)), at('home'))
      assert.deepEqual(companionsOf(at(name)), beside)
    }
  })
})
