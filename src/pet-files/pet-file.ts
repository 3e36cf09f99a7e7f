// Opens a file of animals, and recognises its format and encoding. Copies input that cannot be read twice, such as a pipe, to a
// temporary file.
import { randomUUID } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { reasonOf } from '../store/database/files.ts'

/** The file name that means standard input or output. */
export const STANDARD_STREAM = '-'

export type Encoding = 'UTF-8' | 'UTF-16LE' | 'UTF-16BE' | 'windows-1252'

/** The file can't be read, or not as animals; the message names its line, what came and what to do. */
export class FileRefused extends Error {
  override name = 'FileRefused'
}

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
      const { syscall, path: failed = path } = error as NodeJS.ErrnoException
      const reason = reasonOf(error as Error)
      const what = path === STANDARD_STREAM ? 'standard input' : path
      throw new FileRefused(
        syscall === 'write' || failed !== path
          ? `Cannot copy ${what} to the temporary folder ${tmpdir()}: ${reason}. Set TMPDIR to a folder with room that this user can write to.`
          : `Cannot read ${what}: ${reason}.`,
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

  /** Throws `FileRefused` for a spreadsheet. */
  async encoding(): Promise<Encoding> {
    const { buffer, bytesRead } = await this.#handle.read({ buffer: Buffer.alloc(8), position: 0 })
    return encodingOf(buffer.subarray(0, bytesRead), this.name)
  }

  /** Yields the content in UTF-8 without a byte order mark, and calls `onChunk` with the bytes of the file. */
  async *chunks(onChunk: (chunk: Buffer) => void = () => {}): AsyncGenerator<Buffer> {
    yield* textOf(this.#bytes(onChunk), await this.encoding())
  }

  async *#bytes(onChunk: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
    // Not a stream: a stream closes the file when its reader stops before the end.
    for (let position = 0; ;) {
      const { buffer, bytesRead } = await this.#handle.read({ buffer: Buffer.alloc(CHUNK_BYTES), position })
      if (bytesRead === 0) return
      const chunk = buffer.subarray(0, bytesRead)
      onChunk(chunk)
      yield chunk
      position += bytesRead
    }
  }

  async start(): Promise<Buffer> {
    for await (const chunk of this.chunks()) return chunk
    return Buffer.alloc(0)
  }

  async hasChanged(): Promise<boolean> {
    const { size, mtimeNs } = await this.#handle.stat({ bigint: true })
    return size !== this.#state.size || mtimeNs !== this.#state.mtimeNs
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#handle.close()
  }
}

const BYTE_ORDER_MARK = 0xfeff
export const UTF8_MARK = Buffer.from(String.fromCharCode(BYTE_ORDER_MARK))

/**
 * Recognises the encoding from the first bytes; throws `FileRefused` for a spreadsheet. Without a byte order mark, a zero
 * byte tells UTF-16: a header and JSON begin with an ASCII character.
 */
export function encodingOf(start: Buffer, name: string): Encoding {
  if (SPREADSHEET_SIGNATURES.some((signature) => start.toString('hex', 0, 8).startsWith(signature)))
    throw spreadsheetRefused(name)
  if (start.length < 2) return 'UTF-8'
  const isUtf16 = (first: number) => first === BYTE_ORDER_MARK || (first > 0 && first < 0x80)
  if (isUtf16(start.readUInt16BE())) return 'UTF-16BE'
  return isUtf16(start.readUInt16LE()) ? 'UTF-16LE' : 'UTF-8'
}

/** Yields the content in UTF-8 without a byte order mark. */
export async function* textOf(bytes: AsyncIterable<Buffer>, encoding: Encoding): AsyncGenerator<Buffer> {
  let isStart = true
  for await (const chunk of encoding === 'UTF-8' ? bytes : asUtf8(bytes, encoding)) {
    yield isStart && chunk.subarray(0, 3).equals(UTF8_MARK) ? chunk.subarray(3) : chunk
    isStart = false
  }
}

async function* asUtf8(chunks: AsyncIterable<Buffer>, encoding: Encoding): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  let line = 1
  const decode = (chunk?: Buffer): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch (cause) {
      const [valid = ''] = new TextDecoder(encoding).decode(chunk).split('\uFFFD', 1)
      throw new FileRefused(
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

export function spreadsheetRefused(name: string): FileRefused {
  return new FileRefused(
    `${name} is a spreadsheet or an archive, not text; nothing was written. Save the sheet of a spreadsheet as CSV: ` +
      'in Excel as "CSV UTF-8", in LibreOffice as "Text CSV", in Numbers and Google Sheets with Export or Download.',
  )
}
