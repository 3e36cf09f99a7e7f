// All commands, how a command line names one of them, and the reading of the words after its name, with messages of our own.
import { parseArgs } from 'node:util'
import { redactValue } from '../contract/redact.ts'
import { ACCOUNT_COMMANDS } from './account.ts'
import { backup, restore } from './backup.ts'
import { type Command, type Input, type Option, UsageError } from './command.ts'
import { completionCommands } from './completion.ts'
import { copy } from './copy.ts'
import { doctor } from './doctor.ts'
import { ENVIRONMENT_COMMANDS } from './environment.ts'
import { exportPets } from './export.ts'
import { didYouMean } from './help.ts'
import { importPets } from './import.ts'
import { KEY_COMMANDS } from './key.ts'
import { migrate } from './migrate.ts'
import { openapi } from './openapi.ts'
import { seed } from './seed.ts'
import { serve } from './serve.ts'

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

type Parsed = Pick<Input, 'positionals' | 'flags' | 'switches'>

/** Reads options and positional arguments; throws `UsageError`. */
export function parseWords(command: Command, words: readonly string[]): Parsed {
  const { name, takes, options } = command
  const types = Object.fromEntries(Object.entries(options).map(([option, { type }]) => [option, { type }]))
  const { tokens, positionals } = parseArgs({
    args: [...words],
    options: types,
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const parsed: Parsed = { positionals, flags: {}, switches: {} }
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    // Not just any property: every object has a constructor.
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    if (option === undefined || !token.rawName.startsWith('--'))
      throw new UsageError(unknownOption(command, token.rawName))
    const value = valueOf(option, token)
    if (value === undefined) parsed.switches[token.name] = true
    else parsed.flags[token.name] = value
  }
  if (positionals.length === takes.length || takes[0]?.endsWith('…')) return parsed
  const expected = takes.length === 0 ? 'no arguments' : takes.join(' ')
  throw new UsageError(
    `${name} takes ${expected}, got ${positionals.length === 0 ? 'none' : positionals.map(redactValue).join(' ')}.`,
  )
}

interface OptionToken {
  rawName: string
  value?: string | undefined
  inlineValue?: boolean | undefined
}

/** Returns undefined for an option that takes no value. */
function valueOf(
  { type, value: placeholder }: Option,
  { rawName, value, inlineValue }: OptionToken,
): string | undefined {
  if (type === 'boolean') {
    if (value === undefined) return undefined
    throw new UsageError(`${rawName} takes no value, got ${JSON.stringify(redactValue(value))}.`)
  }
  // The next word is an option of its own; a value that looks like one is written --name=--value. A number may be negative.
  const isOption = !inlineValue && /^--?[^0-9]/.test(value ?? '')
  if (value !== undefined && !isOption) return value
  throw new UsageError(`${rawName} needs a value: ${rawName} ${placeholder}.`)
}

function unknownOption({ name, options }: Command, rawName: string): string {
  return `${name} has no option ${rawName}.${didYouMean(
    rawName,
    Object.keys(options).map((option) => `--${option}`),
  )}`
}
