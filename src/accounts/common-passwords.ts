// The most common passwords, which attackers try first.
import { readFileSync } from 'node:fs'

/**
 * One per line, in lower case, each of 12 characters or more: shorter ones are refused for their length. They follow the
 * patterns at the top of every published list of leaked passwords: runs of digits and of keyboard keys; `password`,
 * `admin`, `welcome` and the like followed by digits; names and teams; and the same in a few other languages.
 */
const COMMON = new Set(
  readFileSync(new URL('common-passwords.txt', import.meta.url), 'utf8')
    .trimEnd()
    .split('\n'),
)

export function isCommonPassword(password: string): boolean {
  return COMMON.has(password.toLowerCase())
}
