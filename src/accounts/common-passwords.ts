// Is this one of the passwords that everybody tries first?
import { readFileSync } from 'node:fs'

/**
 * One a line, in lower case, each of 12 characters or more: shorter ones are refused by their length already. They are
 * the shapes that head every published count of leaked passwords: runs of digits and of keyboard keys, `password`,
 * `admin`, `welcome` and the like with digits behind, names and teams, and the same in a few other languages.
 */
const COMMON = new Set(readFileSync(new URL('common-passwords.txt', import.meta.url), 'utf8').trimEnd().split('\n'))

export function isCommonPassword(password: string): boolean {
  return COMMON.has(password.toLowerCase())
}
