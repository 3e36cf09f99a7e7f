// CSV as offices write it: whatever the delimiter, encoding, header and quotes, the animals are the same.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { CSV_COLUMNS, FREE_TEXT } from '../contract/pet-csv.ts'
import { INT64_MAX, INT64_MIN } from '../contract/int64.ts'
import { PET_STATUSES } from '../contract/pets.ts'
import { type CsvOptions, delimiterOf, recogniseCsv } from './csv-dialect.ts'
import { PetFile } from './pet-file.ts'
import { readCsv } from './pet-rows.ts'

const folder = mkdtempSync(join(tmpdir(), 'petstore-dialect-'))
after(() => rmSync(folder, { recursive: true }))

/** Reads a file as the import does. */
async function read(content: string | Buffer, options?: CsvOptions) {
  const path = join(folder, 'pets.csv')
  writeFileSync(path, content)
  await using file = await PetFile.open(path, Readable.from([]))
  const dialect = recogniseCsv(await file.start(), options)
  const rows = (await Array.fromAsync(readCsv(file.chunks(), dialect))).flat()
  return { ...dialect, encoding: await file.encoding(), rows }
}

const ENCODERS = {
  'UTF-8': (text: string) => Buffer.from(text),
  'UTF-8 with a mark': (text: string) => Buffer.from(`\uFEFF${text}`),
  'UTF-16LE': (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le'),
  'UTF-16BE': (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le').swap16(),
}

const names = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom('"', ',', ';', '\t', '|', '\n', '\r', ' ', '🐈'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    ),
    minLength: 1,
    maxLength: 20,
  })
  .filter((name) => name.trim() !== '' && !name.includes('\0'))

const animals = fc.array(
  fc.record(
    {
      name: names,
      categoryId: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
      status: fc.constantFrom(...PET_STATUSES),
    },
    { noNullPrototype: true },
  ),
  { maxLength: 5 },
)

const dialects = fc.record({
  delimiter: fc.constantFrom(',', ';', '\t', '|'),
  encoding: fc.constantFrom(...(Object.keys(ENCODERS) as (keyof typeof ENCODERS)[])),
  order: fc.shuffledSubarray([...CSV_COLUMNS], { minLength: CSV_COLUMNS.length }),
  spelling: fc.constantFrom(
    (name: string) => name,
    (name: string) => name.toUpperCase(),
    (name: string) => ` ${name.toLowerCase()} `,
  ),
  lineEnd: fc.constantFrom('\n', '\r\n'),
  quotesAll: fc.boolean(),
  padding: fc.constantFrom('', ' '),
  sepLine: fc.boolean(),
  emptyColumns: fc.nat({ max: 2 }),
  otherColumn: fc.boolean(),
})

describe('a CSV file', () => {
  it('gives the same animals in every dialect', async () => {
    await fc.assert(
      fc.asyncProperty(animals, dialects, async (given, dialect) => {
        const { delimiter, order, lineEnd, padding, otherColumn } = dialect
        const quoted = (text: string) =>
          dialect.quotesAll || text.includes(delimiter) || /["\r\n]/.test(text)
            ? `"${text.replaceAll('"', '""')}"`
            : text
        const line = (fields: string[]) =>
          [...fields.map(quoted), ...Array<string>(dialect.emptyColumns).fill('')].join(delimiter) + lineEnd
        const other = (text: string) => (otherColumn ? [text] : [])
        const sep = dialect.quotesAll ? `"sep=${delimiter}"` : `sep=${delimiter}`
        const text = [
          dialect.sepLine ? `${sep}${lineEnd}` : '',
          line([...other('Price, EUR; net'), ...order.map(dialect.spelling)]),
          ...given.map((pet, index) => {
            const row: Record<string, string | number | bigint | undefined> = { ...pet, id: index }
            const written = (column: string) => String(row[column] ?? '')
            return line([
              ...other('9,50; "each"'),
              ...order.map((column) =>
                FREE_TEXT.has(column) ? written(column) : `${padding}${written(column)}${padding}`,
              ),
            ])
          }),
          line([...other(''), ...order.map(() => '')]).replaceAll('"', ''),
        ].join('')
        const { rows, ...recognised } = await read(ENCODERS[dialect.encoding](text), {
          delimiter: delimiter === '|' && !dialect.sepLine ? delimiter : undefined,
          ignoreColumns: otherColumn,
        })
        assert.deepEqual(
          rows.map((row) => ('pet' in row ? row.pet : row)),
          given,
        )
        assert.equal(recognised.delimiter, delimiter)
        assert.equal(recognised.encoding, dialect.encoding.split(' ')[0])
      }),
      { numRuns: 300 },
    )
  })

  it('in UTF-16 is read whole, wherever its chunks end', async () => {
    const content = `name;categoryId\n${'🐈'.repeat(40)};1\n` + `x${'🐈'.repeat(40)};1\n`.repeat(5000)
    for (const encoding of ['UTF-16LE', 'UTF-16BE'] as const) {
      const { rows } = await read(ENCODERS[encoding](content))
      assert.equal(rows.length, 5001)
      assert.ok(rows.every((row, index) => 'pet' in row && row.pet.name.endsWith('🐈') && row.line === index + 2))
    }
  })

  it('in broken UTF-16 is refused with the line', async () => {
    const broken = Buffer.concat([ENCODERS['UTF-16LE']('name;categoryId\nRex;1\n'), Buffer.from([0x00, 0xd8, 0x41, 0])])
    await assert.rejects(read(broken), { message: /^The file is not valid UTF-16 at or after line 3\./ })
    await assert.rejects(read(ENCODERS['UTF-16BE']('name;categoryId\nRex;1\n').subarray(0, -1)), {
      message: /^The file is not valid UTF-16 at or after line/,
    })
    // Behind the first pieces that a file is read in.
    const rows = `${'x'.repeat(250)};1\n`.repeat(3000)
    const late = Buffer.concat([ENCODERS['UTF-16LE'](`name;categoryId\n${rows}`), Buffer.from([0x00, 0xd8, 0x41, 0])])
    await assert.rejects(read(late), { message: /^The file is not valid UTF-16 at or after line 3002\./ })
  })

  it('counts lines from the start of the file, a sep= line and a header over two lines included', async () => {
    const { rows, ignored } = await read('SEP=;\nname;"Remarks\n(ours)";categoryId\nRex;;x\n', { ignoreColumns: true })
    assert.deepEqual(ignored, ['"Remarks\\n(ours)"'])
    assert.deepEqual(
      rows.map(({ line }) => line),
      [4],
    )
  })

  it('takes --delimiter before what is recognised', async () => {
    const { rows } = await read('sep=,\nname;categoryId\nRex, the 2nd;1\n', { delimiter: ';' })
    assert.deepEqual(rows, [{ line: 3, pet: { name: 'Rex, the 2nd', categoryId: 1n, status: 'available' } }])
    assert.equal(delimiterOf('tab'), '\t')
    for (const flag of ['', '"', ';;', 'constructor']) assert.throws(() => delimiterOf(flag), /--delimiter must be/)
  })

  it('loses no value of a column without a name: the row is refused, unless such columns are ignored', async () => {
    const content = 'name;categoryId;\nRex;1;\nAda;2;kept apart\n'
    const { rows } = await read(content)
    assert.deepEqual(rows[1], { line: 3, problem: 'Column 3 has a value, but no name in the header.' })
    const { ignored } = await read(content, { ignoreColumns: true })
    assert.deepEqual(ignored, ['column 3 (no name)'])
  })

  it('may have text of any encoding in a column that is ignored', async () => {
    const content = Buffer.from('name;Remarks;categoryId\nRex;tr\xe8s gentil;1\n', 'latin1')
    const { rows } = await read(content, { ignoreColumns: true })
    assert.deepEqual(rows, [{ line: 2, pet: { name: 'Rex', categoryId: 1n, status: 'available' } }])
  })

  const REFUSED: [content: string, message: RegExp][] = [
    [
      '',
      /^line 1: the header has no column name and categoryId; got nothing, read with commas .* Nothing was written\.$/,
    ],
    ['name;category\n', /^line 1: the header has no column categoryId; got "name;category", read with semicolons/],
    ['sep=;\nname,categoryId\n', /^line 2: the header has no column name and categoryId; got "name,categoryId"/],
    ['"sep=;\nname;categoryId\n', /^line 1: a quote is not closed until the end of the file\./],
    ['name|categoryId\n', /got "name\|categoryId", read with commas \(--delimiter names another delimiter\)/],
    ['name,Name,categoryId\n', /^line 1: the header has the column name twice\./],
    ['name,status,categoryId,name\n', /^line 1: the header has the column name twice\./],
    [
      'name;Colour;categoryId;Price, net\n',
      /^line 1: the header has columns that animals do not have: "Colour", "Price, net"\. Remove them, or add --ignore-columns/,
    ],
    ['name,"categoryId\n', /^line 1: a quote is not closed until the end of the file\./],
    ['na"me",categoryId\n', /^line 1: a field has a quote but does not start with one/],
  ]
  for (const [content, message] of REFUSED) {
    it(`is refused with the column: ${message.source}`, async () => {
      await assert.rejects(read(content), { message })
    })
  }

  it('from a pipe is kept in a file that has no name any more before the first byte is in it', async () => {
    const temporary = mkdtempSync(join(folder, 'tmp-'))
    const before = process.env['TMPDIR']
    process.env['TMPDIR'] = temporary
    try {
      const during: string[][] = []
      async function* source() {
        for (const part of ['name,categoryId\n', 'Rex,1\n']) {
          during.push(readdirSync(temporary))
          yield Buffer.from(part)
        }
      }
      await using file = await PetFile.open('-', Readable.from(source()))
      assert.deepEqual(during, [[], []])
      assert.equal(Buffer.concat(await Array.fromAsync(file.chunks())).toString(), 'name,categoryId\nRex,1\n')
    } finally {
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
    }
  })

  for (const signature of ['504b030414000600', 'd0cf11e0a1b11ae1']) {
    it(`that is a spreadsheet (${signature}) is refused with the way to save it as CSV`, async () => {
      await assert.rejects(read(Buffer.from(`${signature}00ff00`, 'hex')), {
        message: /pets\.csv is a spreadsheet or an archive, not text; nothing was written\. .*in Excel as "CSV UTF-8"/,
      })
    })
  }
})
