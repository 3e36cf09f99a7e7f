// Reads a write-ahead log without SQLite, whose recovery drops what follows a damaged frame and says nothing. Changes nothing.
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import type { Fault } from '../database/check.ts'
import { followLinks } from './database-files.ts'
import { pauseThread } from './failures.ts'
import { FRAME_HEADER, framesOf, readHeader } from './rewrite-wal.ts'

/** What a service writes may be read half-written. A log that is found twice alike is at rest. */
const LOOKS = 10

/** The part of the first page that differs whenever it was written: change counter, size, free pages, version of the schema. */
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
 * one commit of each process, and of one command beside them.
 */
export function readLog(database: string, processes: number): DamagedLog | undefined {
  const path = `${followLinks(database)}-wal`
  let earlier: string | undefined
  for (let look = 0; look < LOOKS; look += 1) {
    const { fits, frames, commits, name, damagedAt } = scan(database)
    if (fits && commits <= processes + 1) return undefined
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
    pauseThread()
  }
  return undefined
}

/** Whether SQLite's recovery finds a commit in the log of a database that is at rest. */
export function hasCommits(database: string): boolean {
  return scan(database).pages > 0
}

/** Reads the log as SQLite's recovery does, up to the last commit before a damaged frame, and then what follows of the same log. */
function scan(database: string) {
  const found = { fits: true, frames: 0, commits: 0, name: '', damagedAt: 0, pages: 0 }
  const path = `${followLinks(database)}-wal`
  if (!statSync(path, { throwIfNoEntry: false })?.size) return found
  // Read before the log, since what a service writes to the database meanwhile comes from the log.
  const file = openForGood(database)
  const counters = read(file, ...COUNTERS)
  let log: number
  try {
    log = openSync(path, 'r')
  } catch {
    return found // A process that ends has removed it.
  }
  try {
    const header = readHeader(log)
    if (header === undefined) return found
    let { salt } = header
    if (salt === undefined) header.pageSize = ((read(file, 16, 18).readUInt16BE() - 1) % 65_536) + 1
    let isDamaged = salt === undefined
    let index = 0
    const uncommitted: Page[] = []
    const committed: Page[] = []
    const differing = new Set<number>()
    for (const frame of framesOf(log, header)) {
      index += 1
      const [number, commit] = [frame.bytes.readUInt32BE(0), frame.bytes.readUInt32BE(4)]
      const page = frame.bytes.subarray(FRAME_HEADER)
      if (isDamaged) {
        // Without its header, a log begins at the first frame that goes on from the one before.
        if (salt === undefined && frame.salt !== 0n && frame.isWhole()) salt = frame.salt
        if (frame.salt !== salt) continue
        found.frames += 1
        const inDatabase = read(file, (number - 1) * page.length, number * page.length)
        differing[inDatabase.equals(page) ? 'delete' : 'add'](number)
        if (commit === 0) continue
        found.commits += 1
        // A database that has what follows would get old pages from what is before the damage.
        if (differing.size === 0) found.fits = committed.length === 0
      } else if (frame.salt === salt && frame.isWhole()) {
        const ofFirst = number === 1 ? Buffer.from(page.subarray(...COUNTERS)) : undefined
        uncommitted.push({ position: (number - 1) * page.length, type: page[0]!, counters: ofFirst })
        if (commit === 0) continue
        found.pages = commit
        for (const each of uncommitted.splice(0)) committed.push(each)
      } else {
        isDamaged = true
        found.damagedAt = index
        if (frame.salt === salt && commit > 0) found.commits += 1
      }
    }
    found.name = (salt ?? 0n).toString(16).padStart(16, '0')
    found.fits &&= committed.length === 0 || belongs(file, counters, committed, found.pages)
    return found
  } finally {
    closeSync(log)
  }
}

interface Page {
  position: number
  /** Its first byte: in which kind of tree it is. */
  type: number
  counters: Buffer | undefined
}

/**
 * Whether a database can be the one of this log. Its first page is that of a commit in the log, or as it was before the log began. A log
 * without the first page has no page that began or ended: the database has as many, and each is of the same kind.
 */
function belongs(file: number, counters: Buffer, committed: readonly Page[], pages: number): boolean {
  const first = committed.flatMap((page) => page.counters ?? [])
  if (first.length > 0) {
    const before = first[0]!.readUInt32BE(0) - counters.readUInt32BE(0)
    return before === 0 || before === 1 || first.some((of) => of.equals(counters))
  }
  const types = new Map(committed.map(({ position, type }) => [position, type]))
  return (
    counters.readUInt32BE(4) === pages &&
    types.entries().every(([position, type]) => read(file, position, position + 1)[0] === type)
  )
}

function read(file: number, from: number, to: number): Buffer {
  const bytes = Buffer.alloc(to - from)
  readSync(file, bytes, 0, bytes.length, from)
  return bytes
}

const files = new Map<string, number>()

/** Opens a database file, once: closing it would drop the POSIX locks that SQLite holds on it in this process. */
function openForGood(database: string): number {
  const { dev, ino } = statSync(database, { bigint: true })
  const file = files.get(`${dev}:${ino}`) ?? openSync(database, 'r')
  files.set(`${dev}:${ino}`, file)
  return file
}
