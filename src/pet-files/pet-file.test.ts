// A file of animals: its format, its encoding, and input that can be read only once. test/commands/import.test.ts has the command.
import assert from 'node:assert/strict'
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdtempDisposableSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, describe, it } from 'node:test'
import { FileRefused, isNamedAsSpreadsheet, PetFile } from './pet-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
const nothing = Readable.from([])

after(() => rmSync(folder, { recursive: true }))

async function openWith(content: string | Buffer): Promise<PetFile> {
  const path = join(folder, 'pets.csv')
  writeFileSync(path, content)
  return PetFile.open(path, nothing)
}

async function textOf(file: PetFile): Promise<string> {
  return Buffer.concat(await Array.fromAsync(file.chunks())).toString()
}

describe('The format of a file', () => {
  it('is no spreadsheet, which its name or its first bytes give away', async () => {
    for (const name of ['a.xls', 'a.XLSX', 'a.xlsm', 'a.ods']) assert.ok(isNamedAsSpreadsheet(name))
    for (const name of ['a.csv', 'axls', 'a.xls.csv']) assert.ok(!isNamedAsSpreadsheet(name))
    for (const signature of ['504b0304', 'd0cf11e0a1b11ae1']) {
      await using file = await openWith(Buffer.from(`${signature}00`, 'hex'))
      const refused =
        /pets\.csv is a spreadsheet or an archive, not text; nothing was written\. .*in Excel as "CSV UTF-8"/
      await assert.rejects(textOf(file), refused)
    }
  })
})

describe('The content of a file', () => {
  const text = 'name,categoryId\nÉtoile 🐈,1\n'
  const marked = `\uFEFF${text}`
  const contents: Record<string, Buffer> = {
    'UTF-8': Buffer.from(text),
    'UTF-8 with a byte order mark': Buffer.from(marked),
    'UTF-16 of Windows': Buffer.from(marked, 'utf16le'),
    'UTF-16 with its bytes the other way round': Buffer.from(marked, 'utf16le').swap16(),
    'UTF-16 without a mark': Buffer.from(text, 'utf16le'),
    'UTF-16 without a mark, the other way round': Buffer.from(text, 'utf16le').swap16(),
  }
  for (const [encoding, content] of Object.entries(contents))
    it(`is read as often as needed, without a mark: ${encoding}`, async () => {
      await using file = await openWith(content)
      for (let time = 0; time < 2; time += 1) assert.equal(await textOf(file), text)
      assert.equal((await file.start()).toString(), text)
      const bytes: Buffer[] = []
      await Array.fromAsync(file.chunks((chunk) => bytes.push(chunk)))
      assert.deepEqual(Buffer.concat(bytes), content, 'a caller gets all bytes of the file')
    })

  it('is read in parts, cut anywhere, and keeps a mark that is not its first character', async () => {
    const long = `${'x'.repeat(256 * 1024 - 1)}é🐈`.repeat(3)
    for (const content of [Buffer.from(`${long}\uFEFFy`), Buffer.from(`\uFEFF${long}\uFEFFy`, 'utf16le')]) {
      await using file = await openWith(content)
      assert.equal(await textOf(file), `${long}\uFEFFy`)
    }
  })

  it('may be empty, or one byte', async () => {
    for (const content of ['', 'x']) {
      await using file = await openWith(content)
      assert.deepEqual([await textOf(file), (await file.start()).toString()], [content, content])
    }
  })

  const BROKEN: [content: Buffer, line: number][] = [
    [Buffer.from('\uFEFFa\nb\n\uD800x\n', 'utf16le'), 3],
    [Buffer.from('\uFEFFa\nb\nc', 'utf16le').subarray(0, -1), 3],
    [Buffer.from('\uFEFFa\nb\nc', 'utf16le').swap16().subarray(0, -1), 3],
    // Behind the first pieces that a file is read in.
    [Buffer.from(`\uFEFF${`${'x'.repeat(250)}\n`.repeat(3000)}\uD800x\n`, 'utf16le'), 3001],
  ]
  for (const [index, [content, line]] of BROKEN.entries())
    it(`that is no UTF-16 is refused with its line (${index + 1})`, async () => {
      await using file = await openWith(content)
      const message = `The file is not valid UTF-16 at or after line ${line}. Save it again, as UTF-8 if possible; nothing was written.`
      await assert.rejects(textOf(file), new FileRefused(message))
    })

  it('that was written to meanwhile is noticed', async () => {
    await using file = await openWith('a')
    assert.equal(await file.hasChanged(), false)
    appendFileSync(join(folder, 'pets.csv'), 'b')
    assert.equal(await file.hasChanged(), true)
  })
})

describe('Input that can be read once', () => {
  it('is kept, and can be read again, in a file that has no name any more before the first byte is in it', async () => {
    const temporary = mkdtempSync(join(folder, 'tmp-'))
    const before = process.env['TMPDIR']
    process.env['TMPDIR'] = temporary
    try {
      const during: string[][] = []
      async function* source() {
        for (const part of ['a', 'b']) {
          during.push(readdirSync(temporary))
          yield Buffer.from(part)
        }
      }
      await using file = await PetFile.open('-', Readable.from(source()))
      for (let time = 0; time < 2; time += 1) assert.equal(await textOf(file), 'ab')
      assert.deepEqual([during, file.name, file.keepsName], [[[], []], 'standard input', false])
    } finally {
      if (before === undefined) delete process.env['TMPDIR']
      else process.env['TMPDIR'] = before
    }
  })

  it('is another file the next time, unlike one with a name, in /dev/shm too', async () => {
    const path = join(folder, 'named.csv')
    writeFileSync(path, 'a')
    const descriptor = openSync(path, 'r')
    using inMemory = mkdtempDisposableSync(existsSync('/dev/shm') ? '/dev/shm/petstore-test-' : join(folder, 'shm-'))
    writeFileSync(join(inMemory.path, 'pets.csv'), 'a')
    for (const [name, keepsName] of [
      [path, true],
      [join(inMemory.path, 'pets.csv'), true],
      [`/dev/fd/${descriptor}`, false],
      [`/proc/self/fd/${descriptor}`, false],
    ] as const) {
      if (!existsSync(name)) continue
      await using file = await PetFile.open(name, nothing)
      assert.deepEqual([file.name, file.keepsName], [name, keepsName])
    }
    closeSync(descriptor)
  })
})
