// Where a text stops being JSON, in words for people. V8's own messages repeat raw parts of the text, and often say no place.

/** A place that a message can name, with what was expected there; `found` is empty at the end of the text. */
export interface BrokenJson {
  line: number
  column: number
  expected: string
  found: string
  advice: string
}

const BLANKS = String.raw`[ \t\n\r]*`
const CHARACTERS = String.raw`(?:[^"\\\u0000-\u001F]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*`
const NUMBER = String.raw`-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`

/** Punctuation, a whole string, or another value, after any blank space. Only one alternative can match anywhere, so it never backtracks far. */
const TOKEN = new RegExp(String.raw`${BLANKS}(?:([{}[\]:,])|("${CHARACTERS}")|${NUMBER}|true|false|null)`, 'y')
const BLANK = new RegExp(BLANKS, 'y')
const STRING_START = new RegExp(`"${CHARACTERS}`, 'y')

/** What may come next, in words. */
type Expected = keyof typeof NEXT

/** What each token leads to: a string, another value, or punctuation. 'done' completes a value, 'close' an object or array. */
const VALUES = { '{': '"}" or a name in double quotes', '[': 'a value or "]"', string: 'done', other: 'done' } as const
const NEXT = {
  'a value': VALUES,
  'a value or "]"': { ...VALUES, ']': 'close' },
  'a name in double quotes': { string: '":"' },
  '"}" or a name in double quotes': { string: '":"', '}': 'close' },
  '":"': { ':': 'a value' },
  '"," or "}"': { ',': 'a name in double quotes', '}': 'close' },
  '"," or "]"': { ',': 'a value', ']': 'close' },
  'the end': {},
} as const satisfies Record<string, Record<string, string>>

type Step = Expected | 'done' | 'close'

/** Returns undefined for a text that is JSON. */
export function findBrokenJson(text: string): BrokenJson | undefined {
  /** The brackets that are open, innermost last. */
  const open: string[] = []
  let expected: Expected = 'a value'
  let afterComma = false
  let at = 0
  for (;;) {
    const token = match(TOKEN, text, at)
    const kind = token?.[1] ?? (token?.[2] === undefined ? 'other' : 'string')
    const next: Step | undefined = token && (NEXT[expected] as Record<string, Step>)[kind]
    if (next === undefined) {
      const place = at + match(BLANK, text, at)![0].length
      if (place === text.length && expected === 'the end') return undefined
      return describeBreak(text, place, expected, afterComma)
    }
    at += token![0].length
    afterComma = kind === ','
    if (kind === '{' || kind === '[') open.push(kind)
    if (next === 'close') open.pop()
    expected = next === 'close' || next === 'done' ? afterValue(open.at(-1)) : next
  }
}

function afterValue(bracket: string | undefined): Expected {
  if (bracket === undefined) return 'the end'
  return bracket === '{' ? '"," or "}"' : '"," or "]"'
}

function describeBreak(text: string, place: number, expected: Expected, afterComma: boolean): BrokenJson {
  const found = String.fromCodePoint(...(place === text.length ? [] : [text.codePointAt(place)!]))
  if (found === '"' && match(TOKEN, text, place) === undefined) {
    return describeString(text, place + match(STRING_START, text, place)![0].length)
  }
  return { ...lineAndColumn(text, place), expected, found, advice: adviceFor(found, expected, afterComma) }
}

/** A string that never ends, or has a character or escape that JSON does not allow. */
function describeString(text: string, place: number): BrokenJson {
  const where = lineAndColumn(text, place)
  if (place === text.length) return { ...where, expected: 'the closing quote of a string', found: '', advice: '' }
  const found = text[place]!
  if (found === '\\')
    return {
      ...where,
      expected: 'a valid escape such as \\n or \\u0041',
      found: text.slice(place, place + 2),
      advice: '',
    }
  return {
    ...where,
    expected: 'the rest of a string',
    found,
    advice: 'Write control characters as escapes, such as \\n.',
  }
}

function adviceFor(found: string, expected: Expected, afterComma: boolean): string {
  if (found === "'" || (found !== '' && /^[A-Za-z_$]$/.test(found) && expected.includes('name')))
    return 'Write names and strings in double quotes.'
  if (afterComma && (found === '}' || found === ']')) return 'Remove the comma before it.'
  return ''
}

function lineAndColumn(text: string, place: number): { line: number; column: number } {
  const before = text.slice(0, place)
  return { line: before.split('\n').length, column: Array.from(before.slice(before.lastIndexOf('\n') + 1)).length + 1 }
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}
