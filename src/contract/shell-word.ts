// Quotes a word for a shell, in commands that messages suggest.
import { sep } from 'node:path'

/** Returns the word in single quotes, unless every character of it stands for itself in a shell. */
export function shellWord(word: string): string {
  return /^[\w./@:+,-]+$/.test(word.replaceAll(sep, '/')) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}
