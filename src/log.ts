// Structured logs: one JSON object per line, or short plain lines on a terminal. Lines are written whole, in order, and without waiting for
// the reader while the process serves; those that a slow reader does not take wait in memory, up to a limit, then are dropped and counted.
import type { EventEmitter } from 'node:events'
import { writeSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { type DestinationStream, type Logger as Pino, pino } from 'pino'
import { escapeControls } from './contract/json.ts'

export const LOG_LEVELS = ['error', 'warn', 'notice', 'info', 'debug'] as const
type LogLevel = (typeof LOG_LEVELS)[number]

export type Log = Pino<'notice'>

/** Adds the level `notice` between info and warn. It is the default: it shows starts, stops and errors, but not every request. */
export function createLog(level: LogLevel, destination: DestinationStream): Log {
  return pino(
    {
      level,
      customLevels: { notice: 35 },
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err },
      hooks: { streamWrite: withinLimit },
    },
    destination,
  )
}

const outputs = new WeakMap<Log, LogOutput>()

interface LogSurroundings {
  /** Standard output. In a test it may be no file, and then takes every line. */
  stdout: Writable & { isTTY?: boolean } & Partial<LogFile>
  /** The process, which emits `exit` and `uncaughtExceptionMonitor`. */
  events?: EventEmitter | undefined
  /** Called with a sentence if standard output fails. */
  report?: (message: string) => void
}

/**
 * Logs to standard output: as JSON, or as short plain lines if it is a terminal. Writes to a pipe or socket do not block; those to
 * files and terminals do. When the process exits or crashes, waiting lines are written first.
 */
export function createLogTo({ stdout, events, report }: LogSurroundings, level: LogLevel): Log {
  const { fd, isTTY } = stdout
  if (fd === undefined) return createLog(level, isTTY ? forPeople((text) => stdout.write(text)) : stdout)
  const output = new LogOutput(isTTY ? { fd } : (stdout as LogFile), {
    onFailure: ({ message }) => report?.(`The log cannot be written: ${message}. The service continues.`),
    onDropped: (count) => log.error({ count }, 'log lines were dropped: their reader was too slow, or had stopped'),
  })
  const write = (line: string) => output.write(line)
  const flush = () => output.flush()
  // pino's log.flush() calls that of its destination.
  const destination = { ...(isTTY ? forPeople(write) : { write }), flush }
  const log = createLog(level, destination)
  outputs.set(log, output)
  events?.on('uncaughtExceptionMonitor', (error) => log.error({ error }, 'uncaught exception; the process ends'))
  events?.on('exit', flush)
  return log
}

export function droppedLines(log: Log): number {
  return outputs.get(log)?.dropped ?? 0
}

/** The lengths that the texts of an overlong line are cut to, one after the other, until the line is short enough. */
const TEXT_LIMITS = [2000, 1000, 500, 200, 50]

/** Cuts the texts of an overlong line: clients send long paths, and errors have long stacks. */
function withinLimit(line: string): string {
  // A UTF-16 code unit takes three bytes at most.
  if (line.length * 3 <= WRITE_LIMIT) return line
  for (const limit of TEXT_LIMITS) {
    if (Buffer.byteLength(line) <= WRITE_LIMIT) return line
    const cut = (_name: string, value: unknown) =>
      typeof value === 'string' && value.length > limit ? `${value.slice(0, limit)}…` : value
    line = `${JSON.stringify(JSON.parse(line), cut)}\n`
  }
  if (Buffer.byteLength(line) <= WRITE_LIMIT) return line
  const { level, time, msg } = JSON.parse(line) as Record<string, unknown>
  return `${JSON.stringify({ level, time, msg })}\n`
}

/** Formats each JSON line as "time  level  message  name=value …", for a terminal. */
export function forPeople(write: (text: string) => void): DestinationStream {
  return {
    write(line) {
      const { time, level, msg, ...rest } = JSON.parse(line) as Record<string, unknown>
      const details = Object.entries(rest).map(
        ([name, value]) => `${name}=${escapeControls(typeof value === 'string' ? value : JSON.stringify(value))}`,
      )
      write([String(time).slice(11, 19), String(level).padEnd(6), msg, ...details].join('  ') + '\n')
    },
  }
}

/** Logs a bug of the service. Never throws: the caller must go on, even if the log is what is broken. */
export function logFault(log: Log, details: object, message: string): void {
  try {
    log.error(details, message)
  } catch {
    // There is nowhere to report it.
  }
}

const REPEATED_EVERY_MS = 10_000

/** How often each message of a log was repeated since it was last logged. */
const repetitions = new WeakMap<Log, Map<string, number>>()

/** Logs a message that may occur with every request: the first at once, then the number of repetitions every ten seconds. */
export function logRepeated(log: Log, level: 'warn' | 'error', details: object, message: string): void {
  const counts = repetitions.get(log) ?? new Map<string, number>()
  repetitions.set(log, counts)
  const count = counts.get(message)
  counts.set(message, (count ?? -1) + 1)
  if (count !== undefined) return
  log[level](details, message)
  const timer = setInterval(() => {
    const more = counts.get(message)!
    if (more > 0) {
      log[level]({ count: more, seconds: REPEATED_EVERY_MS / 1000 }, `${message}; repeated`)
      counts.set(message, 0)
      return
    }
    counts.delete(message)
    clearInterval(timer)
  }, REPEATED_EVERY_MS).unref()
}

/** A write of at most this many bytes to a pipe is atomic (PIPE_BUF of Linux); a longer one may mix with that of another process. */
const WRITE_LIMIT = 4096

/** The most bytes that wait: some 15,000 lines of requests. */
const WAITING_BYTES = 4 * 1024 * 1024

/** When to try again after EAGAIN. The 64 KiB of a pipe, once every 20 ms, are more lines than a process can make. */
const FULL_RETRY_MS = 20

/** When to try again if the reader has left (EPIPE; a FIFO can get another one), or if the disk is full (ENOSPC). */
const FAILED_RETRY_MS = 1000

/** How long `flush` waits for a reader, in all, and for one that reads nothing. */
const FLUSH_WITHIN_MS = 5000
const FLUSH_STALLED_MS = 2000
const FLUSH_RETRY_MS = 10

interface OutputEvents {
  /** Called with the first error of an outage. */
  onFailure(error: Error): void
  /** Called when all that waited has been written, with the number of lines that were dropped before. */
  onDropped(count: number): void
}

interface LogFile {
  fd: number
  /** The handle of a pipe or socket. It is undocumented, but nothing documented makes a file descriptor non-blocking. */
  _handle?: { setBlocking?(isBlocking: boolean): unknown } | null
}

class LogOutput {
  readonly #file: LogFile
  readonly #events: OutputEvents
  /** Lines, joined up to WRITE_LIMIT bytes. The first one is a buffer if a part of it is written: a full disk takes a part. */
  readonly #waiting: (string | Buffer)[] = []
  #waitingBytes = 0
  /** The bytes of the last element. */
  #lastBytes = 0
  /** Set after a line was written: further lines of this turn of the event loop are joined, which takes fewer system calls. */
  #isTurnOpen = false
  #retry: NodeJS.Timeout | undefined
  #isFailing = false
  /** The lines dropped since `onDropped` was called. */
  #droppedNow = 0
  /** The lines dropped since the start. */
  dropped = 0

  constructor(file: LogFile, events: OutputEvents) {
    this.#file = file
    this.#events = events
  }

  write(line: string): void {
    // Once a line is dropped, so are all that follow until nothing waits: there is one gap, and `onDropped` marks its place.
    if (this.#droppedNow > 0 || this.#waitingBytes >= WAITING_BYTES) {
      this.#droppedNow += 1
      this.dropped += 1
      return
    }
    this.#enqueue(line)
    if (this.#isTurnOpen || this.#retry !== undefined) return
    this.#isTurnOpen = true
    setImmediate(() => {
      this.#isTurnOpen = false
      if (this.#retry === undefined) this.#attempt()
    })
    this.#attempt()
  }

  /** Writes what waits, and waits for the reader within limits. Blocks the event loop: for the end of a process. */
  flush(): void {
    const startedAt = performance.now()
    let progressAt = startedAt
    for (;;) {
      const before = this.#waitingBytes
      const error = this.#attempt()
      if (this.#waiting.length === 0 || (error !== undefined && error.code !== 'EAGAIN')) return
      const now = performance.now()
      if (this.#waitingBytes < before) progressAt = now
      if (now - startedAt > FLUSH_WITHIN_MS || now - progressAt > FLUSH_STALLED_MS) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FLUSH_RETRY_MS)
    }
  }

  #enqueue(line: string): void {
    const bytes = Buffer.byteLength(line)
    this.#waitingBytes += bytes
    if (this.#waiting.length > 0 && this.#lastBytes + bytes <= WRITE_LIMIT) {
      this.#waiting[this.#waiting.length - 1] += line
      this.#lastBytes += bytes
    } else {
      this.#waiting.push(line)
      this.#lastBytes = bytes
    }
  }

  /** Writes what waits. If the output does not take all of it, tries again later, and returns the error. */
  #attempt(): NodeJS.ErrnoException | undefined {
    clearTimeout(this.#retry)
    this.#retry = undefined
    try {
      this.#writeWaiting()
    } catch (thrown) {
      const error = thrown as NodeJS.ErrnoException
      const isFull = error.code === 'EAGAIN'
      if (!isFull && !this.#isFailing) this.#events.onFailure(error)
      this.#isFailing = !isFull
      this.#retry = setTimeout(() => this.#attempt(), isFull ? FULL_RETRY_MS : FAILED_RETRY_MS).unref()
      return error
    }
    this.#isFailing = false
    const count = this.#droppedNow
    this.#droppedNow = 0
    if (count > 0) this.#events.onDropped(count)
    return undefined
  }

  #writeWaiting(): void {
    // Each worker that starts or ends makes the pipe blocking for all processes that share it (libuv's spawn, Node's exit). A write
    // would then wait for a reader that has stopped.
    this.#file._handle?.setBlocking?.(false)
    for (let chunk = this.#waiting[0]; chunk !== undefined; chunk = this.#waiting[0]) {
      // Either type is fine; no overload takes both.
      const written = writeSync(this.#file.fd, chunk as string)
      this.#waitingBytes -= written
      if (written === Buffer.byteLength(chunk)) {
        this.#waiting.shift()
      } else {
        this.#waiting[0] = Buffer.from(chunk).subarray(written)
        // No line is joined to a buffer.
        this.#lastBytes = WRITE_LIMIT
      }
    }
  }
}
