// Defines what a command is, and what commands share: options, errors, access to the store.
import { type Config, environmentSetting, type Setting, SETTINGS, type SettingName, wholeNumber } from '../config.ts'
import type { Environment } from '../contract/operations.ts'
import { type DatabaseAddress, describeDatabase, isInMemory } from '../store/database-address.ts'
import { openStore } from '../store/open-store.ts'
import { ensureEnvironment } from '../store/environment.ts'
import { NoDatabase, type Store } from '../store/store.ts'
import { askOpenly, printJson, report, type Terminal } from './terminal.ts'

export interface Option {
  /** The placeholder of the value in the help, such as EMAIL; undefined for a switch, which takes no value. */
  value?: string
  meaning: string
  /** A second line in the help: allowed values, default, variable. */
  notes?: string
  /** The allowed values, for completion. */
  choices?: readonly string[] | undefined
}

export interface Command {
  /** One or two words, such as "key create". */
  name: string
  summary: string
  /** Names of the positional arguments, such as EMAIL; WORD… means any number of them. */
  takes: readonly string[]
  /** The allowed values of the first positional argument, for completion. */
  choices?: readonly string[]
  options: Record<string, Option>
  examples: readonly string[]
  /** Set for a command that only shell scripts call: the help does not list it. */
  hidden?: true
  run(input: Input): Promise<void>
}

export interface Input {
  terminal: Terminal
  positionals: readonly string[]
  /** The options with a value; those without one are switches. */
  flags: Record<string, string | undefined>
  switches: Record<string, boolean | undefined>
  config: Config
  /** Reported on standard error after all else, also after a failure. */
  lastLines: string[]
}

/** Returns the command whose name the words start with. */
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
  /** The end of the message: a suggested command, which is reported as it is. */
  readonly hint: string

  constructor(message: string, { hint = '', ...options }: ErrorOptions & { hint?: string } = {}) {
    super(message, options)
    this.hint = hint
  }
}

export const JSON_OPTION: Option = { meaning: 'Print JSON, for scripts' }

export function settingOptions(names: readonly SettingName[]): Record<string, Option> {
  return Object.fromEntries(names.map((name) => [SETTINGS[name].flag, settingOption(SETTINGS[name])]))
}

function settingOption({ variable, value, allowed, meaning, choices, default: fallback }: Setting): Option {
  const notes = `${allowed}${fallback === undefined ? '' : ` [default: ${fallback}]`} [variable: ${variable}]`
  return { value, meaning, notes, choices }
}

/** Reads the value of an option; throws `UsageError`. */
export function readCount(flag: string, text: string | undefined, min: number, max: number): number {
  const count = wholeNumber(min, max)(text ?? '')
  if (count !== undefined) return count
  const got = text === undefined ? 'nothing' : JSON.stringify(text)
  throw new UsageError(`--${flag} must be a whole number from ${min} to ${max}, got ${got}.`)
}

/** The options of most commands that open the store. */
export const STORE_OPTIONS = { json: JSON_OPTION, ...settingOptions(['database']) }

/** Whether a command creates a missing store, and whether it says so in its last line. */
export interface Creation {
  create: boolean
  isTold?: boolean
}

/**
 * Calls `work` with the store, and closes the store afterwards. A running service may use the same database. Throws
 * `NoDatabase` if the database does not exist and `create` is not set; `mayCreate` asks before.
 */
export async function withStore<T>(
  input: Input,
  work: (store: Store) => Promise<T>,
  { create, isTold }: Creation = { create: false },
): Promise<T> {
  const { database } = input.config
  refuseInMemory(database)
  const store = await openStore(database, { create })
  try {
    if (create) await environmentOf(input, store)
    if (isTold && store.opened.created) tellCreated(input, database)
    return await work(store)
  } finally {
    await store.close()
  }
}

/**
 * Lets a command create a missing store. On a terminal it asks, because the command may run in the wrong folder, and throws
 * `CommandFailed` unless the answer is yes. Elsewhere the command says in its last line that it created a store.
 */
export async function mayCreate(
  { terminal, config }: Input,
  database = config.database,
  settings = `--${SETTINGS.database.flag} or ${SETTINGS.database.variable}`,
): Promise<Creation> {
  refuseInMemory(database)
  const { stdin, stderr } = terminal
  if (!stdin.isTTY || stdin.readableEnded || !stderr.isTTY) return { create: true, isTold: true }
  if (await storeExists(database)) return { create: true }
  const answer = await askOpenly(terminal, `There is no store at ${describeDatabase(database)} yet. Create one? [y/N] `)
  if (/^y(?:es)?$/i.test(answer.trim())) return { create: true }
  throw new CommandFailed(`Nothing was created. Name another database with ${settings}.`)
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

export function tellCreated({ lastLines }: Input, database: DatabaseAddress): void {
  lastLines.push(
    `Note: there was no store at ${describeDatabase(database)}, so this command created one. Was another meant? Name it, and remove this one.`,
  )
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
