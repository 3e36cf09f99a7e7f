// Lists all commands, suggests one for a mistyped name, and parses the words after a command's name.
import { parseArgs } from 'node:util'
import { didYouMean } from '../contract/text/did-you-mean.ts'
import { entryOf } from '../contract/text/entry-of.ts'
import { redactValue } from '../contract/text/redact.ts'
import { ACCOUNT_COMMANDS } from './commands/account.ts'
import { backup, restore } from './commands/backup.ts'
import { createCategory } from './commands/category.ts'
import { type Command, findCommand, type Input, type Option, UsageError } from './command.ts'
import { copy } from './commands/copy.ts'
import { distribute } from './commands/distribute.ts'
import { doctor } from './commands/doctor.ts'
import { ENVIRONMENT_COMMANDS } from './commands/environment.ts'
import { exportPets } from './commands/export.ts'
import { health } from './commands/health.ts'
import { importPets } from './commands/import.ts'
import { KEY_COMMANDS } from './commands/key.ts'
import { mcp } from './commands/mcp.ts'
import { migrate } from './commands/migrate.ts'
import { openapi } from './commands/openapi.ts'
import { seed } from './commands/seed.ts'
import { serve } from './commands/serve.ts'

export const COMMANDS: readonly Command[] = [
  serve,
  migrate,
  ...ACCOUNT_COMMANDS,
  ...KEY_COMMANDS,
  ...ENVIRONMENT_COMMANDS,
  createCategory,
  seed,
  importPets,
  exportPets,
  copy,
  distribute,
  backup,
  restore,
  doctor,
  health,
  mcp,
  openapi,
]

/** Returns the commands that share their first word, such as those of "key". */
export function commandsOf(group: string | undefined): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${group} `))
}

/** The words that other programs have for ours. */
const MEANT = { start: 'serve', run: 'serve', pet: 'import', add: 'create', delete: 'remove', show: 'list' }

export function unknownCommand(words: readonly string[]): string {
  const [first = '', second] = words.map(redactValue)
  const [ours = '', ...more] = words.map((word) => entryOf<string>(MEANT, word) ?? word)
  const near = didYouMean(first, ['--version', '--help', '-v', '-h'])
  if (first.startsWith('-') && near === '') {
    const late = words.map((_, index) => findCommand(COMMANDS, words.slice(index))).find((found) => found !== undefined)
    return `The command comes first, then its options: ${late?.name ?? 'COMMAND'} ${first} …`
  }
  const group = commandsOf(first)
  const names = group.map(({ name }) => name)
  if (group.length > 0 && second === undefined) return `Which command? ${names.join(', ')}.`
  if (group.length > 0)
    return `There is no command "${first} ${second}".${didYouMean(`${ours} ${more[0]}`, names) || ` There are ${names.join(', ')}.`}`
  const known = COMMANDS.map(({ name }) => name)
  const groups = new Set(known.map((name) => name.split(' ')[0]!))
  const suggestion = near || didYouMean(`${ours} ${more[0]}`, known) || didYouMean(ours, [...groups, 'help'])
  return `There is no command ${JSON.stringify(first)}.${suggestion}`
}

type Parsed = Pick<Input, 'positionals' | 'flags' | 'switches'>

/** Reads options and positional arguments; throws `UsageError`. */
export function parseWords({ name, takes = [], options }: Command, words: readonly string[]): Parsed {
  const typeOf = ({ value }: Option) => ({ type: value === undefined ? ('boolean' as const) : ('string' as const) })
  // Not strict: the messages of parseArgs suggest nothing, and may repeat a password.
  const { tokens, positionals: given } = parseArgs({
    args: [...words],
    options: Object.fromEntries(Object.entries(options).map(([flag, option]) => [flag, typeOf(option)])),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  // An empty one comes from a variable of the shell that is not set.
  const positionals = given.filter((word) => word !== '')
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
  if (positionals.length === takes.length) return parsed
  const expected = takes.length === 0 ? 'no arguments' : takes.join(' ')
  throw new UsageError(
    `${name} takes ${expected}, got ${positionals.length === 0 ? 'none' : positionals.map(redactValue).join(' ')}.`,
  )
}
