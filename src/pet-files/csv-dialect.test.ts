// CSV as offices write it: whatever the delimiter, encoding, header and quotes, the animals are the same.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, describe, it } from 'node:test'
import * as fc from 'fast-check'
import { CSV_COLUMNS, FREE_TEXT } from '../contract/pet-csv.ts'
import { CategoryNames } from '../contract/category-name.ts'
import { INT64_MAX, INT64_MIN } from '../contract/int64.ts'
import { PET_STATUSES } from '../contract/pets.ts'
import { recogniseCsv } from './csv-dialect.ts'
import { PetFile } from './pet-file.ts'
import { readCsv } from './pet-rows.ts'

const folder = mkdtempSync(join(tmpdir(), 'petstore-dialect-'))
after(() => rmSync(folder, { recursive: true }))

/** Reads a file as the import does. */
async function read(content: string | Buffer, options?: { ignoreColumns: boolean }) {
  const path = join(folder, 'pets.csv')
  writeFileSync(path, content)
  await using file = await PetFile.open(path, Readable.from([]))
  const dialect = recogniseCsv(await file.start(), options)
  const rows = (await Array.fromAsync(readCsv(file.chunks(), dialect, new CategoryNames()))).flat()
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
          dialect.sepLine || delimiter === '|' ? `${sep}${lineEnd}` : '',
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
          ignoreColumns: otherColumn,
        })
        assert.deepEqual(
          rows.map((row) => ('pet' in row ? row.pet : row)),
          given,
        )
        assert.equal(recognised.delimiter, delimiter)
        assert.equal(recognised.encoding, dialect.encoding.split(' ')[0])
      }),
      { numRuns: 100 },
    )
  })

  it('counts lines from the start of the file, a sep= line and a header over two lines included', async () => {
    const { rows, ignored } = await read('SEP=;\nname;"Remarks\n(ours)";categoryId\nRex;;x\n', { ignoreColumns: true })
    assert.deepEqual([ignored, rows.length, rows[0]?.line], [['"Remarks\\n(ours)"'], 1, 4])
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
      /^line 1: the header has no column name and categoryId; got nothing\. The columns are .* Nothing was written\.$/,
    ],
    [
      'name;kind\n',
      /^line 1: the header has no column categoryId; got "name;kind"\. The columns are name and categoryId or category,/,
    ],
    ['Nom;Catégorie, espèce;État\n', /^line 1: [^-]* got "Nom;Catégorie, espèce;État"\. The columns are name and/],
    ['Name\n', /got "Name" as one column \(a first line such as sep=\| names/],
    ['sep=;\nname,categoryId\n', /^line 2: the header has no column name and categoryId; got "name,categoryId"/],
    ['"sep=;\nname;categoryId\n', /^line 1: a quote is not closed until the end of the file\./],
    [
      'name|categoryId\n',
      /got "name\|categoryId" as one column \(a first line such as sep=\| names another delimiter\)/,
    ],
    ['name,Name,categoryId\n', /^line 1: the header has the column name twice\./],
    ['name,status,categoryId,name\n', /^line 1: the header has the column name twice\./],
    [
      'name;Colour;categoryId;Price, net\n',
      /^line 1: the header has columns that animals do not have: "Colour", "Price, net"\. Remove them, or add --ignore-columns/,
    ],
    [`name,categoryId${','.repeat(1000)}\n`, /^line 1: the header has more than 1000 columns\./],
    ['name,"categoryId\n', /^line 1: a quote is not closed until the end of the file\./],
    ['na"me",categoryId\n', /^line 1: a field has a quote but does not start with one/],
  ]
  for (const [content, message] of REFUSED) {
    it(`is refused with the column: ${message.source}`, async () => {
      await assert.rejects(read(content), { message })
    })
  }
})
