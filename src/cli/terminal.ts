// The surroundings of a command (environment variables, streams, clock, signals), and functions that print and prompt.
import type { EventEmitter } from 'node:events'
import { basename, delimiter, dirname, isAbsolute, relative } from 'node:path'
import { createInterface, type Interface } from 'node:readline/promises'
import { type Readable, Writable } from 'node:stream'
import { escapeControls } from '../contract/json.ts'
import { redactCredentials } from '../contract/text/redact.ts'
import { shellWord } from '../contract/text/shell-word.ts'

export interface Terminal {
  env: Record<string, string | undefined>
  envFile: Record<string, string | undefined>
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; fd?: number }
  stderr: Writable & { isTTY?: boolean }
  /** How to call the program again, for messages that suggest a command. */
  program: string
  pid: number
  /** The process, as an emitter of events about its end. */
  events?: EventEmitter
  nodeVersion: string
  clock: () => number
  /**
   * Handles SIGTERM, SIGINT and SIGHUP from this call on, and resolves with the first of them. Without the call, a signal ends
   * the process immediately, as does a second SIGTERM or SIGINT that comes a second later or more.
   */
  stopSignal: () => Promise<string>
  /** Ends the process with SIGKILL, for a disk that hangs or has failed (`CannotCloseStore`). */
  kill: () => void
}

/** Colours a text if standard output is a terminal, unless the user has opted out (no-color.org). */
export function accent(terminal: Terminal, text: string): string {
  const coloured = terminal.stdout.isTTY && !terminal.env['NO_COLOR'] && terminal.env['TERM'] !== 'dumb'
  return coloured ? `\u001B[36m${text}\u001B[0m` : text
}

export function print(terminal: Terminal, text: string): void {
  terminal.stdout.write(text + '\n')
}

/** Writes a message to stderr, so that stdout carries only data. Redacts the passwords of addresses that it may repeat. */
export function report(terminal: Terminal, text: string): void {
  reportAsIs(terminal, redactCredentials(text))
}

/** Like `report`, for a suggested command: `nextCommand` and `accountOption` leave passwords out of it. */
export function reportAsIs(terminal: Terminal, text: string): void {
  terminal.stderr.write(escapeLines(text) + '\n')
}

/** Escapes each line. Users choose names: a name must not control the operator's terminal or reverse the direction of a line. */
function escapeLines(text: string): string {
  return text.split('\n').map(escapeControls).join('\n')
}

export function printJson(terminal: Terminal, value: unknown): void {
  print(terminal, escapeLines(JSON.stringify(value, null, 2)))
}

/** Prints a table; the heading only on a terminal. */
export function printTable(terminal: Terminal, heading: readonly string[], rows: readonly string[][]): void {
  const cells = rows.map((row) => row.map(escapeControls))
  const lines = alignColumns(terminal.stdout.isTTY ? [heading, ...cells] : cells)
  for (const [index, line] of lines.entries()) print(terminal, index === 0 ? accent(terminal, line) : line)
}

/** Joins the cells of each row, two spaces apart, with every column as wide as its widest cell. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  // Not Math.max(...lengths): a call takes some 100,000 arguments at most.
  const widths = rows[0]?.map((_, column) => rows.reduce((most, row) => Math.max(most, row[column]!.length), 0)) ?? []
  return rows.map((row) =>
    widths
      .map((width, column) => row[column]!.padEnd(width))
      .join('  ')
      .trimEnd(),
  )
}

/** Returns a count with its noun, such as "1 row" or "2 rows". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** The most bytes that are read of a password, a message or an answer: a peer may send without end. */
export const MOST_BYTES = 4 * 1024 * 1024

/** Reads to the end, or until there are more than `MOST_BYTES`; then it closes the stream. */
export async function readAll(stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of stream) {
    chunks.push(chunk)
    length += chunk.length
    if (length > MOST_BYTES) break
  }
  return Buffer.concat(chunks)
}

/** The user interrupted the program: exit code 130. The message is empty if there is nothing to report, as at a prompt. */
export class Interrupted extends Error {
  override name = 'Interrupted'
}

/** Prompts for a line; throws `Interrupted` after Ctrl-D. */
export function askOpenly(terminal: Terminal, question: string): Promise<string> {
  return ask(terminal, question, createInterface({ input: terminal.stdin }))
}

/** Prompts for a line without echoing it; throws `Interrupted` after Ctrl-C or Ctrl-D. */
export async function askHidden(terminal: Terminal, question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  try {
    return await ask(terminal, question, createInterface({ input: terminal.stdin, output: silent, terminal: true }))
  } finally {
    terminal.stderr.write('\n')
  }
}

async function ask(terminal: Terminal, question: string, lines: Interface): Promise<string> {
  // A turn later, because the input may end right after the line.
  const closed = new Promise<never>((_resolve, reject) =>
    lines.once('close', () => setImmediate(() => reject(new Interrupted()))),
  )
  // Written after createInterface, which turns off the echo of the terminal.
  terminal.stderr.write(question)
  try {
    // At Ctrl-C `question` rejects; at Ctrl-D readline closes, and `question` never settles.
    return await Promise.race([lines.question('').catch(() => closed), closed])
  } finally {
    lines.close()
  }
}

/** Formats a time to the minute, in UTC; returns a dash for undefined. */
export function formatTime(time: number | undefined): string {
  return time === undefined ? '-' : `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

export function isoTime(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString()
}

const BAR_WIDTH = 30
const CLEAR_LINE = '\r\u001B[K'

export function showProgress({ stderr }: Terminal, done: number, all: number, step = ''): void {
  if (!stderr.isTTY) return
  const filled = Math.round((done / all) * BAR_WIDTH)
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)
  stderr.write(`${CLEAR_LINE}${bar} ${done} of ${all}${step && `  ${step}`}${done === all ? '\n' : ''}`)
}

export function clearProgress({ stderr }: Terminal): void {
  if (stderr.isTTY) stderr.write(CLEAR_LINE)
}

/**
 * Returns how to call the program: its bare name if its folder is in `searchPath`, else its path. `called` is the path that the
 * launcher was called by. Without a launcher, as in `npm start`, the result is the path of `launcher` relative to `folder`.
 */
export function programName(called: string | undefined, launcher: string, folder: string, searchPath = ''): string {
  const typed = called ?? relative(folder, launcher)
  const isFound = isAbsolute(typed) && searchPath.split(delimiter).includes(dirname(typed))
  return shellWord(isFound ? basename(typed) : typed)
}
