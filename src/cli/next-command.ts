// Renders the commands that messages suggest: the program as the user called it, and the same database.
import { resolve } from 'node:path'
import { type Config, SETTINGS } from '../config.ts'
import { redactCredentials } from '../contract/text/redact.ts'
import { shellWord } from '../contract/text/shell-word.ts'
import { holdsPassword, suggestedAddress } from '../store/database/database-address.ts'
import type { Input } from './command.ts'

/**
 * Returns a command line to suggest, quoted for a shell. Names the database unless it is the default, so that the command works
 * in another folder too, and without its password.
 */
export function nextCommand(input: Pick<Input, 'terminal' | 'config'>, ...words: string[]): string {
  const { variables, options } = sameDatabase(input.config)
  return [...variables, input.terminal.program, ...[...words, ...options].map(shellWord)].join(' ')
}

/** Returns the option --account for `nextCommand`; with the placeholder EMAIL for an address that is unknown, or looks like a password. */
export function accountOption(email = 'EMAIL'): string[] {
  const shown = redactCredentials(email) === email ? email : 'EMAIL'
  // One word if the value would be taken for an option itself.
  return shown.startsWith('-') ? [`--account=${shown}`] : ['--account', shown]
}

/** An address with a password goes into a variable, because every user of the machine can read command lines. */
function sameDatabase({ database, given }: Config) {
  const { flag, variable, fileVariable } = SETTINGS.database
  const none: string[] = []
  if (!given.has('database')) return { variables: none, options: none }
  const address = database.engine === 'sqlite' ? `sqlite:${database.path}` : database.url
  const suggested = suggestedAddress(address)
  if (suggested === address && !holdsPassword(address)) return { variables: none, options: [`--${flag}`, address] }
  const file = given.get('database')
  const [name, value] = file === undefined ? [variable, suggested] : [fileVariable, resolve(file)]
  return { variables: [`${name}=${shellWord(value)}`], options: none }
}
