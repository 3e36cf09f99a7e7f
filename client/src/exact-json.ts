// A JSON parser that keeps integers exact. JSON.parse rounds integers beyond 2^53, and only some runtimes pass the source text
// to its reviver; this parser behaves the same on all runtimes.

export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json }

const TOKEN =
  /[\t\n\r ]*(?:(?<mark>[[\]{},:])|(?<string>"[^"\\]*(?:\\.[^"\\]*)*")|(?<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|(?<word>true|false|null)|$)/y

const WORDS: Record<string, Json> = { true: true, false: false, null: null }

/** The length of the longest int64. A longer integer becomes a number, because a huge BigInt takes too long to make. */
const INT64_LENGTH = '-9223372036854775808'.length

/** Parses as JSON.parse does, but an integer in plain digits becomes a bigint. Throws a SyntaxError. */
export function parseExactJson(text: string): Json {
  const parser = new Parser(text)
  const value = parser.value()
  parser.expect('')
  return value
}

class Parser {
  readonly #text: string
  #position = 0
  /** The current token; the empty string at the end of the text. */
  #token = ''
  #kind: 'mark' | 'string' | 'number' | 'word' | 'end' = 'end'

  constructor(text: string) {
    this.#text = text
    this.#advance()
  }

  value(): Json {
    const token = this.#token
    const kind = this.#kind
    if (kind === 'string') return this.#string()
    if (kind === 'mark' && token === '[') return this.#array()
    if (kind === 'mark' && token === '{') return this.#object()
    if (kind !== 'number' && kind !== 'word') throw this.#unexpected()
    this.#advance()
    if (kind === 'word') return WORDS[token]!
    return /^-?[0-9]+$/.test(token) && token.length <= INT64_LENGTH ? BigInt(token) : Number(token)
  }

  expect(token: string): void {
    if (!this.#skip(token)) throw this.#unexpected()
  }

  #array(): Json[] {
    const items: Json[] = []
    this.expect('[')
    if (this.#skip(']')) return items
    do items.push(this.value())
    while (this.#skip(','))
    this.expect(']')
    return items
  }

  #object(): { [key: string]: Json } {
    const fields: [string, Json][] = []
    this.expect('{')
    if (this.#skip('}')) return {}
    do {
      const key = this.#string()
      this.expect(':')
      fields.push([key, this.value()])
    } while (this.#skip(','))
    this.expect('}')
    // Defines the fields instead of assigning them, so that one named __proto__ is a field like any other.
    return Object.fromEntries(fields)
  }

  #string(): string {
    if (this.#kind !== 'string') throw this.#unexpected()
    const token = this.#token
    this.#advance()
    // A string has no numbers to round, so JSON.parse decodes and checks it.
    return JSON.parse(token) as string
  }

  /** Advances if the current token is this one; returns whether it was. */
  #skip(token: string): boolean {
    const found = this.#token === token
    if (found) this.#advance()
    return found
  }

  #advance(): void {
    TOKEN.lastIndex = this.#position
    const groups = TOKEN.exec(this.#text)?.groups
    if (groups === undefined) throw this.#unexpected()
    this.#position = TOKEN.lastIndex
    const { mark, string, number, word } = groups
    this.#token = mark ?? string ?? number ?? word ?? ''
    this.#kind = mark ? 'mark' : string ? 'string' : number ? 'number' : word ? 'word' : 'end'
  }

  #unexpected(): SyntaxError {
    return new SyntaxError(`Malformed JSON before position ${this.#position}`)
  }
}
