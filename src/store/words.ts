// Splits names and queries into words, folded as the search compares them.
import { inSlices } from './turns.ts'

/**
 * How many UTF-16 code units of a text are folded, of its own and of its decomposed characters. A name has at most 510 of its own.
 * Few characters decompose to more than 4 units, but U+FDFA to 18: only the beginning of a name that repeats it is searched.
 */
const FOLDED_LENGTH = { own: 512, decomposed: 1024 }

/** Returns the first 10 different words in order, each cut to 32 code points, without case, marks and invisible characters. */
export function wordsOf(text: string): string[] {
  const decomposed = text.slice(0, FOLDED_LENGTH.own).normalize('NFKD').slice(0, FOLDED_LENGTH.decomposed)
  // A final sigma (ς) becomes an inner one (σ), so that the beginning of a word matches the whole word.
  const plain = decomposed.replaceAll(IGNORED, '').toLowerCase().replaceAll('ς', 'σ')
  const words = (plain.match(WORD) ?? []).map((word) => (word.length <= 32 ? word : [...word].slice(0, 32).join('')))
  return [...new Set(words)].slice(0, 10)
}

/** Marks, such as accents, and format characters, such as those that change the direction of text. */
const IGNORED = /[\p{M}\p{Cf}]/gu

/** A run of letters, digits and symbols, such as emoji. */
const WORD = /[\p{L}\p{N}\p{S}]+/gu

/** The place of an animal in the search: by its first word that matches, then by its id. */
export interface Place {
  word: string
  id: bigint
}

/** Compares by the UTF-8 bytes of the word, as both engines do, then by the id. */
export function comparePlaces(one: Place, other: Place): number {
  if (one.word !== other.word) return isBefore(one.word, other.word) ? -1 : 1
  return one.id < other.id ? -1 : Number(one.id > other.id)
}

/** Compares by code point, which is the order of UTF-8 too; in UTF-16, surrogates come before U+E000 to U+FFFF. */
function isBefore(one: string, other: string): boolean {
  let at = 0
  while (one.charCodeAt(at) === other.charCodeAt(at)) at += 1
  return (one.codePointAt(at) ?? -1) < (other.codePointAt(at) ?? -1)
}

/** Resolves with the words of these animals in the order of the index: neighbours are cheap to insert. */
export async function wordRows(pets: readonly { id: bigint; name: string }[]): Promise<Place[]> {
  const rows = await inSlices(pets, ({ id, name }) => wordsOf(name).map((word) => ({ word, id })))
  return rows.flat().toSorted(comparePlaces)
}
