// petstore import: every line that it prints, and what it adds. test/import.test.ts has both engines, kills and large files.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { petstore } from '../../test/in-process-command.ts'
import { withStore } from '../../test/with-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
after(() => rmSync(folder, { recursive: true }))

let databases = 0

/** Imports files into a database of their own. */
function newImporter() {
  const database = `sqlite:${join(folder, `${(databases += 1)}.db`)}`
  let clock = Date.UTC(2026, 10, 15, 12)
  return {
    database,
    /** Imports a file of this content; resolves with the exit code, the output and the messages. */
    async import(
      name: string,
      content: string | Buffer,
      options = '',
      isStopped = false,
    ): Promise<[number, string, string]> {
      const path = join(folder, name)
      writeFileSync(path, content)
      clock += 60_000
      const words = ['import', path, '--database', database, ...options.split(' ').filter(Boolean)]
      const { code, stdout, stderr } = await petstore(words, {
        clock: () => clock,
        ...(isStopped && { stopSignal: async () => 'SIGINT' }),
      })
      const told = stderr
        .replace(/^Created the database .*\n/m, '')
        .replace(/^Note: .*\n/m, '')
        .replaceAll(`${folder}/`, '')
      return [code, stdout, told]
    },
    count: () =>
      withStore(database, async ({ pets }) =>
        Object.values(await pets.countByStatus()).reduce((sum, count) => sum + count, 0),
      ),
  }
}

const csv = (count: number) => `name,categoryId\n${'Rex,1\n'.repeat(count)}`

describe('petstore import', () => {
  it('adds the animals of a file once, unless told to add them again', async () => {
    const importer = newImporter()
    assert.deepEqual(await importer.import('pets.csv', csv(3)), [0, '', 'Added 3 animals.\n'])
    assert.deepEqual(await importer.import('other-name.csv', csv(3)), [
      1,
      '',
      'petstore: This file was imported already (3 rows, 2026-11-15 12:01 UTC); nothing was written. To add its animals once more, add --again.\n',
    ])
    assert.deepEqual(await importer.import('pets.csv', csv(3), '--again'), [0, '', 'Added 3 animals.\n'])
    const [code, stdout] = await importer.import('one.jsonl', '{"name":"Kit","categoryId":2}\n', '--json')
    assert.deepEqual([code, JSON.parse(stdout)], [0, { added: 1, earlier: 0, skipped: 0 }])
    assert.equal(await importer.count(), 7)
  })

  it('adds nothing if a row is bad, or only the others if it is told so', async () => {
    const importer = newImporter()
    const [code, stdout, told] = await importer.import('bad.csv', `${csv(1)}Kit,x\nLuna,2\n`)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(
      told,
      /^line 3: .*\npetstore: 1 of 3 rows is bad; nothing was written\. Correct the file, or add --skip-bad\.\n$/,
    )
    const [, , both] = await importer.import('worse.csv', `${csv(1)}Kit,x\n,2\n`)
    assert.match(both, /^line 3: .*\nline 4: .*\npetstore: 2 of 3 rows are bad; nothing was written\./)
    assert.ok(!existsSync(importer.database.slice('sqlite:'.length)))
    const [, , skipping] = await importer.import('bad.csv', `${csv(1)}Kit,x\nLuna,2\n`, '--skip-bad')
    assert.match(skipping, /^line 3: .*\nAdded 2 animals\. Skipped 1 bad row\.\n$/)
    assert.equal(await importer.count(), 2)
  })

  it('checks a file without writing, and says whether it was imported before', async () => {
    const importer = newImporter()
    const checked = '3 rows checked (commas, UTF-8): 3 valid, 0 bad. Nothing was written.'
    assert.deepEqual(await importer.import('pets.csv', csv(3), '--dry-run'), [0, '', `${checked}\n`])
    assert.ok(!existsSync(importer.database.slice('sqlite:'.length)))
    const facts = { valid: 3, bad: 0, encoding: 'UTF-8', delimiter: ',' }
    const [, before] = await importer.import('pets.csv', csv(3), '--dry-run --json')
    assert.deepEqual(JSON.parse(before), { ...facts, importedAt: null })
    await importer.import('pets.csv', csv(3))
    assert.deepEqual(await importer.import('pets.csv', csv(3), '--dry-run'), [
      0,
      '',
      `${checked} This file was imported already (3 rows, 2026-11-15 12:03 UTC); to add its animals once more, add --again.\n`,
    ])
    const [, again] = await importer.import('pets.csv', csv(3), '--dry-run --json')
    assert.deepEqual(JSON.parse(again), { ...facts, importedAt: '2026-11-15T12:03:00.000Z' })
    assert.equal((await importer.import('bad.csv', `${csv(1)}Kit,x\n`, '--dry-run'))[0], 1)
    const memory = await petstore(['import', join(folder, 'pets.csv'), '--dry-run', '--database', 'sqlite::memory:'])
    assert.deepEqual([memory.code, memory.stderr], [0, `${checked}\n`])
  })

  const question = 'nothing was written. Is it the right file, and was it saved whole?\n'
  const EMPTY: [name: string, content: string | Buffer, told: string][] = [
    ['none.csv', csv(0), `none.csv (16 bytes, commas, UTF-8) has a header, but no rows; ${question}`],
    ['blank.csv', `${csv(0)},\n\n`, `blank.csv (19 bytes, commas, UTF-8) has a header, but no rows; ${question}`],
    ['quoted.csv', 'name,categoryId,"x\nRex,1,"\n', `has a header, but no rows; ${question}`],
    ['empty.jsonl', '', `empty.jsonl (0 bytes, UTF-8) has no line with an animal; ${question}`],
    ['mark.jsonl', '\uFEFF', `mark.jsonl (3 bytes, UTF-8) has no line with an animal; ${question}`],
    ['wide.jsonl', Buffer.from('\uFEFF\n', 'utf16le'), `(4 bytes, UTF-16LE) has no line with an animal; ${question}`],
    ['empty.csv', '', 'got nothing, read with commas'],
    ['mark.csv', '\uFEFF', 'got nothing, read with commas'],
    ['bars.csv', 'name|categoryId\nRex|1\n', 'got "name|categoryId", read with commas (--delimiter names another'],
    [
      'mac.csv',
      'name,categoryId,status\rRex,1,sold\r',
      'line 1: lines end with CR alone. Save the file with LF or CR LF',
    ],
    ['mac-sep.csv', 'sep=;\nname;categoryId;\rRex;1;\r', 'line 2: lines end with CR alone.'],
  ]
  for (const [name, content, told] of EMPTY)
    it(`fails for a file that has nothing to add, and says what it found: ${name}`, async () => {
      for (const option of ['', '--dry-run', '--skip-bad', ...(name.endsWith('csv') ? ['--ignore-columns'] : [])]) {
        const importer = newImporter()
        const [code, stdout, stderr] = await importer.import(name, content, option)
        assert.deepEqual([code, stdout], [1, ''], stderr)
        const isAmongIgnored = name === 'quoted.csv' && option !== '--ignore-columns'
        assert.ok(stderr.includes(isAmongIgnored ? 'columns that animals do not have' : told), stderr)
        assert.ok(!existsSync(importer.database.slice('sqlite:'.length)))
      }
    })

  it('goes on where it was interrupted, with the same file only', async () => {
    const importer = newImporter()
    const interrupted =
      'petstore: Interrupted: 500 of 1200 rows are added. Run the same import again to add the others.\n'
    assert.deepEqual(await importer.import('pets.csv', csv(1200), '', true), [130, '', interrupted])
    assert.deepEqual(await importer.import('pets.csv', csv(1201)), [
      1,
      '',
      'petstore: pets.csv has changed since an import of it began, and that import had added 500 of 1200 rows at 2026-11-15 12:01 UTC; it is running or was interrupted. Nothing was written. ' +
        'Import the earlier file to finish, or add --again to import this one from its first row: the rows that were added stay.\n',
    ])
    assert.deepEqual(await importer.import('pets.csv', csv(1200)), [
      0,
      '',
      'Added 700 animals. 500 were added before the interruption.\n',
    ])
    assert.equal(await importer.count(), 1200)
    assert.deepEqual(await importer.import('last.csv', csv(500), '', true), [0, '', 'Added 500 animals.\n'])
  })

  it('recognises other kinds of CSV, names them, and takes their options for CSV only', async () => {
    const importer = newImporter()
    assert.deepEqual(await importer.import('office.csv', 'name;categoryId\nRex;1\n'), [
      0,
      '',
      'Added 1 animal (semicolons, UTF-8).\n',
    ])
    assert.deepEqual(await importer.import('more.csv', 'name,colour,categoryId\nRex,red,1\n', '--ignore-columns'), [
      0,
      '',
      'Warning: animals do not have these columns, which are left out: "colour".\nAdded 1 animal.\n',
    ])
    for (const option of ['--delimiter comma', '--ignore-columns'])
      assert.deepEqual(await importer.import('a.jsonl', '{}', option), [
        2,
        '',
        'petstore: --delimiter and --ignore-columns are for CSV.\nSee: petstore help import\n',
      ])
    const [code, , told] = await importer.import('sheet.xlsx', 'x')
    assert.equal(code, 1)
    assert.match(told, /^petstore: sheet\.xlsx is a spreadsheet or an archive, not text; nothing was written\./)
  })
})
