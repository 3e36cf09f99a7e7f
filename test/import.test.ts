// petstore import and export: animals in and out of a store, nothing lost or doubled whatever happens in between.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempDisposableSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CSV_HEADER, DELIMITERS } from '../src/contract/pet-csv.ts'
import { INT64_MAX, INT64_MIN } from '../src/contract/int64.ts'
import type { NewPet } from '../src/contract/pets.ts'
import { collect } from '../assurance/harness/processes.ts'
import { Folder, makeKey, serve } from './command.ts'
import { ENGINES } from '../assurance/harness/engines.ts'
import { type InProcessOptions, petstore } from './in-process-command.ts'
import { withStore } from './with-store.ts'

const KILLED_IMPORT = fileURLToPath(new URL('killed-import.ts', import.meta.url))

const ODD: NewPet[] = [
  { name: 'Rex', categoryId: 3n, status: 'available' },
  { name: ' "Sir", the 2nd\r\nof his name ', categoryId: INT64_MAX, status: 'pending' },
  { name: '=1+1', categoryId: INT64_MIN, status: 'sold' },
  { name: '🐈‍⬛ e\u0301;\t\uFEFF', categoryId: 0n, status: 'sold' },
]

const numbered = (count: number, first = 0) =>
  Array.from({ length: count }, (_, index) => `Rex ${first + index},${index}`).join('\n')
const csv = (rows: string) => `name,categoryId\n${rows}\n`

const all = (url: string) =>
  withStore(url, async ({ pets }) => (await pets.list({ limit: 10_000 })).toReversed().map((pet) => ({ ...pet })))
const namesIn = async (url: string) => (await all(url)).map(({ name }) => name)
const namesOf = (content: string) =>
  content
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',')[0]!)

/** Presses Ctrl-C when so many rows are added. */
function stoppedAfter(rows: number): InProcessOptions {
  const stop = Promise.withResolvers<string>()
  return {
    isTTY: true,
    onReport: (text) => text.includes(` ${rows} of `) && stop.resolve('SIGINT'),
    stopSignal: () => stop.promise,
  }
}

for (const engine of ENGINES) {
  describe(`petstore import and export on ${engine.name}`, { concurrency: false }, () => {
    /** Runs a command on the database, and fails unless it ends with this code. */
    const call = async (url: string, code: number, words: string[], options?: InProcessOptions) => {
      const ended = await petstore(words, { env: { DATABASE_URL: url }, ...options })
      assert.equal(ended.code, code, ended.stderr)
      return ended
    }

    const FORMATS = [
      ['csv'],
      ['jsonl'],
      ...Object.keys(DELIMITERS).map((name) => ['csv', '--delimiter', name]),
    ] as const
    for (const [format, ...options] of FORMATS) {
      it(`carry animals from one store to another as ${[format, ...options].join(' ')}, exactly and in their order; ids are assigned anew`, async () => {
        await using folder = await Folder.create()
        await using source = await engine.newDatabase()
        await using target = await engine.newDatabase()
        const file = join(folder.path, `pets.${format}`)
        await withStore(source.url, async ({ pets }) => {
          await pets.createMany(ODD)
        })
        await withStore(target.url, ({ pets }) => pets.createMany([ODD[0]!]))
        assert.equal((await call(source.url, 0, ['export', file, ...options])).stderr, 'Exported 4 animals.\n')
        assert.match((await call(target.url, 0, ['import', file])).stderr, /Added 4 animals(?: \(\w+s, UTF-8\))?\.\n$/)
        assert.deepEqual(
          (await all(target.url)).slice(1),
          ODD.map((pet, index) => ({ id: BigInt(index + 2), ...pet })),
        )
        assert.equal(
          (await call(source.url, 0, ['export', '-', '--format', format, ...options])).stdout,
          readFileSync(file, 'utf8'),
        )
        const isMarked = readFileSync(file).subarray(0, 3).toString('hex') === 'efbbbf'
        assert.equal(isMarked, format === 'csv', 'spreadsheets recognise UTF-8 by its byte order mark')
      })
    }

    it('write nothing unless every row is valid, and report each bad one with line and reason', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const file = join(folder.path, 'pets.csv')
      writeFileSync(
        file,
        Buffer.concat([
          Buffer.from(`\uFEFF${csv(numbered(700))}Rex,twelve\n`),
          Buffer.from('B\xe9b\xe9,1\n', 'latin1'),
          Buffer.from(',1\nLast,2\n'),
        ]),
      )
      const refused = await call(database.url, 1, ['import', file])
      assert.match(
        refused.stderr,
        /^line 702: categoryId must be .*, got "twelve"\.\nline 703: name is not valid UTF-8; save the file as UTF-8\.\nline 704: name must be .*, got ""\.\npetstore: 3 of 704 rows are bad; nothing was written\. Correct the file, or add --skip-bad\.\n$/,
      )
      const checked = await call(database.url, 1, ['import', file, '--dry-run', '--json'])
      assert.match(checked.stderr, /3 of 704 rows are bad/)
      assert.deepEqual(JSON.parse(checked.stdout), {
        valid: 701,
        bad: 3,
        encoding: 'UTF-8',
        delimiter: ',',
        importedAt: null,
      })
      assert.equal((await all(database.url)).length, 0)
      const dry = await call(database.url, 0, ['import', file, '--dry-run', '--skip-bad', '--json'])
      assert.deepEqual(JSON.parse(dry.stdout), {
        valid: 701,
        bad: 3,
        encoding: 'UTF-8',
        delimiter: ',',
        importedAt: null,
      })
      assert.equal((await all(database.url)).length, 0)
      const added = await call(database.url, 0, ['import', file, '--skip-bad', '--json'])
      assert.deepEqual(JSON.parse(added.stdout), { added: 701, earlier: 0, skipped: 3 })
      const later = await call(database.url, 0, ['import', file, '--dry-run', '--skip-bad', '--json'])
      assert.match((JSON.parse(later.stdout) as { importedAt: string }).importedAt, /^\d{4}-.*Z$/)
      assert.match(
        (await call(database.url, 0, ['import', file, '--dry-run', '--skip-bad'])).stderr,
        /Nothing was written\. This file was imported already \(701 rows, .* UTC\); to add its animals once more, add --again\.\n$/,
      )
      assert.deepEqual(await namesIn(database.url), [
        ...Array.from({ length: 700 }, (_, index) => `Rex ${index}`),
        'Last',
      ])
    })

    it('say after Ctrl-C what was added and how to go on', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const file = join(folder.path, 'pets.csv')
      writeFileSync(file, csv(numbered(2600)))
      const stopped = await call(database.url, 130, ['import', file], stoppedAfter(1000))
      const [, rows] =
        /petstore: Interrupted: (\d+) of 2600 rows are added\. Run the same import again to add the others\.\nNote: .*\n$/.exec(
          stopped.stderr,
        )!
      assert.equal((await all(database.url)).length, Number(rows))
      const checked = await call(database.url, 0, ['import', file, '--dry-run'])
      assert.match(checked.stderr, /2600 valid, 0 bad\. Nothing was written\.\n$/, 'it was not imported yet')
      await call(database.url, 0, ['import', file])
      assert.equal((await all(database.url)).length, 2600)
    })

    it('end well after Ctrl-C during the last rows: nothing is left to add', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const file = join(folder.path, 'pets.csv')
      writeFileSync(file, csv(numbered(600)))
      const ended = await call(database.url, 0, ['import', file], stoppedAfter(500))
      assert.ok(ended.stderr.includes('Added 600 animals.\nNote: '), ended.stderr)
    })

    it('go on where they were interrupted also in a long file with bad rows, which do not count', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      // Longer than the pieces that a file is read in, and interrupted behind the first of them.
      const good = numbered(3000).replaceAll(',', `${'x'.repeat(180)},`)
      const file = join(folder.path, 'pets.csv')
      writeFileSync(file, csv(good.replaceAll(/^.*[05]$/gm, 'No category,none\n$&')))
      const bad = good.match(/[05]$/gm)!.length
      await call(database.url, 130, ['import', file, '--skip-bad'], stoppedAfter(2000))
      const later = await call(database.url, 0, ['import', file, '--skip-bad'])
      assert.match(later.stderr, new RegExp(`were added before the interruption\\. Skipped ${bad} bad rows\\.\\n$`))
      assert.deepEqual(await namesIn(database.url), namesOf(csv(good)))
    })

    it('say that a file cannot be written, where its folder is missing', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      await withStore(database.url, ({ pets }) => pets.createMany(ODD))
      const file = join(folder.path, 'none/pets.csv')
      const { stderr } = await call(database.url, 1, ['export', file])
      assert.ok(stderr.startsWith(`petstore: Cannot write ${file}: ENOENT`), stderr)
    })

    it('go on exactly where kill -9 stopped them, and add a finished file again only when asked', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const content = csv(numbered(2600))
      const file = join(folder.path, 'pets.csv')
      writeFileSync(file, content)
      const child = spawn(process.execPath, [KILLED_IMPORT, database.url, file, '1000'], { stdio: 'inherit' })
      assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL'])
      assert.equal((await all(database.url)).length, 1000)

      const second = await call(database.url, 0, ['import', file], { isTTY: true })
      assert.match(second.stderr, / 1500 of 2600 {2}\d+\/s, \d+ s left/)
      assert.ok(second.stderr.endsWith('Added 1600 animals. 1000 were added before the interruption.\n'), second.stderr)
      assert.deepEqual(await namesIn(database.url), namesOf(content))

      const third = await call(database.url, 1, ['import', file])
      assert.match(
        third.stderr,
        /^petstore: This file was imported already \(2600 rows, .*\); nothing was written\. To add its animals once more, add --again\.\n$/,
      )
      assert.equal((await all(database.url)).length, 2600)
      assert.equal((await call(database.url, 0, ['import', file, '--again'])).stderr, 'Added 2600 animals.\n')
      assert.deepEqual(await namesIn(database.url), [...namesOf(content), ...namesOf(content)])
    })

    it('go on where they were interrupted also with --again: the same command adds only the other rows', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const content = csv(numbered(1100))
      const file = join(folder.path, 'pets.csv')
      writeFileSync(file, content)
      await call(database.url, 0, ['import', file])
      await call(database.url, 130, ['import', file, '--again'], stoppedAfter(500))
      await call(database.url, 0, ['import', file, '--again'])
      assert.deepEqual(await namesIn(database.url), [...namesOf(content), ...namesOf(content)])
    })

    const READ_FIRST = { '--skip-bad': 1500, '--ignore-columns': 3000 }
    for (const [first, total] of Object.entries(READ_FIRST)) {
      const other = Object.keys(READ_FIRST).find((option) => option !== first)!
      it(`lose and double no row where an import with ${first} is interrupted and run with ${other}, under which other rows are valid`, async () => {
        await using folder = await Folder.create()
        await using database = await engine.newDatabase()
        const rows = Array.from({ length: 3000 }, (_, index) => `Rex ${index},1,${index < 1500 ? 'x' : ''}\n`)
        const file = join(folder.path, 'pets.csv')
        writeFileSync(file, `name,categoryId,\n${rows.join('')}`)
        await call(database.url, 130, ['import', file, first], stoppedAfter(500))
        const added = await namesIn(database.url)
        const refused = await call(database.url, 1, ['import', file, other])
        assert.match(
          refused.stderr,
          new RegExp(
            `petstore: The import of this file was begun with other options or another release, which read ${total} valid rows and added ${added.length}; now ${4500 - total} are valid\\. Nothing was written\\. Run it as it was begun to finish it, or add --again to begin anew: the rows that were added stay\\.\\n$`,
          ),
        )
        assert.deepEqual(await namesIn(database.url), added)

        await call(database.url, 0, ['import', file, other, '--again'])
        const rest = namesOf(`header\n${rows.slice(other === '--skip-bad' ? 1500 : 0).join('')}`)
        assert.deepEqual(await namesIn(database.url), [...added, ...rest])
        assert.match((await call(database.url, 1, ['import', file, first])).stderr, /was imported already/)
      })
    }

    it('refuse a file that changed since the interruption, unless asked to begin with it', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const [before, after] = [csv(numbered(1600)), csv(numbered(1600, 7))]
      const file = join(folder.path, 'pets.csv')
      writeFileSync(file, before)
      await once(spawn(process.execPath, [KILLED_IMPORT, database.url, file, '500'], { stdio: 'inherit' }), 'exit')
      writeFileSync(file, after)
      const refused = await call(database.url, 1, ['import', file])
      assert.match(
        refused.stderr,
        /pets\.csv has changed since an import of it began, and that import had added 500 of 1600 rows at .* UTC; it is running or was interrupted\. Nothing was written\. /,
      )
      assert.equal((await all(database.url)).length, 500)
      await call(database.url, 0, ['import', file, '--again'])
      assert.deepEqual(await namesIn(database.url), [...namesOf(before).slice(0, 500), ...namesOf(after)])
      assert.deepEqual([...(await withStore(database.url, ({ imports }) => imports.unfinished()))], [])
    })

    it('with --again for a file that took the name of one that is being imported leave the running import alone', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const [before, after] = [csv(numbered(3600)), csv(numbered(10, 5000))]
      const file = join(folder.path, 'pets.csv')
      writeFileSync(file, before)
      writeFileSync(`${file}.new`, after)
      let second: ReturnType<typeof call> | undefined
      const onReport = (text: string) => {
        if (!text.includes(' 500 of ')) return
        renameSync(`${file}.new`, file)
        second = call(database.url, 0, ['import', file, '--again'])
      }
      await call(database.url, 0, ['import', file], { isTTY: true, onReport })
      await second
      assert.deepEqual((await namesIn(database.url)).toSorted(), [...namesOf(before), ...namesOf(after)].toSorted())
    })

    it('do not take one standard input for another that was interrupted, and go on with each', async () => {
      await using database = await engine.newDatabase()
      const words = ['import', '-', '--format', 'csv']
      const [one, other] = [csv(numbered(2600)), csv(numbered(10, 5000))]
      await call(database.url, 130, words, { ...stoppedAfter(500), input: one })
      assert.equal((await call(database.url, 0, words, { input: other })).stderr, 'Added 10 animals.\n')
      const unfinished = await withStore(database.url, ({ imports }) => imports.unfinished())
      assert.match(unfinished.map(({ file }) => file).join(), /^standard input \(SHA-256 [0-9a-f]{8}…\)$/)
      await call(database.url, 0, words, { input: one })
      assert.deepEqual((await namesIn(database.url)).toSorted(), [...namesOf(one), ...namesOf(other)].toSorted())
    })

    const CHANGES: Record<string, (content: string) => string> = {
      'a row is added to the file': (content) => `${content}Late,1\n`,
      'the file is written again with as many bytes': (content) => content.replaceAll('Rex', 'Max'),
    }
    for (const [what, change] of Object.entries(CHANGES)) {
      it(`stop when ${what} during the import, and finish with the earlier file`, async () => {
        await using folder = await Folder.create()
        await using database = await engine.newDatabase()
        const content = csv(numbered(1600))
        const file = join(folder.path, 'pets.csv')
        writeFileSync(file, content)
        const onReport = (text: string) => {
          if (text.includes(' 500 of ')) writeFileSync(file, change(content))
        }
        const stopped = await call(database.url, 1, ['import', file], { isTTY: true, onReport })
        assert.match(stopped.stderr, /was changed during its import, which stopped after 500 of 1600 rows\./)
        assert.match((await call(database.url, 1, ['import', file])).stderr, /has changed since an import of it began/)
        writeFileSync(file, content)
        await call(database.url, 0, ['import', file])
        assert.deepEqual(await namesIn(database.url), namesOf(content))
      })
    }

    it('add each row once where two processes import the same file at the same time', async () => {
      await using folder = await Folder.create()
      await using database = await engine.newDatabase()
      const content = csv(numbered(9000))
      const file = join(folder.path, 'pets.csv')
      writeFileSync(file, content)
      await call(database.url, 0, ['migrate'])
      const ended = await Promise.all(
        [1, 2].map(() => folder.run(['import', file], { env: { DATABASE_URL: database.url } })),
      )
      for (const { code, stderr } of ended.filter((one) => one.code !== 0)) {
        // Between the batches of one, the other may not get the lock in time.
        assert.match(
          stderr,
          /Another process imports the same file|was imported already|another process holds its lock/,
        )
        assert.equal(code, 1)
      }
      await petstore(['import', file], { env: { DATABASE_URL: database.url } })
      assert.deepEqual(await namesIn(database.url), namesOf(content))
    })
  })
}

describe('petstore import', { concurrency: 3 }, () => {
  it('stops when another process goes on with the same file, or begins it a moment before, and says so', async () => {
    await using folder = await Folder.create()
    const [database, file] = ['petstore.db', 'pets.csv'].map((name) => join(folder.path, name)) as [string, string]
    const env = { DATABASE_URL: `sqlite:${database}` }
    writeFileSync(file, csv(numbered(1600)))
    const elsewhere = (sql: string) => {
      using other = new DatabaseSync(database)
      other.exec(sql)
    }
    await petstore(['migrate'], { env })
    const overtaken = await petstore(['import', file], {
      env,
      isTTY: true,
      onReport: (text) => text.includes(' 1000 of ') && elsewhere('UPDATE imports SET rows_done = 1500'),
    })
    assert.equal(overtaken.code, 1)
    assert.match(
      overtaken.stderr,
      /petstore: Another process imports the same file; this one stopped after 1000 rows\. No row was added twice, unless the other began anew with --again\.\n$/,
    )
    assert.equal((await all(env.DATABASE_URL)).length, 1000)

    elsewhere('UPDATE imports SET rows_done = 0; CREATE TABLE begun AS SELECT * FROM imports; DELETE FROM imports')
    const late = await petstore(['import', file], {
      env,
      clock() {
        elsewhere('INSERT OR IGNORE INTO imports SELECT * FROM begun')
        return Date.now()
      },
    })
    assert.equal(late.code, 1)
    assert.match(late.stderr, /petstore: Another process imports the same file; this one stopped after 0 rows\./)
    assert.equal((await all(env.DATABASE_URL)).length, 1000)

    elsewhere('UPDATE imports SET rows_done = 500')
    const resumed = await petstore(['import', file], {
      env,
      isTTY: true,
      onReport: (text) => text.includes(' 1000 of ') && elsewhere('UPDATE imports SET rows_done = 1500'),
    })
    assert.match(resumed.stderr, /this one stopped after 500 rows\./, 'its own rows, without those added before')
  })

  it('stops when the file is changed after the check and before its first row is added', async () => {
    await using folder = await Folder.create()
    const file = join(folder.path, 'pets.csv')
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'petstore.db')}` }
    writeFileSync(file, csv('Rex,1'))
    const { code, stderr } = await petstore(['import', file], {
      env,
      onReport: (text) => text.startsWith('Created the database') && writeFileSync(file, csv('Max,2')),
    })
    assert.equal(code, 1)
    assert.match(stderr, /was changed during its import, which stopped after 0 of 1 rows\./)
    assert.deepEqual(await all(env.DATABASE_URL), [])
  })

  it('leaves no trace of a file without animals: no database, and the file is not refused the next time', async () => {
    await using folder = await Folder.create()
    const [database, file] = ['petstore.db', 'pets.csv'].map((name) => join(folder.path, name)) as [string, string]
    const env = { DATABASE_URL: `sqlite:${database}` }
    writeFileSync(file, csv('Rex,none'))
    const add = async () => (await petstore(['import', file, '--skip-bad', '--json'], { env })).stdout
    assert.deepEqual(JSON.parse(await add()), { added: 0, earlier: 0, skipped: 1 })
    assert.deepEqual(readdirSync(folder.path), ['pets.csv'])
    await petstore(['migrate'], { env })
    for (const time of ['first', 'second'])
      assert.deepEqual(JSON.parse(await add()), { added: 0, earlier: 0, skipped: 1 }, time)
  })

  it('checks a file with --dry-run also for a database in memory, which has no finished import', async () => {
    await using folder = await Folder.create()
    writeFileSync(join(folder.path, 'pets.csv'), csv('Rex,3'))
    const words = ['import', 'pets.csv', '--dry-run', '--database', 'sqlite::memory:']
    const { code, stderr } = await folder.runInProcess(words)
    assert.deepEqual([code, stderr], [0, '1 row checked (commas, UTF-8): 1 valid, 0 bad. Nothing was written.\n'])
    assert.deepEqual(JSON.parse((await folder.runInProcess([...words, '--json'])).stdout), {
      valid: 1,
      bad: 0,
      encoding: 'UTF-8',
      delimiter: ',',
      importedAt: null,
    })
    assert.deepEqual(readdirSync(folder.path), ['pets.csv'])
  })

  it('handles a signal only while it adds rows: before that, Ctrl-C ends it at once', async () => {
    await using folder = await Folder.create()
    const file = join(folder.path, 'pets.csv')
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'petstore.db')}` }
    writeFileSync(file, csv('Rex,none\nAda,1'))
    const seen: boolean[] = []
    const stopSignal = () => {
      seen.push(existsSync(join(folder.path, 'petstore.db')))
      return new Promise<string>(() => {})
    }
    for (const words of [['--dry-run'], [], ['--skip-bad', '--dry-run']])
      await petstore(['import', file, ...words], { env, stopSignal })
    assert.deepEqual(seen, [], 'nothing was to be added')
    assert.equal((await petstore(['import', file, '--skip-bad'], { env, stopSignal })).code, 0)
    assert.deepEqual(seen, [true])
  })

  it('remembers an interrupted file by its whole path, from whichever folder it was named, and adds others meanwhile', async () => {
    await using folder = await Folder.create()
    const file = join(folder.path, 'pets.csv')
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'petstore.db')}` }
    writeFileSync(file, csv(numbered(600)))
    const stopped = await petstore(['import', relative(process.cwd(), file)], {
      env,
      isTTY: true,
      onReport: (text) => text.includes(' 500 of ') && writeFileSync(file, csv('Other,1')),
    })
    assert.equal(stopped.code, 1)
    const unfinished = await withStore(env.DATABASE_URL, ({ imports }) => imports.unfinished())
    assert.deepEqual(
      unfinished.map((one) => one.file),
      [file],
    )
    assert.match(
      (await petstore(['import', file], { env })).stderr,
      /pets\.csv has changed since an import of it began/,
    )
    const other = join(folder.path, 'other.csv')
    writeFileSync(other, 'name-categoryId\nRex-1\n')
    const added = await petstore(['import', other, '--delimiter', '-'], { env })
    assert.equal(added.stderr, 'Added 1 animal ("-", UTF-8).\n', 'another file is no concern of that one')
  })

  it('reads text that has the name of a spreadsheet where its format is named', async () => {
    await using folder = await Folder.create()
    const file = join(folder.path, 'pets.xls')
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'petstore.db')}` }
    writeFileSync(file, 'name\tcategoryId\nRex\t1\n')
    const { code, stderr } = await petstore(['import', file, '--format', 'csv', '--dry-run'], { env })
    assert.deepEqual([code, stderr], [0, '1 row checked (tabs, UTF-8): 1 valid, 0 bad. Nothing was written.\n'])
  })

  it('spools a pipe that is named as a file, of any length', async () => {
    await using folder = await Folder.create()
    const { code, stdout, stderr } = await folder.run(['import', '/dev/stdin', '--format', 'csv', '--json'], {
      wrap: ['sh', '-c', 'cat | "$0" "$@"'],
      input: csv(numbered(4000).replaceAll(',', `${'x'.repeat(100)},`)),
    })
    assert.equal(code, 0, stderr)
    assert.deepEqual(JSON.parse(stdout), { added: 4000, earlier: 0, skipped: 0 })
  })

  for (const [what, name, shell] of [
    ['pipe', '/dev/stdin', 'cat | "$0" "$@"'],
    ['file', '/dev/stdin', '"$0" "$@" <pets.csv'],
    ['file', '/dev/fd/3', '"$0" "$@" 3<pets.csv'],
    ['file', '/proc/self/fd/3', '"$0" "$@" 3<pets.csv'],
  ] as const) {
    it(`does not take ${name} for the ${what} that it was before`, { skip: !existsSync(dirname(name)) }, async () => {
      await using folder = await Folder.create()
      writeFileSync(join(folder.path, 'pets.csv'), csv('Rex,1'))
      await folder.runInProcess(['migrate'])
      await withStore(`sqlite:${join(folder.path, 'data/petstore.db')}`, ({ imports }) =>
        imports.begin({ hash: 'other', file: name, rowsTotal: 5 }, 1, false),
      )
      const { stderr } = await folder.run(['import', name, '--format', 'csv'], {
        wrap: ['sh', '-c', shell],
        input: csv('Rex,1'),
      })
      assert.equal(stderr, 'Added 1 animal.\n')
    })
  }

  it('notices that a file in /dev/shm has changed, too', { skip: !existsSync('/dev/shm') }, async () => {
    await using folder = await Folder.create()
    using inMemory = mkdtempDisposableSync('/dev/shm/petstore-test-')
    const file = join(inMemory.path, 'pets.csv')
    writeFileSync(file, csv('Rex,1'))
    await folder.runInProcess(['migrate'])
    await withStore(`sqlite:${join(folder.path, 'data/petstore.db')}`, ({ imports }) =>
      imports.begin({ hash: 'other', file, rowsTotal: 5 }, 1, false),
    )
    assert.match((await folder.runInProcess(['import', file])).stderr, /has changed since an import of it began/)
  })

  it('spools standard input, leaves nothing of it behind, and recognises it again', async () => {
    await using folder = await Folder.create()
    const TMPDIR = join(folder.path, 'temporary')
    mkdirSync(TMPDIR)
    const lines =
      '{"name":"Rex","categoryId":9223372036854775807}\n\n{"name":"Ada","categoryId":1,"status":"sold","id":9}\n'
    const { code, stdout } = await folder.run(['import', '-', '--format', 'jsonl', '--json'], {
      input: lines,
      env: { TMPDIR },
    })
    assert.deepEqual([code, JSON.parse(stdout)], [0, { added: 2, earlier: 0, skipped: 0 }])
    assert.deepEqual(readdirSync(TMPDIR), [])
    const exported = await folder.run(['export', '-', '--format', 'jsonl'])
    assert.equal(
      exported.stdout,
      '{"id":1,"name":"Rex","categoryId":9223372036854775807,"status":"available"}\n{"id":2,"name":"Ada","categoryId":1,"status":"sold"}\n',
    )
    assert.match(
      (await folder.run(['import', '-', '--format', 'jsonl'], { input: lines })).stderr,
      /This file was imported already/,
    )
  })

  for (const [what, path] of [
    ['standard input', '-'],
    ['/dev/stdin', '/dev/stdin'],
  ] as const) {
    it(`says of ${path} that the temporary folder is the problem, where it is`, async () => {
      await using folder = await Folder.create()
      for (const [where, code] of [
        [join(folder.path, 'none'), 'ENOENT'],
        ['/dev/full', 'ENOTDIR'],
      ] as const) {
        const ended = await folder.run(['import', path, '--format', 'csv'], {
          wrap: ['sh', '-c', 'cat | "$0" "$@"'],
          input: csv('Rex,1'),
          // Collects garbage at the end: Node.js ends a process with an error that leaves an open file to the collector.
          env: {
            TMPDIR: where,
            NODE_OPTIONS: "--expose-gc --import=data:text/javascript,process.once('beforeExit',gc)",
          },
        })
        assert.equal(ended.code, 1)
        assert.ok(
          ended.stderr.startsWith(`petstore: Cannot copy ${what} to the temporary folder ${where}: ${code}: `),
          ended.stderr,
        )
        assert.match(ended.stderr, /\. Set TMPDIR to a folder with room that this user can write to\.\n$/)
      }
    })
  }

  it('recognises how an office writes CSV, says so, and leaves out a column only when asked', async () => {
    await using folder = await Folder.create()
    const content = '\uFEFFsep=;\r\nCategoryID; NAME ;Price\r\n7;"Rex; the 2nd";9,50\r\n;;\r\n'
    writeFileSync(join(folder.path, 'office.csv'), Buffer.from(content, 'utf16le'))
    const refused = await folder.runInProcess(['import', 'office.csv', '--dry-run'])
    assert.match(
      refused.stderr,
      /^petstore: line 2: the header has columns that animals do not have: "Price"\. Remove them, or add --ignore-columns/,
    )
    assert.equal(refused.code, 1)
    const warning = 'Warning: animals do not have these columns, which are left out: "Price".\n'
    const dry = await folder.runInProcess(['import', 'office.csv', '--dry-run', '--ignore-columns'])
    assert.equal(dry.stderr, `${warning}1 row checked (semicolons, UTF-16LE): 1 valid, 0 bad. Nothing was written.\n`)
    await folder.runInProcess(['migrate'])
    const added = await folder.runInProcess(['import', 'office.csv', '--ignore-columns'])
    assert.equal(added.stderr, `${warning}Added 1 animal (semicolons, UTF-16LE).\n`)
    assert.equal(
      (await folder.runInProcess(['export', '-', '--format', 'jsonl'])).stdout,
      '{"id":1,"name":"Rex; the 2nd","categoryId":7,"status":"available"}\n',
    )
  })

  it('says what is wrong with a file or a call', async () => {
    await using folder = await Folder.create()
    const put = (name: string, content: string | Buffer) => writeFileSync(join(folder.path, name), content)
    put('header.csv', 'Name,Category\nRex,1\n')
    put('sheet.csv', Buffer.from('504b030414000600', 'hex'))
    const spreadsheets = ['pets.XLSX', 'pets.xls', 'pets.xlsm', 'pets.ods']
    for (const name of spreadsheets) put(name, '')
    put('quote.csv', 'name,categoryId\n"Rex,1\n')
    put('empty.jsonl', '')
    put('empty.NDJSON', '')
    put('pets.txt', 'name,categoryId\nRex,1\n')
    await folder.runInProcess(['migrate'])
    const calls: [words: string[], code: number, message: RegExp][] = [
      [['import', 'none.csv'], 1, /^petstore: Cannot read none\.csv: ENOENT/],
      [['import', 'none.xlsx'], 1, /^petstore: Cannot read none\.xlsx: ENOENT/],
      [['import', '.', '--format', 'csv'], 1, /^petstore: Cannot read \.: EISDIR/],
      [
        ['import', 'header.csv'],
        1,
        /^petstore: line 1: the header has no column categoryId; got "Name,Category".* Nothing was written\.\n$/,
      ],
      [
        ['import', 'sheet.csv'],
        1,
        /^petstore: .*sheet\.csv is a spreadsheet or an archive, not text; nothing was written\. /,
      ],
      ...spreadsheets.map((name): [string[], number, RegExp] => [
        ['import', name],
        1,
        /^petstore: pets\.\w+ is a spreadsheet or an archive, not text; nothing was written\. /,
      ]),
      [['import', 'header.csv', '--delimiter', ';;'], 2, /--delimiter must be comma, semicolon, tab or one character/],
      [['import', 'empty.jsonl', '--ignore-columns'], 2, /--delimiter and --ignore-columns are for CSV\./],
      [['import', 'empty.jsonl', '--delimiter', 'tab'], 2, /--delimiter and --ignore-columns are for CSV\./],
      [
        ['import', 'quote.csv', '--skip-bad'],
        1,
        /^petstore: line 2: a quote is not closed until the end of the file\. .*nothing was written/,
      ],
      [['import', 'empty.NDJSON'], 1, /^petstore: .*empty\.NDJSON \(0 bytes, UTF-8\) has no line with an animal/],
      [
        ['import', 'pets.txt'],
        2,
        /^petstore: The format of pets\.txt is unknown; name it with --format csv or --format jsonl\./,
      ],
      [['import', 'pets.txt', '--format', 'xml'], 2, /--format must be csv or jsonl, got "xml"\./],
      [['import', '-'], 2, /The format of - is unknown/],
      [['import'], 2, /import takes FILE\|-, got none\./],
      [
        ['export', 'pets.txt', '--format', 'csv'],
        1,
        /^petstore: pets\.txt exists already; nothing was written\. Name another file, or add --force\.\n$/,
      ],
      [['export', 'none/pets.csv'], 1, /^petstore: Cannot write none\/pets\.csv: ENOENT/],
      [['export', 'pets.txt/pets.csv'], 1, /^petstore: Cannot write pets\.txt\/pets\.csv: ENOTDIR/],
      [['export', '-', '--format', 'csv', '--json'], 2, /--json needs a FILE/],
      [['export', 'pets.csv', '--delimiter', '|'], 2, /--delimiter must be one of comma, semicolon, tab, got "\|"\./],
      [['export', 'pets.csv', '--delimiter', 'constructor'], 2, /--delimiter must be one of comma/],
      [['export', 'pets.jsonl', '--delimiter', 'comma'], 2, /--delimiter is for CSV\./],
    ]
    for (const [words, code, message] of calls) {
      const ended = await folder.runInProcess(words)
      assert.match(ended.stderr, message)
      assert.deepEqual([ended.code, ended.stdout], [code, ''], words.join(' '))
    }
    const exported = await folder.runInProcess(['export', 'pets.txt', '--format', 'csv', '--force', '--json'])
    assert.deepEqual([exported.code, JSON.parse(exported.stdout), exported.stderr], [0, { exported: 0 }, ''])
    assert.equal(readFileSync(join(folder.path, 'pets.txt'), 'utf8'), `\uFEFF${CSV_HEADER}\n`)
  })

  it('leaves no part of an export that fails half way, and the earlier file as it was', async () => {
    await using folder = await Folder.create()
    const [database, file] = ['petstore.db', 'pets.csv'].map((name) => join(folder.path, name)) as [string, string]
    const url = `sqlite:${database}`
    await withStore(url, async ({ pets }) => {
      await pets.createMany(Array.from({ length: 5001 }, (_, nth) => ({ ...ODD[0]!, name: `Rex ${nth}` })))
    })
    writeFileSync(file, 'earlier')
    const folderDuring: string[] = []
    // Breaks the database when the first animals have been written.
    const onReport = () => {
      if (folderDuring.length > 0) return
      folderDuring.push(...readdirSync(folder.path))
      using other = new DatabaseSync(database)
      other.exec('ALTER TABLE pets RENAME TO others')
    }
    const env = { DATABASE_URL: url }
    await assert.rejects(petstore(['export', file, '--force'], { env, isTTY: true, onReport }), /no such table/)
    assert.ok(folderDuring.some((name) => name.endsWith('.partial')))
    assert.deepEqual(
      readdirSync(folder.path).filter((name) => name.startsWith('pets.csv')),
      ['pets.csv'],
    )
    assert.equal(readFileSync(file, 'utf8'), 'earlier')
  })

  it('leaves no part of an export after Ctrl-C, and says that the file was not written', async () => {
    await using folder = await Folder.create()
    const file = join(folder.path, 'pets.csv')
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'petstore.db')}` }
    await withStore(env.DATABASE_URL, async ({ pets }) => {
      await pets.createMany(Array.from({ length: 20_001 }, (_, nth) => ({ ...ODD[0]!, name: `Rex ${nth}` })))
    })
    writeFileSync(file, 'earlier')
    const stop = Promise.withResolvers<string>()
    const { code, stderr } = await petstore(['export', file, '--force'], {
      env,
      isTTY: true,
      onReport: () => stop.resolve('SIGINT'),
      stopSignal: () => stop.promise,
    })
    assert.equal(code, 130)
    assert.ok(stderr.endsWith(`petstore: Interrupted: ${file} was not written.\n`), stderr)
    const left = readdirSync(folder.path).filter((name) => name.startsWith('pets.csv'))
    assert.deepEqual([left, readFileSync(file, 'utf8')], [['pets.csv'], 'earlier'])
  })

  it('shows how much of a large file is checked, and clears that line for a bad row and for the result', async () => {
    await using folder = await Folder.create()
    const file = join(folder.path, 'pets.csv')
    const content = csv(`${numbered(25_000)}\n,1\n${numbered(25_000)}`)
    writeFileSync(file, content)
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'petstore.db')}` }
    const { stderr } = await petstore(['import', file, '--dry-run', '--skip-bad'], { env, isTTY: true })
    const parts = stderr.split('\r\u001B[K').slice(1)
    assert.equal(parts.filter((part) => part.startsWith('line 25002: ')).length, 1, stderr)
    const bars = parts.filter((part) => part.startsWith('█') || part.startsWith('░'))
    for (const bar of bars)
      assert.match(bar, new RegExp(`^█*░+ \\d+ of ${content.length}  bytes checked, \\d+/s, \\d+ s left$`))
    assert.ok(bars.length >= 2, stderr)
    assert.match(parts.at(-1)!, /^50001 rows checked /)
  })

  it('shows the progress of an export also when more animals are read than were counted', async () => {
    await using folder = await Folder.create()
    const [database, file] = ['petstore.db', 'pets.csv'].map((name) => join(folder.path, name)) as [string, string]
    const env = { DATABASE_URL: `sqlite:${database}` }
    await withStore(env.DATABASE_URL, ({ pets }) => pets.createMany(ODD))
    {
      // As if the others had been added after the count.
      using other = new DatabaseSync(database)
      other.exec("UPDATE pet_counts SET count = (status = 'available')")
    }
    const { code, stderr } = await petstore(['export', file], { env, isTTY: true })
    assert.equal(code, 0)
    assert.match(stderr, / 4 of 4 {2}.*\nExported 4 animals\.\n$/)
  })

  it('lets a running service create and list animals in between', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    const { url } = await serve(folder)
    writeFileSync(join(folder.path, 'pets.csv'), csv(numbered(60_000)))
    const child = folder.start(['import', 'pets.csv'])
    const done = collect(child)
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    let [created, refused] = [0, 0]
    while (child.exitCode === null) {
      const body = '{"name":"In between","categoryId":1}'
      const { status } = await fetch(`${url}/v1/pets`, { method: 'POST', headers, body })
      // A machine that stops the import while it holds the lock makes a create wait for too long.
      if (status === 503) refused += 1
      else assert.equal(status, 201)
      created += Number(status === 201)
      assert.equal((await fetch(`${url}/v1/pets`, { headers })).status, 200)
    }
    const { code, stderr } = await done
    assert.equal(code, 0, stderr)
    assert.ok(created > 5 && refused < created / 5, `${created} created, ${refused} refused`)
    const exported = (await folder.runInProcess(['export', '-', '--format', 'csv'])).stdout
    assert.equal(exported.split('\n').filter((line) => line.includes('"In between"')).length, created)
    assert.equal(exported.trimEnd().split('\n').length, 1 + 60_000 + created)
  })
})

// Not at the same time as others: these change a class that all share.
describe('petstore import, as another process begins,', () => {
  for (const again of [[], ['--again']]) {
    it(`does not take a file that another process has just begun for a changed one${again.length ? ', with --again either' : ''}`, async ({
      mock,
    }) => {
      await using folder = await Folder.create()
      await folder.runInProcess(['migrate'])
      const path = join(folder.path, 'pets.csv')
      const content = csv(numbered(10))
      writeFileSync(path, content)
      const hash = createHash('sha256').update(content).digest('hex')
      const prepare = Reflect.get(DatabaseSync.prototype, 'prepare')
      mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, sql: string) {
        const statement = prepare.call(this, sql)
        if (!/FROM imports WHERE rows_done < rows_total/.test(sql)) return statement
        return {
          all() {
            using other = new DatabaseSync(join(folder.path, 'data/petstore.db'))
            other.exec(`INSERT INTO imports VALUES ('${hash}', '${path}', 4, 10, 0)`)
            return statement.all()
          },
        }
      })
      const { code, stderr } = await folder.runInProcess(['import', 'pets.csv', ...again])
      mock.restoreAll()
      assert.deepEqual(
        [code, stderr.replace(/^petstore: /, '').split(';')[0]],
        [1, 'Another process imports the same file'],
      )
      using db = new DatabaseSync(join(folder.path, 'data/petstore.db'))
      assert.deepEqual({ ...db.prepare('SELECT rows_done AS done FROM imports').get() }, { done: 4 })
    })
  }
})
