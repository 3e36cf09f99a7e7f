// The names of categories, for people and files: the interface knows only their numbers.
import { didYouMean } from './did-you-mean.ts'
import { int64FromText } from './int64.ts'
import { quote } from './json.ts'
import { CATEGORY_NAME_MAX_LENGTH } from './limits.ts'
import { isName } from './pets.ts'

export interface Category {
  number: bigint
  /** Checked by `categoryNameProblem`. */
  name: string
}

/** Says what is wrong with a name, without a full stop; undefined if nothing is. */
export function categoryNameProblem(name: string): string | undefined {
  const folded = foldCategoryName(name)
  if (folded === '') return 'Enter a name'
  const { length } = [...name]
  if (length > CATEGORY_NAME_MAX_LENGTH)
    return `The name must have at most ${CATEGORY_NAME_MAX_LENGTH} characters, got ${length}`
  if (!isName(name, CATEGORY_NAME_MAX_LENGTH))
    return 'The name has U+0000 or half a surrogate pair, which cannot be stored. Remove it'
  // Where a category is chosen, a number always means the number, and "Cats (3)" the category 3.
  if (/^[-+]?\p{Nd}+$/u.test(folded)) return 'The name needs more than digits, such as "Cats"'
  return /\([-+]?\p{Nd}+\)$/u.test(folded) ? 'The name must not end with a number in brackets' : undefined
}

/** Returns the same text for names that differ only in case, in white space around them, in invisible characters, or in how Unicode composes them. */
export function foldCategoryName(name: string): string {
  return name.normalize('NFKC').replaceAll(INVISIBLE, '').trim().toLowerCase()
}

const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu

/** The named categories of a store, read once for a page or a file. */
export class CategoryNames {
  /** By number, in the order of the names. */
  readonly names: ReadonlyMap<bigint, string>
  readonly #numbers: ReadonlyMap<string, bigint>

  constructor(categories: readonly Category[] = []) {
    const folded = categories.map(({ number, name }) => ({ number, name, key: foldCategoryName(name) }))
    const sorted = folded.toSorted((one, other) => (one.key < other.key ? -1 : 1))
    this.names = new Map(sorted.map(({ number, name }) => [number, name]))
    this.#numbers = new Map(sorted.map(({ number, key }) => [key, number]))
  }

  /** Returns "Cats (3)", or "3" without a name. */
  words(number: bigint): string {
    const name = this.names.get(number)
    return name === undefined ? String(number) : `${name} (${number})`
  }

  /** Returns the number that a text means: digits, a name, or both as in "Cats (3)", where the name may be an earlier one. */
  numberOf(text: string): bigint | undefined {
    const found = int64FromText(text.trim()) ?? this.#numbers.get(foldCategoryName(text))
    const [, name = '', digits = ''] = /^(.*) \((-?\d+)\)$/s.exec(text.trim()) ?? []
    const number = int64FromText(digits)
    if (found !== undefined || number === undefined || !this.names.has(number)) return found
    return (this.#numbers.get(foldCategoryName(name)) ?? number) === number ? number : undefined
  }

  /** Says that no category has this name, and which one has nearly it. */
  unknown(name: string): string {
    return `No category is named ${quote(name.trim())}.${didYouMean(name, [...this.names.values()], foldCategoryName)}`
  }
}
