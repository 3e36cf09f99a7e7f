// Structured logs: one JSON object per line, or short plain lines on a terminal.
import { type DestinationStream, type Logger as Pino, pino } from 'pino'
import type { LogLevel } from './config.ts'
import { escapeControls } from './contract/json.ts'

export type Log = Pino<'notice'>

/** `notice`, between info and warn, is the default: starts, stops and errors, but not every request. */
export function createLog(level: LogLevel, destination: DestinationStream): Log {
  return pino(
    {
      level,
      customLevels: { notice: 35 },
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err },
    },
    destination,
  )
}

/** Turns the lines into "time  level  message  name=value …" for a terminal. */
export function forPeople(write: (text: string) => void): DestinationStream {
  return {
    write(line) {
      const { time, level, msg, ...rest } = JSON.parse(line) as Record<string, unknown>
      const details = Object.entries(rest).map(([name, value]) => `${name}=${escapeControls(typeof value === 'string' ? value : JSON.stringify(value))}`)
      write([String(time).slice(11, 19), String(level).padEnd(6), msg, ...details].join('  ') + '\n')
    },
  }
}
