// Exact 64-bit integers, from a path and from any spelling of a JSON number.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { cpuTime } from '../../test/harness/programs/cpu-time.ts'
import { INT64_MAX, INT64_MIN, int64FromJsonNumber, int64FromText, isInt64 } from './int64.ts'

const int64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX })

describe('int64FromText', () => {
  it('reads every int64 back from its digits', () => {
    fc.assert(fc.property(int64, (value) => int64FromText(String(value)) === value))
    for (const value of [INT64_MIN, -1n, 0n, 1n, INT64_MAX]) assert.equal(int64FromText(String(value)), value)
  })

  it('reads nothing else: one animal has one address', () => {
    const spellings = ['', '-', '-0', '00', '01', '+1', ' 1', '1 ', '1\n', '1.0', '1e2', '0x1', '٣', '９']
    const beyond = [String(INT64_MAX + 1n), String(INT64_MIN - 1n), '9'.repeat(10_000)]
    for (const text of [...spellings, ...beyond]) assert.equal(int64FromText(text), undefined, text)
    fc.assert(
      fc.property(fc.string(), (text) => {
        const value = int64FromText(text)
        return value === undefined || String(value) === text
      }),
    )
  })
})

describe('int64FromJsonNumber', () => {
  it('reads every int64, in any spelling that JSON has for it', () => {
    fc.assert(
      fc.property(int64, fc.integer({ min: 0, max: 30 }), fc.constantFrom('e', 'E', 'e+'), (value, zeros, e) => {
        const digits = String(value)
        assert.equal(int64FromJsonNumber(digits), value)
        assert.equal(int64FromJsonNumber(`${digits}.${'0'.repeat(zeros + 1)}`), value)
        assert.equal(int64FromJsonNumber(`${digits}${'0'.repeat(zeros)}e-${zeros}`), value)
        assert.equal(int64FromJsonNumber(`${digits}${e}0`), value)
        assert.equal(int64FromJsonNumber(`0.${'0'.repeat(zeros)}5${e}${zeros + 1}`), 5n)
      }),
    )
  })

  it('agrees with exact arithmetic on any JSON number', () => {
    const number = fc.tuple(
      fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }),
      fc.stringMatching(/^[0-9]{0,6}$/),
      fc.integer({ min: -30, max: 30 }),
    )
    fc.assert(
      fc.property(number, ([whole, fraction, exponent]) => {
        const source = `${whole}${fraction && `.${fraction}`}e${exponent}`
        const unscaled = BigInt(`${whole}${fraction}`)
        const scale = exponent - fraction.length
        const exact =
          scale >= 0
            ? unscaled * 10n ** BigInt(scale)
            : unscaled % 10n ** BigInt(-scale) === 0n
              ? unscaled / 10n ** BigInt(-scale)
              : undefined
        assert.equal(int64FromJsonNumber(source), exact !== undefined && isInt64(exact) ? exact : undefined, source)
      }),
    )
  })

  it('settles the size before it makes a number', async () => {
    const took = await cpuTime(() => {
      const exponents = ['1e999999999', '-1e999999999', `1e${'9'.repeat(5000)}`, `1e-${'9'.repeat(5000)}`]
      for (const source of [...exponents, '9'.repeat(16_000), `0.${'0'.repeat(16_000)}1`])
        assert.equal(int64FromJsonNumber(source), undefined)
      assert.equal(int64FromJsonNumber(`0e${'9'.repeat(5000)}`), 0n)
    })
    assert.ok(took < 500, `it took ${took} ms`)
  })
})
