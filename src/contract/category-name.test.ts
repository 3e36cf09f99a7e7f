// The rules for names of categories.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { countedSteps } from '../../test/harness/counted-steps.ts'
import { CategoryNames, categoryNameProblem } from './category-name.ts'
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
  ['\uFDFA'.repeat(11), undefined],
  ['\uFDFA'.repeat(12), /Written out, it must have at most 200 characters, got 216$/],
  ['\u0958'.repeat(100), undefined],
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

it('The name that is meant is looked for in few steps, however long, alike and many the names are', () => {
  const count = 100
  const store = (name: (digits: string) => string) =>
    new CategoryNames(
      Array.from({ length: count }, (_, index) => ({
        number: BigInt(index),
        name: name(String(index).padStart(3, '0')),
      })),
    )
  // A release before the limit of the folded length took such names.
  const long = store((digits) => '\uFDFA'.repeat(97) + digits)
  const alike = store((digits) => 'x'.repeat(59) + digits)
  const cases: [CategoryNames, typed: string, hint: RegExp][] = [
    [long, '\uFDFA'.repeat(97) + '0123', /\.$/],
    [long, '\uFDFA'.repeat(5000), /\.$/],
    [alike, 'x'.repeat(5000), /\.$/],
    [alike, 'x'.repeat(58) + 'yyyy', /\.$/],
    [alike, 'x'.repeat(59) + '0012', /Did you mean x{59}001\?$/],
    [alike, 'x'.repeat(58) + '007x', /Did you mean x{59}007\?$/],
  ]
  for (const [names, typed, hint] of cases) {
    assert.match(names.unknown(typed), hint)
    // Of each name 62 letters, with up to 3 before and after each.
    const steps = countedSteps(() => names.unknown(typed))
    assert.ok(steps < 6 * 7 * 62 * count, `${steps} steps for ${typed.slice(0, 70)}`)
  }
})

it('A name of one letter is not suggested for any other letter', () => {
  const names = new CategoryNames([{ number: 1n, name: 'B' }])
  assert.match(names.unknown('X'), /"X"\.$/)
})

it('A text that is too long for a name is not folded: it would take the square of its length', () => {
  const marks = '\u0301\u0323'.repeat(2000)
  const cats = new CategoryNames([{ number: 3n, name: 'Cats' }])
  const folds = (text: string) => countedSteps(() => [cats.numberOf(text), cats.unknown(text)], 'foldName')
  assert.deepEqual([folds('Cats'), folds(marks)], [2, 0])
  assert.equal(cats.numberOf(`Cats${'\u200B'.repeat(900)}`), 3n)
})
