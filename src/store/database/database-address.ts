// Parses the address of a database, and names the database for people without its password.
import { resolve } from 'node:path'
import { decoded, redactCredentials, redactValue } from '../../contract/text/redact.ts'

export type DatabaseAddress = { engine: 'sqlite'; path: string } | { engine: 'postgres'; url: string }

export const IN_MEMORY = ':memory:'

/** A path that begins with USER:PASSWORD@ is the address of a server with the wrong scheme; C:\ is a drive. */
const USER_INFO = /^\/*(?![a-z]:[\\/])[^/\\]*:[^/\\]*@/i

/** Returns undefined if the text is not a database address. */
export function parseDatabase(value: string): DatabaseAddress | undefined {
  if (/^postgres(?:ql)?:\/\/./.test(value)) return { engine: 'postgres', url: value }
  // sqlite:///path is the usual form of an absolute path; after two slashes only, a host would follow.
  const path = /^sqlite:(?:\/\/(?=\/))?((?!\/\/).+)$/.exec(value)?.[1]
  return path === undefined || USER_INFO.test(decoded(path))
    ? undefined
    : { engine: 'sqlite', path: path === IN_MEMORY ? path : resolve(path) }
}

export function isInMemory(database: DatabaseAddress): boolean {
  return database.engine === 'sqlite' && database.path === IN_MEMORY
}

/** Hosts with their ports, then the name of the database. */
const HOSTS_AND_NAME = /^(?:(?:\[[\da-f:.]+\]|[\w.-]+)(?::[0-9]{1,5})?(?:,(?!\/|$)|(?=\/|$)))*(?:\/[^@:=]*)?$/i

/** Names the database for people, without user and password. Shows no host that does not look like one: it may be a password. */
export function describeDatabase(database: DatabaseAddress): string {
  if (database.engine === 'sqlite') return redactCredentials(database.path)
  const [named = '', parameters] = database.url.replace(/^\w+:\/\/(?:.*@)?/s, '').split(/\?(.*)/s)
  const host = new URLSearchParams(parameters).get('host')
  const whole = host === null ? named : `${host}${named.replace(/^[^/]*/, '')}`
  return [named, whole].every((text) => HOSTS_AND_NAME.test(decoded(text))) ? `PostgreSQL at ${whole}` : 'PostgreSQL'
}

/**
 * Returns the address for a suggested command, with the placeholder PASSWORD, or the placeholder URL if another part of it may be
 * a password too.
 */
export function suggestedAddress(address: string): string {
  const masked = address.replace(/^(postgres(?:ql)?:\/\/[\w.-]*):.+@/s, '$1:PASSWORD@')
  const withoutUser = masked.replace(/^(postgres(?:ql)?:\/\/)[\w.-]*(?::PASSWORD)?@/, '$1')
  return redactValue(withoutUser) === withoutUser ? masked : 'URL'
}

/** Whether a database address contains a password. */
export function holdsPassword(address: string): boolean {
  return /^\w+:\/\/[^:/?]*:.+@/s.test(address)
}
