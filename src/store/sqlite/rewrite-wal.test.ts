import assert from 'node:assert/strict'
import fs, { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { rewriteWal } from './rewrite-wal.ts'

describe('A write-ahead log that is written again', () => {
  let folder: string
  let db: DatabaseSync
  let log: string
  let frames: number
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
    db = new DatabaseSync(join(folder, 'pets.db'))
    db.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE filler (bytes BLOB)')
    // The log begins anew, so that frames of the one before follow behind it; more are left than are written at a time.
    db.exec('INSERT INTO filler VALUES (randomblob(2000000)); PRAGMA wal_checkpoint(RESTART)')
    db.exec('INSERT INTO filler VALUES (randomblob(1200000)); INSERT INTO filler VALUES (randomblob(9000))')
    log = join(folder, 'pets.db-wal')
    frames = db.prepare('PRAGMA wal_checkpoint(NOOP)').get()!['log'] as number
  })
  after(() => {
    db.close()
    rmSync(folder, { recursive: true })
  })

  it('has the same bytes, each of which was written before the sync', ({ mock }) => {
    const bytes = readFileSync(log)
    const written: [from: number, to: number][] = []
    const { writeSync, fdatasyncSync } = fs
    let writtenBeforeSync = 0
    mock.method(fs, 'writeSync', (file: number, part: Buffer, offset: number, length: number, place: number) => {
      written.push([place, place + length])
      return writeSync(file, part, offset, length, place)
    })
    mock.method(fs, 'fdatasyncSync', (file: number) => {
      writtenBeforeSync = written.length
      fdatasyncSync(file)
    })
    syncBuiltinESMExports()
    try {
      assert.equal(rewriteWal(log, frames), true)
    } finally {
      mock.restoreAll()
      syncBuiltinESMExports()
    }
    assert.ok(readFileSync(log).equals(bytes))
    assert.equal(writtenBeforeSync, written.length)
    const end = written.reduce((reached, [from, to]) => (assert.equal(from, reached), to), 0)
    assert.equal(end, 32 + frames * (24 + 4096))
    assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
  })

  it('is taken from a machine of the other byte order, too', () => {
    const bytes = withBigEndianSums(readFileSync(log).subarray(0, 32 + frames * (24 + 4096)))
    const moved = join(folder, 'moved.db')
    copyFileSync(join(folder, 'pets.db'), moved)
    writeFileSync(`${moved}-wal`, bytes)
    assert.equal(rewriteWal(`${moved}-wal`, frames), true)
    assert.ok(readFileSync(`${moved}-wal`).equals(bytes))
    using copy = new DatabaseSync(moved)
    assert.equal(copy.prepare('PRAGMA wal_checkpoint(NOOP)').get()!['log'], frames, 'SQLite takes it as well')
    bytes[bytes.length - 1]! ^= 1
    writeFileSync(join(folder, 'copy'), bytes)
    assert.equal(rewriteWal(join(folder, 'copy'), frames), false)
  })

  it('is written whole where the disk takes a part at a time; what it refuses then is what is told', ({ mock }) => {
    const { writeSync } = fs
    let isFull = false
    const places: number[] = []
    mock.method(fs, 'writeSync', (file: number, part: Buffer, offset: number, length: number, place: number) => {
      if (isFull) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
      places.push(place)
      return writeSync(file, part, offset, Math.min(length, 3000), place)
    })
    syncBuiltinESMExports()
    try {
      assert.equal(rewriteWal(log, frames), true)
      assert.deepEqual(places.slice(0, 3), [0, 32, 3032])
      isFull = true
      assert.throws(() => rewriteWal(log, frames), { code: 'ENOSPC' })
    } finally {
      mock.restoreAll()
      syncBuiltinESMExports()
    }
  })

  it('is refused where a byte of it is not what was written, or where it ends too early', () => {
    const bytes = readFileSync(log)
    const copy = join(folder, 'copy')
    const isTaken = (content: Buffer, expected: number) => {
      writeFileSync(copy, content)
      return rewriteWal(copy, expected)
    }
    const length = 32 + frames * (24 + 4096)
    assert.equal(isTaken(bytes.subarray(0, length), frames), true)
    assert.equal(isTaken(bytes.subarray(0, length - 1), frames), false)
    assert.equal(isTaken(bytes.subarray(0, 0), frames), false)
    assert.equal(isTaken(bytes, frames + 1), false, 'a frame of an earlier log is none of this one')
    // Header, frame header with page, size, salt and sum, and content: of the first frame, of one in the middle, and of the last.
    const places = [0, 8, 16, 24, 31, ...[0, 150, frames - 1].flatMap((frame) => frameBytes(frame))]
    for (const place of places) {
      const damaged = Buffer.from(bytes)
      damaged[place]! ^= 4
      assert.equal(isTaken(damaged, frames), false, `byte ${place}`)
    }
  })
})

function frameBytes(frame: number): number[] {
  const start = 32 + frame * (24 + 4096)
  return [0, 4, 8, 15, 16, 23, 24, 2000, 24 + 4095].map((offset) => start + offset)
}

/** Returns the log as a big-endian machine would have written it. */
function withBigEndianSums(log: Buffer): Buffer {
  const bytes = Buffer.from(log)
  let [first, second] = [0, 0]
  const addUp = (from: number, to: number) => {
    for (let at = from; at < to; at += 8) {
      first = (first + bytes.readInt32BE(at) + second) | 0
      second = (second + bytes.readInt32BE(at + 4) + first) | 0
    }
  }
  const note = (place: number) => bytes.writeInt32BE(second, bytes.writeInt32BE(first, place))
  bytes.writeUInt32BE(0x377f0683, 0)
  addUp(0, 24)
  note(24)
  for (let frame = 32; frame < bytes.length; frame += 24 + 4096) {
    addUp(frame, frame + 8)
    addUp(frame + 24, frame + 24 + 4096)
    note(frame + 16)
  }
  return bytes
}
