// Defines what a command is, and what commands share: options, errors, access to the store.
import { type Config, environmentSetting, type Setting, SETTINGS, type SettingName, wholeNumber } from '../config.ts'
import type { Environment } from '../contract/environments.ts'
import { type DatabaseAddress, describeDatabase, isInMemory } from '../store/database/database-address.ts'
import { openStore } from '../store/opening/open-store.ts'
import { ensureEnvironment } from '../store/database/environment.ts'
import { NoDatabase, type OpenOptions, type Store } from '../store/store.ts'
import { askOpenly, printJson, report, type Terminal } from './terminal.ts'

export interface Option {
  /** The placeholder of the value in the help, such as EMAIL; undefined for a switch, which takes no value. */
  value?: string
  meaning: string
  /** A second line in the help: allowed values, default, variable. */
  notes?: string
}

export interface Command {
  /** One or two words, such as "key create". */
  name: string
  summary: string
  /** Names of the positional arguments, such as EMAIL; none by default. */
  takes?: readonly string[]
  options: Record<string, Option>
  examples: readonly string[]
  run(input: Input): Promise<void>
}

export interface Input {
  terminal: Terminal
  positionals: readonly string[]
  /** The options with a value; those without one are switches. */
  flags: Record<string, string | undefined>
  switches: Record<string, boolean | undefined>
  config: Config
}

export function findCommand(commands: readonly Command[], words: readonly string[]): Command | undefined {
  return commands.find(({ name }) => name.split(' ').every((word, index) => words[index] === word))
}

/** The command line is invalid: reported with a pointer to the help, exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** The command line is valid, but the command failed: reported in one line, exit code 1. */
export class CommandFailed extends Error {
  override name = 'CommandFailed'
  /** The words of a command that completes the message; empty if there is none. */
  readonly command: readonly string[]

  constructor(message: string, { command = [], ...options }: ErrorOptions & { command?: readonly string[] } = {}) {
    super(message, options)
    this.command = command
  }
}

export const JSON_OPTION: Option = { meaning: 'Print JSON, for scripts' }

export function settingOptions(names: readonly SettingName[]): Record<string, Option> {
  return Object.fromEntries(names.map((name) => [SETTINGS[name].flag, settingOption(SETTINGS[name])]))
}

function settingOption({ variable, value, allowed, meaning, default: fallback }: Setting): Option {
  const notes = `${allowed}${fallback === undefined ? '' : ` [default: ${fallback}]`} [variable: ${variable}]`
  return { value, meaning, notes }
}

/** Reads the value of an option; throws `UsageError`. */
export function readCount(flag: string, text: string | undefined, min: number, max: number): number {
  const count = wholeNumber(min, max)(text ?? '')
  if (count !== undefined) return count
  const got = text === undefined ? 'nothing' : JSON.stringify(text)
  throw new UsageError(`--${flag} must be a whole number from ${min} to ${max}, got ${got}.`)
}

export const STORE_OPTIONS = { json: JSON_OPTION, ...settingOptions(['database']) }

/**
 * Calls `work` with the store, and closes the store afterwards. A running service may use the same database. Throws
 * `NoDatabase` if the database does not exist and `create` is not set; `askToCreate` asks before.
 */
export async function withStore<T>(
  input: Input,
  work: (store: Store) => Promise<T>,
  { create } = { create: false },
): Promise<T> {
  const { database } = input.config
  refuseInMemory(database)
  const store = await openStore(database, { create, ...forCommand(input) })
  try {
    if (create) await environmentOf(input, store)
    return await work(store)
  } finally {
    await store.close()
  }
}

/** How a command opens a store: it reports what a migration waits for. */
export function forCommand({ terminal }: Input): OpenOptions {
  return { isCommand: true, onWait: (message) => report(terminal, message) }
}

/**
 * Asks on a terminal before a command creates a missing store, because the command may run in the wrong folder. Throws
 * `CommandFailed` unless the answer is yes.
 */
export async function askToCreate(
  { terminal, config }: Input,
  database = config.database,
  settings = `--${SETTINGS.database.flag} or ${SETTINGS.database.variable}`,
): Promise<void> {
  refuseInMemory(database)
  if (!canAsk(terminal) || (await storeExists(database))) return
  if (await agrees(terminal, `There is no store at ${describeDatabase(database)} yet. Create one?`)) return
  throw new CommandFailed(`Nothing was created. Name another database with ${settings}.`)
}

const canAsk = ({ stdin, stderr }: Terminal) => stdin.isTTY === true && !stdin.readableEnded && stderr.isTTY === true

/** Asks a person; resolves with true where there is none. */
export async function agrees(terminal: Terminal, question: string): Promise<boolean> {
  return !canAsk(terminal) || /^y(?:es)?$/i.test((await askOpenly(terminal, `${question} [y/N] `)).trim())
}

/** Creates no store, but upgrades the schema of one that exists. */
export async function storeExists(database: DatabaseAddress): Promise<boolean> {
  try {
    await (await openStore(database, { create: false, unfinished: true })).close()
    return true
  } catch (error) {
    if (error instanceof NoDatabase) return false
    throw error
  }
}

/** Throws `CommandFailed` for a database in memory: what a command writes to it ends with the command. */
export function refuseInMemory(database: DatabaseAddress): void {
  if (isInMemory(database))
    throw new CommandFailed(
      'A database in memory ends with the command that opens it. Name a file, or a PostgreSQL database.',
    )
}

/** Like `withStore`, but resolves with undefined if the database does not exist. */
export async function withExistingStore<T>(input: Input, work: (store: Store) => Promise<T>): Promise<T | undefined> {
  try {
    return await withStore(input, work)
  } catch (error) {
    if (error instanceof NoDatabase) return undefined
    throw error
  }
}

/** Resolves with the environment of the database. Records it if there is none yet, and reports a change to the user. */
export async function environmentOf({ config, terminal }: Input, store: Store): Promise<Environment> {
  const before = await store.environment()
  const environment = await ensureEnvironment(store, environmentSetting(config))
  if (before === environment) return environment
  const database = describeDatabase(config.database)
  const what = store.opened.created ? `Created the database ${database}. It belongs` : `${database} now belongs`
  const fallback = (await store.isDefaultEnvironment())
    ? ` by default; to change that, set ${SETTINGS.environment.variable} before it has keys or animals`
    : ''
  report(terminal, `${what} to ${environment}${fallback}.`)
  return environment
}

/** Ends a command with its result: JSON on standard output with --json, else a message on standard error. */
export function conclude({ terminal, switches }: Input, json: object, message: string): void {
  if (switches['json']) printJson(terminal, json)
  else report(terminal, message)
}
