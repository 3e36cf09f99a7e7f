// The folding by which the search compares names: what people type finds Straße, Łódź, Mary-Ann and O’Malley. Both engines store the
// folded name of each animal in a column, which only this file's function writes, so that they find the same.
import { INVISIBLE } from './fold-name.ts'

/** Recorded in each database (`name_folding` in store_facts). Another folding is another column, which a later release must fill. */
export const FOLDING_VERSION = 1

/** How many UTF-16 code units are kept: a name has at most 510, but U+FDFA alone becomes 18 characters. */
const FOLDED_LENGTH = 512

/** Letters that Unicode does not decompose, each with what people type for it. */
const LETTERS = new Map(
  'ß=ss ł=l ø=o æ=ae œ=oe đ=d ð=d þ=th ħ=h ŧ=t ŋ=n ı=i ς=σ'
    .split(' ')
    .map((pair) => pair.split('=') as [string, string]),
)
const LETTER = new RegExp(`[${[...LETTERS.keys()].join('')}]`, 'g')

const DASH = /[\p{Pd}\u2212]/u
/** Apostrophes and quotation marks in all the ways that keyboards have them, and dashes: people leave them out. */
const LEFT_OUT = new RegExp(`['"\`´ʹʻʼʽʾʿˈ′″‵\\p{Pi}\\p{Pf}‚„]|${DASH.source}`, 'gu')

/** Marks, such as accents, and what shows nothing. */
const IGNORED = new RegExp(`\\p{M}|${INVISIBLE.source}`, 'gu')

/** What needs no Unicode: nearly every name. */
const PLAIN = /^[\x20-\x7E]*$/

/** Returns the text without case, accents, apostrophes, dashes and invisible characters; other punctuation stays as it is. */
export function foldForSearch(text: string): string {
  const folded = (PLAIN.test(text) ? text.toLowerCase() : foldParts(text)).replaceAll(LEFT_OUT, '')
  // Half of a surrogate pair can't be stored.
  const kept = folded
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, FOLDED_LENGTH)
  return kept.replace(/[\uD800-\uDBFF]$/, '')
}

/** Folds a few characters at a time, no more than are kept: decomposing all of a name of U+FDFA takes 30 µs. */
function foldParts(text: string): string {
  let folded = ''
  for (const [part] of text.matchAll(/.{1,32}/gsu)) {
    if (folded.length >= FOLDED_LENGTH) break
    // Before they are decomposed: some apostrophes become a blank and a mark, and marks in the wrong order take long.
    const bare = part.replaceAll(LEFT_OUT, '').replaceAll(IGNORED, '').normalize('NFKD').replaceAll(IGNORED, '')
    folded += bare.toLowerCase().replaceAll(LETTER, (letter) => LETTERS.get(letter)!)
  }
  return folded
}

/** Each word costs a look at every name, and more than a few narrow nothing down. */
const WORDS = 10

/**
 * Returns the words of a query, each of which must be somewhere in the folded name: the longest ones, without any that another one has.
 * A dash separates, so that `mary-ann` finds Mary-Ann and Mary Ann.
 */
export function wordsOf(query: string): string[] {
  const words = query
    .slice(0, FOLDED_LENGTH)
    .split(new RegExp(`[\\s\\p{Cc}]|${DASH.source}`, 'u'))
    .flatMap((word) => foldForSearch(word).split(' '))
  const longestFirst = [...new Set(words)].toSorted((one, other) => other.length - one.length)
  const needed = longestFirst.filter((word, at) => !longestFirst.slice(0, at).some((longer) => longer.includes(word)))
  return needed.filter((word) => word !== '').slice(0, WORDS)
}
