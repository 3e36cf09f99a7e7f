// Reading rows from CSV and JSON Lines, however the file is cut into chunks.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import * as fc from 'fast-check'
import { CategoryNames } from '../contract/category-name.ts'
import { INT64_MAX, INT64_MIN } from '../contract/int64.ts'
import { BODY_LIMIT, NAME_MAX_LENGTH } from '../contract/limits.ts'
import { type NewPet, PET_STATUSES, renderPet } from '../contract/pets.ts'
import { DELIMITERS, renderCsv } from '../contract/pet-csv.ts'
import { recogniseCsv } from './csv-dialect.ts'
import { readCsv as readCsvOf, readJsonLines as readJsonLinesOf, type Row } from './pet-rows.ts'

type Reader = (chunks: AsyncIterable<Buffer>) => AsyncGenerator<Row[]>

const categories = new CategoryNames([
  { number: 3n, name: 'Cats' },
  { number: 4n, name: 'Small; "dogs"' },
])

const readCsv: Reader = async function* (chunks) {
  const all = await Array.fromAsync(chunks)
  yield* readCsvOf(Readable.from(all), recogniseCsv(Buffer.concat(all)), categories)
}
const readJsonLines: Reader = (chunks) => readJsonLinesOf(chunks, categories)

async function read(reader: Reader, content: string | Buffer, size = 7): Promise<Row[]> {
  const bytes = Buffer.from(content)
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  }
  return (await Array.fromAsync(reader(chunks()))).flat()
}

function joined(...parts: (string | Buffer)[]): Buffer {
  return Buffer.concat(parts.map((part) => Buffer.from(part)))
}

const petsOf = (rows: Row[]) => rows.map((row) => ('pet' in row ? row.pet : row))

/** Every animal that the interface accepts. */
const pets: fc.Arbitrary<NewPet> = fc.record(
  {
    name: fc
      .string({
        unit: fc.oneof(
          fc.constantFrom('"', ',', ';', '\t', '\n', '\r', '\\', ' '),
          fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
        ),
        minLength: 1,
        maxLength: 40,
      })
      .filter((name) => name.trim() !== '' && !name.includes('\0')),
    categoryId: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
    status: fc.constantFrom(...PET_STATUSES),
  },
  { noNullPrototype: true },
)

describe('rows of a file', () => {
  it('are the animals that were exported, exactly, wherever chunks end', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(pets, { maxLength: 6 }), fc.integer({ min: 1, max: 50 }), async (given, size) => {
        const withIds = given.map((pet, index) => ({ id: BigInt(index), ...pet }))
        for (const delimiter of Object.values(DELIMITERS)) {
          const parts = await Array.fromAsync(renderCsv(Readable.from([withIds]), categories, delimiter))
          assert.deepEqual(petsOf(await read(readCsv, parts.join('').replace(/^\uFEFF/, ''), size)), given)
        }
        const lines = withIds.map((pet) => `${renderPet(pet)}\n`).join('')
        assert.deepEqual(petsOf(await read(readJsonLines, lines, size)), given)
      }),
      { numRuns: 60 },
    )
  })

  it('of CSV have the line on which they start, with line ends of any kind and names over several lines', async () => {
    const rows = await read(readCsv, 'name,categoryId\r\n"a\r\nb",1\r\n\r\n"c\nd",x\n"e",2\nf,y')
    assert.deepEqual(
      rows.map(({ line }) => line),
      [2, 5, 7, 8],
    )
    assert.deepEqual(
      rows.map((row) => ('pet' in row ? row.pet.name : row.problem.slice(0, 10))),
      ['a\r\nb', 'categoryId', 'e', 'categoryId'],
    )
  })

  it('of CSV keep spaces, take an empty status for the default, and columns in any order', async () => {
    const rows = await read(readCsv, 'status,categoryId,name\n,-9223372036854775808, Rex \nsold,0,"x ""y"", z"\n')
    assert.deepEqual(rows, [
      { line: 2, pet: { name: ' Rex ', categoryId: INT64_MIN, status: 'available' } },
      { line: 3, pet: { name: 'x "y", z', categoryId: 0n, status: 'sold' } },
    ])
  })

  it('of CSV may be many: the longest row bounds each of them, not the file', async () => {
    const row = `${'x'.repeat(NAME_MAX_LENGTH)},1\n`
    const howMany = Math.ceil((2 * 1024 * 1024) / row.length)
    const rows = await read(readCsv, `name,categoryId\n${row.repeat(howMany)}`, 256 * 1024)
    assert.deepEqual([rows.length, rows.at(-1)?.line], [howMany, howMany + 1])
  })

  it('of CSV may have as many lines as the reader allows, and no more, whatever they have', async () => {
    for (const lines of ['\n', 'Rex,1\n', '"a\nb",1\n', ',\n']) {
      const content = Buffer.from(`name,categoryId\n${lines.repeat(100)}`)
      const rows = () => Array.fromAsync(readCsvOf(Readable.from([content, content]), dialect, categories, bounds))
      const [dialect, bounds] = [recogniseCsv(content), { longestRow: 1000, mostLines: 100 }]
      await assert.rejects(rows, { name: 'FileRefused', message: 'The file has more than 100 lines.' }, lines)
    }
  })

  it('of CSV may be as long as the reader allows, and no longer', async () => {
    const content = Buffer.from(`name,categoryId\nRex,1${','.repeat(200)}`)
    const slices = Array.from({ length: 20 }, (_, nth) => content.subarray(nth * 10, nth * 10 + 10))
    const bounds = { longestRow: 100, mostLines: 100 }
    const rows = () => Array.fromAsync(readCsvOf(Readable.from(slices), recogniseCsv(content), categories, bounds))
    await assert.rejects(rows, /^FileRefused: line 2: the row has no end within 100 bytes/)
  })

  it('name an unknown category only if nothing else is wrong', async () => {
    const [other, unknown] = await read(readCsv, 'name,category,status\nRex,Owls,gone\nRex,Owls,sold\n')
    assert.match(JSON.stringify(other), /status must be/)
    assert.match('problem' in unknown! ? unknown.problem : '', /^No category is named "Owls"/)
  })

  it('of CSV may come in many chunks: no listener is left behind by each', async ({ mock }) => {
    const warned = mock.fn()
    process.on('warning', warned)
    await read(readCsv, `name,categoryId\n${'Rex,1\n'.repeat(50)}`)
    await setImmediate()
    process.removeListener('warning', warned)
    assert.equal(warned.mock.callCount(), 0)
  })

  it('of JSON Lines may be as long as the body of a create, and no longer', async () => {
    const line = '{"name":"Rex","categoryId":1}'
    const [longest, longer] = [line.padEnd(BODY_LIMIT), line.padEnd(BODY_LIMIT + 1)]
    const rows = await read(readJsonLines, `${longest}\n${longer}\n${longest}`, 1000)
    assert.deepEqual(
      rows.map((row) => 'pet' in row),
      [true, false, true],
    )
  })

  it('of CSV may have a status in any case, as the console shows it', async () => {
    const rows = await read(
      readCsv,
      'name,categoryId,status\nRex,1,Available\nAda,1, SOLD \nKim,1,RESERVED\nZoe,1,Pending\n',
    )
    const statuses = petsOf(rows).map((pet) => 'status' in pet && pet.status)
    assert.deepEqual(statuses, ['available', 'sold', 'pending', 'pending'])
  })

  const range = `an integer from ${INT64_MIN} to ${INT64_MAX}`
  const BAD_CSV: [row: string | Buffer, problem: string][] = [
    ['Rex,9223372036854775808,', `categoryId must be ${range}, got "9223372036854775808".`],
    ['Rex,1.0,', `categoryId must be ${range}, got "1.0".`],
    ['Rex,,', `categoryId must be ${range}, got "".`],
    ['Rex,1,Gone', 'status must be one of available, pending, sold, got "Gone".'],
    ['Rex,1', 'The row has 2 fields, the header has 3.'],
    ['Rex,1,sold,', 'The row has 4 fields, the header has 3.'],
    [Buffer.from('Rex \xff,1,', 'latin1'), 'name is not valid UTF-8; save the file as UTF-8.'],
    [`${'x'.repeat(NAME_MAX_LENGTH + 1)},1,`, `name must be a string of 1 to ${NAME_MAX_LENGTH} characters`],
    ['"  ",x,gone', 'name must be a string of 1 to'],
  ]
  for (const [row, problem] of BAD_CSV) {
    it(`of CSV are refused with the reason: ${problem}`, async () => {
      const rows = await read(readCsv, joined('name,categoryId,status\n', row, '\nGood,1,\n'))
      const [bad, good] = rows as [Row, Row]
      assert.ok('problem' in bad && bad.line === 2 && bad.problem.startsWith(problem), JSON.stringify(bad))
      assert.deepEqual([rows.length, 'pet' in good], [2, true])
    })
  }

  const BAD_LINES: [line: string | Buffer, problem: string][] = [
    ['{"name":"Rex","categoryId":9223372036854775808}', `categoryId must be ${range}, got 9223372036854775808.`],
    ['{"name":"Rex","categoryId":"1"}', `categoryId must be ${range}, got "1".`],
    ['{"name":"Rex"', 'The line is not valid JSON: it ends too early.'],
    ['[1]', 'The line must be a JSON object, got an array.'],
    [Buffer.from('{"name":"\xff","categoryId":1}', 'latin1'), 'The line is not valid UTF-8.'],
    [`{"name":"Rex","categoryId":1}${' '.repeat(20_000)}`, 'The line is larger than 16 KiB.'],
  ]
  for (const [line, problem] of BAD_LINES) {
    it(`of JSON Lines are refused with the reason: ${problem}`, async () => {
      const good = { line: 3, pet: { name: 'Good', categoryId: 1n, status: 'available' } }
      const content = joined(' \r\n', line, '\n{"name":"Good","categoryId":1}')
      assert.deepEqual(await read(readJsonLines, content, 1000), [{ line: 2, problem }, good])
    })
  }

  const UNREADABLE: [content: string, message: RegExp][] = [
    ['name,categoryId\nA,1\nB"x,1\n', /^line 3: a field has a quote but does not start with one/],
    ['name,categoryId\n"a\nb",1\n"B" x,1\n', /^line 4: after the closing quote of a field comes more text/],
    ['name,categoryId\nA,1\n"B,1\nC,1\n', /^line 3: a quote is not closed until the end of the file/],
    [`name,categoryId\nA,1\n"${'B\n'.repeat(1_000_000)}`, /^line 3: the row has no end within 1048576 bytes/],
    [`name,categoryId\nA,1\n${','.repeat(2_000_000)}`, /^line 3: the row has no end within 1048576 bytes/],
  ]
  for (const [content, message] of UNREADABLE) {
    it(`of CSV are not guessed: ${message.source}`, async () => {
      await assert.rejects(read(readCsv, content, 10_000), { message })
    })
  }
})
