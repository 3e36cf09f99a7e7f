// What a command is: its name, its options, and what it does.
import { type Config, type Setting, SETTINGS, type SettingName } from '../config.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import type { Terminal } from './terminal.ts'

interface Option {
  type: 'string' | 'boolean'
  /** Stands for the value in the help. */
  value?: string
  meaning: string
  /** A second line in the help: allowed values, default, variable. */
  notes?: string
}

export interface Command {
  /** As it is typed, such as "key create". */
  name: string
  summary: string
  /** Names of the positional arguments, such as EMAIL. */
  takes: readonly string[]
  options: Record<string, Option>
  examples: readonly string[]
  run(input: Input): Promise<void>
}

export interface Input {
  terminal: Terminal
  positionals: readonly string[]
  flags: Record<string, string | undefined>
  switches: Record<string, boolean | undefined>
  config: Config
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

function settingOption({ variable, value, allowed, meaning, default: fallback }: Setting): Option {
  const notes = `${allowed}${fallback === undefined ? '' : ` [default: ${fallback}]`} [variable: ${variable}]`
  return { type: 'string', value, meaning, notes }
}

/** Opens the store for a command, which works on it directly, beside a running server or without one. */
export async function withStore<T>(config: Config, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(config.database)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
