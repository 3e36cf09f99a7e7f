// The names of categories, for people and files: the interface knows only their numbers.
import { CATEGORY_NAME_MAX_LENGTH } from './limits.ts'
import { isName } from './pets.ts'

/** Says what is wrong with a name, without a full stop; undefined if nothing is. */
export function categoryNameProblem(name: string): string | undefined {
  if (name.trim() === '') return 'Enter a name'
  const { length } = [...name]
  if (length > CATEGORY_NAME_MAX_LENGTH)
    return `The name must have at most ${CATEGORY_NAME_MAX_LENGTH} characters, got ${length}`
  if (!isName(name, CATEGORY_NAME_MAX_LENGTH))
    return 'The name has U+0000 or half a surrogate pair, which cannot be stored. Remove it'
  // A number that is typed where a category is chosen always means the number.
  return /^\s*[-+]?\p{Nd}+\s*$/u.test(name) ? 'The name needs more than digits, such as "Cats"' : undefined
}

/** Returns the same text for names that differ only in case, in white space around them, or in how Unicode composes them. */
export function foldCategoryName(name: string): string {
  return name.trim().normalize('NFKC').toLowerCase()
}
