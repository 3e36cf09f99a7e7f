// The table of settings: default, allowed values and meaning of each; the flag and the variable are derived from the name. Which
// source of a setting wins, `readConfig` decides.
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { BASE_PATH } from './contract/operations.ts'
import { ENVIRONMENTS } from './contract/environments.ts'
import { SESSION_MINUTES } from './contract/limits.ts'
import { redactAddress, redactValue } from './contract/text/redact.ts'
import { LOG_LEVELS } from './log.ts'
import { type DatabaseAddress, parseDatabase } from './store/database/database-address.ts'
import type { EnvironmentSetting } from './store/database/environment.ts'
import { readSmallFile, reasonOf } from './store/database/files.ts'
import { readTracing } from './contract/tracing-settings.ts'

export interface RateLimit {
  requests: number
  seconds: number
}

const MOST_WORKERS = 64
const SIGNUP_MODES = ['open', 'closed'] as const

interface Entry {
  /** Only if it differs from the name that is derived. */
  variable?: string
  /** The placeholder of the value in the help, such as PORT in `--port PORT`. */
  value: string
  /** The text of the default value. Without a default, the setting may stay unset. */
  default?: string
  /** Completes the sentence "The setting must be …", for help and messages. */
  allowed: string
  meaning: string
  /** Returns undefined for a value that is not allowed. */
  parse: (value: string) => unknown
  /** Removes secrets from a value that a message repeats; by default, what looks like credentials. */
  redact?: (value: string) => string
  /** A second variable, which names a file that contains the value, for a value with a secret. */
  fileVariable?: string
}

export interface Setting extends Entry {
  variable: string
  /** Without its dashes. */
  flag: string
}

const HOST = { value: 'HOST', default: '127.0.0.1', allowed: 'an IP address or a host name', parse: parseHost }
const PORT = {
  value: 'PORT',
  allowed: 'a port number from 0 to 65535 (0 picks a free one)',
  parse: wholeNumber(0, 65_535),
}
const BASE_URL = {
  value: 'URL',
  allowed: `an http or https URL that ends in ${BASE_PATH}`,
  parse: parseBaseUrl,
  redact: redactAddress,
}

export const SETTINGS = named({
  host: { ...HOST, variable: 'HOST', meaning: 'Address to listen on; 0.0.0.0 listens on all' },
  port: { ...PORT, variable: 'PORT', default: '8080', meaning: 'Port to listen on' },
  database: {
    variable: 'DATABASE_URL',
    value: 'URL',
    default: 'sqlite:data/petstore.db',
    allowed: 'sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME',
    meaning: 'Database that holds the data; a relative path starts in the working directory',
    parse: parseDatabase,
    redact: redactAddress,
    fileVariable: 'DATABASE_URL_FILE',
  },
  environment: {
    value: 'NAME',
    // A first run is a trial: its keys must not pass for production keys, nor its console for that of production.
    default: 'staging',
    ...oneOf(ENVIRONMENTS),
    meaning:
      'Environment that this deployment is; each has its own data and keys, and a database keeps the one it was created for',
  },
  baseUrl: { ...BASE_URL, meaning: 'Public base address of production' },
  stagingBaseUrl: { ...BASE_URL, meaning: 'Public base address of staging' },
  storeName: {
    value: 'NAME',
    default: 'Petstore',
    // An address with a password, set here by mistake, is on no page.
    allowed: '1 to 40 printable characters without : @ and \\',
    meaning: 'Name of the store, beside the logo and in the titles of the console',
    parse: parseStoreName,
  },
  signup: {
    value: 'MODE',
    ...oneOf(SIGNUP_MODES),
    meaning:
      'Whether people can create an account in the console; unset: open only on a loopback address, outside production, without base address and trusted proxy',
  },
  sessionMinutes: {
    value: 'MINUTES',
    default: String(SESSION_MINUTES.idle),
    allowed: `a number of minutes from 5 to ${SESSION_MINUTES.most}`,
    meaning: 'How long a sign-in to the console lasts without use; the same for all instances of a database',
    parse: wholeNumber(5, SESSION_MINUTES.most),
  },
  trustProxy: {
    value: 'PROXIES',
    allowed: 'IP addresses, networks such as 10.0.0.0/8, loopback, linklocal or uniquelocal, separated by commas',
    meaning: 'Proxies whose X-Forwarded-* headers are trusted; unset: none',
    parse: parseProxies,
  },
  rateLimit: {
    value: 'LIMIT',
    allowed: 'REQUESTS/SECONDS, such as 600/60',
    meaning: 'Requests that an account may make in a period, counted by each process; unset: no limit',
    parse: parseRateLimit,
  },
  maxConnections: {
    value: 'COUNT',
    default: '1000',
    allowed: 'a whole number from 1 to 65535',
    meaning: 'Connections that may be open in each process at a time; more are closed at once',
    parse: wholeNumber(1, 65_535),
  },
  workers: {
    value: 'COUNT',
    default: '1',
    allowed: `a whole number from 1 to ${MOST_WORKERS}, or auto for one per core`,
    meaning: 'Processes that accept connections and serve; the first also starts and replaces the others',
    parse: parseWorkers,
  },
  logLevel: {
    value: 'LEVEL',
    default: 'notice',
    ...oneOf(LOG_LEVELS),
    meaning: 'How much is logged: notice logs starts, stops and errors, info also every request',
  },
  drainSeconds: {
    value: 'SECONDS',
    default: '0',
    allowed: 'a number of seconds from 0 to 600',
    meaning:
      'How long SIGTERM leaves everything served while /readyz answers 503; longer than a load balancer needs to notice',
    parse: wholeNumber(0, 600),
  },
  adminHost: { ...HOST, meaning: 'Address that the admin port listens on' },
  adminPort: { ...PORT, meaning: 'Port that serves /metrics, /livez and /readyz; unset: none' },
} satisfies Record<string, Entry>)

export type SettingName = keyof typeof SETTINGS

/** Gives each setting its flag and its variable: `baseUrl` is --base-url and PETSTORE_BASE_URL. */
function named<Table extends Record<string, Entry>>(
  table: Table,
): { [Name in keyof Table]: Table[Name] & { flag: string; variable: string } } {
  const settings = Object.entries(table).map(([name, entry]) => {
    const flag = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    return [name, { flag, variable: `PETSTORE_${flag.toUpperCase().replaceAll('-', '_')}`, ...entry }]
  })
  return Object.fromEntries(settings)
}

/** The type that `parse` returns; includes undefined only for a setting without a default. */
type Value<S extends Setting> =
  NonNullable<ReturnType<S['parse']>> | (S extends { default: string } ? never : undefined)
type Values = { [Name in SettingName]: Value<(typeof SETTINGS)[Name]> }

export type Config = Omit<Values, 'trustProxy'> & {
  trustProxy: string[] | false
  tracing: ReturnType<typeof readTracing>
  /** The settings that have another source than the default, with the file that the value was read from (`fileVariable`). */
  given: ReadonlyMap<SettingName, string | undefined>
  /** How to call the program again, for pages that suggest a command (run.ts). */
  program: string
}

type Texts = Record<string, string | undefined>

export const VARIABLES = Object.values<Setting>(SETTINGS).flatMap(({ variable, fileVariable = [] }) =>
  [variable].concat(fileVariable),
)

/** Returns the variables that start with PETSTORE_ but are unknown: mistyped. The launcher sets CALLED_AS, `petstore mcp` reads API_KEY. */
export function unknownVariables(env: Texts): string[] {
  const isUnknown = (name: string) => /^PETSTORE_(?!(?:CALLED_AS|API_KEY)$)/i.test(name) && !VARIABLES.includes(name)
  return Object.keys(env).filter((name) => env[name] && isUnknown(name))
}

/** A setting has an invalid value; the message names the setting, the value and what is allowed. */
export class BadSetting extends Error {
  override name = 'BadSetting'
}

/**
 * Reads each setting from the first source that has it: flag, environment, file .env, default. An empty variable counts as
 * unset; a source has either the variable or the `fileVariable` of a setting.
 */
export function readConfig(flags: Texts, env: Texts, envFile: Texts = {}): Config {
  const given = new Map<SettingName, string | undefined>()
  const read = (name: SettingName, setting: Setting): unknown => {
    const { flag, variable, fileVariable = '', default: fallback } = setting
    if (flags[flag] !== undefined) {
      given.set(name, undefined)
      return parse(setting, `--${flag}`, flags[flag])
    }
    const variables = [env, envFile].find((source) => source[variable] || source[fileVariable])
    if (variables === undefined) return fallback === undefined ? undefined : parse(setting, variable, fallback)
    const { [variable]: text, [fileVariable]: path } = variables
    given.set(name, path || undefined)
    if (!path) return parse(setting, variable, text!)
    if (text) throw new BadSetting(`Set ${variable} or ${fileVariable}, not both.`)
    return parse(setting, `The content of ${fileVariable}`, readSecret(fileVariable, path))
  }
  const entries = Object.entries(SETTINGS) as [SettingName, Setting][]
  const values = Object.fromEntries(entries.map(([name, setting]) => [name, read(name, setting)])) as Values
  const tracing = readTracing(env, envFile, parse)
  return { ...values, trustProxy: values.trustProxy ?? false, tracing, given, program: 'petstore' }
}

/** Drops white space and a byte order mark around the value. */
function readSecret(fileVariable: string, path: string): string {
  try {
    return readSmallFile(path).trim()
  } catch (error) {
    // The variable may contain a database address by mistake; its password must not be in the message.
    throw new BadSetting(
      `${fileVariable} must name a file that can be read, got ${redactValue(path)}: ${reasonOf(error as Error).replaceAll(path, redactValue(path))}.`,
    )
  }
}

/** Parses a database address that is no setting; `source` names its flag in messages. Throws `BadSetting`. */
export function readDatabaseAddress(source: string, text: string): DatabaseAddress {
  return parse(SETTINGS.database, source, text) as DatabaseAddress
}

function parse(setting: Pick<Entry, 'allowed' | 'parse' | 'redact'>, source: string, text: string): unknown {
  const value = setting.parse(text)
  if (value !== undefined) return value
  const { allowed, redact = redactValue } = setting
  throw new BadSetting(`${source} must be ${allowed}, got ${JSON.stringify(redact(text))}.`)
}

export function ownBaseUrl(config: Pick<Config, 'environment' | 'baseUrl' | 'stagingBaseUrl'>): string | undefined {
  return config.environment === 'production' ? config.baseUrl : config.stagingBaseUrl
}

export function environmentSetting({ environment, given }: Config): EnvironmentSetting {
  return { environment, isChosen: given.has('environment') }
}

function parseHost(value: string): string | undefined {
  return /^[\w.:-]+$/.test(value) ? value : undefined
}

function parseStoreName(value: string): string | undefined {
  return /^[^\p{Cc}:@\\]{1,40}$/u.test(value) && value.trim() !== '' ? value.trim() : undefined
}

function oneOf<const T extends string>(choices: readonly T[]) {
  const allowed = choices.length > 2 ? `one of ${choices.join(', ')}` : choices.join(' or ')
  return { allowed, parse: (value: string) => choices.find((choice) => choice === value) }
}

/** Returns a parser of decimal digits, which ignores leading zeros. */
export function wholeNumber(min: number, max: number): (value: string) => number | undefined {
  return (value) => (/^[0-9]+$/.test(value) && Number(value) >= min && Number(value) <= max ? Number(value) : undefined)
}

function parseWorkers(value: string): number | undefined {
  return value === 'auto' ? Math.min(availableParallelism(), MOST_WORKERS) : wholeNumber(1, MOST_WORKERS)(value)
}

function parseBaseUrl(value: string): string | undefined {
  if (!URL.canParse(value)) return undefined
  const url = new URL(value)
  const plain = url.search + url.hash + url.username + url.password === ''
  return /^https?:$/.test(url.protocol) && plain && url.pathname.endsWith(BASE_PATH) ? url.href : undefined
}

function parseProxies(value: string): string[] | undefined {
  const proxies = value.split(',').map((entry) => entry.trim())
  return proxies.every((entry) => /^(?:loopback|linklocal|uniquelocal)$/.test(entry) || isNetwork(entry))
    ? proxies
    : undefined
}

/** Accepts an address, or a network with the length of its prefix, such as 10.0.0.0/8. */
function isNetwork(text: string): boolean {
  const [, address = '', length] = /^([^/]*)(?:\/([1-9][0-9]{0,2}))?$/.exec(text) ?? []
  const bits = isIP(address) === 4 ? 32 : 128
  return isIP(address) > 0 && Number(length ?? bits) <= bits
}

function parseRateLimit(value: string): RateLimit | undefined {
  const [, requests, seconds] = /^([1-9][0-9]{0,8})\/([1-9][0-9]{0,5})$/.exec(value) ?? []
  return requests === undefined ? undefined : { requests: Number(requests), seconds: Number(seconds) }
}
