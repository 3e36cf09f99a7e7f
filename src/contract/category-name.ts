// The names of categories, for people and files: the interface knows only their numbers.
import { nearestWord } from './text/did-you-mean.ts'
import { foldName } from './text/fold-name.ts'
import { int64FromText } from './int64.ts'
import { quote } from './json.ts'
import { CATEGORY_NAME_FOLDED_MAX_LENGTH, CATEGORY_NAME_MAX_LENGTH } from './limits.ts'
import { isName } from './pets.ts'

export interface Category {
  number: bigint
  /** Checked by `categoryNameProblem`. */
  name: string
}

/** Says what is wrong with a name, without a full stop; undefined if nothing is. */
export function categoryNameProblem(name: string): string | undefined {
  const { length } = [...name]
  if (length > CATEGORY_NAME_MAX_LENGTH)
    return `The name must have at most ${CATEGORY_NAME_MAX_LENGTH} characters, got ${length}`
  const folded = foldName(name)
  if (folded === '') return 'Enter a name'
  const { length: written } = [...folded]
  if (written > CATEGORY_NAME_FOLDED_MAX_LENGTH)
    return `The name has signs that stand for words, such as ﷺ. Written out, it must have at most ${CATEGORY_NAME_FOLDED_MAX_LENGTH} characters, got ${written}`
  if (!isName(name, CATEGORY_NAME_MAX_LENGTH))
    return 'The name has U+0000 or half a surrogate pair, which cannot be stored. Remove it'
  // Where a category is chosen, digits mean the number.
  return /^[-+]?\p{Nd}+$/u.test(folded) ? 'The name needs more than digits, such as "Cats"' : undefined
}

/** Folds what was typed. To normalise a run of marks takes the square of its length, and a longer text is no name. */
function foldTyped(text: string): string {
  return text.length > 10 * CATEGORY_NAME_MAX_LENGTH ? text : foldName(text)
}

/** The named categories of a store, read once for a page or a file. */
export class CategoryNames {
  /** By number, in the order of the names. */
  readonly names: ReadonlyMap<bigint, string>
  readonly #numbers: ReadonlyMap<string, bigint>

  constructor(categories: readonly Category[] = [], fold = foldName) {
    const folded = categories.map(({ number, name }) => ({ number, name, key: fold(name) }))
    const sorted = folded.toSorted((one, other) => (one.key < other.key ? -1 : 1))
    this.names = new Map(sorted.map(({ number, name }) => [number, name]))
    this.#numbers = new Map(sorted.map(({ number, key }) => [key, number]))
  }

  words(number: bigint): string {
    return this.names.get(number) ?? String(number)
  }

  /** Returns the number that a text means: digits, or a name. */
  numberOf(text: string): bigint | undefined {
    return int64FromText(text.trim()) ?? this.#numbers.get(foldTyped(text))
  }

  /** Returns the numbers whose names have the text, in the order of the names. */
  matching(text: string): bigint[] {
    const sought = foldTyped(text)
    return Array.from(this.#numbers).flatMap(([key, number]) => (key.includes(sought) ? [number] : []))
  }

  /** Returns the name that is nearest to a mistyped one. */
  nearest(name: string): string | undefined {
    const folded = nearestWord(foldTyped(name), this.#numbers.keys())
    return folded === undefined ? undefined : this.words(this.#numbers.get(folded)!)
  }

  /** Says that no category has this name, and which one has nearly it. */
  unknown(name: string): string {
    const nearest = this.nearest(name)
    return `No category is named ${quote(name.trim())}.${nearest === undefined ? '' : ` Did you mean ${nearest}?`}`
  }
}
