// Parsing of bodies, and the descriptions of values and syntax errors.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { describe as inWords, OtherNumber, parseJson, quote } from './json.ts'
import { Problem } from './errors.ts'
import { INT64_MAX, INT64_MIN } from './int64.ts'

const parse = (text: string) => parseJson(Buffer.from(text))

describe('parseJson', () => {
  it('reads what JSON.parse reads, with integers as bigint', () => {
    const plain = (value: unknown): unknown => {
      // JSON has -0; among the integers it is 0.
      if (typeof value === 'bigint' || Object.is(value, -0)) return Number(value) + 0
      if (value instanceof OtherNumber) return Number(value.source)
      if (Array.isArray(value)) return value.map(plain)
      if (typeof value === 'object' && value !== null)
        return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]))
      return value
    }
    fc.assert(
      fc.property(fc.json(), (text) => {
        const parsed = parse(text)
        assert.ok('value' in parsed)
        assert.deepEqual(plain(parsed.value), plain(JSON.parse(text)))
      }),
    )
  })

  it('tells what is wrong with anything else, and never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const parsed = parseJson(Buffer.from(bytes))
        assert.ok('value' in parsed || /^The body is .*\.$/s.test(parsed.message))
      }),
    )
    assert.deepEqual(parseJson(Buffer.from([0x22, 0xff, 0x22])), new Problem('The body is not valid UTF-8.'))
    assert.deepEqual(parse('['.repeat(16_000) + ']'.repeat(16_000)), new Problem('The body is nested too deep.'))
  })

  it('reads a name of a field with escapes as that name, whatever names earlier texts had', () => {
    const letter = fc.constantFrom(...'aeiou')
    const names = fc.array(fc.tuple(letter, fc.boolean()), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(
        names,
        fc.constantFrom('', ' \n'),
        fc.constantFrom('1', '1e3', '"\\""'),
        (characters, blank, value) => {
          const name = characters.map(([character]) => character).join('')
          const escaped = characters.map(([character, isEscaped]) =>
            isEscaped ? `\\u00${character.charCodeAt(0).toString(16)}` : character,
          )
          const textOf = (quoted: string) => Buffer.from(`{"first":1,${quoted}${blank}:${value}}`)
          const written = `"${escaped.join('')}"`
          // A name that is what is written so far, and as long as the name.
          parseJson(textOf(JSON.stringify(written.slice(1, 1 + name.length))))
          const { value: read } = parseJson(textOf(written)) as { value: object }
          assert.deepEqual(Object.keys(read), ['first', name])
        },
      ),
    )
  })

  it('takes the last value of a name that an object has twice, however each is written', () => {
    const parts = fc.uniqueArray(fc.constantFrom('1', '1.5', '1e3', '9223372036854775807', '"a"', '{"a":2,"a":1e2}'), {
      minLength: 2,
    })
    fc.assert(
      fc.property(parts, fc.constantFrom('"name"', '"n\\u0061me"'), (values, written) => {
        const read = (text: string) => (parse(text) as { value: unknown }).value
        const twice = `{${values.map((value) => `${written}:${value}`).join()}}`
        assert.deepEqual(read(twice), read(`{"name":${values.at(-1)}}`))
      }),
    )
    assert.deepEqual(parse('{"name":"a","categoryId":1,"name":"b"}'), { value: { name: 'b', categoryId: 1n } })
  })

  it('keeps a number that is no int64 as it was written', () => {
    const parsed = parse('[1e400, 1.50, 9223372036854775808]')
    assert.ok('value' in parsed)
    assert.deepEqual((parsed.value as OtherNumber[]).map(inWords), ['1e400', '1.50', '9223372036854775808'])
  })
})

describe('A value in a message', () => {
  it('is named by what it is, and quoted if it is a string', () => {
    const values = [undefined, null, 'Rex', 7n, false, new OtherNumber('1.50'), [], {}]
    assert.deepEqual(values.map(inWords), ['nothing', 'null', '"Rex"', '7', 'false', '1.50', 'an array', 'an object'])
    assert.equal(inWords(new OtherNumber('9'.repeat(10_000))), `${'9'.repeat(60)}…`)
  })
})

describe('quote', () => {
  it('leaves 60 characters whole and cuts the 61st, whatever their size', () => {
    for (const character of ['x', '🐈']) {
      assert.equal(quote(character.repeat(60)), `"${character.repeat(60)}"`)
      assert.equal(quote(character.repeat(61)), `"${character.repeat(60)}…"`)
    }
  })

  it('escapes every character that could end a line, control a terminal or turn the text around', () => {
    const codes = [0x00, 0x0a, 0x1b, 0x7f, 0x85, 0x9b, 0x2028, 0x2029, 0x202a, 0x202c, 0x202e, 0x2066, 0x2069]
    for (const code of codes) {
      const character = String.fromCharCode(code)
      const quoted = quote(`a${character}b`)
      assert.ok(!quoted.includes(character), quoted)
      assert.equal(JSON.parse(quoted), `a${character}b`)
    }
  })

  it('is short, well-formed and one line, whatever came', () => {
    const unit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code))
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 300, size: 'max' }), (text) => {
        const quoted = quote(text)
        assert.ok(quoted.isWellFormed() && !quoted.includes('\n'))
        assert.ok([...(JSON.parse(quoted) as string)].length <= 61)
        if (text.length <= 60) assert.equal(JSON.parse(quoted), text.toWellFormed())
      }),
    )
  })
})

/** Parses an object; returns its fields, with the source text of numbers that are not int64. */
function fields(text: string): [name: string, value: unknown][] {
  const parsed = parse(text)
  assert.ok('value' in parsed, text)
  const entries = Object.entries(parsed.value as object).filter(
    ([, value]) => typeof value !== 'object' || value instanceof OtherNumber,
  )
  return entries.map(([name, value]) => [name, value instanceof OtherNumber ? value.source : value])
}

describe('the short way through parseJson', () => {
  it('reads every integer exactly, whatever stands beside it', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: INT64_MIN, max: INT64_MAX }), fc.string(), fc.json(), (integer, name, deeper) => {
        const easy = `{"categoryId": ${integer}, "name": ${JSON.stringify(name)}, "deeper": ${deeper}}`
        const hard = easy.replace('{', '{"hard": 1.5, ')
        const expected = fields(hard)
        assert.deepEqual(fields(easy), expected.slice(1))
        assert.deepEqual(expected.slice(0, 2), [
          ['hard', '1.5'],
          ['categoryId', integer],
        ])
      }),
    )
  })

  it('keeps a field called __proto__ a field', () => {
    const parsed = parse('{"__proto__": 3}')
    assert.ok('value' in parsed)
    assert.deepEqual(Object.entries(parsed.value as object), [['__proto__', 3n]])
    assert.equal(Object.getPrototypeOf(parsed.value), Object.prototype)
  })
})

describe('Broken JSON', () => {
  const QUOTES = 'Write names and strings in double quotes.'
  const sentences: Record<string, string> = {
    '{"name":"Rex","categoryId":3,}': 'unexpected "}" at line 1, column 30.',
    "{'name':'Rex'}": `unexpected "'" at line 1, column 2. ${QUOTES}`,
    '{name:"Rex"}': `unexpected "n" at line 1, column 2. ${QUOTES}`,
    '{"name":“Rex”}': `unexpected "“". ${QUOTES}`,
    'name=Rex': `unexpected "a". ${QUOTES}`,
    '{\n  "name": "Rex"\n  "categoryId": 3\n}': 'unexpected "\\"" at line 3, column 3.',
    '{"🐈🐈" 5}': 'unexpected "5" at line 1, column 7.',
    '{"a":1 🐈}': 'unexpected "🐈" at line 1, column 8.',
    '{"name":"Rex at position 3",,}': 'unexpected "," at line 1, column 29.',
    '["at position 3 (line 1 column 4)",]': 'unexpected "]".',
    '{"categoryId":': 'it ends too early.',
    '[[1]': 'it ends too early.',
    '{"name":"Rex': 'it ends too early.',
    ' ': 'it ends too early.',
    '{"name":"a\nb"}': 'unexpected "\\n" at line 1, column 11.',
    '\0': 'unexpected "\\u0000".',
    '[object Object]': 'it does not start with a JSON value.',
    '\uFEFF{}': 'it starts with a byte order mark (BOM, U+FEFF). Send UTF-8 without one.',
  }
  for (const [body, sentence] of Object.entries(sentences)) {
    it(`is explained: ${JSON.stringify(body)}`, () =>
      assert.deepEqual(parse(body), new Problem(`The body is not valid JSON: ${sentence}`)))
  }

  /** Texts that are nearly JSON: tokens in any order, and JSON with a token inserted or removed. */
  const characters = Array.from('{}[],:"\'10- \n\\\0\u2028\uFEFF🐈')
  const piece = fc.constantFrom(...characters, '"a"', '.5', 'e3', 'true', 'nul', 'null', '\\u00e')
  const pieces = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(''))
  const damaged = fc.tuple(fc.json(), fc.nat(), piece, fc.nat(2)).map(([text, at, part, less]) => {
    const position = at % (text.length + 1)
    return text.slice(0, position) + part + text.slice(position + less)
  })
  const nearly = fc.oneof(pieces, damaged)

  it('never brings a control character, half a character or a line of its own into the message', () => {
    fc.assert(
      fc.property(fc.oneof(nearly, fc.uint8Array()), (body) => {
        const parsed = parseJson(Buffer.from(body as string))
        if (!(parsed instanceof Problem)) return
        assert.ok(parsed.message.isWellFormed())
        assert.doesNotMatch(parsed.message, /[\p{Cc}\u2028\u2029]/u)
      }),
    )
  })
})
