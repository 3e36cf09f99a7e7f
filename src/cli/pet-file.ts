// Opens a file of animals, and recognises its format and encoding. Copies input that cannot be read twice, such as a pipe, to a
// temporary file.
import { randomUUID } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { CommandFailed, type Option, UsageError } from './command.ts'

const FORMATS = ['csv', 'jsonl'] as const
export type Format = (typeof FORMATS)[number]

export const FORMAT_OPTION: Option = {
  value: 'FORMAT',
  meaning: `${FORMATS.join(' or ')}; by default as the file's name ends`,
  choices: FORMATS,
}

/** The file name that means standard input or output. */
export const STANDARD_STREAM = '-'

export function formatOf(name: string, flag: string | undefined): Format {
  const ending = extname(name).slice(1).toLowerCase()
  const sought = flag ?? (ending === 'ndjson' ? 'jsonl' : ending)
  const format = FORMATS.find((candidate) => candidate === sought)
  if (format !== undefined) return format
  if (flag !== undefined) throw new UsageError(`--format must be ${FORMATS.join(' or ')}, got ${JSON.stringify(flag)}.`)
  throw new UsageError(`The format of ${name} is unknown; name it with --format csv or --format jsonl.`)
}

type Encoding = 'UTF-8' | 'UTF-16LE' | 'UTF-16BE'

const CHUNK_BYTES = 256 * 1024

/** An open file that can be read from its start any number of times. */
export class PetFile implements AsyncDisposable {
  /** The absolute path, or `standard input`. */
  readonly name: string
  /** Whether the name stays with this file: standard input, a pipe or /dev/fd/3 is another file the next time. */
  readonly keepsName: boolean
  readonly #handle: FileHandle
  readonly #state: BigIntStats

  private constructor(name: string, handle: FileHandle, state: BigIntStats, keepsName = false) {
    this.name = name
    this.keepsName = keepsName
    this.#handle = handle
    this.#state = state
  }

  static async open(path: string, stdin: Readable): Promise<PetFile> {
    try {
      if (path === STANDARD_STREAM) return await PetFile.#spool('standard input', stdin)
      const handle = await open(path)
      const state = await handle.stat({ bigint: true })
      const name = resolve(path)
      if (state.isFile())
        return new PetFile(name, handle, state, !/^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/.*\/fd\/\d+)$/.test(name))
      const source = handle.createReadStream()
      try {
        return await PetFile.#spool(name, source)
      } finally {
        // Closes the handle also after a failure: Node.js ends a process that leaves one to the garbage collector.
        source.destroy()
      }
    } catch (error) {
      const { syscall, path: failed = path, message } = error as NodeJS.ErrnoException
      const what = path === STANDARD_STREAM ? 'standard input' : path
      throw new CommandFailed(
        syscall === 'write' || failed !== path
          ? `Cannot copy ${what} to the temporary folder ${tmpdir()}: ${message}. Set TMPDIR to a folder with room that this user can write to.`
          : `Cannot read ${what}: ${message}.`,
        { cause: error },
      )
    }
  }

  /** Copies the source to a temporary file, which is unlinked before the first write: even kill -9 leaves no file behind. */
  static async #spool(name: string, source: Readable): Promise<PetFile> {
    const copy = join(tmpdir(), `petstore-import-${randomUUID()}`)
    const handle = await open(copy, 'wx+', 0o600)
    try {
      await unlink(copy)
      await handle.writeFile(source)
      return new PetFile(name, handle, await handle.stat({ bigint: true }))
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  get size(): number {
    return Number(this.#state.size)
  }

  /**
   * Recognises the encoding from the first bytes; throws `CommandFailed` for a spreadsheet. Without a byte order mark, a zero
   * byte tells UTF-16: a header and JSON begin with an ASCII character.
   */
  async encoding(): Promise<Encoding> {
    const { buffer, bytesRead } = await this.#handle.read({ buffer: Buffer.alloc(8), position: 0 })
    if (SPREADSHEET_SIGNATURES.some((signature) => buffer.toString('hex').startsWith(signature)))
      throw spreadsheetRefused(this.name)
    if (bytesRead < 2) return 'UTF-8'
    const isUtf16 = (first: number) => first === BYTE_ORDER_MARK || (first > 0 && first < 0x80)
    if (isUtf16(buffer.readUInt16BE())) return 'UTF-16BE'
    return isUtf16(buffer.readUInt16LE()) ? 'UTF-16LE' : 'UTF-8'
  }

  /** Yields the content in UTF-8 without a byte order mark, and calls `onChunk` with the bytes of the file. */
  async *chunks(onChunk: (chunk: Buffer) => void = () => {}): AsyncGenerator<Buffer> {
    const encoding = await this.encoding()
    const bytes = this.#bytes(onChunk)
    yield* encoding === 'UTF-8' ? bytes : asUtf8(bytes, encoding)
  }

  /** Drops the byte order mark of UTF-8; that of UTF-16 is left to the decoder. */
  async *#bytes(onChunk: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
    // Not a stream: a stream closes the file when its reader stops before the end.
    for (let position = 0; ;) {
      const { buffer, bytesRead } = await this.#handle.read({ buffer: Buffer.alloc(CHUNK_BYTES), position })
      if (bytesRead === 0) return
      const chunk = buffer.subarray(0, bytesRead)
      onChunk(chunk)
      yield position === 0 && chunk.subarray(0, 3).equals(UTF8_MARK) ? chunk.subarray(3) : chunk
      position += bytesRead
    }
  }

  /** Returns the first chunk. */
  async start(): Promise<Buffer> {
    for await (const chunk of this.chunks()) return chunk
    return Buffer.alloc(0)
  }

  /** Whether the file was written to since it was opened. */
  async hasChanged(): Promise<boolean> {
    const { size, mtimeNs } = await this.#handle.stat({ bigint: true })
    return size !== this.#state.size || mtimeNs !== this.#state.mtimeNs
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#handle.close()
  }
}

const BYTE_ORDER_MARK = 0xfeff
const UTF8_MARK = Buffer.from(String.fromCharCode(BYTE_ORDER_MARK))

async function* asUtf8(chunks: AsyncIterable<Buffer>, encoding: Encoding): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  let line = 1
  const decode = (chunk?: Buffer): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch (cause) {
      const [valid = ''] = new TextDecoder(encoding).decode(chunk).split('\uFFFD', 1)
      throw new CommandFailed(
        `The file is not valid UTF-16 at or after line ${line + newLinesIn(valid)}. Save it again, as UTF-8 if possible; nothing was written.`,
        { cause },
      )
    }
  }
  for await (const chunk of chunks) {
    const text = decode(chunk)
    line += newLinesIn(text)
    yield Buffer.from(text)
  }
  decode()
}

function newLinesIn(text: string): number {
  return text.split('\n').length - 1
}

/** The first bytes of zip files, which .xlsx and .ods files are, and of .xls files. */
const SPREADSHEET_SIGNATURES = ['504b0304', 'd0cf11e0a1b11ae1']

export function isNamedAsSpreadsheet(path: string): boolean {
  return /\.(?:xlsx?|xlsm|ods)$/i.test(path)
}

export function spreadsheetRefused(name: string): CommandFailed {
  return new CommandFailed(
    `${name} is a spreadsheet or an archive, not text; nothing was written. Save the sheet of a spreadsheet as CSV: ` +
      'in Excel as "CSV UTF-8", in LibreOffice as "Text CSV", in Numbers and Google Sheets with Export or Download.',
  )
}
