// Bodies as they come in, and the words for what came.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { describe as inWords, OtherNumber, parseJson, quote } from './json.ts'
import { Refused } from './refused.ts'

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
    assert.deepEqual(parseJson(Buffer.from([0x22, 0xff, 0x22])), new Refused('The body is not valid UTF-8.'))
    assert.deepEqual(parse('['.repeat(16_000) + ']'.repeat(16_000)), new Refused('The body is nested too deep.'))
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
  })
})

describe('quote', () => {
  it('leaves 60 characters whole and cuts the 61st, whatever their size', () => {
    for (const character of ['x', '🐈']) {
      assert.equal(quote(character.repeat(60)), `"${character.repeat(60)}"`)
      assert.equal(quote(character.repeat(61)), `"${character.repeat(60)}…"`)
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

/** What the fields of an object hold, numbers as they were written. */
function fields(text: string): unknown {
  const parsed = parseJson(Buffer.from(text))
  assert.ok('value' in parsed, text)
  const entries = Object.entries(parsed.value as object).filter(
    ([, value]) => typeof value !== 'object' || value instanceof OtherNumber,
  )
  return entries.map(([name, value]) => [name, value instanceof OtherNumber ? value.source : value])
}

describe('the short way through parseJson', () => {
  it('reads every integer exactly, whatever stands beside it', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.string(),
        fc.json(),
        (integer, name, deeper) => {
          const easy = `{"categoryId": ${integer}, "name": ${JSON.stringify(name)}, "deeper": ${deeper}}`
          const hard = easy.replace('{', '{"hard": 1.5, ')
          const expected = fields(hard) as unknown[]
          assert.deepEqual(fields(easy), expected.slice(1))
          assert.deepEqual(expected[0], ['hard', '1.5'])
          assert.equal((expected[1] as unknown[])[1], integer)
        },
      ),
    )
  })

  it('is not misled by a number that a double rounds', () => {
    for (const source of [
      '3.0000000000000000001',
      '9007199254740993',
      '-0',
      '1e2',
      '999999999999999',
      '1000000000000000',
      '0.5',
      '1e400',
    ]) {
      const [[, alone]] = fields(`{"n":${source}}`) as [[string, unknown]]
      const [[, beside]] = fields(`{"n":${source},"x":0.5}`) as [[string, unknown]]
      assert.equal(alone, beside, source)
    }
  })

  it('keeps a field called __proto__ a field', () => {
    const parsed = parseJson(Buffer.from('{"__proto__": 3}'))
    assert.ok('value' in parsed)
    assert.deepEqual(Object.entries(parsed.value as object), [['__proto__', 3n]])
    assert.equal(Object.getPrototypeOf(parsed.value), Object.prototype)
  })
})
