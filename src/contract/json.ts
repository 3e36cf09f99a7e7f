// JSON as it comes in: every integer of 64 bits exact, and words for what came, to put into messages.
import { isUtf8 } from 'node:buffer'
import { int64FromJsonNumber } from './int64.ts'

/** A number that is no int64, kept as it was written so that a message can quote it. */
export class OtherNumber {
  readonly source: string
  constructor(source: string) {
    this.source = source
  }
}

export type ParsedJson = { value: unknown } | { problem: string }

/** Parses a body. Integers come out as bigint, other numbers as `OtherNumber`. */
export function parseJson(bytes: Buffer): ParsedJson {
  if (!isUtf8(bytes)) return { problem: 'The body is not valid UTF-8.' }
  try {
    return { value: parseWithSource(bytes.toString('utf8'), exactNumber) }
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: `The body is not valid JSON: ${error.message}.` }
    if (error instanceof RangeError) return { problem: 'The body is nested too deep.' }
    throw error
  }
}

// TypeScript's library does not know the reviver's third argument yet.
const parseWithSource = JSON.parse as (text: string, reviver: typeof exactNumber) => unknown

function exactNumber(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== 'number') return value
  const source = context.source ?? String(value)
  return int64FromJsonNumber(source) ?? new OtherNumber(source)
}

const QUOTED_LENGTH = 60

/** What came, short enough for a message. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  if (value instanceof OtherNumber) return shorten(value.source)
  return Array.isArray(value) ? 'an array' : 'an object'
}

export function quote(text: string): string {
  return JSON.stringify(shorten(text.toWellFormed()))
}

function shorten(text: string): string {
  const characters = Array.from(text.slice(0, 2 * QUOTED_LENGTH + 2))
  if (characters.length <= QUOTED_LENGTH) return text
  return characters.slice(0, QUOTED_LENGTH).join('') + '…'
}
