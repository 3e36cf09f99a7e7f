// Finds and runs the command of a command line. Exit codes: 0 done, 1 failed, 2 wrong usage.
import { parseArgs } from 'node:util'
import { BadSetting, readConfig } from '../config.ts'
import { VERSION } from '../contract/operations.ts'
import { CannotOpenStore, StoreUnavailable } from '../store/store.ts'
import { ACCOUNT_COMMANDS } from './account.ts'
import { type Command, CommandFailed, UsageError } from './command.ts'
import { copy } from './copy.ts'
import { helpFor, overview } from './help.ts'
import { KEY_COMMANDS } from './key.ts'
import { migrate } from './migrate.ts'
import { openapi } from './openapi.ts'
import { seed } from './seed.ts'
import { serve } from './serve.ts'
import { print, report, type Terminal } from './terminal.ts'

const COMMANDS: readonly Command[] = [serve, migrate, ...ACCOUNT_COMMANDS, ...KEY_COMMANDS, seed, copy, openapi]

export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  const [first] = words
  if (first === '--version' || first === '-v') {
    print(terminal, VERSION)
    return 0
  }
  const wantsHelp = first === undefined || first === 'help' || words.includes('--help') || words.includes('-h')
  const sought = first === 'help' ? words.slice(1) : words
  const command = findCommand(sought)
  if (wantsHelp && (command !== undefined || sought.every((word) => word.startsWith('-')))) {
    print(terminal, command === undefined ? overview(COMMANDS) : helpFor(command))
    return 0
  }
  try {
    if (command === undefined) throw new UsageError(unknownCommand(sought))
    await start(command, words.slice(command.name.split(' ').length), terminal)
    return 0
  } catch (error) {
    return explainFailure(error, command, terminal)
  }
}

function findCommand(words: readonly string[]): Command | undefined {
  return COMMANDS.find(({ name }) => name.split(' ').every((word, index) => words[index] === word))
}

function unknownCommand(words: readonly string[]): string {
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${words[0]} `)).map(({ name }) => name)
  if (group.length > 0) return `Which command? ${group.join(', ')}.`
  return `There is no command ${JSON.stringify(words[0])}.`
}

async function start(command: Command, words: readonly string[], terminal: Terminal): Promise<void> {
  const { values, positionals } = parse(command, words)
  if (positionals.length !== command.takes.length) {
    const expected = command.takes.length === 0 ? 'no arguments' : command.takes.join(' ')
    throw new UsageError(`${command.name} takes ${expected}, got ${positionals.length === 0 ? 'none' : positionals.join(' ')}.`)
  }
  const flags: Record<string, string | undefined> = {}
  const switches: Record<string, boolean | undefined> = {}
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === 'string') flags[name] = value
    else switches[name] = value === true
  }
  await command.run({ terminal, positionals, flags, switches, config: readConfig(flags, terminal.env) })
}

function parse(command: Command, words: readonly string[]) {
  const options = Object.fromEntries(Object.entries(command.options).map(([name, { type }]) => [name, { type }]))
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true, strict: true })
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split('. ')[0]!.replace(/\.$/, '')}.`)
  }
}

function explainFailure(error: unknown, command: Command | undefined, terminal: Terminal): number {
  if (error instanceof UsageError || error instanceof BadSetting) {
    report(terminal, `petstore: ${error.message}`)
    report(terminal, `See: petstore help${command === undefined ? '' : ` ${command.name}`}`)
    return 2
  }
  if (error instanceof CommandFailed || error instanceof CannotOpenStore || error instanceof StoreUnavailable) {
    report(terminal, `petstore: ${error.message}`)
    return 1
  }
  throw error
}
