// What a command is: its words, its options, and what it does.
import { type Config, SETTINGS, type SettingName } from '../config.ts'
import { openStore } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import type { Terminal } from './terminal.ts'

export interface Option {
  type: 'string' | 'boolean'
  /** How the value is called in the help. */
  value?: string
  meaning: string
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

/** The call itself is wrong: told with the usage, exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** The call is right but can't be done: told in one line, exit code 1. */
export class CommandFailed extends Error {
  override name = 'CommandFailed'
}

export const JSON_OPTION: Option = { type: 'boolean', meaning: 'Print JSON, for scripts' }

export function settingOptions(names: readonly SettingName[]): Record<string, Option> {
  return Object.fromEntries(
    names.map((name) => {
      const { flag, variable, meaning, default: fallback } = SETTINGS[name]
      const notes = [variable, fallback && `default ${fallback}`].filter(Boolean).join(', ')
      return [flag, { type: 'string', value: name.toUpperCase(), meaning: `${meaning} (${notes})` } satisfies Option]
    }),
  )
}

/** Commands act on the store directly, beside a running server or without one. */
export async function withStore<T>(config: Config, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(config.database)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

