// A file that a person brings in: keeps it in the store in parts, and reads it back in slices, between which other requests are served.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { UPLOAD_ROWS } from '../../contract/limits.ts'
import { columnsNamed, type FirstRow, firstRows, guessColumns } from '../../pet-files/guess-columns.ts'
import { type Encoding, encodingOf, FileRefused, textOf, UTF8_MARK } from '../../pet-files/pet-file.ts'
import { divideCsv } from '../../pet-files/pet-rows.ts'
import type { Upload, UploadStore } from '../../store/uploads.ts'
import { readOnce } from '../every-page/readings.ts'
import type { MemberVisit } from '../every-page/visit.ts'
import { type Plan, readPlan, written } from './import-plan.ts'

/** How much is read in one turn of the event loop: a row with more or fewer fields than the header takes longest, 20 µs and more. */
const SLICE = { bytes: 2 * 1024, lines: 50 }
const NEW_LINE = 10

/** Bounds what one row takes, such as thousands of fields, and what empty lines take. */
const BOUNDS = { longestRow: 8 * 1024, mostLines: 5 * UPLOAD_ROWS }

/** For how many times as long as a step took a file rests. */
const REST = { times: 5, mostMs: 50 }

let lastStep: Promise<void> = Promise.resolve()

/**
 * Resolves when a file may go on after a step: other requests are served first. The files that have rested get a turn of the event loop
 * each, so that one waits for at most a step of each other. Rejects when the client has left.
 */
async function rest(stepMs: number, left: AbortSignal): Promise<void> {
  await setTimeout(Math.min(REST.times * stepMs, REST.mostMs), undefined, { signal: left }).catch(() => undefined)
  left.throwIfAborted()
  await (lastStep = lastStep.then(() => setImmediate()))
}

/** The file was removed: after its time, for newer ones, or with its account. */
export const GONE = new FileRefused('This file is no longer here. Choose it again: no row is added twice')

/** Keeps the content of a file that was begun. What is no UTF-8 is Windows-1252, as Excel writes it. */
export async function keepFile(
  uploads: UploadStore,
  id: string,
  parts: AsyncIterable<Buffer>,
  left: AbortSignal,
): Promise<void> {
  const hash = createHash('sha256')
  let encoding: Encoding | undefined
  let decoder: TextDecoder | undefined = new TextDecoder('utf-8', { fatal: true })
  const decode = (part?: Buffer) => {
    try {
      decoder?.decode(part, { stream: part !== undefined })
    } catch {
      decoder = undefined
    }
  }
  let isMarked = false
  let size = 0
  let number = 0
  for await (const part of parts) {
    const began = performance.now()
    encoding ??= encodingOf(part, 'The file')
    if (number === 0) isMarked = part.subarray(0, 3).equals(UTF8_MARK)
    decode(part)
    hash.update(part)
    size += part.length
    await uploads.append(id, number, part)
    number += 1
    await rest(performance.now() - began, left)
  }
  decode()
  if (decoder === undefined && encoding === 'UTF-8' && !isMarked) encoding = 'windows-1252'
  await uploads.complete(id, size, hash.digest('hex'), written({ encoding: encoding ?? 'UTF-8' }))
}

/** The time of a step includes the work on its slice. */
async function* slicesOf(uploads: UploadStore, { id, size }: Upload, left: AbortSignal): AsyncGenerator<Buffer> {
  let unread = size
  for (let number = 0; unread > 0; number += 1) {
    const part = await uploads.part(id, number)
    if (part === undefined) throw GONE
    unread -= part.length
    for (let from = 0; from < part.length;) {
      const began = performance.now()
      const slice = sliceOf(part, from)
      yield slice
      from += slice.length
      await rest(performance.now() - began, left)
    }
  }
}

function sliceOf(part: Uint8Array, from: number): Buffer {
  let end = from
  for (let lines = 0; end < from + SLICE.bytes && lines < SLICE.lines; end += 1) if (part[end] === NEW_LINE) lines += 1
  return Buffer.from(part.subarray(from, end))
}

/** The start of a file as its plan reads it. */
export interface Start {
  plan: Plan
  /** Whether the columns have our own names, or somebody has said what they are. */
  isSure: boolean
  rows: FirstRow[]
}

/** Reads the start of a file. What its plan does not say yet is guessed. Throws `FileRefused` if it is no table of text. */
export function readStart(visit: MemberVisit, upload: Upload): Promise<Start> {
  return readOnce(`${upload.id} start ${upload.plan}`, visit, () => startOf(visit, upload))
}

export async function startOf({ store: { uploads } }: MemberVisit, upload: Upload): Promise<Start> {
  const bytes = Buffer.from((await uploads.part(upload.id, 0)) ?? []).subarray(0, BOUNDS.longestRow)
  const saved = readPlan(upload.plan)
  const { encoding = encodingOf(bytes, 'The file') } = saved
  const { value = '' } = await textOf(Readable.from([bytes]), encoding).next()
  const text = String(value)
  if (text.includes('\0')) throw new FileRefused('The file is not text. Save the sheet of a spreadsheet as CSV.')
  if (!text.includes('\n') && /\r[^\n]/.test(text))
    throw new FileRefused('The file has no lines that can be told apart. Save the sheet as "CSV UTF-8".')
  const guess = await guessColumns(text)
  const rows = await firstRows(text, { ...guess, ...saved })
  if (rows.length === 0) throw new FileRefused('The file is empty.')
  const { isSure, ...columns } = columnsNamed(rows, saved.header ?? guess.header)
  const plan = { ...guess, encoding, ...columns, choices: {}, cells: {}, ...saved }
  return { plan, isSure: isSure || saved.columns !== undefined, rows }
}

/** Reads the rows below the names of the columns; blank ones are left out. */
export function readRows<T>(
  uploads: UploadStore,
  upload: Upload,
  plan: Plan,
  of: (line: number, fields: readonly Buffer[]) => T,
  left: AbortSignal,
): AsyncGenerator<NonNullable<T>[]> {
  const read = (line: number, fields: readonly Buffer[]) =>
    line <= plan.header || fields.every((field) => field.toString().trim() === '')
      ? undefined
      : (of(line, fields) ?? undefined)
  return divideCsv(textOf(slicesOf(uploads, upload, left), plan.encoding), plan, read, BOUNDS)
}
