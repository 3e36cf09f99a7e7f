// Bodies as they come in, and the words for what came.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { describe as inWords, OtherNumber, parseJson, quote } from './json.ts'

const parse = (text: string) => parseJson(Buffer.from(text))

describe('parseJson', () => {
  it('reads what JSON.parse reads, with integers as bigint', () => {
    const plain = (value: unknown): unknown => {
      // JSON has -0; among the integers it is 0.
      if (typeof value === 'bigint' || Object.is(value, -0)) return Number(value) + 0
      if (value instanceof OtherNumber) return Number(value.source)
      if (Array.isArray(value)) return value.map(plain)
      if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]))
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
        assert.ok('value' in parsed || /^The body is .*\.$/s.test(parsed.problem))
      }),
    )
    assert.deepEqual(parseJson(Buffer.from([0x22, 0xff, 0x22])), { problem: 'The body is not valid UTF-8.' })
    assert.deepEqual(parse('['.repeat(16_000) + ']'.repeat(16_000)), { problem: 'The body is nested too deep.' })
  })

  it('keeps a number that is no int64 as it was written', () => {
    const parsed = parse('[1e400, 1.50, 9223372036854775808]')
    assert.ok('value' in parsed)
    assert.deepEqual((parsed.value as OtherNumber[]).map(inWords), ['1e400', '1.50', '9223372036854775808'])
  })
})

describe('quote', () => {
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
