// The rules for names of categories.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { categoryNameProblem } from './category-name.ts'

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
]

for (const [name, expected] of CASES)
  it(`A category ${expected === undefined ? 'may' : 'can not'} be named ${JSON.stringify(name.slice(0, 12))}`, () => {
    const problem = categoryNameProblem(name)
    if (expected === undefined) assert.equal(problem, undefined)
    else assert.match(problem!, expected)
  })
