// The rules for names of categories.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { categoryNameProblem } from './category-name.ts'
import { foldName } from './text/fold-name.ts'

type Case = [name: string, problem: RegExp | undefined]

const CASES: Case[] = [
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
  ...['\u200B', '\u2800', '\uFFF9', '\u{1D159}', '\u{13441}', '\u{16FE4}'].map((blank): Case => [
    blank,
    /^Enter a name$/,
  ]),
  ['Cats (3)', undefined],
]

for (const [name, expected] of CASES)
  it(`A category ${expected === undefined ? 'may' : 'can not'} be named ${JSON.stringify(name.slice(0, 12))}`, () => {
    const problem = categoryNameProblem(name)
    if (expected === undefined) assert.equal(problem, undefined)
    else assert.match(problem!, expected)
  })

it('Names that look the same are the same', () => {
  for (const name of ['cats', ' CATS ', 'Ｃａｔｓ', 'Ca\u00ADts', 'Cats\u200B', '\u202ACats\u202C'])
    assert.equal(foldName(name), 'cats')
  for (const [one, other] of [
    ['Caf\u00E9', 'CAFE\u200D\u0301'],
    ['\u01F0', 'J\u030C'],
    ['Black cats', 'Black \u00A0cats'],
    ['νικος.α@shop.gr', 'ΝΙΚΟΣ.Α@shop.gr'],
    ['νικοσ', 'Νικος'],
  ] as const)
    assert.equal(foldName(one), foldName(other), one)
})
