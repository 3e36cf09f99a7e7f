// The two ways through parseJson agree.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { OtherNumber, parseJson } from './json.ts'

/** What the fields of an object hold, numbers as they were written. */
function fields(text: string): unknown {
  const parsed = parseJson(Buffer.from(text))
  assert.ok('value' in parsed, text)
  const entries = Object.entries(parsed.value as object).filter(([, value]) => typeof value !== 'object' || value instanceof OtherNumber)
  return entries.map(([name, value]) => [name, value instanceof OtherNumber ? value.source : value])
}

describe('parseJson', () => {
  it('reads every integer exactly, whatever stands beside it', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.string(), fc.json(), (integer, name, deeper) => {
        const easy = `{"categoryId": ${integer}, "name": ${JSON.stringify(name)}, "deeper": ${deeper}}`
        const hard = easy.replace('{', '{"hard": 1.5, ')
        const expected = fields(hard) as unknown[]
        assert.deepEqual(fields(easy), expected.slice(1))
        assert.deepEqual(expected[0], ['hard', '1.5'])
        assert.equal((expected[1] as unknown[])[1], integer)
      }),
    )
  })

  it('is not misled by a number that a double rounds', () => {
    for (const source of ['3.0000000000000000001', '9007199254740993', '-0', '1e2', '999999999999999', '1000000000000000', '0.5', '1e400']) {
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
