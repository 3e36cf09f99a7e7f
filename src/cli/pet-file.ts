// A file of animals: which format it has, and its bytes. What can't be read twice, such as standard input, is spooled first.
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
  type: 'string',
  value: 'FORMAT',
  meaning: `${FORMATS.join(' or ')}; by default as the file's name ends`,
  choices: FORMATS,
}

/** The name that stands for standard input or output. */
export const STANDARD_STREAM = '-'

export function formatOf(name: string, flag: string | undefined): Format {
  const ending = extname(name).slice(1).toLowerCase()
  const sought = flag ?? (ending === 'ndjson' ? 'jsonl' : ending)
  const format = FORMATS.find((candidate) => candidate === sought)
  if (format !== undefined) return format
  if (flag !== undefined) throw new UsageError(`--format must be ${FORMATS.join(' or ')}, got ${JSON.stringify(flag)}.`)
  throw new UsageError(`The format of ${name} is unknown; name it with --format csv or --format jsonl.`)
}

const CHUNK_BYTES = 256 * 1024
const UTF8_BOM = Buffer.from([0xef, 0xbb, 0xbf])

/** A file that is open for reading, and can be read from its start as often as needed. */
export class PetFile implements AsyncDisposable {
  /** The whole path, or `standard input`. */
  readonly name: string
  readonly #handle: FileHandle
  readonly #state: BigIntStats

  private constructor(name: string, handle: FileHandle, state: BigIntStats) {
    this.name = name
    this.#handle = handle
    this.#state = state
  }

  static async open(path: string, stdin: Readable): Promise<PetFile> {
    try {
      if (path === STANDARD_STREAM) return await PetFile.#spool('standard input', stdin)
      const handle = await open(path)
      const state = await handle.stat({ bigint: true })
      if (state.isFile()) return new PetFile(resolve(path), handle, state)
      return await PetFile.#spool(resolve(path), handle.createReadStream())
    } catch (error) {
      throw new CommandFailed(`Cannot read ${path}: ${(error as Error).message}.`, { cause: error })
    }
  }

  /** The copy has no name from the start, so that nothing is left of it even after kill -9. */
  static async #spool(name: string, source: Readable): Promise<PetFile> {
    const copy = join(tmpdir(), `petstore-import-${randomUUID()}`)
    const handle = await open(copy, 'wx+', 0o600)
    await unlink(copy)
    await handle.writeFile(source)
    return new PetFile(name, handle, await handle.stat({ bigint: true }))
  }

  get size(): number {
    return Number(this.#state.size)
  }

  /** Yields the bytes without a byte order mark, and calls `onChunk` with all bytes. */
  async *chunks(onChunk: (chunk: Buffer) => void = () => {}): AsyncGenerator<Buffer> {
    let isFirst = true
    for await (const chunk of this.#handle.createReadStream({
      start: 0,
      autoClose: false,
      highWaterMark: CHUNK_BYTES,
    }) as AsyncIterable<Buffer>) {
      onChunk(chunk)
      yield isFirst ? withoutMark(this.name, chunk) : chunk
      isFirst = false
    }
  }

  /** Whether somebody has written to the file since it was opened. */
  async hasChanged(): Promise<boolean> {
    const { size, mtimeNs } = await this.#handle.stat({ bigint: true })
    return size !== this.#state.size || mtimeNs !== this.#state.mtimeNs
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#handle.close()
  }
}

function withoutMark(name: string, chunk: Buffer): Buffer {
  if (chunk.subarray(0, 3).equals(UTF8_BOM)) return chunk.subarray(3)
  const start = chunk.subarray(0, 2).toString('hex')
  if (start === 'fffe' || start === 'feff')
    throw new CommandFailed(`${name} is encoded in UTF-16. Save it as UTF-8; nothing was written.`)
  return chunk
}
