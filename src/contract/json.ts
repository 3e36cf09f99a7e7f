// Parses JSON with exact 64-bit integers, says where a text is not valid JSON, and describes values for messages.
import { isUtf8 } from 'node:buffer'
import { int64FromJsonNumber } from './int64.ts'
import { redactSecrets } from './text/redact.ts'
import { Problem } from './errors.ts'

/** A number that is not an int64, with its source text for messages. */
export class OtherNumber {
  readonly source: string
  constructor(source: string) {
    this.source = source
  }
}

/** Wraps the value, because a JSON value may be of any type and callers test for `Problem`. */
export interface ParsedJson {
  value: unknown
}

/** The word for the text in a message: the body of a request, or a line of a file. */
export type JsonSource = 'body' | 'line'

/**
 * Parses a body or line. A number in a top-level field becomes a bigint if it is an int64, else an `OtherNumber`. Of a name that an
 * object has twice, the last value counts, as in JSON.parse and most other parsers.
 */
export function parseJson(bytes: Buffer, source: JsonSource = 'body'): ParsedJson | Problem {
  if (!isUtf8(bytes)) return new Problem(`The ${source} is not valid UTF-8.`)
  const text = bytes.toString('utf8')
  try {
    const plain = withPlainNames(text)
    return { value: parseEasy(plain) ?? parseWithSource(plain, exactNumber) }
  } catch (error) {
    if (error instanceof SyntaxError)
      return new Problem(`The ${source} is not valid JSON: ${explainBrokenJson(text, source, error)}`)
    if (error instanceof RangeError) return new Problem(`The ${source} is nested too deep.`)
    throw error
  }
}

/** Explains a syntax error without the engine's text, which differs by version and may quote what was sent. */
function explainBrokenJson(text: string, source: JsonSource, { message }: SyntaxError): string {
  if (text.startsWith('\uFEFF')) return 'it starts with a byte order mark (BOM, U+FEFF). Send UTF-8 without one.'
  if (message.endsWith('end of JSON input')) return 'it ends too early.'
  const position = /at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message)?.[1]
  // Where V8 has no position, it names the character.
  if (position === undefined) return explainCharacter(/^Unexpected token '(.+?)', /su.exec(message)?.[1], '')
  const before = text.slice(0, Number(position))
  if (before.length === text.length) return 'it ends too early.'
  const column = `column ${Array.from(before.slice(before.lastIndexOf('\n') + 1)).length + 1}`
  const where = source === 'line' ? column : `line ${before.split('\n').length}, ${column}`
  return explainCharacter(Array.from(text.slice(before.length, before.length + 2))[0], ` at ${where}`)
}

function explainCharacter(found: string | undefined, where: string): string {
  if (found === undefined) return 'it does not start with a JSON value.'
  const advice = /['\p{Pi}\p{Pf}\p{L}]/u.test(found) ? ' Write names and strings in double quotes.' : ''
  return `unexpected ${quote(found)}${where}.${advice}`
}

/** A string of valid JSON, with the colon behind it if it is the name of a field. */
const STRING = /("(?:[^"\\]+|\\.)*")([ \t\n\r]*:)?/g

/**
 * Writes the names of fields without needless escapes. JSON.parse of Node.js 26 may take a name with escapes for another one, with
 * a backslash, that an earlier object of the same shape had: "st\u0061tus" for "st\\u00". Throws a SyntaxError.
 */
function withPlainNames(text: string): string {
  if (!text.includes('\\')) return text
  // The pattern is for valid JSON only; in other texts its work could grow with the square of their length.
  JSON.parse(text)
  return text.replaceAll(STRING, (whole, string: string, colon: string | undefined) =>
    colon !== undefined && string.includes('\\') ? JSON.stringify(JSON.parse(string)) + colon : whole,
  )
}

/** A number of more than 15 digits, which a double may round, or one with a fraction or exponent. */
const HARD_NUMBER = /[0-9](?:[.eE]|[0-9]{15})/

/** Parses an object without hard numbers. A reviver that reads the source text takes three times as long: 5.1, not 1.6 µs. */
function parseEasy(text: string): object | undefined {
  if (HARD_NUMBER.test(text)) return undefined
  const value = JSON.parse(text) as Record<string, unknown> | null
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  for (const [field, content] of Object.entries(value)) {
    if (typeof content === 'number') value[field] = BigInt(content)
  }
  return value
}

// TypeScript's library does not declare the reviver's third argument yet.
const parseWithSource = JSON.parse as (text: string, reviver: typeof exactNumber) => unknown

function exactNumber(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== 'number') return value
  const source = context.source ?? String(value)
  return int64FromJsonNumber(source) ?? new OtherNumber(source)
}

// TypeScript's library does not declare it yet.
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => object }

/** Renders JSON with each bigint and `OtherNumber` digit for digit. */
export function exactJson(value: object): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    if (part instanceof OtherNumber) return rawJSON(part.source)
    return typeof part === 'bigint' ? rawJSON(String(part)) : part
  })
}

export type Fields = Record<string, unknown>

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof OtherNumber)
}

/** Returns no fields for a value that is no object. */
export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {}
}

const QUOTED_LENGTH = 60

/** Describes a value briefly, for a message. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value)
  if (value instanceof OtherNumber) return shorten(value.source)
  return Array.isArray(value) ? 'an array' : 'an object'
}

/** Quotes a client's text for a message: short, without secrets, and with every control character escaped. */
export function quote(text: string): string {
  return escapeControls(JSON.stringify(shorten(redactSecrets(text).toWellFormed())))
}

/** Escapes characters that could end a line, control a terminal or reverse the direction of a text. */
export function escapeControls(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function shorten(text: string): string {
  const characters = Array.from(text.slice(0, 2 * QUOTED_LENGTH + 2))
  if (characters.length <= QUOTED_LENGTH) return text
  return characters.slice(0, QUOTED_LENGTH).join('') + '…'
}
