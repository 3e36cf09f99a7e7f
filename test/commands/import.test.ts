// petstore import and export: animals in and out of a store, nothing lost or doubled whatever happens in between.
// test/store/imports.test.ts has what each engine records of an import.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CSV_COLUMNS, csvLine, DELIMITERS } from '../../src/contract/pet-csv.ts'
import { INT64_MAX, INT64_MIN } from '../../src/contract/int64.ts'
import type { NewPet } from '../../src/contract/pets.ts'
import { collect } from '../harness/programs/processes.ts'
import { samplePet } from '../harness/databases/sample-pet.ts'
import { Folder, makeKey, serve } from '../harness/programs/command.ts'
import { ENGINES, sqlite } from '../harness/databases/engines.ts'
import { type Commands, commandsOn, type InProcessOptions } from '../harness/programs/in-process-command.ts'
import { event } from '../harness/databases/sample-rows.ts'
import { withStore } from '../harness/databases/with-store.ts'

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
const namesOf = (content: string) =>
  content
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',')[0]!)

/** A folder with a file of this content, a database, and commands on that. */
interface Sandbox extends AsyncDisposable {
  folder: Folder
  file: string
  url: string
  commands: Commands
  all(): Promise<object[]>
  names(): Promise<string[]>
  /** Runs statements on the SQLite database, as another process would. */
  elsewhere: (sql: string) => void
}

async function sandbox(
  content: string | Buffer = '',
  engine = sqlite,
  options: InProcessOptions = {},
): Promise<Sandbox> {
  const folder = await Folder.create()
  const database = await engine.newEmptyDatabase()
  const { url } = database
  const commands = commandsOn(url, options)
  await commands.call(0, 'migrate')
  const list = () => withStore(url, ({ pets }) => pets.list({ limit: 10_000 }))
  return {
    folder,
    file: folder.write('pets.csv', content),
    url,
    commands,
    all: async () => (await list()).toReversed().map((pet) => ({ ...pet })),
    names: async () => (await list()).toReversed().map(({ name }) => name),
    elsewhere: (sql) => {
      using other = new DatabaseSync(url.slice('sqlite:'.length))
      other.exec(sql)
    },
    async [Symbol.asyncDispose]() {
      await folder[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Calls `act` when so many rows are added. */
function after(rows: number, act: () => unknown): InProcessOptions {
  return { isTTY: true, onReport: (text) => text.includes(` ${rows} of `) && act() }
}

/** Presses Ctrl-C when so many rows are added. */
function stoppedAfter(rows: number): InProcessOptions {
  const stop = Promise.withResolvers<string>()
  return { ...after(rows, () => stop.resolve('SIGINT')), stopSignal: () => stop.promise }
}

for (const engine of ENGINES) {
  describe(`petstore import and export on ${engine.name}`, { concurrency: false }, () => {
    it('carry animals from one store to another in every format, exactly and in their order; ids are assigned anew', async () => {
      await using source = await sandbox('', engine)
      await using target = await sandbox('', engine)
      await withStore(source.url, ({ pets }) => pets.createMany(ODD))
      const formats = ['csv', 'jsonl', ...Object.keys(DELIMITERS).map((name) => `csv --delimiter ${name}`)]
      let last = 0
      for (const format of formats) {
        const [ending = '', ...options] = format.split(' ')
        const file = source.folder.at(`pets.${ending}`)
        const exported = await source.commands.call(0, ['export', file, '--force', ...options])
        assert.equal(exported.stderr, 'Exported 4 animals.\n')
        // A file with commas is the first one once more.
        const { stderr } = await target.commands.call(0, `import ${file} --again`)
        assert.equal(stderr, 'Added 4 animals.\n')
        const added = ODD.map((pet, index) => ({ id: BigInt(last + index + 1), ...pet }))
        assert.deepEqual((await target.all()).slice(last), added, format)
        last += 4
        const content = readFileSync(file, 'utf8')
        assert.equal((await source.commands.call(0, `export - --format ${format}`)).stdout, content)
        const isMarked = content.startsWith('\uFEFF')
        assert.equal(isMarked, ending === 'csv', 'spreadsheets recognise UTF-8 by its byte order mark')
      }
    })

    it('name categories on the way out, and take a name for a number on the way in, where the two do not disagree', async () => {
      await using box = await sandbox('', engine)
      const [cats, dogs] = [
        { number: 3n, name: 'Cats, "big"' },
        { number: 4n, name: 'Dogs' },
      ]
      const animals = [3n, 4n, 5n].map((categoryId) => ({ ...samplePet, categoryId }))
      await withStore(box.url, async ({ categories, pets }) => {
        for (const category of [cats, dogs])
          await categories.save(category, undefined, event('acct_1', 'category.added'))
        await pets.createMany(animals)
      })
      const exported = async (format: string) => (await box.commands.call(0, `export - --format ${format}`)).stdout
      const names = ['"Cats, ""big"""', '"Dogs"', '']
      const written = animals.map((pet, index) => csvLine({ id: BigInt(index + 1), ...pet }) + names[index])
      assert.equal(await exported('csv'), `\uFEFF${[CSV_COLUMNS.join(), ...written].join('\n')}\n`)
      const lines = (await exported('jsonl')).split('\n')
      assert.match(lines[0]!, /"categoryId":3,.*"category":"Cats, \\"big\\""}$/)
      assert.match(lines[2]!, /"categoryId":5,/)
      assert.doesNotMatch(lines[2]!, /"category":/)

      const rows: [row: string, json: string, expected: bigint | RegExp][] = [
        ['a,, dogs ', '{"name":"a","category":" dogs "}', 4n],
        ['b,4,DOGS', '{"name":"b","categoryId":4,"category":"DOGS"}', 4n],
        ['c,9,Hens', '{"name":"c","categoryId":9,"category":"Hens"}', 9n],
        ['d,4,', '{"name":"d","categoryId":4,"category":{"any":1}}', 4n],
        ['e,,8', '{"name":"e","category":"8"}', 8n],
        [
          'f,3,Dogs',
          '{"name":"f","categoryId":3,"category":"Dogs"}',
          /^categoryId is Cats, "big", but category is Dogs\./,
        ],
        ['g,,Dgos', '{"name":"g","category":"Dgos"}', /^No category is named "Dgos"\. Did you mean Dogs\?/],
        ['h,,', '{"name":"h","category":""}', /^categoryId (?:is missing|must be)/],
      ]
      const contents = {
        csv: `name,categoryId,category\n${rows.map(([row]) => row).join('\n')}`,
        jsonl: rows.map(([, json]) => json).join('\n'),
      }
      for (const [format, content] of Object.entries(contents)) {
        const file = box.folder.write(`rows.${format}`, content)
        const { stderr } = await box.commands.call(0, `import ${file} --skip-bad`)
        const problems = [...stderr.matchAll(/^line \d+: (.*)$/gm)].map(([, problem]) => problem!)
        const refused = rows.flatMap(([, , expected]) => (typeof expected === 'bigint' ? [] : [expected]))
        assert.equal(problems.length, refused.length, stderr)
        for (const [nth, expected] of refused.entries()) assert.match(problems[nth]!, expected)
        const added = (await box.all()).slice(-5).map((pet) => (pet as NewPet).categoryId)
        assert.deepEqual(added, [4n, 4n, 9n, 4n, 8n])
      }
      // Where no category has a name, the number of an exported row decides, and a name alone is refused.
      await using other = await sandbox(await exported('csv'), engine)
      await other.commands.call(0, `import ${other.file}`)
      const alone = other.folder.write('alone.csv', 'name,category\nRex,Dogs\n')
      const unknown =
        /^line 2: No category is named "Dogs"\. Add it under Categories in the console, or with the command category create\.\n/
      await other.commands.refused(1, `import ${alone}`, unknown)
      const named = await other.commands.json('category create Cats')
      assert.deepEqual(named, { name: 'Cats', number: '1' }, 'the first number without animals')
      const { stderr } = await other.commands.call(0, ['category', 'create', ' Dogs ', '--number', '-4'])
      assert.equal(stderr, 'The category -4 is named Dogs.\n')
      const refusals: Record<string, RegExp> = {
        'dOGS --number 9': /Dogs \(-4\) has this name already\./,
        'Hens --number 1': /There is Cats \(1\) already: rename it, or enter another number\./,
        'Hens --number 1.0': /Enter a whole number in digits, such as 3 or -3\./,
        7: /The name needs more than digits/,
      }
      for (const [words, message] of Object.entries(refusals))
        await other.commands.refused(1, `category create ${words}`, message)
      await other.commands.call(0, `import ${alone}`)
      assert.equal(((await other.all()).at(-1) as NewPet).categoryId, -4n)
    })

    it('go on exactly where kill -9 stopped them, and add a finished file again only when asked', async () => {
      const content = csv(numbered(2600))
      await using box = await sandbox(content, engine)
      const { commands, file } = box
      const child = spawn(process.execPath, [KILLED_IMPORT, box.url, file, '1000'], { stdio: 'inherit' })
      assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL'])
      assert.deepEqual(await box.names(), namesOf(content).slice(0, 1000))

      const second = await commands.call(0, `import ${file}`, { isTTY: true })
      assert.match(second.stderr, / 1500 of 2600\r/)
      assert.ok(second.stderr.endsWith('Added 1600 animals. 1000 were added before the interruption.\n'), second.stderr)
      assert.deepEqual(await box.names(), namesOf(content))

      await commands.refused(1, `import ${file}`, /^petstore: This file was imported already \(2600 rows, /)
      await commands.call(130, `import ${file} --again`, stoppedAfter(500))
      await commands.call(0, `import ${file} --again`)
      assert.deepEqual(await box.names(), [...namesOf(content), ...namesOf(content)])
    })

    it('add each row once where two processes import the same file at the same time', async () => {
      const content = csv(numbered(9000))
      await using box = await sandbox(content, engine)
      const run = () => box.folder.run(['import', box.file], { env: { DATABASE_URL: box.url } })
      for (const { code, stderr } of await Promise.all([run(), run()])) {
        if (code === 0) continue
        // Between the batches of one, the other may not get the lock in time.
        const reasons = /Another process imports the same file|was imported already|another process holds its lock/
        assert.match(stderr, reasons)
        assert.equal(code, 1)
      }
      await box.commands.run(`import ${box.file}`)
      assert.deepEqual(await box.names(), namesOf(content))
    })
  })
}

describe('petstore import', { concurrency: 3 }, () => {
  it('adds the animals of a file once, whatever its name, unless told to add them again', async () => {
    let minutes = 0
    await using box = await sandbox(csv('Rex,1'), sqlite, { clock: () => Date.UTC(2026, 10, 15, 12, minutes) })
    const { commands, file, folder } = box
    assert.deepEqual(await commands.call(0, `import ${file}`), { code: 0, stdout: '', stderr: 'Added 1 animal.\n' })
    minutes = 5
    await commands.refused(
      1,
      `import ${folder.write('other-name.csv', csv('Rex,1'))}`,
      'petstore: This file was imported already (1 rows, 2026-11-15 12:00 UTC); nothing was written. To add its animals once more, add --again.\n',
    )
    assert.deepEqual(await commands.json(`import ${file} --again`), { added: 1, earlier: 0, skipped: 0 })
    assert.deepEqual(await box.names(), ['Rex', 'Rex'])
  })

  it('writes nothing unless every row is valid, reports each bad one with line and reason, and adds the others if told so', async () => {
    const rows = [
      Buffer.from(`\uFEFF${csv(numbered(700))}Rex,twelve\n`),
      Buffer.from('B\xe9b\xe9,1\n', 'latin1'),
      Buffer.from(',1\nLast,2\n'),
    ]
    await using box = await sandbox(Buffer.concat(rows))
    const { commands, file } = box
    const reported =
      'line 702: categoryId must be .*, got "twelve"\\.\nline 703: name is not valid UTF-8; save the file as UTF-8\\.\nline 704: name must be .*, got ""\\.\n'
    await commands.refused(
      1,
      `import ${file}`,
      new RegExp(
        `^${reported}petstore: 3 of 704 rows are bad; nothing was written\\. Correct the file, or add --skip-bad\\.\n$`,
      ),
    )
    const facts = { valid: 701, bad: 3, encoding: 'UTF-8', delimiter: ',' }
    const checked = await commands.call(1, `import ${file} --dry-run --json`)
    assert.deepEqual(JSON.parse(checked.stdout), facts)
    assert.deepEqual(await commands.json(`import ${file} --dry-run --skip-bad`), facts)
    assert.deepEqual(await box.names(), [])
    const added = await commands.call(0, `import ${file} --skip-bad`)
    assert.match(added.stderr, new RegExp(`^${reported}Added 701 animals\\. Skipped 3 bad rows\\.\n$`))
    assert.deepEqual(await box.names(), [...namesOf(csv(numbered(700))), 'Last'])
    const one = box.folder.write('one.csv', csv('Kit,x\nLuna,2'))
    await commands.refused(1, `import ${one}`, /^line 2: .*\npetstore: 1 of 2 rows is bad; nothing was written\./)
    assert.match(
      (await commands.call(0, `import ${one} --skip-bad`)).stderr,
      /\nAdded 1 animal\. Skipped 1 bad row\.\n$/,
    )
  })

  it('checks a file without writing', async () => {
    await using folder = await Folder.create()
    const file = folder.write('pets.csv', csv('Rex,1\nKit,2\nAda,3'))
    const commands = commandsOn(`sqlite:${folder.at('petstore.db')}`)
    const dry = `import ${file} --dry-run`
    const checked = '3 rows checked (commas, UTF-8): 3 valid, 0 bad. Nothing was written.'
    const facts = { valid: 3, bad: 0, encoding: 'UTF-8', delimiter: ',' }
    assert.deepEqual(await commands.call(0, dry), { code: 0, stdout: '', stderr: `${checked}\n` })
    assert.deepEqual(await commands.json(dry), facts)
    assert.deepEqual(folder.names(), ['pets.csv'])
  })

  const question = 'nothing was written. Is it the right file, and was it saved whole?\n'
  const EMPTY: [name: string, content: string | Buffer, told: string][] = [
    ['none.csv', 'name,categoryId\n', `none.csv (16 bytes, commas, UTF-8) has a header, but no rows; ${question}`],
    ['blank.csv', csv(',\n'), `blank.csv (19 bytes, commas, UTF-8) has a header, but no rows; ${question}`],
    ['quoted.csv', 'name,categoryId,"x\nRex,1,"\n', `has a header, but no rows; ${question}`],
    ['empty.jsonl', '', `empty.jsonl (0 bytes, UTF-8) has no line with an animal; ${question}`],
    ['mark.jsonl', '\uFEFF', `mark.jsonl (3 bytes, UTF-8) has no line with an animal; ${question}`],
    ['wide.jsonl', Buffer.from('\uFEFF\n', 'utf16le'), `(4 bytes, UTF-16LE) has no line with an animal; ${question}`],
    ['empty.csv', '', 'got nothing. The columns are'],
    ['mark.csv', '\uFEFF', 'got nothing. The columns are'],
    [
      'bars.csv',
      'name|categoryId\nRex|1\n',
      'got "name|categoryId" as one column (a first line such as sep=| names another',
    ],
    ['mac.csv', 'name,categoryId\rRex,1\r', 'no column categoryId; got "name,categoryId\\rRex,1'],
  ]
  it('fails for a file that has nothing to add, says what it found, and creates no database', async () => {
    await using folder = await Folder.create()
    const commands = commandsOn(`sqlite:${folder.at('petstore.db')}`)
    for (const [name, content, told] of EMPTY) {
      const file = folder.write(name, content)
      for (const option of [
        '--again',
        '--dry-run',
        '--skip-bad',
        ...(name.endsWith('csv') ? ['--ignore-columns'] : []),
      ]) {
        const { stdout, stderr } = await commands.call(1, ['import', file, option])
        const isAmongIgnored = name === 'quoted.csv' && option !== '--ignore-columns'
        assert.ok(stderr.includes(isAmongIgnored ? 'columns that animals do not have' : told), stderr)
        assert.equal(stdout, '')
      }
    }
    assert.deepEqual(folder.names(), EMPTY.map(([name]) => name).toSorted())
  })

  it('leaves no trace of a file of bad rows: no database, and the file is not refused the next time', async () => {
    await using folder = await Folder.create()
    const commands = commandsOn(`sqlite:${folder.at('petstore.db')}`)
    const add = () => commands.json(`import ${folder.write('pets.csv', csv('Rex,none'))} --skip-bad`)
    assert.deepEqual(await add(), { added: 0, earlier: 0, skipped: 1 })
    assert.deepEqual(folder.names(), ['pets.csv'])
    await commands.call(0, 'migrate')
    for (const time of ['first', 'second']) assert.deepEqual(await add(), { added: 0, earlier: 0, skipped: 1 }, time)
  })

  it('says after Ctrl-C what was added, and goes on there with the same file only', async () => {
    let minutes = 0
    const clock = () => Date.UTC(2026, 10, 15, 12, minutes)
    const [before, changed] = [csv(numbered(1600)), csv(numbered(1600, 7))]
    await using box = await sandbox(before, sqlite, { clock })
    const { commands, file } = box
    const stopped = await commands.call(130, `import ${file}`, stoppedAfter(500))
    const interrupted =
      /petstore: Interrupted: (\d+) of 1600 rows are added\. Run the same import again to add the others\.\n$/
    const added = Number(interrupted.exec(stopped.stderr)?.[1])
    assert.deepEqual(await box.names(), namesOf(before).slice(0, added))
    const { stderr } = await commands.call(0, `import ${file} --dry-run`)
    assert.match(stderr, /1600 valid, 0 bad\. Nothing was written\.\n$/, 'it was not imported yet')
    writeFileSync(file, changed)
    await commands.refused(
      1,
      `import ${file}`,
      `petstore: ${file} has changed since an import of it began, and that import had added ${added} of 1600 rows at 2026-11-15 12:00 UTC; it is running or was interrupted. Nothing was written. ` +
        'Import the earlier file to finish, or add --again to import this one from its first row: the rows that were added stay.\n',
    )
    assert.equal((await box.names()).length, added)
    minutes = 1
    await commands.call(0, `import ${file} --again`)
    assert.deepEqual(await box.names(), [...namesOf(before).slice(0, added), ...namesOf(changed)])
    assert.deepEqual([...(await withStore(box.url, ({ imports }) => imports.unfinished()))], [])
  })

  it('ends well after Ctrl-C during the last rows: nothing is left to add', async () => {
    await using box = await sandbox(csv(numbered(600)))
    const { stderr } = await box.commands.call(0, `import ${box.file}`, stoppedAfter(500))
    assert.ok(stderr.endsWith('Added 600 animals.\n'), stderr)
  })

  it('goes on where it was interrupted also in a long file with bad rows, which do not count', async () => {
    // Longer than the pieces that a file is read in, and interrupted behind the first of them.
    const good = numbered(3000).replaceAll(',', `${'x'.repeat(180)},`)
    await using box = await sandbox(csv(good.replaceAll(/^.*[05]$/gm, 'No category,none\n$&')))
    const bad = good.match(/[05]$/gm)!.length
    await box.commands.call(130, `import ${box.file} --skip-bad`, stoppedAfter(2000))
    const later = await box.commands.call(0, `import ${box.file} --skip-bad`)
    assert.match(later.stderr, new RegExp(`were added before the interruption\\. Skipped ${bad} bad rows\\.\\n$`))
    assert.deepEqual(await box.names(), namesOf(csv(good)))
  })

  for (const [first, other, total] of [
    ['--skip-bad', '--ignore-columns', 1500],
    ['--ignore-columns', '--skip-bad', 3000],
  ] as const)
    it(`loses and doubles no row where it is interrupted with ${first} and run with ${other}, under which other rows are valid`, async () => {
      const rows = Array.from({ length: 3000 }, (_, index) => `Rex ${index},1,${index < 1500 ? 'x' : ''}\n`)
      await using box = await sandbox(`name,categoryId,\n${rows.join('')}`)
      const { commands, file } = box
      await commands.call(130, `import ${file} ${first}`, stoppedAfter(500))
      const added = await box.names()
      const refused = await commands.call(1, `import ${file} ${other}`)
      const why = `petstore: The import of this file was begun with other options or another release, which read ${total} valid rows and added ${added.length}; now ${4500 - total} are valid. Nothing was written. Run it as it was begun to finish it, or add --again to begin anew: the rows that were added stay.\n`
      assert.ok(refused.stderr.endsWith(why), refused.stderr)
      assert.deepEqual(await box.names(), added)
      await commands.call(0, `import ${file} ${other} --again`)
      const rest = namesOf(`header\n${rows.slice(other === '--skip-bad' ? 1500 : 0).join('')}`)
      assert.deepEqual(await box.names(), [...added, ...rest])
      assert.match((await commands.call(1, `import ${file} ${first}`)).stderr, /was imported already/)
    })

  it('with --again for a file that took the name of one that is being imported leaves the running import alone', async () => {
    const [before, later] = [csv(numbered(3600)), csv(numbered(10, 5000))]
    await using box = await sandbox(before)
    const { commands, file, folder } = box
    let second: Promise<unknown> | undefined
    const rename = after(500, () => {
      renameSync(folder.write('new.csv', later), file)
      second = commands.call(0, `import ${file} --again`)
    })
    await commands.call(0, `import ${file}`, rename)
    await second
    assert.deepEqual((await box.names()).toSorted(), [...namesOf(before), ...namesOf(later)].toSorted())
  })

  it('does not take one standard input for another that was interrupted, and goes on with each', async () => {
    await using box = await sandbox()
    const words = 'import - --format csv'
    const [one, other] = [csv(numbered(2600)), csv(numbered(10, 5000))]
    await box.commands.call(130, words, { ...stoppedAfter(500), input: one })
    assert.equal((await box.commands.call(0, words, { input: other })).stderr, 'Added 10 animals.\n')
    const unfinished = await withStore(box.url, ({ imports }) => imports.unfinished())
    assert.match(unfinished.map(({ file }) => file).join(), /^standard input \(SHA-256 [0-9a-f]{8}…\)$/)
    await box.commands.call(0, words, { input: one })
    assert.deepEqual((await box.names()).toSorted(), [...namesOf(one), ...namesOf(other)].toSorted())
  })

  const CHANGES: Record<string, (content: string) => string> = {
    'a row is added to the file': (content) => `${content}Late,1\n`,
    'the file is written again with as many bytes': (content) => content.replaceAll('Rex', 'Max'),
  }
  for (const [what, change] of Object.entries(CHANGES)) {
    it(`stops when ${what} during the import, and finishes with the earlier file`, async () => {
      const content = csv(numbered(1600))
      await using box = await sandbox(content)
      const { commands, file } = box
      const changing = after(500, () => writeFileSync(file, change(content)))
      const stopped = await commands.call(1, `import ${relative(process.cwd(), file)}`, changing)
      assert.match(stopped.stderr, /was changed during its import, which stopped after 500 of 1600 rows\./)
      const unfinished = await withStore(box.url, ({ imports }) => imports.unfinished())
      assert.deepEqual([unfinished.length, unfinished[0]?.file], [1, file], 'its whole path')
      await commands.refused(1, `import ${file}`, /has changed since an import of it began/)
      const other = box.folder.write('other.csv', 'sep=-\nname-categoryId\nOther-1\n')
      const added = await commands.call(0, `import ${other}`)
      assert.equal(added.stderr, 'Added 1 animal.\n', 'another file is no concern of that one')
      writeFileSync(file, content)
      await commands.call(0, `import ${file}`)
      const names = await box.names()
      assert.deepEqual(
        names.filter((name) => name !== 'Other'),
        namesOf(content),
      )
    })
  }

  it('stops when the file is changed after the check and before its first row is added', async () => {
    await using folder = await Folder.create()
    const file = folder.write('pets.csv', csv('Rex,1'))
    const url = `sqlite:${folder.at('petstore.db')}`
    const onReport = (text: string) => text.startsWith('Created the database') && writeFileSync(file, csv('Max,2'))
    const { stderr } = await commandsOn(url).call(1, `import ${file}`, { onReport })
    assert.match(stderr, /was changed during its import, which stopped after 0 of 1 rows\./)
    assert.equal((await withStore(url, ({ pets }) => pets.list({ limit: 1 }))).length, 0)
  })

  it('stops when another process goes on with the same file, or begins it a moment before, and says so', async () => {
    await using box = await sandbox(csv(numbered(1600)))
    const { commands, file, elsewhere } = box
    const overtaken = after(1000, () => elsewhere('UPDATE imports SET rows_done = 1500'))
    const { stderr } = await commands.call(1, `import ${file}`, overtaken)
    assert.match(
      stderr,
      /petstore: Another process imports the same file; this one stopped after 1000 rows\. No row was added twice, unless the other began anew with --again\.\n$/,
    )
    elsewhere('UPDATE imports SET rows_done = 0; CREATE TABLE begun AS SELECT * FROM imports; DELETE FROM imports')
    const clock = () => {
      elsewhere('INSERT OR IGNORE INTO imports SELECT * FROM begun')
      return Date.now()
    }
    const late = /petstore: Another process imports the same file; this one stopped after 0 rows\./
    await commands.refused(1, `import ${file}`, late, { clock })
    assert.equal((await box.names()).length, 1000)
    elsewhere('UPDATE imports SET rows_done = 500')
    const resumed = await commands.call(1, `import ${file}`, overtaken)
    assert.match(resumed.stderr, /this one stopped after 500 rows\./, 'its own rows, without those added before')
  })

  it('handles a signal only while it adds rows: before that, Ctrl-C ends it at once', async () => {
    await using folder = await Folder.create()
    const file = folder.write('pets.csv', csv('Rex,none\nAda,1'))
    const seen: boolean[] = []
    const stopSignal = () => {
      seen.push(existsSync(folder.at('petstore.db')))
      return new Promise<string>(() => {})
    }
    const commands = commandsOn(`sqlite:${folder.at('petstore.db')}`, { stopSignal })
    for (const options of ['--dry-run', '--again', '--skip-bad --dry-run'])
      await commands.run(`import ${file} ${options}`)
    assert.deepEqual(seen, [], 'nothing was to be added')
    await commands.call(0, `import ${file} --skip-bad`)
    assert.deepEqual(seen, [true])
  })

  for (const [what, shell] of [
    ['pipe', 'cat | "$0" "$@"'],
    ['file', '"$0" "$@" <pets.csv'],
  ] as const)
    it(`reads /dev/stdin to its end, and does not take it for the ${what} that it was before`, async () => {
      const content = csv(numbered(4000).replaceAll(',', `${'x'.repeat(100)},`))
      await using box = await sandbox(content)
      const earlier = { hash: 'other', file: '/dev/stdin', rowsTotal: 5 }
      await withStore(box.url, ({ imports }) => imports.begin(earlier, 1, false))
      const { stderr } = await box.folder.run(['import', '/dev/stdin', '--format', 'csv'], {
        wrap: ['sh', '-c', shell],
        input: content,
        env: { DATABASE_URL: box.url },
      })
      assert.equal(stderr, 'Added 4000 animals.\n')
    })

  it('spools standard input, leaves nothing of it behind, and recognises it again', async () => {
    await using folder = await Folder.create()
    mkdirSync(folder.at('temporary'))
    const input =
      '{"name":"Rex","categoryId":9223372036854775807}\n\n{"name":"Ada","categoryId":1,"status":"sold","id":9}\n'
    const words = ['import', '-', '--format', 'jsonl', '--json']
    const { code, stdout } = await folder.run(words, { input, env: { TMPDIR: folder.at('temporary') } })
    assert.deepEqual([code, JSON.parse(stdout)], [0, { added: 2, earlier: 0, skipped: 0 }])
    assert.deepEqual(readdirSync(folder.at('temporary')), [])
    const exported = await folder.commands.call(0, 'export - --format jsonl')
    assert.equal(
      exported.stdout,
      '{"id":1,"name":"Rex","categoryId":9223372036854775807,"status":"available"}\n{"id":2,"name":"Ada","categoryId":1,"status":"sold"}\n',
    )
    await folder.commands.refused(1, words, /This file was imported already/, { input })
  })

  for (const [what, path, where, reason] of [
    ['standard input', '-', 'none', 'no such file or directory'],
    ['/dev/stdin', '/dev/stdin', '/dev/full', 'not a directory'],
  ] as const)
    it(`says of ${path} that the temporary folder is the problem, where it is`, async () => {
      await using folder = await Folder.create()
      const TMPDIR = where === 'none' ? folder.at(where) : where
      // Collects garbage at the end: Node.js ends a process with an error that leaves an open file to the collector.
      const NODE_OPTIONS = "--expose-gc --import=data:text/javascript,process.once('beforeExit',gc)"
      const { code, stderr } = await folder.run(['import', path, '--format', 'csv'], {
        wrap: ['sh', '-c', 'cat | "$0" "$@"'],
        input: csv('Rex,1'),
        env: { TMPDIR, NODE_OPTIONS },
      })
      assert.equal(code, 1)
      const problem = `petstore: Cannot copy ${what} to the temporary folder ${TMPDIR}: ${reason}. Set`
      assert.ok(stderr.startsWith(problem), stderr)
      assert.match(stderr, /\. Set TMPDIR to a folder with room that this user can write to\.\n$/)
    })

  it('recognises how an office writes CSV, says so, and leaves out a column only when asked', async () => {
    const content = '\uFEFFsep=;\r\nCategoryID; NAME ;Price\r\n7;"Rex; the 2nd";9,50\r\n;;\r\n'
    await using box = await sandbox(Buffer.from(content, 'utf16le'))
    const { commands, file, folder } = box
    const columns =
      /^petstore: line 2: the header has columns that animals do not have: "Price"\. Remove them, or add --ignore-columns/
    await commands.refused(1, `import ${file} --dry-run`, columns)
    const warning = 'Warning: animals do not have these columns, which are left out: "Price".\n'
    const checked = `${warning}1 row checked (semicolons, UTF-16LE): 1 valid, 0 bad. Nothing was written.\n`
    assert.equal((await commands.call(0, `import ${file} --dry-run --ignore-columns`)).stderr, checked)
    const added = await commands.call(0, `import ${file} --ignore-columns`)
    assert.equal(added.stderr, `${warning}Added 1 animal.\n`)
    assert.deepEqual(await box.all(), [{ id: 1n, name: 'Rex; the 2nd', categoryId: 7n, status: 'available' }])
    const sheet = folder.write('pets.xls', 'name\tcategoryId\nRex\t1\n')
    const named = await commands.call(0, `import ${sheet} --format csv --dry-run`)
    assert.equal(named.stderr, '1 row checked (tabs, UTF-8): 1 valid, 0 bad. Nothing was written.\n')
  })

  const SPREADSHEET =
    /^petstore: .*\b(?:sheet\.csv|pets\.\w+) is a spreadsheet or an archive, not text; nothing was written\. /
  const FOR_CSV = 'petstore: --ignore-columns is for CSV.\nSee: petstore help import\n'
  const WRONG: [line: string, code: number, message: string | RegExp][] = [
    ['import none.csv', 1, /^petstore: Cannot read none\.csv: no such file or directory\.\n/],
    ['import none.xlsx', 1, /^petstore: Cannot read none\.xlsx: no such file or directory\.\n/],
    ['import . --format csv', 1, /^petstore: Cannot read \.: illegal operation on a directory\.\n/],
    ['import header.csv', 1, /^petstore: line 1: .* no column categoryId; got "Name,Kind".* Nothing was written\.\n$/],
    ['import sheet.csv', 1, SPREADSHEET],
    ['import pets.XLSX', 1, SPREADSHEET],
    ['import pets.xls', 1, SPREADSHEET],
    ['import empty.jsonl --ignore-columns', 2, FOR_CSV],
    ['import quote.csv --skip-bad', 1, /^petstore: line 2: a quote is not closed .*nothing was written/],
    ['import pets.txt', 2, /^petstore: The format of pets\.txt is unknown; name it with --format csv /],
    ['import pets.txt --format xml', 2, /--format must be csv or jsonl, got "xml"\./],
    ['import -', 2, /The format of - is unknown/],
    ['import', 2, /import takes FILE\|-, got none\./],
    [
      'export pets.txt --format csv',
      1,
      /^petstore: pets\.txt exists already; nothing was written\. .* add --force\.\n$/,
    ],
    ['export none/pets.csv', 1, /^petstore: Cannot write none\/pets\.csv: no such file or directory\.\n/],
    ['export pets.txt/pets.csv', 1, /^petstore: Cannot write pets\.txt\/pets\.csv: not a directory\.\n/],
    ['export - --format csv --json', 2, /--json needs a FILE/],
    ['export pets.csv --delimiter |', 2, /--delimiter must be one of comma, semicolon, tab, got "\|"\./],
    ['export pets.csv --delimiter constructor', 2, /--delimiter must be one of comma/],
    ['export pets.jsonl --delimiter comma', 2, /--delimiter is for CSV\./],
  ]
  it('says what is wrong with a file or a call', async () => {
    await using folder = await Folder.create()
    folder.write('header.csv', 'Name,Kind\nRex,1\n')
    folder.write('sheet.csv', Buffer.from('504b030414000600', 'hex'))
    for (const name of ['pets.XLSX', 'pets.xls', 'empty.jsonl']) folder.write(name, '')
    folder.write('quote.csv', 'name,categoryId\n"Rex,1\n')
    folder.write('pets.txt', csv('Rex,1'))
    await folder.commands.call(0, 'migrate')
    for (const [line, code, message] of WRONG) await folder.commands.refused(code, line, message)
    assert.deepEqual(await folder.commands.json('export pets.txt --format csv --force'), { exported: 0 })
    assert.equal(readFileSync(folder.at('pets.txt'), 'utf8'), `\uFEFF${CSV_COLUMNS.join()}\n`)
  })

  it('shows how much of a large file is checked, and clears that line for a bad row and for the result', async () => {
    const content = csv(`${numbered(25_000)}\n,1\n${numbered(25_000)}`)
    await using box = await sandbox(content)
    const { stderr } = await box.commands.call(0, `import ${box.file} --dry-run --skip-bad`, { isTTY: true })
    const parts = stderr.split('\r\u001B[K').slice(1)
    assert.equal(parts.filter((part) => part.startsWith('line 25002: ')).length, 1, stderr)
    const bars = parts.filter((part) => part.startsWith('█') || part.startsWith('░'))
    for (const bar of bars) assert.match(bar, new RegExp(`^█*░+ \\d+ of ${content.length}  bytes checked$`))
    assert.ok(bars.length >= 2, stderr)
    assert.match(parts.at(-1)!, /^50001 rows checked /)
  })

  it('lets a running service create and list animals in between', async () => {
    await using folder = await Folder.create()
    const { key } = await makeKey(folder)
    const { url } = await serve(folder)
    folder.write('pets.csv', csv(numbered(60_000)))
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
    const exported = (await folder.commands.call(0, 'export - --format csv')).stdout.trimEnd().split('\n')
    assert.equal(exported.filter((line) => line.includes('"In between"')).length, created)
    assert.equal(exported.length, 1 + 60_000 + created)
  })
})

describe('petstore export', () => {
  it('leaves no part of a file after a failure or Ctrl-C half way, and the earlier file as it was', async () => {
    await using box = await sandbox('earlier')
    const { commands, file, folder } = box
    await withStore(box.url, async ({ pets }) => {
      for (let batch = 0; batch < 4; batch += 1)
        await pets.createMany(Array.from({ length: 5001 }, (_, nth) => ({ ...ODD[0]!, name: `Rex ${nth}` })))
    })
    const assertEarlier = () =>
      assert.deepEqual([folder.names(), readFileSync(file, 'utf8')], [['pets.csv'], 'earlier'])
    const stop = Promise.withResolvers<string>()
    const stopped = await commands.call(130, `export ${file} --force`, {
      isTTY: true,
      onReport: () => stop.resolve('SIGINT'),
      stopSignal: () => stop.promise,
    })
    assert.ok(stopped.stderr.endsWith(`petstore: Interrupted: ${file} was not written.\n`), stopped.stderr)
    assertEarlier()
    let during: string[] = []
    // Breaks the database when the first animals have been written.
    const onReport = () => {
      if (during.length > 0) return
      during = folder.names()
      box.elsewhere('ALTER TABLE pets RENAME TO others')
    }
    await assert.rejects(commands.run(`export ${file} --force`, { isTTY: true, onReport }), /no such table/)
    assert.ok(during.some((name) => name.endsWith('.partial')))
    assertEarlier()
  })

  it('shows its progress by ids, also when animals are added after it has begun', async () => {
    await using box = await sandbox()
    await withStore(box.url, ({ pets }) => pets.createMany(ODD))
    box.elsewhere('UPDATE sqlite_sequence SET seq = 1')
    const { stderr } = await box.commands.call(0, `export ${box.folder.at('new.csv')}`, { isTTY: true })
    assert.match(stderr, / 4 of 4 {2}ids\nExported 4 animals\.\n$/)
  })
})

// Not at the same time as others: these change a class that all share.
describe('petstore import, as another process begins,', () => {
  for (const again of ['', ' --again']) {
    it(`does not take a file that another process has just begun for a changed one${again && ', with --again either'}`, async ({
      mock,
    }) => {
      const content = csv(numbered(10))
      await using box = await sandbox(content)
      const hash = createHash('sha256').update(content).digest('hex')
      const prepare = Reflect.get(DatabaseSync.prototype, 'prepare')
      mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, sql: string) {
        const statement = prepare.call(this, sql)
        if (!/FROM imports WHERE rows_done < rows_total/.test(sql)) return statement
        mock.method(statement, 'all', () => {
          box.elsewhere(
            `INSERT INTO imports (hash, file, rows_done, rows_total, updated_at) VALUES ('${hash}', '${box.file}', 4, 10, 0)`,
          )
          return Object.getPrototypeOf(statement).all.call(statement)
        })
        return statement
      })
      await box.commands.refused(1, `import ${box.file}${again}`, /^petstore: Another process imports the same file;/)
      mock.restoreAll()
      using db = new DatabaseSync(box.url.slice('sqlite:'.length))
      assert.deepEqual({ ...db.prepare('SELECT rows_done AS done FROM imports').get() }, { done: 4 })
    })
  }
})
