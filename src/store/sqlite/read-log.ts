// Reads a write-ahead log without SQLite, whose recovery drops what follows a damaged frame and says nothing. Changes nothing.
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import type { Fault } from '../database/check.ts'
import { followLinks } from './database-files.ts'
import { addUp, FRAME_HEADER, FRAMES_AT_ONCE, HEADER, isSum, MAGIC, read, type Sum } from './rewrite-wal.ts'

/** What a service writes may be read half-written. A log that is found twice like this is at rest. */
const LOOKS = 10
const PAUSE_MS = 10

/** The part of the first page that differs whenever the page was written: change counter, size, free pages, version of the schema. */
const COUNTERS = [24, 100] as const

export interface DamagedLog extends Fault {
  path: string
  /** Distinguishes the logs that a database has one after the other. */
  name: string
  /** Whether the log can belong to the database as it is. If not, SQLite would make a damaged database of the two. */
  fits: boolean
}

/**
 * Returns what is wrong with the log of a database; undefined if nothing is. A power cut may leave a hole in what was not synced: at most
 * one commit of each process.
 */
export function readLog(database: string, processes: number): DamagedLog | undefined {
  const path = `${followLinks(database)}-wal`
  let earlier: string | undefined
  for (let look = 0; look < LOOKS; look += 1) {
    const { fits, frames, commits, name, damagedAt } = scan(followLinks(database))
    if (fits && commits <= processes) return undefined
    if (earlier === name + damagedAt) {
      const found = fits
        ? `${frames} frames, with ${commits} commits, follow a damaged frame of the log ${path}: SQLite ignores them, and they may be acknowledged`
        : `the log ${path} does not fit the database: it belongs to another one, or the database has what follows a damaged frame of it`
      const fix = fits
        ? 'Keep a copy of the database and its -wal before anything opens them: serve and backup copy the -wal. A backup may have what is lost.'
        : 'Keep a copy of both, and move the -wal and -shm away. Doctor has checked the database without them: if it is damaged, restore a backup.'
      return { path, name, fits, found, fix }
    }
    earlier = name + damagedAt
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
  }
  return undefined
}

/** Whether SQLite's recovery finds a commit in the log of a database that is at rest. */
export function hasCommits(database: string): boolean {
  return scan(followLinks(database)).pages > 0
}

/** Reads the log as SQLite's recovery does, up to the last commit before a damaged frame, and then what follows of the same log. */
function scan(database: string) {
  const path = `${database}-wal`
  const result = { fits: true, frames: 0, commits: 0, name: '', damagedAt: 0, pages: 0 }
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= HEADER) return result
  // Read before the log, since what a service writes to the database meanwhile comes from the log.
  const head = readHead(database)
  const log = openSync(path, 'r')
  try {
    const header = read(log, 0, HEADER)
    if (head === undefined || header === undefined) return result
    const isLittle = header.readUInt32BE(0) !== MAGIC.bigEndian
    let sum: Sum = [header.readInt32BE(24), header.readInt32BE(28)]
    let salt = isSum(addUp([0, 0], header, 0, 24, isLittle), header, 24) ? header.readBigUInt64BE(16) : undefined
    let isDamaged = salt === undefined
    let index = 0
    const uncommitted: Page[] = []
    const committed: Page[] = []
    for (const frame of framesOf(log, FRAME_HEADER + head.pageSize)) {
      index += 1
      const [number, commit, own] = [frame.readUInt32BE(0), frame.readUInt32BE(4), frame.readBigUInt64BE(8)]
      const isWhole = () =>
        isSum(addUp(addUp(sum, frame, 0, 8, isLittle), frame, FRAME_HEADER, frame.length, isLittle), frame, 16)
      if (isDamaged) {
        // Without its header, a log begins at the first frame that goes on from the one before.
        if (salt === undefined && own !== 0n && isWhole()) salt = own
        if (own === salt) result.frames += 1
        if (own === salt && commit > 0) result.commits += 1
      } else if (own === salt && isWhole()) {
        const counters = number === 1 ? Buffer.from(frame.subarray(FRAME_HEADER).subarray(...COUNTERS)) : undefined
        uncommitted.push({ number, type: frame[FRAME_HEADER]!, counters })
        if (commit > 0) {
          result.pages = commit
          for (const page of uncommitted.splice(0)) committed.push(page)
        }
      } else {
        isDamaged = true
        result.damagedAt = index
      }
      sum = [frame.readInt32BE(16), frame.readInt32BE(20)]
    }
    result.name = (salt ?? 0n).toString(16).padStart(16, '0')
    result.fits = committed.length === 0 || belongs(head, committed, result.pages)
    return result
  } finally {
    closeSync(log)
  }
}

interface Page {
  number: number
  /** Its first byte: in which kind of tree it is. */
  type: number
  counters: Buffer | undefined
}

/**
 * Whether a database can be the one of this log. Its first page is that of a commit in the log, or as it was before the log began. A log
 * without the first page has no page that began or ended: the database has as many, and each is of the same kind.
 */
function belongs({ file, pageSize, counters }: Head, committed: readonly Page[], pages: number): boolean {
  const first = committed.flatMap((page) => page.counters ?? [])
  if (first.length > 0) {
    const before = first[0]!.readUInt32BE(0) - counters.readUInt32BE(0)
    return before === 0 || before === 1 || first.some((of) => of.equals(counters))
  }
  const types = new Map(committed.map(({ number, type }) => [number, type]))
  return (
    counters.readUInt32BE(4) === pages &&
    types.entries().every(([number, type]) => read(file, (number - 1) * pageSize, 1)?.[0] === type)
  )
}

/** Database files by device and inode; never closed, since that would drop the POSIX locks that SQLite holds on the file in this process. */
const databases = new Map<string, number>()

type Head = NonNullable<ReturnType<typeof readHead>>

function readHead(database: string) {
  const { dev, ino } = statSync(database, { bigint: true })
  const file = databases.get(`${dev}:${ino}`) ?? openSync(database, 'r')
  databases.set(`${dev}:${ino}`, file)
  const head = read(file, 0, COUNTERS[1])
  const size = head?.readUInt16BE(16)
  return head && { file, pageSize: size === 1 ? 65_536 : size!, counters: head.subarray(COUNTERS[0]) }
}

function* framesOf(log: number, size: number): Generator<Buffer> {
  const bytes = Buffer.alloc(FRAMES_AT_ONCE * size)
  for (let position = HEADER; ; position += bytes.length) {
    const length = readSync(log, bytes, 0, bytes.length, position)
    for (let start = 0; start + size <= length; start += size) yield bytes.subarray(start, start + size)
    if (length < bytes.length) return
  }
}
