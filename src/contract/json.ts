// Parses JSON with exact 64-bit integers, finds where a text is not valid JSON, and describes values for messages.
import { isUtf8 } from 'node:buffer'
import { int64FromJsonNumber } from './int64.ts'
import { redactSecrets } from './redact.ts'
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
      return new Problem(`The ${source} is not valid JSON: ${explainBrokenJson(text, source)}`)
    if (error instanceof RangeError) return new Problem(`The ${source} is nested too deep.`)
    throw error
  }
}

function explainBrokenJson(text: string, source: JsonSource): string {
  if (text.startsWith('\uFEFF')) return 'it starts with a byte order mark (BOM, U+FEFF). Send UTF-8 without one.'
  const { line, column, expected, found, advice } = findBrokenJson(text)!
  const got = found === '' ? `the ${source} ends there` : `got ${quote(found)}`
  const where = source === 'line' ? `column ${column}` : `line ${line}, column ${column}`
  return `expected ${expected} at ${where}, ${got}.${advice && ` ${advice}`}`
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

/** A syntax error; `found` is empty at the end of the text. */
interface BrokenJson {
  line: number
  column: number
  expected: string
  found: string
  advice: string
}

const BLANKS = String.raw`[ \t\n\r]*`
const CHARACTERS = String.raw`(?:[^"\\\u0000-\u001F]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*`
const NUMBER = String.raw`-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`

/** Punctuation, a whole string, or another value, after white space. Only one alternative can match, so it never backtracks far. */
const TOKEN = new RegExp(String.raw`${BLANKS}(?:([{}[\]:,])|("${CHARACTERS}")|${NUMBER}|true|false|null)`, 'y')
const BLANK = new RegExp(BLANKS, 'y')
const STRING_START = new RegExp(`"${CHARACTERS}`, 'y')

/** The description of the token that must come next. */
type Expected = keyof typeof NEXT

const VALUES = { '{': '"}" or a name in double quotes', '[': 'a value or "]"', string: 'done', other: 'done' } as const
/** Maps each expectation and token to the next expectation. 'done' ends a value, 'close' an object or array. */
const NEXT = {
  'a value': VALUES,
  'a value or "]"': { ...VALUES, ']': 'close' },
  'a name in double quotes': { string: '":"' },
  '"}" or a name in double quotes': { string: '":"', '}': 'close' },
  '":"': { ':': 'a value' },
  '"," or "}"': { ',': 'a name in double quotes', '}': 'close' },
  '"," or "]"': { ',': 'a value', ']': 'close' },
  'the end': {},
} as const satisfies Record<string, Record<string, string>>

type ParserStep = Expected | 'done' | 'close'

/** Returns undefined for valid JSON. */
export function findBrokenJson(text: string): BrokenJson | undefined {
  /** The open brackets, innermost last. */
  const open: string[] = []
  let expected: Expected = 'a value'
  let afterComma = false
  let at = 0
  for (;;) {
    const token = match(TOKEN, text, at)
    const kind = token?.[1] ?? (token?.[2] === undefined ? 'other' : 'string')
    const next: ParserStep | undefined = token && (NEXT[expected] as Record<string, ParserStep>)[kind]
    if (next === undefined) {
      const position = at + match(BLANK, text, at)![0].length
      if (position === text.length && expected === 'the end') return undefined
      return describeBreak(text, position, expected, afterComma)
    }
    at += token![0].length
    afterComma = kind === ','
    if (kind === '{' || kind === '[') open.push(kind)
    if (next === 'close') open.pop()
    expected = next === 'close' || next === 'done' ? afterValue(open.at(-1)) : next
  }
}

function afterValue(bracket: string | undefined): Expected {
  if (bracket === undefined) return 'the end'
  return bracket === '{' ? '"," or "}"' : '"," or "]"'
}

function describeBreak(text: string, position: number, expected: Expected, afterComma: boolean): BrokenJson {
  const [found = ''] = text.slice(position, position + 2)
  if (found === '"' && match(TOKEN, text, position) === undefined) {
    return describeString(text, position + match(STRING_START, text, position)![0].length)
  }
  return { ...lineAndColumn(text, position), expected, found, advice: adviceFor(found, expected, afterComma) }
}

/** Describes a string without its closing quote, or with a character or escape that JSON does not allow. */
function describeString(text: string, position: number): BrokenJson {
  const broken = { ...lineAndColumn(text, position), found: text.charAt(position), advice: '' }
  if (broken.found === '') return { ...broken, expected: 'the closing quote of a string' }
  if (broken.found === '\\')
    return { ...broken, expected: 'a valid escape such as \\n or \\u0041', found: text.slice(position, position + 2) }
  return { ...broken, expected: 'the rest of a string', advice: 'Write control characters as escapes, such as \\n.' }
}

function adviceFor(found: string, expected: Expected, afterComma: boolean): string {
  if (found === "'" || (/^[A-Za-z_$]$/.test(found) && expected.includes('name')))
    return 'Write names and strings in double quotes.'
  if (afterComma && (found === '}' || found === ']')) return 'Remove the comma before it.'
  return ''
}

function lineAndColumn(text: string, position: number): { line: number; column: number } {
  const before = text.slice(0, position)
  return { line: before.split('\n').length, column: Array.from(before.slice(before.lastIndexOf('\n') + 1)).length + 1 }
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}
