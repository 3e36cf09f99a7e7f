// Broken JSON, explained to a person: the place, what was expected there, and never the raw text.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { findBrokenJson } from './broken-json.ts'
import { parseJson } from './json.ts'
import { Refused } from './refused.ts'

function explained(body: string | Buffer): string {
  const parsed = parseJson(Buffer.from(body))
  assert.ok(parsed instanceof Refused, String(body))
  return parsed.message
}

describe('Broken JSON', () => {
  const sentences: Record<string, string> = {
    '{"name":"Rex","categoryId":3,}':
      'expected a name in double quotes at line 1, column 30, got "}". Remove the comma before it.',
    '[1,]': 'expected a value at line 1, column 4, got "]". Remove the comma before it.',
    "{'name':'Rex'}":
      'expected "}" or a name in double quotes at line 1, column 2, got "\'". Write names and strings in double quotes.',
    '{name:"Rex"}':
      'expected "}" or a name in double quotes at line 1, column 2, got "n". Write names and strings in double quotes.',
    'name=Rex': 'expected a value at line 1, column 1, got "n".',
    '{\n  "name": "Rex"\n  "categoryId": 3\n}': 'expected "," or "}" at line 3, column 3, got "\\"".',
    '{"name" "Rex"}': 'expected ":" at line 1, column 9, got "\\"".',
    '{"categoryId":03}': 'expected "," or "}" at line 1, column 16, got "3".',
    '{"categoryId":': 'expected a value at line 1, column 15, the body ends there.',
    '[[1]': 'expected "," or "]" at line 1, column 5, the body ends there.',
    '{"name":"Rex': 'expected the closing quote of a string at line 1, column 13, the body ends there.',
    '{"name":"a\nb"}':
      'expected the rest of a string at line 1, column 11, got "\\n". Write control characters as escapes, such as \\n.',
    '{"name":"C:\\pets"}': 'expected a valid escape such as \\n or \\u0041 at line 1, column 12, got "\\\\p".',
    '{} {}': 'expected the end at line 1, column 4, got "{".',
    '{"🐈🐈":x}': 'expected a value at line 1, column 7, got "x".',
    ' ': 'expected a value at line 1, column 2, the body ends there.',
    '\0': 'expected a value at line 1, column 1, got "\\u0000".',
    '\uFEFF{}': 'it starts with a byte order mark (BOM, U+FEFF). Send UTF-8 without one.',
  }
  for (const [body, sentence] of Object.entries(sentences)) {
    it(`is explained: ${JSON.stringify(body)}`, () =>
      assert.equal(explained(body), `The body is not valid JSON: ${sentence}`))
  }

  /** Texts that are nearly JSON: pieces of it in any order, and JSON with a piece put in or left out. */
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '"a"',
    '1',
    '-',
    '0',
    '.5',
    'e3',
    'true',
    'nul',
    'null',
    ' ',
    '\n',
    '\\',
    '\\u00e',
    '\0',
    '\u2028',
    '\uFEFF',
    "'",
    '🐈',
  )
  const pieces = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(''))
  const damaged = fc.tuple(fc.json(), fc.nat(), piece, fc.nat(2)).map(([text, at, part, less]) => {
    const place = at % (text.length + 1)
    return text.slice(0, place) + part + text.slice(place + less)
  })
  const nearly = fc.oneof(pieces, damaged)

  it('is found exactly where JSON.parse refuses a text', () => {
    fc.assert(
      fc.property(fc.oneof(nearly, fc.json()), (text) => {
        let isJson = true
        try {
          JSON.parse(text)
        } catch {
          isJson = false
        }
        assert.equal(findBrokenJson(text) === undefined, isJson, JSON.stringify(text))
      }),
      { numRuns: 3000 },
    )
  })

  it('never brings a control character, half a character or a line of its own into the message', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          nearly.map((text) => Buffer.from(text)),
          fc.uint8Array().map((bytes) => Buffer.from(bytes)),
        ),
        (bytes) => {
          const parsed = parseJson(bytes)
          if (!(parsed instanceof Refused)) return
          assert.ok(parsed.message.isWellFormed())
          assert.doesNotMatch(parsed.message, /[\p{Cc}\u2028\u2029]/u)
        },
      ),
    )
  })
})
