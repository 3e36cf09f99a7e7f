// Splits names and queries into words, folded as the search compares them.

/** Returns the first 10 different words in order, each cut to 32 code points, without case, marks and invisible characters. */
export function wordsOf(text: string): string[] {
  // A final sigma (ς) becomes an inner one (σ), so that the beginning of a word matches the whole word.
  const plain = text.normalize('NFKD').replaceAll(IGNORED, '').toLowerCase().replaceAll('ς', 'σ')
  const words = Array.from(plain.matchAll(WORD), ([, start]) => start!)
  return [...new Set(words)].slice(0, 10)
}

/** Marks, such as accents, and format characters, such as those that change the direction of text. */
const IGNORED = /[\p{M}\p{Cf}]/gu

/** A run of letters, digits and symbols, such as emoji; its first code points are captured. */
const WORD = /([\p{L}\p{N}\p{S}]{1,32})[\p{L}\p{N}\p{S}]*/gu

/** The place of an animal in the search: by its first word that matches, then by its id. */
export interface Place {
  word: string
  id: bigint
}

/** Compares by the UTF-8 bytes of the word, as both engines do, then by the id. */
export function comparePlaces(one: Place, other: Place): number {
  if (one.word !== other.word) return Buffer.compare(Buffer.from(one.word), Buffer.from(other.word))
  return one.id < other.id ? -1 : Number(one.id > other.id)
}

/** Returns the words of these animals in the order of the index: neighbours are cheap to insert. */
export function wordRows(pets: readonly { id: bigint; name: string }[]): Place[] {
  return pets.flatMap(({ id, name }) => wordsOf(name).map((word) => ({ word, id }))).toSorted(comparePlaces)
}
