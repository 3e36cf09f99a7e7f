// Lists all commands, suggests one for a mistyped name, and parses the words after a command's name.
import { parseArgs } from 'node:util'
import { didYouMean } from '../contract/did-you-mean.ts'
import { redactValue } from '../contract/redact.ts'
import { ACCOUNT_COMMANDS } from './account.ts'
import { backup, restore } from './backup.ts'
import { type Command, type Input, type Option, UsageError } from './command.ts'
import { completionCommands } from './completion.ts'
import { copy } from './copy.ts'
import { distribute } from './distribute.ts'
import { doctor } from './doctor.ts'
import { ENVIRONMENT_COMMANDS } from './environment.ts'
import { exportPets } from './export.ts'
import { health } from './health.ts'
import { importPets } from './import.ts'
import { KEY_COMMANDS } from './key.ts'
import { mcp } from './mcp.ts'
import { migrate } from './migrate.ts'
import { openapi } from './openapi.ts'
import { partition } from './partition.ts'
import { seed } from './seed.ts'
import { serve } from './serve.ts'

const OPERATIONAL: readonly Command[] = [
  serve,
  migrate,
  ...ACCOUNT_COMMANDS,
  ...KEY_COMMANDS,
  ...ENVIRONMENT_COMMANDS,
  seed,
  importPets,
  exportPets,
  copy,
  partition,
  distribute,
  backup,
  restore,
  doctor,
  health,
  mcp,
  openapi,
]

export const COMMANDS: readonly Command[] = [...OPERATIONAL, ...completionCommands(OPERATIONAL)]

/** Returns the commands that share their first word, such as those of "key". */
export function commandsOf(group: string | undefined): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${group} `))
}

/** Returns the message for an unknown command, with a suggestion. */
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
export function parseWords({ name, takes, options }: Command, words: readonly string[]): Parsed {
  const typeOf = ({ value }: Option) => ({ type: value === undefined ? ('boolean' as const) : ('string' as const) })
  // Not strict: the messages of parseArgs suggest nothing, and may repeat a password.
  const { tokens, positionals } = parseArgs({
    args: [...words],
    options: Object.fromEntries(Object.entries(options).map(([flag, option]) => [flag, typeOf(option)])),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const parsed: Parsed = { positionals, flags: {}, switches: {} }
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const { rawName, value, inlineValue } = token
    // Object.hasOwn, because --constructor would find a property of every object.
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    if (option === undefined || !rawName.startsWith('--')) {
      const known = Object.keys(options).map((flag) => `--${flag}`)
      throw new UsageError(`${name} has no option ${rawName}.${didYouMean(rawName, known)}`)
    }
    if (option.value === undefined) {
      if (value !== undefined)
        throw new UsageError(`${rawName} takes no value, got ${JSON.stringify(redactValue(value))}.`)
      parsed.switches[token.name] = true
      continue
    }
    // A separate word that starts with a dash is the next option, not a value, unless it is a negative number.
    if (value === undefined || (!inlineValue && /^--?[^0-9]/.test(value)))
      throw new UsageError(`${rawName} needs a value: ${rawName} ${option.value}.`)
    parsed.flags[token.name] = value
  }
  if (positionals.length === takes.length || takes[0]?.endsWith('…')) return parsed
  const expected = takes.length === 0 ? 'no arguments' : takes.join(' ')
  throw new UsageError(
    `${name} takes ${expected}, got ${positionals.length === 0 ? 'none' : positionals.map(redactValue).join(' ')}.`,
  )
}
