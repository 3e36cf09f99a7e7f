// Makes a write-ahead log durable that an earlier process has left, whatever became of that process's syncs.
import { closeSync, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs'
import { endianness } from 'node:os'

/**
 * The format of the log: sqlite.org/fileformat2.html#walformat. The magic number says in which byte order words are summed up:
 * that of the machine that began the log, which may not be this one.
 */
export const MAGIC = { littleEndian: 0x377f0682, bigEndian: 0x377f0683 }
export const HEADER = 32
export const FRAME_HEADER = 24
export const FRAMES_AT_ONCE = 256

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
    const magic = header?.readUInt32BE(0)
    const isLittle = magic === MAGIC.littleEndian
    if (header === undefined || !(isLittle || magic === MAGIC.bigEndian)) return false
    if (!isSum(addUp([0, 0], header, 0, 24, isLittle), header, 24)) return false
    write(file, 0, header)
    const salt = header.readBigUInt64BE(16)
    const size = FRAME_HEADER + header.readUInt32BE(8)
    let sum: Sum = [header.readInt32BE(24), header.readInt32BE(28)]
    for (let done = 0; done < frames; done += FRAMES_AT_ONCE) {
      const position = HEADER + done * size
      const bytes = read(file, position, Math.min(FRAMES_AT_ONCE, frames - done) * size)
      if (bytes === undefined) return false
      for (let start = 0; start < bytes.length; start += size) {
        sum = addUp(sum, bytes, start, start + 8, isLittle)
        sum = addUp(sum, bytes, start + FRAME_HEADER, start + size, isLittle)
        if (bytes.readBigUInt64BE(start + 8) !== salt || !isSum(sum, bytes, start + 16)) return false
      }
      write(file, position, bytes)
    }
    fdatasyncSync(file)
    return true
  } finally {
    closeSync(file)
  }
}

/** Returns undefined if the file is too short. */
export function read(file: number, position: number, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length)
  return readSync(file, bytes, 0, length, position) === length ? bytes : undefined
}

/** A full disk may take a part first, and refuse the rest only at the next attempt. */
function write(file: number, position: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done, bytes.length - done, position + done)
}

export type Sum = [number, number]

export function addUp([first, second]: Sum, bytes: Buffer, from: number, to: number, isLittle: boolean): Sum {
  const part = bytes.subarray(from, to)
  const { buffer, byteOffset } = isLittle === (endianness() === 'LE') ? part : Buffer.from(part).swap32()
  const words = new Int32Array(buffer, byteOffset, part.length / 4)
  for (let at = 0; at < words.length; at += 2) {
    first = (first + words[at]! + second) | 0
    second = (second + words[at + 1]! + first) | 0
  }
  return [first, second]
}

export function isSum([first, second]: Sum, bytes: Buffer, position: number): boolean {
  return first === bytes.readInt32BE(position) && second === bytes.readInt32BE(position + 4)
}
