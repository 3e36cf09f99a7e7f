// Finds and runs the command of a command line. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
import { BadSetting, readConfig, SETTINGS, unknownVariables, VARIABLES } from '../config.ts'
import { holdsPassword } from '../store/database/database-address.ts'
import { VERSION } from '../contract/operations.ts'
import { didYouMean } from '../contract/text/did-you-mean.ts'
import { redactCredentials, redactSecrets } from '../contract/text/redact.ts'
import { FileRefused } from '../pet-files/pet-file.ts'
import { CannotOpenStore, StoreUnavailable } from '../store/store.ts'
import { type Command, CommandFailed, findCommand, type Input, UsageError } from './command.ts'
import { COMMANDS, commandsOf, parseWords, unknownCommand } from './commands.ts'
import { groupHelp, helpFor, overview } from './help.ts'
import { nextCommand } from './next-command.ts'
import { Interrupted, print, report, reportAsIs, type Terminal } from './terminal.ts'

export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  const [first] = words
  if (first === '--version' || first === '-v') {
    print(terminal, VERSION)
    return 0
  }
  const command = findCommand(COMMANDS, words)
  let input: Input | undefined
  try {
    const help = helpText(words, terminal.program)
    if (help !== undefined) {
      print(terminal, help)
      return 0
    }
    if (command === undefined) throw new UsageError(unknownCommand(words))
    const parsed = parseWords(command, words.slice(command.name.split(' ').length))
    warnOfUnknown(terminal)
    warnOfPasswords(parsed.flags, terminal)
    input = {
      terminal,
      ...parsed,
      config: { ...readConfig(parsed.flags, terminal.env, terminal.envFile), program: terminal.program },
    }
    await command.run(input)
    return 0
  } catch (error) {
    return explainFailure(error, command, input, terminal)
  }
}

/** Returns undefined if the words do not ask for help; throws `UsageError` for help on a command that does not exist. */
function helpText(words: readonly string[], program: string): string | undefined {
  const isHelp = words.length === 0 || words[0] === 'help'
  const asksForHelp = words
    .slice(0, words.includes('--') ? words.indexOf('--') : undefined)
    .some((word) => word === '--help' || word === '-h')
  if (!isHelp && !asksForHelp) return undefined
  const sought = (isHelp ? words.slice(1) : words).filter((word) => !word.startsWith('-'))
  const command = findCommand(COMMANDS, sought)
  if (command !== undefined) return helpFor(command, program)
  const group = commandsOf(sought[0])
  if (group.length > 0 && sought.length === 1) return groupHelp(group, program)
  if (sought[0] !== undefined && sought[0] !== 'help') throw new UsageError(unknownCommand(sought))
  return overview(COMMANDS, program)
}

/** Warns of variables that are ignored: a mistyped setting would silently keep its default. */
function warnOfUnknown(terminal: Terminal): void {
  const { env, envFile } = terminal
  for (const name of unknownVariables({ ...envFile, ...env })) {
    const hint = didYouMean(name.toUpperCase(), VARIABLES) || ` See ${terminal.program} help serve for all settings.`
    report(terminal, `petstore: Warning: the variable ${name} is no setting and is ignored.${hint}`)
  }
}

/** Warns of passwords on the command line: every user of the machine can read the command lines of all processes. */
function warnOfPasswords(flags: Record<string, string | undefined>, terminal: Terminal): void {
  const { flag, variable, fileVariable } = SETTINGS.database
  for (const [name, value] of Object.entries(flags)) {
    if (value === undefined || !holdsPassword(value)) continue
    const instead =
      name === flag ? `Set ${variable} or ${fileVariable} instead.` : 'Leave it out and set PGPASSWORD instead.'
    report(terminal, `petstore: Warning: others can read the password of --${name} in the process list. ${instead}`)
  }
}

/** Redacts API keys in the message, which may repeat words that the user typed. */
function explainFailure(
  error: unknown,
  command: Command | undefined,
  input: Input | undefined,
  terminal: Terminal,
): number {
  if (error instanceof UsageError || error instanceof BadSetting) {
    report(terminal, `petstore: ${redactSecrets(error.message)}`)
    report(terminal, `See: ${terminal.program} help${command === undefined ? '' : ` ${command.name}`}`)
    return 2
  }
  if (
    error instanceof CommandFailed ||
    error instanceof FileRefused ||
    error instanceof CannotOpenStore ||
    error instanceof StoreUnavailable
  ) {
    const words = 'command' in error ? error.command : []
    const next = input && words.length > 0 ? ` ${nextCommand(input, ...words)}` : ''
    reportAsIs(terminal, `petstore: ${redactCredentials(redactSecrets(error.message))}${next}`)
    return 1
  }
  if (error instanceof Interrupted) {
    if (error.message !== '') report(terminal, `petstore: ${error.message}`)
    return 130
  }
  throw error
}
