// Every setting once: its flag, its variable, its default, what it takes and what it means.
import { isIP } from 'node:net'
import { BASE_PATH, type Environment, ENVIRONMENTS } from './contract/operations.ts'

export interface RateLimit {
  requests: number
  seconds: number
}

export interface Config {
  host: string
  port: number
  database: DatabaseAddress
  environment: Environment
  baseUrl: string | undefined
  stagingBaseUrl: string | undefined
  signup: 'open' | 'closed'
  trustProxy: string[] | false
  rateLimit: RateLimit | undefined
  logLevel: LogLevel
  adminHost: string
  adminPort: number | undefined
}

export type DatabaseAddress = { engine: 'sqlite'; path: string } | { engine: 'postgres'; url: string }

export const LOG_LEVELS = ['error', 'warn', 'notice', 'info', 'debug'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

interface Setting<T> {
  variable: string
  flag: string
  /** As it would be typed; undefined where the setting may stay unset. */
  default?: string
  /** How the values look, for help and messages. */
  takes: string
  meaning: string
  /** Undefined for a value it does not take. */
  parse: (value: string) => T | undefined
}

function setting<T>(definition: Setting<T>): Setting<T> {
  return definition
}

export const SETTINGS = {
  host: setting({
    variable: 'HOST',
    flag: 'host',
    default: '127.0.0.1',
    takes: 'an address to listen on',
    meaning: 'Address to listen on; 0.0.0.0 for all',
    parse: (value) => (/^[\w.:-]+$/.test(value) ? value : undefined),
  }),
  port: setting({
    variable: 'PORT',
    flag: 'port',
    default: '8080',
    takes: 'a port from 0 to 65535 (0: any free one)',
    meaning: 'Port to listen on',
    parse: parsePort,
  }),
  database: setting({
    variable: 'DATABASE_URL',
    flag: 'database',
    default: 'sqlite:data/petstore.db',
    takes: 'sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME',
    meaning: 'Where the data is kept',
    parse: parseDatabase,
  }),
  environment: setting({
    variable: 'PETSTORE_ENVIRONMENT',
    flag: 'environment',
    // A first run at home is a trial: its keys should not pass for production keys, nor its console for the real one.
    default: 'staging',
    takes: 'production or staging',
    meaning: 'Which of the two environments this is; each has its own data and keys',
    parse: (value) => oneOf(ENVIRONMENTS, value),
  }),
  baseUrl: setting({
    variable: 'PETSTORE_BASE_URL',
    flag: 'base-url',
    takes: `an http(s) address ending in ${BASE_PATH}`,
    meaning: 'Public base address of production',
    parse: parseBaseUrl,
  }),
  stagingBaseUrl: setting({
    variable: 'PETSTORE_STAGING_BASE_URL',
    flag: 'staging-base-url',
    takes: `an http(s) address ending in ${BASE_PATH}`,
    meaning: 'Public base address of staging',
    parse: parseBaseUrl,
  }),
  signup: setting({
    variable: 'PETSTORE_SIGNUP',
    flag: 'signup',
    takes: 'open or closed',
    meaning: 'Who may create an account in the console; unset: open on a loopback address only',
    parse: (value) => oneOf(['open', 'closed'], value),
  }),
  trustProxy: setting({
    variable: 'PETSTORE_TRUST_PROXY',
    flag: 'trust-proxy',
    takes: 'addresses or networks, separated by commas',
    meaning: "Whose X-Forwarded-* headers count; unset: nobody's",
    parse: parseProxies,
  }),
  rateLimit: setting({
    variable: 'PETSTORE_RATE_LIMIT',
    flag: 'rate-limit',
    takes: 'REQUESTS/SECONDS, such as 600/60',
    meaning: 'Requests an account may make in a time, counted by each instance; unset: no limit',
    parse: parseRateLimit,
  }),
  logLevel: setting({
    variable: 'PETSTORE_LOG_LEVEL',
    flag: 'log-level',
    default: 'notice',
    takes: `one of ${LOG_LEVELS.join(', ')}`,
    meaning: 'How much is logged: notice tells starts, stops and errors, info also every request',
    parse: (value) => oneOf(LOG_LEVELS, value),
  }),
  adminHost: setting({
    variable: 'PETSTORE_ADMIN_HOST',
    flag: 'admin-host',
    default: '127.0.0.1',
    takes: 'an address to listen on',
    meaning: 'Address of the admin port',
    parse: (value) => (/^[\w.:-]+$/.test(value) ? value : undefined),
  }),
  adminPort: setting({
    variable: 'PETSTORE_ADMIN_PORT',
    flag: 'admin-port',
    takes: 'a port from 0 to 65535 (0: any free one)',
    meaning: 'Port of /metrics; unset: none',
    parse: parsePort,
  }),
}

export type SettingName = keyof typeof SETTINGS

/** A setting that can't be used; the message names it, what it got and what it takes. */
export class BadSetting extends Error {
  override name = 'BadSetting'
}

/** Flags win over variables, variables over defaults. An empty value counts as unset. */
export function readConfig(flags: Record<string, string | undefined>, env: Record<string, string | undefined>): Config {
  const value = <T>(name: SettingName, { flag, variable, default: fallback, parse }: Setting<T>): T | undefined => {
    const [source, text] = flags[flag] === undefined ? [variable, env[variable] || fallback] : [`--${flag}`, flags[flag]]
    if (text === undefined) return undefined
    const parsed = parse(text)
    if (parsed !== undefined) return parsed
    throw badSetting(source, name, text)
  }
  const host = value('host', SETTINGS.host)!
  return {
    host,
    port: value('port', SETTINGS.port)!,
    database: value('database', SETTINGS.database)!,
    environment: value('environment', SETTINGS.environment)!,
    baseUrl: value('baseUrl', SETTINGS.baseUrl),
    stagingBaseUrl: value('stagingBaseUrl', SETTINGS.stagingBaseUrl),
    signup: value('signup', SETTINGS.signup) ?? (isLoopback(host) ? 'open' : 'closed'),
    trustProxy: value('trustProxy', SETTINGS.trustProxy) ?? false,
    rateLimit: value('rateLimit', SETTINGS.rateLimit),
    logLevel: value('logLevel', SETTINGS.logLevel)!,
    adminHost: value('adminHost', SETTINGS.adminHost)!,
    adminPort: value('adminPort', SETTINGS.adminPort),
  }
}

/** A database that is named elsewhere than in the settings, `source`; throws `BadSetting`. */
export function readDatabaseAddress(source: string, text: string): DatabaseAddress {
  const address = parseDatabase(text)
  if (address !== undefined) return address
  throw badSetting(source, 'database', text)
}

function badSetting(source: string, name: SettingName, text: string): BadSetting {
  return new BadSetting(`${source} must be ${SETTINGS[name].takes}, got ${JSON.stringify(redact(name, text))}.`)
}

/** The public base address of this deployment, where it was told. */
export function ownBaseUrl(config: Pick<Config, 'environment' | 'baseUrl' | 'stagingBaseUrl'>): string | undefined {
  return config.environment === 'production' ? config.baseUrl : config.stagingBaseUrl
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** Where the data is, for people: without user and password. */
export function databasePlace(database: DatabaseAddress): string {
  if (database.engine === 'sqlite') return database.path
  return `PostgreSQL at ${database.url.replace(/^\w+:\/\/(?:.*@)?/s, '').replace(/\?.*$/s, '')}`
}

function oneOf<const T extends string>(values: readonly T[], value: string): T | undefined {
  return values.find((candidate) => candidate === value)
}

function parsePort(value: string): number | undefined {
  return /^[0-9]{1,5}$/.test(value) && Number(value) <= 65_535 ? Number(value) : undefined
}

function parseDatabase(value: string): DatabaseAddress | undefined {
  if (/^postgres(?:ql)?:\/\/./.test(value)) return { engine: 'postgres', url: value }
  // sqlite:///path is the absolute path as others write it; with two slashes it would name a host.
  const path = /^sqlite:(?:\/\/(?=\/))?((?!\/\/).+)$/.exec(value)?.[1]
  return path === undefined ? undefined : { engine: 'sqlite', path }
}

function parseBaseUrl(value: string): string | undefined {
  if (!URL.canParse(value)) return undefined
  const url = new URL(value)
  const plain = url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  return /^https?:$/.test(url.protocol) && plain && url.pathname.endsWith(BASE_PATH) ? url.href : undefined
}

function parseProxies(value: string): string[] | undefined {
  const proxies = value.split(',').map((entry) => entry.trim())
  return proxies.every((entry) => /^(?:loopback|linklocal|uniquelocal)$/.test(entry) || isNetwork(entry)) ? proxies : undefined
}

/** An address, or one with the length of its network's prefix, such as 10.0.0.0/8. */
function isNetwork(text: string): boolean {
  const [, address = '', length] = /^([^/]*)(?:\/([1-9][0-9]{0,2}))?$/.exec(text) ?? []
  const bits = isIP(address) === 4 ? 32 : 128
  return isIP(address) > 0 && Number(length ?? bits) <= bits
}

function parseRateLimit(value: string): RateLimit | undefined {
  const [, requests, seconds] = /^([1-9][0-9]{0,8})\/([1-9][0-9]{0,5})$/.exec(value) ?? []
  return requests === undefined ? undefined : { requests: Number(requests), seconds: Number(seconds) }
}

/** A database address may hold a password; a message must not repeat it. */
function redact(name: SettingName, value: string): string {
  return name === 'database' ? value.replace(/^([^:]*:(?:\/\/)?).*@/s, '$1…@') : value
}
