// Makes a write-ahead log durable that an earlier process has left, whatever became of that process's syncs.
import { closeSync, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs'
import { endianness } from 'node:os'

/** The format of the log: sqlite.org/fileformat2.html#walformat. The magic number says in which byte order words are summed up. */
const MAGIC = endianness() === 'LE' ? 0x377f0682 : 0x377f0683
const HEADER = 32
const FRAME_HEADER = 24
const FRAMES_AT_ONCE = 256

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
    const header = read(file, 0, HEADER)
    if (header?.readUInt32BE(0) !== MAGIC || !isSum(addUp([0, 0], header, 0, 24), header, 24)) return false
    write(file, 0, header)
    const salt = header.readBigUInt64BE(16)
    const size = FRAME_HEADER + header.readUInt32BE(8)
    let sum: Sum = [header.readInt32BE(24), header.readInt32BE(28)]
    for (let done = 0; done < frames; done += FRAMES_AT_ONCE) {
      const place = HEADER + done * size
      const bytes = read(file, place, Math.min(FRAMES_AT_ONCE, frames - done) * size)
      if (bytes === undefined) return false
      for (let start = 0; start < bytes.length; start += size) {
        sum = addUp(addUp(sum, bytes, start, start + 8), bytes, start + FRAME_HEADER, start + size)
        if (bytes.readBigUInt64BE(start + 8) !== salt || !isSum(sum, bytes, start + 16)) return false
      }
      write(file, place, bytes)
    }
    fdatasyncSync(file)
    return true
  } finally {
    closeSync(file)
  }
}

/** Returns undefined if the file is too short. */
function read(file: number, place: number, length: number): Buffer | undefined {
  const bytes = Buffer.from(new ArrayBuffer(length))
  return readSync(file, bytes, 0, length, place) === length ? bytes : undefined
}

function write(file: number, place: number, bytes: Buffer): void {
  const written = writeSync(file, bytes, 0, bytes.length, place)
  if (written < bytes.length) throw new Error(`only ${written} of ${bytes.length} bytes were written`)
}

type Sum = [number, number]

function addUp([first, second]: Sum, { buffer }: Buffer, from: number, to: number): Sum {
  const words = new Int32Array(buffer, from, (to - from) / 4)
  for (let index = 0; index < words.length; index += 2) {
    first = (first + words[index]! + second) | 0
    second = (second + words[index + 1]! + first) | 0
  }
  return [first, second]
}

function isSum([first, second]: Sum, bytes: Buffer, place: number): boolean {
  return first === bytes.readInt32BE(place) && second === bytes.readInt32BE(place + 4)
}
