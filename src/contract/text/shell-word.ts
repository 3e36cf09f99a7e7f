// Quotes a word for a shell, in commands that messages suggest.
import { sep } from 'node:path'

/** Returns the word in single quotes, unless it has no character that is special in a shell. */
export function shellWord(word: string): string {
  return /^[\w./@:+,-]+$/.test(word.replaceAll(sep, '/')) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}
