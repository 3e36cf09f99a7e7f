// What a command is: its name, its options, and what it does.
import { type Config, environmentSetting, type Setting, SETTINGS, type SettingName } from '../config.ts'
import type { Environment } from '../contract/operations.ts'
import { databasePlace } from '../store/database-address.ts'
import { openStore } from '../store/open-store.ts'
import { settleEnvironment } from '../store/settle-environment.ts'
import type { Store } from '../store/store.ts'
import { report, type Terminal } from './terminal.ts'

export interface Option {
  type: 'string' | 'boolean'
  /** Stands for the value in the help. */
  value?: string
  meaning: string
  /** A second line in the help: allowed values, default, variable. */
  notes?: string
  /** The values to choose from, for completion. */
  choices?: readonly string[] | undefined
}

export interface Command {
  /** As it is typed, such as "key create". */
  name: string
  summary: string
  /** Names of the positional arguments, such as EMAIL; WORD… stands for any number of them. */
  takes: readonly string[]
  /** The values of the first positional argument to choose from, for completion. */
  choices?: readonly string[]
  options: Record<string, Option>
  examples: readonly string[]
  /** Whether shells call it, not people: the help does not list it. */
  hidden?: true
  run(input: Input): Promise<void>
}

export interface Input {
  terminal: Terminal
  positionals: readonly string[]
  flags: Record<string, string | undefined>
  switches: Record<string, boolean | undefined>
  config: Config
}

/** Returns the command whose name the words start with. */
export function findCommand(commands: readonly Command[], words: readonly string[]): Command | undefined {
  return commands.find(({ name }) => name.split(' ').every((word, index) => words[index] === word))
}

/** The command line is wrong: reported with a pointer to the help, exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** The command line is right, but the command can't be carried out: reported in one line, exit code 1. */
export class CommandFailed extends Error {
  override name = 'CommandFailed'
}

export const JSON_OPTION: Option = { type: 'boolean', meaning: 'Print JSON, for scripts' }

export function settingOptions(names: readonly SettingName[]): Record<string, Option> {
  return Object.fromEntries(names.map((name) => [SETTINGS[name].flag, settingOption(SETTINGS[name])]))
}

function settingOption({ variable, value, allowed, meaning, choices, default: fallback }: Setting): Option {
  const notes = `${allowed}${fallback === undefined ? '' : ` [default: ${fallback}]`} [variable: ${variable}]`
  return { type: 'string', value, meaning, notes, choices }
}

/**
 * Opens the store for a command, which works on it directly, beside a running server or without one. Throws `NoDatabase`
 * if there is none, unless the command may create it.
 */
export async function withStore<T>(
  input: Input,
  work: (store: Store) => Promise<T>,
  { create = false } = {},
): Promise<T> {
  const store = await openStore(input.config.database, { create })
  try {
    if (create) await environmentOf(input, store)
    return await work(store)
  } finally {
    await store.close()
  }
}

/** Resolves with the environment of the database, which decides its keys; reports it if this command has recorded it. */
export async function environmentOf({ config, terminal }: Input, store: Store): Promise<Environment> {
  const before = await store.environment()
  const environment = await settleEnvironment(store, environmentSetting(config))
  if (before === environment) return environment
  const place = databasePlace(config.database)
  const what = store.opened.created ? `Created the database ${place}. It belongs` : `${place} now belongs`
  const fallback = (await store.isDefaultEnvironment())
    ? ` by default; to change that, set ${SETTINGS.environment.variable} before it has keys or animals`
    : ''
  report(terminal, `${what} to ${environment}${fallback}.`)
  return environment
}

/** Returns a command line to type next: the program as it was called, and the same database. */
export function nextCommand({ terminal, flags }: Input, words: string): string {
  // The address of a PostgreSQL may contain a password, which a message must not repeat.
  const database = flags['database']?.startsWith('sqlite:') ? ` --database ${flags['database']}` : ''
  return `${terminal.program} ${words}${database}`
}
