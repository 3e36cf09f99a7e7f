// Structured logs: one JSON object per line, or short plain lines on a terminal.
import type { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import { type DestinationStream, type Logger as Pino, pino } from 'pino'
import { escapeControls } from './contract/json.ts'
import { type LogFile, LogOutput, WRITE_LIMIT } from './log-output.ts'

export const LOG_LEVELS = ['error', 'warn', 'notice', 'info', 'debug'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

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

export interface LogSurroundings {
  /** Standard output. One of a test may be no file: it takes every line. */
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

/** Returns how many lines of the log were dropped since the start. */
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
