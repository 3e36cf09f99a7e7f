// The rules for names of categories.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { categoryNameProblem, foldCategoryName } from './category-name.ts'

const CASES: [string, RegExp | undefined][] = [
  ['Cats', undefined],
  ['3 cats', undefined],
  ['🐈', undefined],
  ['x'.repeat(100), undefined],
  ['🐈'.repeat(100), undefined],
  ['', /^Enter a name$/],
  [' \t', /^Enter a name$/],
  ['x'.repeat(101), /at most 100 characters, got 101$/],
  ['Cats\0', /U\+0000/],
  ['Cats\uD800', /surrogate/],
  ['3', /more than digits/],
  [' -3 ', /more than digits/],
  ['٣', /more than digits/],
  ['３\u200B', /more than digits/],
  ['\u200B', /^Enter a name$/],
  ['Cats (indoor)', undefined],
  // Shown and chosen like the category 3 while that is named Cats.
  ['Cats (3)', /must not end with a number in brackets/],
  ['Cats\u00A0（-３）', /must not end with a number in brackets/],
  ['Cats ⑶\u200B', /must not end with a number in brackets/],
]

for (const [name, expected] of CASES)
  it(`A category ${expected === undefined ? 'may' : 'can not'} be named ${JSON.stringify(name.slice(0, 12))}`, () => {
    const problem = categoryNameProblem(name)
    if (expected === undefined) assert.equal(problem, undefined)
    else assert.match(problem!, expected)
  })

it('Names that look the same are the same', () => {
  for (const name of ['cats', ' CATS ', 'Ｃａｔｓ', 'Ca\u00ADts', 'Cats\u200B', '\u202ACats\u202C'])
    assert.equal(foldCategoryName(name), 'cats')
})
