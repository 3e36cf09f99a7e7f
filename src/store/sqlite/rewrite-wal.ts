// Reads the frames of a write-ahead log, and makes a log durable that an earlier process has left, whatever became of that process's syncs.
import { closeSync, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs'
import { endianness } from 'node:os'

/**
 * The format of the log: sqlite.org/fileformat2.html#walformat. The magic number says in which byte order words are summed up:
 * that of the machine that began the log, which may not be this one.
 */
const MAGIC = { littleEndian: 0x377f0682, bigEndian: 0x377f0683 }
const HEADER = 32
export const FRAME_HEADER = 24
const FRAMES_AT_ONCE = 256

interface Header {
  bytes: Buffer
  /** All frames of a log have it, unlike those of an earlier log that are left behind them; undefined if the header is damaged. */
  salt: bigint | undefined
  pageSize: number
  isLittle: boolean
}

export interface Frame {
  /** Valid until the next frame is read. */
  bytes: Buffer
  salt: bigint
  /** Whether its sum goes on from that of the frame before. */
  isWhole: () => boolean
}

/**
 * Writes the first `frames` of a log over themselves, and syncs them. After a failed sync the operating system may count pages as
 * written that the disk does not have; no later sync writes them, unless they are written again. It may also have dropped what
 * was in them, so this verifies the checksums, and returns false if a frame is damaged. The caller holds the write lock of the
 * database: meanwhile no other process writes to the log.
 */
export function rewriteWal(path: string, frames: number): boolean {
  const file = openSync(path, 'r+')
  try {
    if (frames === 0) return true
    const header = readHeader(file)
    if (header?.salt === undefined) return false
    let position = write(file, 0, header.bytes)
    let done = 0
    for (const { bytes, salt, isWhole } of framesOf(file, header)) {
      if (done === frames) break
      if (salt !== header.salt || !isWhole()) return false
      position = write(file, position, bytes)
      done += 1
    }
    fdatasyncSync(file)
    return done === frames
  } finally {
    closeSync(file)
  }
}

/** Returns undefined if the file has none. */
export function readHeader(log: number): Header | undefined {
  const bytes = Buffer.alloc(HEADER)
  if (readSync(log, bytes, 0, HEADER, 0) < HEADER) return undefined
  const magic = bytes.readUInt32BE(0)
  const isLittle = magic !== MAGIC.bigEndian
  const isWhole = (!isLittle || magic === MAGIC.littleEndian) && isSum(addUp([0, 0], bytes, 0, 24, isLittle), bytes, 24)
  return { bytes, salt: isWhole ? bytes.readBigUInt64BE(16) : undefined, pageSize: bytes.readUInt32BE(8), isLittle }
}

export function* framesOf(log: number, { bytes: header, pageSize, isLittle }: Header): Generator<Frame> {
  const size = FRAME_HEADER + pageSize
  const slice = Buffer.alloc(FRAMES_AT_ONCE * size)
  let before: Sum = [header.readInt32BE(24), header.readInt32BE(28)]
  for (let position = HEADER, length = slice.length; length === slice.length; position += length) {
    length = readSync(log, slice, 0, slice.length, position)
    for (let start = 0; start + size <= length; start += size) {
      const bytes = slice.subarray(start, start + size)
      const sum = before
      const isWhole = () =>
        isSum(addUp(addUp(sum, bytes, 0, 8, isLittle), bytes, FRAME_HEADER, size, isLittle), bytes, 16)
      yield { bytes, salt: bytes.readBigUInt64BE(8), isWhole }
      before = [bytes.readInt32BE(16), bytes.readInt32BE(20)]
    }
  }
}

/** Returns the end. A full disk may take a part first, and refuse the rest only at the next attempt. */
function write(file: number, position: number, bytes: Buffer): number {
  for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done, bytes.length - done, position + done)
  return position + bytes.length
}

type Sum = [number, number]

function addUp([first, second]: Sum, bytes: Buffer, from: number, to: number, isLittle: boolean): Sum {
  const part = bytes.subarray(from, to)
  const { buffer, byteOffset } = isLittle === (endianness() === 'LE') ? part : Buffer.from(part).swap32()
  const words = new Int32Array(buffer, byteOffset, part.length / 4)
  for (let at = 0; at < words.length; at += 2) {
    first = (first + words[at]! + second) | 0
    second = (second + words[at + 1]! + first) | 0
  }
  return [first, second]
}

function isSum([first, second]: Sum, bytes: Buffer, position: number): boolean {
  return first === bytes.readInt32BE(position) && second === bytes.readInt32BE(position + 4)
}
