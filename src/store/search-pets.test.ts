import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { wordsOf } from './search-pets.ts'

describe('the words of a text', () => {
  it('are without case, accents, other marks, ligatures, widths and invisible characters', () => {
    assert.deepEqual(wordsOf('Ärger ÉLAN ﬁx Ｗｉｄｅ İzmir ΟΔΟΣ'), ['arger', 'elan', 'fix', 'wide', 'izmir', 'οδοσ'])
    assert.deepEqual(wordsOf('\u202Er\u200Dex\u00AD e\u0301'), ['rex', 'e'])
  })

  it('end at spaces and punctuation, and may have digits and symbols', () => {
    assert.deepEqual(wordsOf(`Rex-Max O'Neil (7) 🐈 犬 a\0b`), ['rex', 'max', 'o', 'neil', '7', '🐈', '犬', 'a', 'b'])
    assert.deepEqual(wordsOf(' …! \u0301 \u202E '), [])
  })

  it('are 10 different ones of 32 code points at most', () => {
    assert.deepEqual(wordsOf('a a b c d e f g h i j k'), [...'abcdefghij'])
    assert.deepEqual(wordsOf('🐈'.repeat(40)), ['🐈'.repeat(32)])
  })

  it('are all those of a name as long as names may be, except where each character stands for many', () => {
    for (const character of ['x', 'é', '한', 'ᾂ', '犬', '🐈', '½', '㍿'])
      assert.equal(wordsOf(`${character.repeat(251)} rex`)[1], 'rex', character)
    const blessing = ['صلى', 'الله', 'عليه', 'وسلم']
    assert.deepEqual(wordsOf('\uFDFA'), blessing)
    const repeated = wordsOf(`${'\uFDFA '.repeat(125)} rex`)
    assert.deepEqual([repeated.slice(0, 4), repeated.includes('rex')], [blessing, false], 'what it begins with counts')
    assert.equal(wordsOf(`${'\uFDFA '.repeat(50)} rex`)[4], 'rex')
  })

  it('stay as they are when they are folded again, and begin alike when letters follow, for every character', () => {
    const odd: string[] = []
    for (let code = 0; code <= 0x10_ffff; code += 1) {
      const character = String.fromCodePoint(code)
      // No surrogates; of the many code points that Unicode has not assigned or that are private, some.
      if (/\p{Cs}/u.test(character) || (/[\p{Cn}\p{Co}]/u.test(character) && code % 101 > 0)) continue
      const words = wordsOf(character)
      const longer = wordsOf(`${character}x`)
      const isFolded = words.every((word) => wordsOf(word).join('|') === word)
      if (!isFolded || !words.every((word) => longer.some((other) => other.startsWith(word))))
        odd.push(code.toString(16))
    }
    assert.deepEqual(odd, [])
  })
})
