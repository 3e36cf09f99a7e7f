import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { foldForSearch, wordsOf } from './search-words.ts'

/** Not assigned, private, ideographs and syllables. */
const ALIKE = /[\p{Cn}\p{Co}\p{Script=Han}\p{Script=Hang}\p{Script=Tang}\p{Script=Egyp}]/u

/** What the search does: each word is somewhere in the folded name. */
const finds = (query: string, name: string) => wordsOf(query).every((word) => foldForSearch(name).includes(word))

describe('the folding of names for the search', () => {
  it('finds names as people type them: without case, accents, special letters, apostrophes and dashes', () => {
    const typed = {
      Straßenkater: ['strasse', 'STRAẞE', 'straße', 'kater', 'kater stra'],
      Łódź: ['lodz', 'łódź', 'LODZ'],
      "O'Malley": ['omalley', 'o’malley', 'O`Malley', 'o´malley', 'oʼmal'],
      'O’Malley': ['omalley', "o'malley"],
      'Mary-Ann': ['mary-ann', 'mary ann', 'maryann', 'mary‑ann', 'MARY–ANN'],
      'Mary Ann': ['mary-ann', 'ann mary'],
      'Ærøskøbing ﬁn': ['aeroskobing fin'],
      'İzmir ılgaz ΟΔΟΣ': ['izmir', 'ilgaz', 'IZMIR', 'οδος', 'οδο'],
      'Ｗｉｄｅ \u202Er\u200Dex': ['wide', 'rex'],
      '100% Wolle_x (7)': ['100%', '_x', '(7)', '0% wol'],
      '犬 🐈 한국': ['犬', '🐈', '한국', '국'],
    }
    for (const [name, queries] of Object.entries(typed))
      for (const query of queries) assert.ok(finds(query, name), `${query} in ${name}`)
    for (const [query, name] of [
      ['%', '100'],
      ['_', 'ax'],
      ['katze', 'kater'],
    ] as const)
      assert.ok(!finds(query, name))
  })

  it('makes a query of at most 10 words, none of which is part of another, and of nothing if it has no sign', () => {
    assert.deepEqual(wordsOf('a ann mary-ann a\0b'), ['mary', 'ann', 'b'])
    assert.deepEqual(wordsOf(' \u0301 \u202E - ’ \0'), [])
    assert.equal(wordsOf([...'abcdefghijklm'].join(' ')).length, 10)
    assert.deepEqual(wordsOf('\\u0000'), ['\\u0000'])
  })

  it('keeps at most 512 code units, and no half of a character', () => {
    assert.equal(foldForSearch('x'.repeat(255)).length, 255)
    const blessing = 'صلى الله عليه وسلم'
    assert.equal(foldForSearch('\uFDFA'.repeat(255)), blessing.repeat(30).slice(0, 512))
    const cats = foldForSearch(`\uFDFAx${'🐈'.repeat(253)}`)
    assert.equal(cats.length, 511)
    assert.ok(cats.isWellFormed())
  })

  it('stays as it is when it is folded again, wherever a character stands, for every character', () => {
    const odd: string[] = []
    for (let code = 0; code <= 0x10_ffff; code += 1) {
      const character = String.fromCodePoint(code)
      // No surrogates; of the many code points that are alike, some.
      if (/\p{Cs}/u.test(character) || (code % 101 > 0 && ALIKE.test(character))) continue
      const folded = foldForSearch(character)
      if (foldForSearch(folded) !== folded || !finds(character, `É${character}x`)) odd.push(code.toString(16))
    }
    assert.deepEqual(odd, [])
  })
})
