// What a command knows of its surroundings (environment variables, streams, clock and signals), and how it prints and asks.
import { basename, delimiter, dirname, isAbsolute, relative } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { type Readable, Writable } from 'node:stream'
import { escapeControls } from '../contract/json.ts'
import { redactCredentials } from '../contract/redact.ts'

export interface Terminal {
  env: Record<string, string | undefined>
  /** The numbers of the lines of the file .env that hold no variable. */
  ignoredLines: readonly number[]
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean }
  stderr: Writable & { isTTY?: boolean }
  /** How the program was called, as it would be typed again. */
  program: string
  /** The id of this process. */
  pid: number
  nodeVersion: string
  clock: () => number
  /** Resolves with the signal that asks the process to stop; until it is called, and after the first, a signal ends the process as usual. */
  stopSignal: () => Promise<string>
  /** Ends the process at once, where an exit would wait for a disk that hangs. */
  kill: () => void
}

/** Colours a text on a terminal, unless the user has opted out (no-color.org). */
export function accent(terminal: Terminal, text: string): string {
  const coloured = terminal.stdout.isTTY && !terminal.env['NO_COLOR'] && terminal.env['TERM'] !== 'dumb'
  return coloured ? `\u001B[36m${text}\u001B[0m` : text
}

export function print(terminal: Terminal, text: string): void {
  terminal.stdout.write(text + '\n')
}

/** Writes a message to stderr, so that stdout carries only data. An address may stand where a file was meant: no password is repeated. */
export function report(terminal: Terminal, text: string): void {
  terminal.stderr.write(redactCredentials(text) + '\n')
}

export function printJson(terminal: Terminal, value: unknown): void {
  print(terminal, JSON.stringify(value, null, 2))
}

/** Prints columns as wide as their widest cell, two spaces apart; the heading only on a terminal. */
export function printTable(terminal: Terminal, heading: readonly string[], rows: readonly string[][]): void {
  // A name comes from an account's owner: it must not steer the operator's terminal or turn a line around.
  const cells = rows.map((row) => row.map(escapeControls))
  const lines = terminal.stdout.isTTY ? [heading, ...cells] : cells
  const widths = heading.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  for (const [index, line] of lines.entries()) {
    const text = line
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd()
    print(terminal, index === 0 && terminal.stdout.isTTY ? accent(terminal, text) : text)
  }
}

/** Reads to the end, without the line feed that `echo` adds. */
export async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Buffer))
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}

/** A person ended the program: exit code 130. At a prompt there is nothing to report. */
export class Interrupted extends Error {
  override name = 'Interrupted'
}

/** Asks a question without showing what is typed; throws `Interrupted` after Ctrl-C or Ctrl-D. */
export async function askHidden(terminal: Terminal, question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: terminal.stdin, output: silent, terminal: true })
  const closed = new Promise<never>((_resolve, reject) => lines.once('close', () => reject(new Interrupted())))
  // Asked only now: from here on the terminal echoes nothing.
  terminal.stderr.write(question)
  try {
    // readline rejects at Ctrl-C; at Ctrl-D it closes, and its answer never comes.
    return await Promise.race([lines.question('').catch(() => closed), closed])
  } finally {
    lines.close()
    terminal.stderr.write('\n')
  }
}

/** Formats a time to the minute, in UTC; a dash if there is none. */
export function day(time: number | undefined): string {
  return time === undefined ? '-' : `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

export function isoTime(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString()
}

const BAR_WIDTH = 30
const CLEAR_LINE = '\r\u001B[K'

/** Shows a progress bar, only on a terminal. */
export function showProgress({ stderr }: Terminal, done: number, all: number, step = ''): void {
  if (!stderr.isTTY) return
  const filled = Math.round((done / all) * BAR_WIDTH)
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)
  stderr.write(`${CLEAR_LINE}${bar} ${done} of ${all}${step && `  ${step}`}${done === all ? '\n' : ''}`)
}

/** Makes room for a message where a bar may stand. */
export function clearProgress({ stderr }: Terminal): void {
  if (stderr.isTTY) stderr.write(CLEAR_LINE)
}

/** Returns a function that says how fast the work goes since now, and how long it will still take. */
export function startRate(): (done: number, all: number) => string {
  const started = performance.now()
  return (done, all) => {
    const rate = done / ((performance.now() - started) / 1000)
    const left = Math.ceil((all - done) / rate)
    return `${Math.round(rate)}/s, ${left < 60 ? `${left} s` : `${Math.ceil(left / 60)} min`} left`
  }
}

/**
 * Returns the bare name for a program that the shell finds by itself, else the path as it was typed. `called` is the
 * launcher's own name; without a launcher, as in `npm start`, the one in `launcher` is named from the working directory.
 */
export function programName(called: string | undefined, launcher: string, folder: string, searchPath = ''): string {
  const typed = called ?? relative(folder, launcher)
  const isFound = isAbsolute(typed) && searchPath.split(delimiter).includes(dirname(typed))
  const name = isFound ? basename(typed) : typed
  return /^[\w./@:\\+-]+$/.test(name) ? name : `'${name}'`
}
