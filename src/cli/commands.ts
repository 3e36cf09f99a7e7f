// All commands, and how a command line names one of them.
import { redactValue } from '../contract/redact.ts'
import { ACCOUNT_COMMANDS } from './account.ts'
import { backup, restore } from './backup.ts'
import type { Command } from './command.ts'
import { completionCommands } from './completion.ts'
import { copy } from './copy.ts'
import { doctor } from './doctor.ts'
import { ENVIRONMENT_COMMANDS } from './environment.ts'
import { exportPets } from './export.ts'
import { importPets } from './import.ts'
import { KEY_COMMANDS } from './key.ts'
import { migrate } from './migrate.ts'
import { openapi } from './openapi.ts'
import { seed } from './seed.ts'
import { serve } from './serve.ts'
import { didYouMean } from './suggest.ts'

const WORKING: readonly Command[] = [
  serve,
  migrate,
  ...ACCOUNT_COMMANDS,
  ...KEY_COMMANDS,
  ...ENVIRONMENT_COMMANDS,
  seed,
  importPets,
  exportPets,
  copy,
  backup,
  restore,
  doctor,
  openapi,
]

export const COMMANDS: readonly Command[] = [...WORKING, ...completionCommands(WORKING)]

export function findCommand(words: readonly string[]): Command | undefined {
  return COMMANDS.find(({ name }) => name.split(' ').every((word, index) => words[index] === word))
}

/** Returns the commands that share their first word, such as those of "key". */
export function commandsOf(group: string | undefined): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${group} `))
}

/** Says which command may have been meant. */
export function unknownCommand(words: readonly string[]): string {
  const [first = '', second] = words.map(redactValue)
  const group = commandsOf(first)
  const names = group.map(({ name }) => name)
  if (group.length > 0 && second === undefined) return `Which command? ${names.join(', ')}.`
  if (group.length > 0)
    return `There is no command "${first} ${second}".${didYouMean(`${first} ${second}`, names) || ` There are ${names.join(', ')}.`}`
  const known = COMMANDS.filter(({ hidden }) => !hidden).map(({ name }) => name)
  const groups = new Set(known.map((name) => name.split(' ')[0]!))
  const suggestion = didYouMean(words.slice(0, 2).join(' '), known) || didYouMean(first, [...groups, 'help'])
  return `There is no command ${JSON.stringify(first)}.${suggestion}`
}
